"""Ridge regression in feature space, for systems K + alpha that are singular to rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve, svd

from mercer.features.combine import exact_features
from mercer.gram import Gram
from mercer.gram.matrix import KernelMatrix
from mercer.solvers.systems.cholesky import eigenpairs

_FEATURES_PER_POINT = 2  # at most
_EIGEN_POINTS = 10_000  # points up to which the eigenvectors of K may take the place of features
_EPS = float(np.finfo(np.float64).eps)


class Parts(NamedTuple):
    """The solution for one alpha, (n, m) each: coefficients `within` + `beyond`, and the values f(x_i) + b.

    `within` lies in the range of K and makes f; of all coefficients that make f it is the shortest. Where it is so long
    that rounding errors of K times it would outweigh f it is shorter still. `beyond` solves the system besides. It adds
    nothing to f but the rounding errors of numbers of the size of 1 / alpha; at alpha = 0 there is none. The values are
    those of the exact solution.
    """

    within: np.ndarray
    beyond: np.ndarray
    values: np.ndarray


class FeatureSpace:
    r"""The weighted features of the training points by their singular vectors, centred where there is an offset.

    .. math:: W^{1/2} \Phi = U S V^T, \qquad
              W^{1/2} (y - f) = U \frac{\alpha}{S^2 + \alpha} U^T W^{1/2} y + (I - U U^T) W^{1/2} y

    The rounding errors of K = Phi Phi' are of the size of eps |Phi|^2, and those of Phi of eps |Phi|: an alpha that is
    lost beside the former is seen here. Without a feature map the eigenvectors of K serve; they know no more than K.

    Attributes
    ----------
    rank
        Of K, to rounding.
    exact
        Whether the vectors are those of a feature map.
    """

    def __init__(
        self,
        w: np.ndarray,
        intercept: bool,
        U: np.ndarray,
        values: np.ndarray,
        diagonal: np.ndarray,
        floor: float = 0.0,
        Phi: np.ndarray | None = None,
    ) -> None:
        self.root, self.intercept = np.sqrt(w)[:, None], intercept
        self._U, self._values, self._kept, self._Phi = U, values.clip(min=0.0)[:, None], values > floor, Phi
        self.rank, self.exact = int(self._kept.sum()), Phi is not None
        self.largest = float(values.max(initial=0.0))
        # The sum of w_i (rounding error of (K a)_i)^2 over |a / root|^2, at most.
        self._noise = 4 * _EPS**2 * float((w * diagonal).sum()) * float((w * diagonal).max())

    @classmethod
    def of_features(cls, gram: Gram, w: np.ndarray, intercept: bool = False) -> FeatureSpace | None:
        """Return the space of an exact feature map; None where the kernel has none of few enough features."""
        n = len(w)
        Phi = exact_features(gram.kernel, gram.left.data, min(_FEATURES_PER_POINT * n, int(gram.budget // (3 * 8 * n))))
        if Phi is None or not np.isfinite(Phi).all():
            return None
        lengths = np.square(Phi).sum(axis=1)
        for _ in range(2 * intercept):  # once leaves the rounding errors of features far from 0
            Phi = Phi - np.average(Phi, axis=0, weights=w)
        U, s, _ = svd(np.sqrt(w)[:, None] * Phi, full_matrices=False, check_finite=False)
        kept = s > _EPS * max(Phi.shape) * s.max(initial=0.0)
        return cls(w, intercept, U[:, kept], s[kept] ** 2, lengths, Phi=Phi)

    @classmethod
    def of_matrix(cls, matrix: KernelMatrix, w: np.ndarray, intercept: bool = False) -> FeatureSpace | None:
        """Return the space of the eigenvectors of K; None for too many points.

        Raises
        ------
        numpy.linalg.LinAlgError
            Where an eigenvalue is negative beyond rounding.
        """
        n = matrix.n
        if n > _EIGEN_POINTS or 3 * 8 * n * n > matrix.gram.budget:
            return None
        K = matrix.dense(np.empty((n, n)))
        root = np.sqrt(w)
        K *= root
        K *= root[:, None]
        if intercept:
            q = root / np.linalg.norm(root)
            Kq = K @ q
            side = np.outer(Kq - 0.5 * (q @ Kq) * q, q)
            K -= side + side.T
        values, U, floor = eigenpairs(K)
        return cls(w, intercept, U, values, np.abs(matrix.diagonal()), floor)

    def solve(self, Y: np.ndarray, alpha: float) -> Parts:
        """Return the solution for the columns of Y."""
        c, rest = self._split(Y)
        share, kept = self._share(alpha), self._kept
        values = self._values[kept]
        # The least sum of the objective and of what rounding errors add to it.
        within = self._centred(self._U[:, kept] @ (c[kept] / (values + alpha + self._noise / values)))
        left = self._U @ (share * c) + rest
        beyond = np.zeros_like(rest)
        if alpha > 0:
            beyond = self._centred(self._U[:, ~kept] @ (c[~kept] / (self._values[~kept] + alpha)) + rest / alpha)
        return Parts(self.root * within, self.root * beyond, Y - left / self.root)

    def square(self, r: np.ndarray) -> np.ndarray:
        """Return r'K r of each column of r, by the features."""
        assert self._Phi is not None
        return np.square(self._Phi.T @ r).sum(axis=0)

    # -- points left out --------------------------------------------------------------------------------

    def leave_one_out(self, Y: np.ndarray, alpha: float) -> np.ndarray:
        """Return the error at each point of the fit to all the others."""
        return (Y - self.solve(Y, alpha).values) / self.complement(alpha)[:, None]

    def leave_fold_out(self, Y: np.ndarray, alpha: float, fold: np.ndarray) -> np.ndarray:
        """Return the errors at the points of a fold of the fit to all others."""
        U, q = self._U[fold], self._unit[fold]
        left = U @ (self._share(alpha) * U.T) - q @ q.T
        if self._U.shape[1] < len(self._U):
            left += np.eye(len(U)) - U @ U.T
        left.flat[:: len(U) + 1] += _EPS
        error = self.root[fold] * (Y - self.solve(Y, alpha).values)[fold]
        return np.asarray(solve(left, error, assume_a="sym", check_finite=False)) / self.root[fold]

    def complement(self, alpha: float) -> np.ndarray:
        """Return 1 less the leverage of each point: alpha / w_i times the diagonal of the inverse."""
        squares = np.square(self._U)
        entries = squares @ self._share(alpha)[:, 0] - np.square(self._unit)[:, 0]
        if self._U.shape[1] < len(self._U):
            entries += 1.0 - squares.sum(axis=1)
        return np.asarray(entries.clip(min=_EPS))

    # -- what they share --------------------------------------------------------------------------------

    @property
    def _unit(self) -> np.ndarray:
        """The direction of the offset, (n, 1); 0 where there is none."""
        return self.root / np.linalg.norm(self.root) if self.intercept else np.zeros_like(self.root)

    def _centred(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(z - self._unit @ (self._unit.T @ z)) if self.intercept else z

    def _share(self, alpha: float) -> np.ndarray:
        """Return alpha / (S^2 + alpha), what a fit leaves of each direction: all of one that is rounding."""
        return np.divide(alpha, self._values + alpha, out=np.ones_like(self._values), where=self._kept[:, None])

    def _split(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return U'z and z - UU'z of the weighted and centred targets z; projected twice, or rounding would be left."""
        rest, c = self.root * Y, np.zeros((self._U.shape[1], Y.shape[1]))
        for _ in range(2):
            rest = self._centred(rest)
            part = self._U.T @ rest
            c += part
            rest = rest - self._U @ part
        if self._U.shape[1] == len(self._U):
            rest[:] = 0.0
        return c, rest
