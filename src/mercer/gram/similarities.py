"""Similarities of n points that may make no kernel: seen in both orders, in double precision, and repaired (K10)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from mercer.gram.gram import Gram, as_numpy, in_double
from mercer.kernels import FromFunction, Kernel, Precomputed
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.budget import Budget
from mercer.machine.lazy import cached_property
from mercer.points import Points

How = Literal["clip", "flip", "shift"]

_STRIP = 1 << 21  # entries of a matrix that are converted at a time
_SAMPLE = 200  # points among which all ordered pairs are compared when n^2 of them are too many


class Similarities(ABC):
    """An n x n matrix S, its symmetric part H = (S + S') / 2 as an operator, and how far S is from H."""

    n: int
    eps: float

    @abstractmethod
    def dense(self) -> np.ndarray:
        """Return S as a new float64 matrix, every ordered pair evaluated on its own."""

    @abstractmethod
    def asymmetry(self, seed: int) -> tuple[float, tuple[int, int], str]:
        """Return the largest |S - S'| over the largest |S|, where it is, and among which pairs."""

    @abstractmethod
    def product(self, v: np.ndarray) -> np.ndarray:
        """Return H v."""

    @abstractmethod
    def diag(self) -> np.ndarray:
        """Return the diagonal."""

    @abstractmethod
    def column(self, i: int) -> np.ndarray:
        """Return column i of H."""


class OfMatrix(Similarities):
    """The entries of a given matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = square(matrix)
        self.n = len(self.matrix)
        self.eps = precision(self.matrix.dtype)

    def dense(self) -> np.ndarray:
        return self.matrix.astype(np.float64)

    def asymmetry(self, seed: int) -> tuple[float, tuple[int, int], str]:
        return *asymmetry(self.matrix), "all pairs"

    def product(self, v: np.ndarray) -> np.ndarray:
        return _symmetric_product(lambda r: self.matrix[r].astype(np.float64, copy=False), v)

    def diag(self) -> np.ndarray:
        return np.diag(self.matrix).astype(np.float64)

    def column(self, i: int) -> np.ndarray:
        return 0.5 * self.matrix[:, i].astype(np.float64) + 0.5 * self.matrix[i].astype(np.float64)


class OfPoints(Similarities):
    """The values of a kernel on points, which are cast to float64 where they are vectors of less."""

    def __init__(self, kernel: Kernel, X: Any, budget: Budget) -> None:
        points = Points.of(X)
        self.gram = Gram(kernel.resolve(points), in_double(points), budget=budget)
        self.n = self.gram.shape[0]
        self.eps = precision(np.dtype(str(self.gram.dtype).removeprefix("torch.")))
        self.budget = budget
        self._ordered = False  # whether f(x, z) and f(z, x) were seen to differ

    @cached_property
    def _both(self) -> Gram:
        """The matrix in both orders: one set of points would be computed from its upper triangle alone."""
        points = self.gram.left
        return Gram(self.gram.kernel, points, points.take(np.arange(self.n)), self.budget)

    def dense(self) -> np.ndarray:
        return as_numpy(self._both.dense())

    def asymmetry(self, seed: int) -> tuple[float, tuple[int, int], str]:
        size = min(self.n, _SAMPLE)
        chosen = np.sort(np.random.default_rng(seed).choice(self.n, size, replace=False))
        value, (i, j) = asymmetry(as_numpy(self.gram.block(chosen, chosen)))
        self._ordered = value > 0
        return value, (int(chosen[i]), int(chosen[j])), f"all pairs of {size} random points"

    def product(self, v: np.ndarray) -> np.ndarray:
        if self._held is not None:
            return self._held @ v
        if self._ordered:
            return _symmetric_product(lambda r: as_numpy(self._both.block(r, slice(0, self.n))), v)
        return self.gram.product(v)

    @cached_property
    def _held(self) -> np.ndarray | None:
        """The matrix, for formulas that only Python can evaluate: once is slow enough."""
        if self.gram.compiled or self.gram.left.foreign or 24 * self.n**2 > self.budget:
            return None
        return symmetric_part(self.dense()) if self._ordered else as_numpy(self.gram.dense())

    def diag(self) -> np.ndarray:
        return as_numpy(self.gram.diag())

    def column(self, i: int) -> np.ndarray:
        return as_numpy(self.gram.block(slice(0, self.n), slice(i, i + 1)))[:, 0]


def similarities(k: Any, X: Any, budget: Budget) -> Similarities:
    """Return the similarities of a kernel, a function, a Gram matrix or a matrix of numbers; refuse anything else."""
    k = as_kernel(k)
    if isinstance(k, Gram):
        if X is not None:
            raise TypeError("a Gram matrix brings its own points; call verdict(gram) without X.")
        if not k.symmetric:
            raise ValueError(f"{k!r} compares two sets of points; a verdict is about one: make it as Gram(kernel, X).")
        return OfPoints(k.kernel, k.left, budget)
    if isinstance(k, Precomputed) and X is None:
        return OfMatrix(k.matrix)
    if isinstance(k, Kernel) or (callable(k) and not hasattr(k, "shape")):
        if X is None:
            raise TypeError(f"whether {k!r} is positive semidefinite depends on the points; call verdict(k, X).")
        return OfPoints(k if isinstance(k, Kernel) else FromFunction(k), X, budget)
    if X is not None:
        raise TypeError("a matrix of similarities needs no points; call verdict(K) without X.")
    return OfMatrix(k)


def square(matrix: Any, name: str = "K") -> np.ndarray:
    """Return a square matrix of finite real numbers as an array, or raise with the reason."""
    if sparse.issparse(matrix):
        raise TypeError(f"{name} is a sparse matrix; pass its entries as {name}.toarray().")
    try:
        K = np.asarray(matrix)
    except ValueError:
        raise ValueError(f"{name} is ragged: its rows have different lengths; it must be square.") from None
    if K.dtype.kind not in "fiub" or K.ndim == 0:
        raise TypeError(f"{name} must be a matrix of real numbers; it is a {type(matrix).__name__} of {K.dtype}.")
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
        raise ValueError(f"{name} must be square, one row and one column per point; its shape is {K.shape}.")
    for r in strips(len(K)):
        finite = np.isfinite(K[r])
        if not finite.all():
            i, j = np.argwhere(~finite)[0]
            raise ValueError(
                f"{name} contains {K[r][i, j]} at ({i + r.start}, {j}); every similarity must be finite: "
                "compute it again, or drop the point."
            )
    return K


def strips(n: int) -> list[slice]:
    """Return bands of rows of an n x n matrix, each small enough to be converted."""
    height = max(1, _STRIP // n)
    return [slice(r, min(r + height, n)) for r in range(0, n, height)]


def asymmetry(K: np.ndarray) -> tuple[float, tuple[int, int]]:
    """Return the largest |K - K'| over the largest |K|, and where it is."""
    worst, at, scale = 0.0, (0, 0), 0.0
    for r in strips(len(K)):
        rows = K[r].astype(np.float64)
        scale = max(scale, float(np.abs(rows).max()))
        gap = np.abs(rows - K[:, r].T)
        i, j = np.unravel_index(int(gap.argmax()), gap.shape)
        if gap[i, j] > worst:
            worst, at = float(gap[i, j]), (int(i) + r.start, int(j))
    return (worst / scale if scale else 0.0), at


def _symmetric_product(rows: Callable[[slice], np.ndarray], v: np.ndarray) -> np.ndarray:
    """Return (S v + S' v) / 2 from bands of rows of S."""
    out = np.zeros(len(v))
    for r in strips(len(v)):
        part = rows(r)
        out[r] += 0.5 * (part @ v)
        out += 0.5 * (v[r] @ part)
    return out


def symmetric_part(K: np.ndarray) -> np.ndarray:
    """Return (K + K') / 2, exactly symmetric and without overflow on the way."""
    if (K == K.T).all():  # halving would lose the last bit of numbers below the normal range
        return np.array(K)
    half = 0.5 * K
    return half + half.T


def precision(dtype: Any) -> float:
    """Return the rounding unit of numbers of a type, or that of float64 if it is larger."""
    eps = np.finfo(dtype if np.dtype(dtype).kind == "f" else np.float64).eps
    return max(float(eps), float(np.finfo(np.float64).eps))


# -- the repair of a matrix, and of the rows it will meet later -------------------------------------------


@dataclass(frozen=True, eq=False)
class Repaired:
    """A positive semidefinite matrix made of one that was not, and the same change for test rows.

    Attributes
    ----------
    how : str
        "clip", "flip" or "shift".
    matrix : ndarray
        The repaired matrix: float64, exactly symmetric, positive semidefinite up to rounding.
    transform : ndarray
        The symmetric P with which test rows are multiplied; the identity for "shift".
    eigenvalues_before : ndarray
        Those of the given matrix, ascending.
    moved : float
        The Frobenius norm of the change.
    moved_relative : float
        The same relative to the norm of the given matrix.
    """

    how: How
    matrix: np.ndarray = field(repr=False)
    transform: np.ndarray = field(repr=False)
    eigenvalues_before: np.ndarray = field(repr=False)
    moved: float
    moved_relative: float

    def apply(self, K_test: Any) -> np.ndarray:
        """Return test rows k(x_test, x_train), changed as the training matrix was.

        Parameters
        ----------
        K_test
            One row per test point (or one row alone), one column per training point, before any repair.

        Examples
        --------
        >>> import numpy as np
        >>> K = np.array([[1.0, 2.0], [2.0, 1.0]])
        >>> fixed = repair(K)
        >>> bool(np.allclose(fixed.apply(K), fixed.matrix))
        True
        """
        rows = np.asarray(K_test, dtype=np.float64)
        n = len(self.matrix)
        if rows.ndim not in (1, 2) or rows.shape[-1] != n:
            raise ValueError(
                f"K_test has shape {rows.shape}; it needs {n} columns, the similarities of each test point to the "
                f"{n} training points, as in kernel(X_test, X_train)."
            )
        if not np.isfinite(rows).all():
            raise ValueError("K_test contains NaN or infinite values; every similarity must be finite.")
        return rows.copy() if self.how == "shift" else rows @ self.transform


def repair(K: Any, how: How = "clip") -> Repaired:
    r"""Make a symmetric matrix positive semidefinite by changing its negative eigenvalues.

    .. math:: K = U \Lambda U^T \;\longrightarrow\; U f(\Lambda) U^T, \qquad
        f(\lambda) = \max(\lambda, 0),\; |\lambda|,\; \lambda - \min(\lambda_{\min}, 0)

    - "clip" takes negative eigenvalues for noise: the nearest positive semidefinite matrix in Frobenius norm. Test
      rows are projected, :math:`P = U\, 1[\Lambda > 0]\, U^T`.
    - "flip" takes their size for information: :math:`P = U \operatorname{sign}(\Lambda)\, U^T`.
    - "shift" adds :math:`-\lambda_{\min}` to the diagonal: only self-similarities change, so test rows do not.

    The transforms are those of Chen, Garcia, Gupta, Rahimi and Cazzanti (2009), section 4: clipped or flipped
    training rows are the rows of the repaired matrix, and test rows stay within its range.

    Parameters
    ----------
    K
        A square matrix, symmetric up to rounding.
    how
        "clip", "flip" or "shift".

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import repair
    >>> fixed = repair(np.array([[1.0, 2.0], [2.0, 1.0]]), how="clip")
    >>> fixed.matrix.round(12)
    array([[1.5, 1.5],
           [1.5, 1.5]])
    >>> round(fixed.moved, 12), fixed.eigenvalues_before.round(12)
    (1.0, array([-1.,  3.]))
    """
    if how not in get_args(How):
        raise ValueError(f"how must be 'clip', 'flip' or 'shift'; it is {how!r}.")
    given = square(K)
    gap, (i, j) = asymmetry(given)
    if gap > max(len(given), 100) * precision(given.dtype):
        raise ValueError(
            f"K is not symmetric: K[{i}, {j}] is {given[i, j]:.6g} and K[{j}, {i}] is {given[j, i]:.6g}. "
            "If their order means nothing, repair (K + K.T) / 2."
        )
    H = symmetric_part(given.astype(np.float64))
    values, U = eigh(H, driver="evd")  # to a few eps where the default gives hundreds
    low = float(values[0])
    if how == "shift":
        transform = np.eye(len(H))
        matrix = H + max(0.0, -low) * transform
    else:
        transform = _of_eigenvalues(U, np.sign(values) if how == "flip" else (values > 0).astype(float))
        matrix = H if low >= 0 else _of_eigenvalues(U, np.abs(values) if how == "flip" else values.clip(min=0))
    norm, moved = float(np.linalg.norm(values)), float(np.linalg.norm(matrix - H))
    return Repaired(how, matrix, transform, values, moved, moved / norm if norm else 0.0)


def _of_eigenvalues(U: np.ndarray, values: np.ndarray) -> np.ndarray:
    return symmetric_part((U * values) @ U.T)
