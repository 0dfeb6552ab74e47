"""Kernels that are worth trying on a matrix of numbers, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from mercer.kernels import (
    RBF,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    parse_kernel,
)
from mercer.points import Block, Points
from mercer.selection.search.grids import scales

_UNEQUAL_UNITS = 10.0  # ratio of the columns' deviations from which on one scale cannot serve them all
_SPARSE_SHARE = 0.9  # share of zeros from which on rows are compared by their directions, too
_SAMPLE_ROWS = 300  # rows whose distances are looked at
HEAVY, LIGHT = "RBF, categories weigh more", "RBF, categories weigh less"
REASONS = {
    "linear": "the simplest, a weighted sum of the columns",
    "polynomial": "squares and products of columns",
    "RBF": "smooth functions, the usual first choice",
    "Matern": "functions with bends, which RBF would round off",
    "Laplacian": "steps and thresholds in single columns",
    "RBF + linear": "a linear trend, and what departs from it",
    HEAVY: "a product of RBF of the numbers and RBF of the categories, the latter at half the scale",
    LIGHT: "such a product, with the categories at twice the scale",
    "cosine": "directions of rows, since most entries are 0",
}


@dataclass(frozen=True)
class Candidate:
    """A kernel to try.

    Attributes
    ----------
    kernel
        The kernel.
    family
        What it has in common with its neighbours at other scales.
    scale
        Its scale; NaN where it has none.
    make
        Gives the kernel of this family at another scale; None where there is none.
    """

    kernel: Kernel
    family: str
    scale: float = float("nan")
    make: Callable[[float], Kernel] | None = field(default=None, compare=False, repr=False)

    def at(self, scale: float) -> Candidate:
        """Return its neighbour at another scale."""
        assert self.make is not None
        return Candidate(self.make(scale), self.family, scale, self.make)


@dataclass(frozen=True)
class Look:
    """What a matrix of numbers looks like before anything is learned from it."""

    rows: int
    columns: int
    categories: tuple[int, ...]  # the columns that stand for categories
    units: tuple[float, ...] | None  # the columns' deviations, where these are very unequal
    zeros: float  # the share of entries that are 0
    copies: int  # rows that repeat an earlier one
    strings: tuple[tuple[int, str], ...] = ()  # columns that hold none, and what they hold: "text" or "sequence"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The columns that do not stand for categories."""
        return tuple(sorted(set(range(self.columns)) - set(self.categories)))


def look_at(
    X: Any, categories: Sequence[int] = (), encoded: bool = False, strings: Sequence[tuple[int, str]] = ()
) -> Look:
    """Return what X looks like.

    Parameters
    ----------
    X
        A matrix, dense or sparse; of objects where there are strings.
    categories
        Its columns that stand for categories.
    encoded
        Whether distances mean something already, so that deviations are not to be made equal.
    strings
        Its columns that hold strings, and what they hold. The others are looked at as if they were all.
    """
    if strings:
        X, kept = numbers_of(X, strings)
        categories = [kept.index(i) for i in categories]
    n, d = X.shape
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        deviations, zeros, copies = np.sqrt(np.maximum(square - mean**2, 0.0)), 1.0 - X.nnz / max(1, n * d), 0
    else:
        top = np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(top > 0, top, 1.0)  # squares of huge numbers overflow
        deviations = (X / unit).std(axis=0) * unit
        zeros, copies = (float((X == 0).mean()), n - _distinct(X)) if X.size else (0.0, 0)
    moving = deviations[deviations > 0]
    unequal = moving.size > 1 and moving.max() > _UNEQUAL_UNITS * moving.min() and not (encoded or sparse.issparse(X))
    units = tuple(_short(s) if s > 0 else 1.0 for s in deviations) if unequal else None
    return Look(n, d, tuple(categories), units, zeros, 0 if strings else copies, tuple(strings))


def numbers_of(X: np.ndarray, strings: Sequence[tuple[int, str]]) -> tuple[np.ndarray, list[int]]:
    """Return the columns of an array of objects that hold numbers, as a matrix, and which they are."""
    held = {place for place, _ in strings}
    kept = [i for i in range(X.shape[1]) if i not in held]
    return X[:, kept].astype(np.float64), kept


def _distinct(X: np.ndarray) -> int:
    rows = np.ascontiguousarray(X + 0.0)  # -0 is 0
    return len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


# -- the list ---------------------------------------------------------------------------------------------


