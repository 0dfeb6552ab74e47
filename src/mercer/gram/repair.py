"""The repair of a similarity matrix that is not positive semidefinite, and of the rows it will meet later (K10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy.linalg import eigh

from mercer.gram.similarities import asymmetry, precision, square, symmetric_part

How = Literal["clip", "flip", "shift"]


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
