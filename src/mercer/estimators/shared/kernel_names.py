"""From scikit-learn's names and functions to kernel objects."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel

from mercer.estimators.shared.choosing import AUTO
from mercer.kernels import (
    RBF,
    Categorical,
    ChiSquared,
    Composed,
    Constant,
    Cosine,
    Delta,
    FromDissimilarity,
    FromFeatures,
    FromFunction,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    MinMax,
    On,
    Polynomial,
    Precomputed,
    Proof,
    Rescaled,
    SetKernel,
    Sigmoid,
    Tanimoto,
    kernel,
)
from mercer.kernels.base import check_number
from mercer.points import Block, Diagonal, Pair, Points, Untraceable, trace
from mercer.points.formulas.pair import called

NAMES = (
    "additive_chi2",
    "chi2",
    "cosine",
    "laplacian",
    "linear",
    "matern",
    "poly",
    "polynomial",
    "precomputed",
    "rbf",
    "sigmoid",
)
_STEP = 64  # points per block whose diagonal is wanted
_NEUTRAL = (Categorical, Constant, Delta, Intersection, MinMax, Tanimoto)


def named_kernel(
    name: str, points: Points, gamma: float | str | None = "scale", degree: int = 3, coef0: float = 0.0
) -> Kernel:
    """Return the kernel that scikit-learn means by a name; "matern" is that of smoothness 5/2.

    Parameters
    ----------
    name
        One of `NAMES` other than "precomputed".
    points
        The training points.
    gamma
        A number; "scale" for each kernel's own "auto"; "auto" for 1 / features; None for the same, except that it is 1
        for "chi2".
    degree, coef0
        Of polynomials; of the sigmoid.
    """
    if name == "linear":
        return Linear()
    if name == "cosine":
        return Cosine()
    if name == "additive_chi2":
        return FromMatrices(additive_chi2_kernel)
    if name == AUTO:
        raise ValueError("kernel='auto' is found by `fit`, from data and targets; it is no kernel before.")
    if name == "chi2" and (gamma is None or gamma == "scale"):
        return ChiSquared()
    if gamma is None or gamma == "auto":
        gamma = 1.0 / points.width
    rate: Any = "auto" if gamma == "scale" else float(gamma)
    if rate != "auto":
        check_number(RBF(1.0), "gamma", rate)
    if name == "chi2":
        return ChiSquared(rate)
    if name == "laplacian":
        return Laplacian(rate if rate == "auto" else 1.0 / rate).resolve(points)
    if name in ("rbf", "matern"):
        scale = rate if rate == "auto" else math.sqrt(0.5 / rate)
        return (RBF(scale) if name == "rbf" else Matern(2.5, scale)).resolve(points)
    if name == "sigmoid":
        return Sigmoid(rate, float(coef0)).resolve(points)
    if coef0 < 0:
        raise ValueError(
            f"coef0={coef0!r} makes (gamma <x, z> + coef0)^degree indefinite; a polynomial kernel needs coef0 >= 0."
        )
    return Polynomial(degree, float(coef0), rate).resolve(points)


@kernel
class FromMatrices(Kernel):
    """A Python function of two sets of points that returns the matrix of their similarities.

    This is what scikit-learn calls a callable kernel.

    Parameters
    ----------
    f
        f(X, Z) gives the matrix with one row per point of X and one column per point of Z.

    Examples
    --------
    >>> import numpy as np
    >>> FromMatrices(lambda X, Z: X @ Z.T)(np.array([[1.0], [2.0]]))
    array([[1., 2.],
           [2., 4.]])
    """

    f: Callable[[Any, Any], Any]

    def of(self, pair: Pair) -> Any:
        if isinstance(pair, Block):
            return self.matrix(pair._left, pair._right)
        if isinstance(pair, Diagonal):
            points = pair._left
            parts = [points.take(slice(i, i + _STEP)) for i in range(0, len(points), _STEP)]
            return np.concatenate([self.matrix(part, part).diagonal() for part in parts])
        raise Untraceable("a Python function of two sets of points has no symbolic form")

    def matrix(self, left: Points, right: Points) -> np.ndarray:
        """Return what one call of the function says."""
        values = self.f(left.data, right.data)
        values = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
        if values.shape != (len(left), len(right)):
            raise ValueError(
                f"the kernel function returned shape {values.shape} for {len(left)} points against {len(right)}; it "
                "must give one row per point of its first argument and one column per point of its second."
            )
        return called(self.f, values, left, right)

    def _proof(self) -> Proof:
        return self._axiom(
            "given function",
            "nothing is known about a Python function; verdict(k, X) tests it on points.",
            own="unproven",
        )


# Kernels that read their points as they are given (strings, tables, indices), and those that read anything.
_RAW = (FromDissimilarity, FromFunction, FromFeatures, FromMatrices, Precomputed, On, Composed, Rescaled, SetKernel)


def compares_vectors(k: Kernel) -> bool:
    """Return whether every part of a kernel reads its points as rows of numbers, so that X may become a matrix."""
    leaves = list(_leaves(k))
    if any(_is_raw(leaf) or not (isinstance(leaf, _NEUTRAL) or _traceable(leaf)) for leaf in leaves):
        return False
    return not all(isinstance(leaf, _NEUTRAL) for leaf in leaves)


def _is_raw(k: Kernel) -> bool:
    return isinstance(k, _RAW) or k._of_objects


def _leaves(k: Kernel) -> Any:
    parts = [] if isinstance(k, _RAW) else [v for v in k._params().values() if isinstance(v, Kernel)]
    if not parts:
        yield k
    for part in parts:
        yield from _leaves(part)


def _traceable(leaf: Kernel) -> bool:
    if type(leaf).__module__.startswith("mercer.kernels."):
        return True
    dummy = Points(np.eye(2))
    try:
        return trace(leaf.resolve(dummy).of, dummy) is not None
    except Exception:  # a kernel of someone else's: whatever it says to two unit vectors, it wants the points raw
        return False
