"""The diagonal of the inverse of a ridge system: with it, the prediction of each sample by a fit to the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.certify import Stop
from mercer.gram import Gram
from mercer.machine.lapack import clear_above, potrf, trtri
from mercer.solvers.control import Control
from mercer.solvers.systems.cholesky import cholesky, inverse_of_factor
from mercer.solvers.systems.feature_space import FeatureSpace
from mercer.solvers.systems.system import Systems

_COLUMNS_AT_ONCE = 256  # columns of the inverse computed together where the matrix does not fit
# Shift in units of the trace of K, up to which the rounding errors of K count beside it.
_TINY_SHIFT = 1e3 * float(np.finfo(np.float64).eps)
# Squared pivot of a float32 factor in units of the diagonal: at 2,000 points rounding then moves errors by some 1e-4.
_SINGLE_PIVOT = 1e-2
_SUMMED_ROWS = 512  # rows of the inverse factor whose squares are added at a time


def inverse_diagonal(gram: Gram, shift: np.ndarray, intercept: bool = False) -> np.ndarray:
    r"""Return the diagonal of C, the inverse of K + diag(shift); with an intercept, of

    .. math:: C = G - \frac{G 1 1' G}{1' G 1}, \qquad G = (K + \operatorname{diag}(s))^{-1}

    With a = C y the error at sample i of the fit without it is a_i / C_ii. Computed in place by a Cholesky
    factor and its inverse, with n³ operations and one matrix. Where that does not fit the budget, column by column;
    where the shift is so small that K's rounding errors count, in feature space.

    Parameters
    ----------
    gram
        The kernel matrix K of the training points.
    shift
        s, one number per point.
    intercept
        Whether the model has a free offset.

    Examples
    --------
    >>> from mercer import Gram, Linear
    >>> inverse_diagonal(Gram(Linear(), [[1.0, 0.0], [0.0, 2.0]]), np.ones(2))
    array([0.5, 0.2])
    """
    n = gram.shape[0]
    least, trace = float(np.min(shift)), float(np.abs(np.asarray(gram.diag())).sum())
    tiny = 0 < least <= _TINY_SHIFT * trace
    if tiny and (space := FeatureSpace.of_features(gram, 1.0 / shift, intercept)) is not None:
        return space.complement(1.0) / shift
    if 24 * n * n > gram.budget:
        return _by_columns(Systems(gram, Control(precision="float64")), shift, intercept)
    M = np.array(gram.dense(), dtype=np.float64, order="F")
    M.flat[:: n + 1] += shift
    if not cholesky(M):
        raise np.linalg.LinAlgError(
            f"K + shift is singular to rounding (the least shift is {least:.2g}), so that leaving out a "
            "sample leaves its value undetermined; take a larger alpha."
        )
    inverse_of_factor(M)
    M = np.tril(M)
    diagonal = np.zeros(n)
    for i in range(0, n, _SUMMED_ROWS):
        diagonal += np.einsum("ij,ij->j", M[i : i + _SUMMED_ROWS], M[i : i + _SUMMED_ROWS])
    return _without_constants(diagonal, M.T @ (M @ np.ones(n))) if intercept else diagonal


def _by_columns(systems: Systems, shift: np.ndarray, intercept: bool) -> np.ndarray:
    n = systems.gram.shape[0]

    def solved(B: np.ndarray) -> np.ndarray:
        answer = systems.solve(shift, B, tol=1e-8)
        if answer.stopped == Stop.INTERRUPTED:
            raise KeyboardInterrupt
        return answer.A

    diagonal = np.empty(n)
    for start in range(0, n, _COLUMNS_AT_ONCE):
        here = np.arange(start, min(start + _COLUMNS_AT_ONCE, n))
        unit = np.zeros((n, len(here)))
        unit[here, here - start] = 1.0
        diagonal[here] = solved(unit)[here, here - start]
    return _without_constants(diagonal, solved(np.ones(n))) if intercept else diagonal


def _without_constants(diagonal: np.ndarray, ones: np.ndarray) -> np.ndarray:
    return diagonal - ones**2 / ones.sum()


def left_out(K: np.ndarray, Y: np.ndarray, shift: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the coefficients of ridge regression with an offset, and each sample's error by the fit without it.

    One Cholesky factor and its inverse serve both (see `inverse_diagonal`), in the type of K. None where K + shift is
    singular to rounding, and in float32 already at a pivot so small that errors would be off by a thousandth.

    Parameters
    ----------
    K
        The kernel matrix, n x n, float32 or float64; its memory is used.
    Y
        Targets, (n, m).
    shift
        A number, or one for each sample.

    Examples
    --------
    >>> import numpy as np
    >>> a, errors = left_out(np.eye(3), np.array([[1.0], [2.0], [6.0]]), 1.0)
    >>> errors.T  # the others are predicted by their mean
    array([[-3. , -1.5,  4.5]])
    """
    single = K.dtype == np.float32
    L = K.T if K.flags.c_contiguous else K  # symmetric; LAPACK wants columns
    L.flat[:: len(K) + 1] += shift
    top = float(L.diagonal().max())
    if not potrf(L) or (single and float(L.diagonal().min()) ** 2 < _SINGLE_PIVOT * top) or not trtri(L):
        return None
    clear_above(L)
    ones = (L.T @ L.sum(axis=1)).astype(np.float64)
    diagonal = _without_constants(np.einsum("ij,ij->j", L, L).astype(np.float64), ones)
    if not (diagonal > 0).all():
        return None
    a = (L.T @ (L @ Y.astype(L.dtype, copy=False))).astype(np.float64, copy=False)
    a -= np.outer(ones, ones @ Y) / ones.sum()
    return a, a / diagonal[:, None]