def kernel_list(look: Look, X: Any) -> list[Candidate]:
    """Return the kernels to try on a matrix, the simplest first, at scales taken from its distances.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> tried = kernel_list(look_at(X), X)
    >>> list(dict.fromkeys(candidate.family for candidate in tried))
    ['linear', 'polynomial', 'RBF', 'Matern', 'Laplacian', 'RBF + linear']
    >>> all(candidate.kernel.proof().status == "proven" for candidate in tried)
    True
    """
    units = None if look.units is None else np.array(look.units)
    Z = X if units is None else X / units
    grid = [_short(s) for s in scales(Z, 8)]
    middle = grid[1:7:2]  # where a second family is looked at, its neighbours come later if it does well
    city = _city(Z)
    weight = _short(1.0 / _square(Z))
    line = weight * Linear() if units is None else None
    candidates: list[Candidate] = []
    if line is not None:
        candidates.append(Candidate(line, "linear"))
        candidates += [Candidate(Polynomial(p, 1.0, weight), "polynomial", float("nan")) for p in (2, 3)]
    candidates += _family("RBF", lambda s: RBF(_scaled(s, units)), grid)
    candidates += _family("Matern", lambda s: Matern(1.5, _scaled(s, units)), grid[1::2])
    candidates += _family("Laplacian", lambda s: Laplacian(_scaled(s, units)), [_short(city * s) for s in grid[1::2]])
    if line is not None:
        candidates += _family("RBF + linear", lambda s: RBF(s) + line, middle)
    if look.categories and look.numbers and units is None:
        candidates += _apart(look, grid)
    if look.zeros > _SPARSE_SHARE and not look.categories:
        candidates.append(Candidate(Cosine(), "cosine"))
    return list({candidate.kernel: candidate for candidate in candidates}.values())


def _family(name: str, make: Callable[[float], Kernel], grid: Sequence[float]) -> list[Candidate]:
    return [Candidate(make(s), name, s, make) for s in grid]


def _apart(look: Look, grid: Sequence[float]) -> list[Candidate]:
    """Return products of RBF of the numbers and RBF of the categories, whose scale is half or twice as large.

    Such a product is one RBF with a scale for each column, and so it is written: one comparison instead of two.
    """
    candidates: list[Candidate] = []
    for ratio, family in ((0.5, HEAVY), (2.0, LIGHT)):
        factors = np.ones(look.columns)
        factors[list(look.categories)] = ratio
        candidates += _family(family, lambda s, f=factors: RBF(_scaled(s, f)), grid[2:7:2])  # type: ignore[misc]
    return candidates


def _scaled(scale: float, units: np.ndarray | None) -> Any:
    """A scale for all columns, or one for each that is `scale` times its unit."""
    return scale if units is None else tuple(_short(scale * unit) for unit in units)


def _some(X: Any) -> Points:
    points = Points.of(X)
    return points.take(np.linspace(0, len(points) - 1, min(len(points), _SAMPLE_ROWS)).astype(np.intp))


def _city(X: Any) -> float:
    """How much longer the way along the axes (L1) is than the straight one (L2)."""
    points = _some(X)
    block = Block(points, points)
    city, straight = np.median(np.asarray(block.l1())), np.median(np.sqrt(np.asarray(block.sqdist())))
    return float(city / straight) if straight > 0 else 1.0


def _square(X: Any) -> float:
    """The typical squared length of a row."""
    rows = _some(X).vectors
    squares = rows.multiply(rows).sum() if sparse.issparse(rows) else np.square(rows, dtype=np.float64).sum()
    mean = float(squares) / max(1, rows.shape[0])
    return mean if mean > 0 else 1.0


def _short(value: float) -> float:
    """Three digits: a scale that one can read."""
    return float(f"{value:.3g}")


# -- kernels that a user names ----------------------------------------------------------------------------


def given_kernels(kernels: Any, X: Any) -> list[Candidate]:
    """Return what a user wants to be tried: kernels, classes of kernels (at several scales), texts to be parsed."""
    if isinstance(kernels, Kernel | str | type):
        kernels = [kernels]
    candidates: list[Candidate] = []
    for k in kernels:
        if isinstance(k, str):
            k = parse_kernel(k)
        if isinstance(k, type) and issubclass(k, Kernel):
            if "scale" not in k.__dataclass_fields__:  # type: ignore[attr-defined]
                raise ValueError(
                    f"kernels contains the class {k.__name__}, which has no scale to try; give {k.__name__}() itself."
                )
            factor = _city(X) if k is Laplacian else 1.0
            grid = [_short(factor * s) for s in scales(X, 8)]
            candidates += _family(k.__name__, lambda s, k=k: k(scale=s), grid)  # type: ignore[misc]
        elif isinstance(k, Kernel):
            parts = any(isinstance(value, Kernel) for value in k.get_params(deep=False).values())
            scale = getattr(k, "scale", None)
            known = float(scale) if isinstance(scale, int | float) and not parts else float("nan")
            candidates.append(Candidate(k, repr(k) if parts else type(k).__name__, known))
        else:
            raise TypeError(f"kernels contains {k!r:.80}; it takes kernels, their classes, and texts such as 'RBF(2)'.")
    if not candidates:
        raise ValueError("kernels is empty; name at least one, or leave it None for a list that suits the data.")
    return list({candidate.kernel: candidate for candidate in candidates}.values())
