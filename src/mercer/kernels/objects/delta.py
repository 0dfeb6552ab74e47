"""Kernels of equality: the delta kernel, and that of categories."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from mercer.kernels.base import Kernel, check_number, kernel
from mercer.points import Pair, Points
from mercer.points.formulas.dual import number


@kernel
class Delta(Kernel):
    """1 for equal points, 0 otherwise: white noise, or the matching of categories.

    .. math:: k(x, z) = 1[x = z]

    Equality is of values, so it is a function of the two points: two equal rows count as one point. (Noise that
    is independent for repeated measurements is a parameter of the models, not a kernel.)

    Examples
    --------
    >>> from mercer.kernels import Delta
    >>> Delta()(["red", "blue", "red"])
    array([[1., 0., 1.],
           [0., 1., 0.],
           [1., 0., 1.]])
    """

    _because = "feature map", "one coordinate per distinct point: Phi(x) = e_x; the Gram matrix is blocks of ones."

    def of(self, pair: Pair) -> Any:
        return pair.equal


@kernel
class Categorical(Kernel):
    r"""1 for equal categories, and one smaller similarity for any two others.

    .. math:: k(x, z) = \rho + (1 - \rho)\, 1[x = z]

    It is `Delta` with two things more: categories may have something in common (rho), and a missing value (None, NaN,
    pandas' NA) is a category of its own, so that missing equals missing. Categories are of any hashable type. A row of
    several columns is one category: all of them must match.

    Parameters
    ----------
    other
        rho, the similarity of different categories: 0 <= rho < 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer.kernels import RBF, Categorical
    >>> Categorical(other=0.25)(["nurse", "cook", None, None])
    array([[1.  , 0.25, 0.25, 0.25],
           [0.25, 1.  , 0.25, 0.25],
           [0.25, 0.25, 1.  , 1.  ],
           [0.25, 0.25, 1.  , 1.  ]])
    >>> people = pd.DataFrame({"age": [30.0, 40.0, 40.0], "job": ["nurse", "cook", "nurse"]})
    >>> (RBF(10.0).on("age") * Categorical().on("job"))(people).round(4)
    array([[1.    , 0.    , 0.6065],
           [0.    , 1.    , 0.    ],
           [0.6065, 0.    , 1.    ]])
    """

    other: float = 0.0

    _because = (
        "feature map",
        "one coordinate common to all, of size rho^(1/2), and one per category, of size (1 - rho)^(1/2).",
    )

    def _validate(self) -> None:
        check_number(self, "other", self.other, closed=True)
        if not float(self.other) < 1:
            raise ValueError(
                f"other of Categorical must be below 1, the similarity of equal categories; it is {self.other!r}. "
                "Constant(1.0) is the kernel that makes no difference."
            )

    def of(self, pair: Pair) -> Any:
        equal = pair.through(categories).equal
        return equal + number(self.other) * (1.0 - equal)


def categories(points: Points) -> Any:
    """Return rows of numbers as numbers, which the core compares, and others as objects; missing is one more value."""
    data = points.data
    if points.foreign:
        return data
    if sparse.issparse(data):
        data = data.toarray()
    rows = data.to_numpy() if hasattr(data, "columns") else data
    if isinstance(rows, list | tuple) and all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        with suppress(ValueError):  # rows of different lengths
            rows = np.asarray(rows) if np.asarray(rows).dtype.kind in "fiub" else rows
    if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "fiub":
        rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
        kind = np.isnan(rows) + 2 * np.isposinf(rows) + 3 * np.isneginf(rows)  # 0 for a number; in columns of its own
        return np.hstack([np.where(kind == 0, rows, 0), kind.astype(rows.dtype)])
    objects = np.empty(len(points), dtype=object)
    for i, row in enumerate(rows):
        row = row.tolist() if isinstance(row, np.ndarray) else row
        many = isinstance(row, list | tuple)
        objects[i] = tuple(None if _missing(cell) else cell for cell in row) if many else None if _missing(row) else row
    return objects


def _missing(value: Any) -> bool:
    nan = isinstance(value, float) and value != value
    return nan or value is None or type(value).__name__ in ("NAType", "NaTType")  # of pandas
