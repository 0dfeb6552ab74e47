"""The leave-one-out errors of ridge regression in closed form, with their gradient in the kernel's parameters."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import lapack

from mercer.gram import Gram, parameter_gradient
from mercer.gram.matrix import KernelMatrix
from mercer.kernels import Kernel
from mercer.machine.threads import one_thread_each
from mercer.points import Points
from mercer.solvers.gp.likelihood import LEAST, fill, least_noise
from mercer.solvers.systems.cholesky import diagnose

_TILE = 512  # rows and columns that are mirrored at a time: two tiles stay in the cache
_ROUNDING = 1e-13  # of the largest target: errors that are rounding

Measure = Literal["squares", "density"]


@dataclass(frozen=True)
class LeftOut:
    """The errors of all samples, each by the fit without it, and what is maximised."""

    errors: np.ndarray  # y_i - f_{-i}(x_i), (n, m)
    precisions: np.ndarray  # C_ii: the inverse of the variance with which the others predict sample i
    likelihood: float  # `LeaveOneOut` says of what


class LeaveOneOut:
    r"""The leave-one-out errors of ridge regression in closed form, as `mercer.solvers.gp.search` maximises.

    .. math:: e_i = a_i / C_{ii}, \quad a = C y, \quad C = (K + \alpha I)^{-1}

    and with an intercept :math:`C - C 1 1' C / 1'C1` in place of C. Of n samples and m targets, either

    .. math:: -\tfrac{nm}{2} \log \tfrac{1}{nm} \sum_i e_i^2 \quad\text{("squares")}, \qquad
              \sum_i \log N(e_i; 0, 1 / C_{ii}) \quad\text{("density")}

    The first is the mean square on the scale of a likelihood; it does not notice if K and alpha are multiplied by one
    number. As dC = -C dM C for M = K + alpha I, the slopes of both are

    .. math:: \langle W, dM \rangle, \qquad W \propto \tfrac12 (C u\, a' + a\, u' C) - C \operatorname{diag}(v) C

    with u = e / C_ii and v = e² / C_ii, or with u = e and v = (e² + 1 / C_ii) / 2.

    Parameters
    ----------
    points
        The training points.
    Y
        Targets, (n, m).
    memory
        Not used: the memory of a factor that others reuse.
    intercept
        Whether there is an offset, which is not penalised.
    measure
        "squares" or "density".

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, KernelRidge
    >>> from mercer.points import Points
    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> left_out = LeaveOneOut(Points(X), np.sin(6 * X)).factor(RBF(scale=0.3), 0.01)
    >>> model = KernelRidge(alpha=0.01, kernel=RBF(scale=0.3)).fit(X, np.sin(6 * X))
    >>> bool(np.allclose(left_out.errors, model.loo_residuals()))
    True
    """

    def __init__(
        self,
        points: Points,
        Y: np.ndarray,
        memory: np.ndarray | None = None,
        *,
        intercept: bool = False,
        measure: Measure = "squares",
    ) -> None:
        self.points, self.Y = points, np.ascontiguousarray(Y, dtype=np.float64)
        self.intercept, self.measure = intercept, measure
        n = len(self.Y)
        self.matrix = np.empty((n, n))
        self.factored: LeftOut | None = None
        self._hidden: Any = False

    def factor(self, kernel: Kernel, noise: float | np.ndarray, careful: bool = True) -> LeftOut:
        """Return the errors for a kernel and a level of noise, which is alpha.

        Parameters
        ----------
        kernel
            With every parameter known.
        noise
            A number, or one for each point.
        careful
            Not used: noise too small for a sound factor is raised to what is enough.
        """
        self.factored = None
        C, n = self.matrix, len(self.matrix)
        floor = least_noise(kernel.diag(self.points))
        self._hidden = np.broadcast_to(np.asarray(noise) < floor, n)
        fill(kernel, self.points, C)
        C.flat[:: n + 1] += np.maximum(noise, floor)
        _, failed = lapack.dpotrf(C.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            shift = np.broadcast_to(np.asarray(noise, dtype=np.float64), n)
            raise np.linalg.LinAlgError(diagnose(KernelMatrix(Gram(kernel, self.points)), shift))
        lapack.dpotri(C.T, lower=1, overwrite_c=1)
        _mirror(C)
        if self.intercept:
            ones = C.sum(axis=1)
            C -= np.multiply.outer(ones, ones / ones.sum())
        diagonal = C.diagonal().copy()
        if not (diagonal > 0).all():
            raise np.linalg.LinAlgError(
                "leaving out a sample leaves its value undetermined: K + alpha is singular to rounding. Take a larger "
                "alpha."
            )
        a = C @ self.Y
        errors = a / diagonal[:, None]
        self._a = a
        self.factored = LeftOut(errors, diagonal, self._value(errors, diagonal))
        return self.factored

    def _value(self, errors: np.ndarray, diagonal: np.ndarray) -> float:
        if self.measure == "squares":
            return -0.5 * errors.size * math.log(self._mean_square(errors))
        width = errors.shape[1]
        fit = float(np.einsum("ij,ij,i->", errors, errors, diagonal))
        return 0.5 * (width * float(np.log(diagonal).sum()) - fit - errors.size * math.log(2 * math.pi))

    def _mean_square(self, errors: np.ndarray) -> float:
        least = _ROUNDING * float(np.abs(self.Y).max(initial=0.0))
        return max(float(np.mean(errors**2)), least**2, 1e-300)

    def gradient(self, kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
        """Return the slopes of what `factor` has found last.

        Parameters
        ----------
        kernel
            The kernel of that call.

        Returns
        -------
        slopes, noise
            In each continuous parameter of the kernel, and in the noise of each point.
        """
        assert self.factored is not None
        C, a, n = self.matrix, self._a, len(self.matrix)
        errors, precisions = self.factored.errors, self.factored.precisions
        squares = np.einsum("ij,ij->i", errors, errors)
        if self.measure == "squares":
            share = 1.0 / self._mean_square(errors)
            u, v = share * errors / precisions[:, None], share * squares / precisions
        else:
            u, v = errors, 0.5 * (squares + errors.shape[1] / precisions)
        half = C * np.sqrt(v)
        W = half @ half.T
        np.negative(W, out=W)
        np.matmul(C @ u, 0.5 * a.T, out=half)
        W += half
        W += half.T
        del half
        noise = np.where(self._hidden, 0.0, W.diagonal())
        if self._hidden.any():  # there the diagonal is a multiple of the trace of K
            W.flat[:: n + 1] += LEAST * float(W.diagonal()[self._hidden].sum())
        with one_thread_each() if n > _TILE else nullcontext():
            return parameter_gradient(kernel, self.points, W), noise


def _mirror(M: np.ndarray) -> None:
    """Copy what is above the diagonal below it."""
    n = len(M)
    for i in range(0, n, _TILE):
        rows = slice(i, i + _TILE)
        part = M[rows, rows]
        below = np.tril_indices(len(part), -1)
        part[below] = part.T[below]
        M[i + _TILE :, rows] = M[rows, i + _TILE :].T
