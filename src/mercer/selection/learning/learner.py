"""The climb from one kernel to a better one, first with one scale for all features, then with one for each."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.linalg import lapack
from sklearn.base import clone

from mercer.estimators import GaussianProcessRegressor
from mercer.gram import Gram, parameter_gradient, parameters, with_parameters
from mercer.gram.products import Products
from mercer.kernels import Kernel
from mercer.kernels.vectors.stationary import Radial
from mercer.machine.threads import one_thread_each
from mercer.points import Points
from mercer.selection.learning.learned import Learned, account
from mercer.solvers.control import Control
from mercer.solvers.gp.likelihood import LEAST, Evidence, Profile, fill, least_noise
from mercer.solvers.gp.search import Tuned, tune
from mercer.solvers.gp.space import NOISE, Space, last_part, space_of
from mercer.solvers.systems.cholesky import diagnose

_ALPHAS = (1e-8, 1e4)  # bounds of alpha, in units of the mean of k(x, x)
_SHARES = (0.5, 1.0)  # of the scales given: where those of each feature start, besides at the best one for all
_ALPHA = 0.1  # where it starts for models that have none, in the same unit
_TILE = 512  # rows and columns that are mirrored at a time
_NOTHING = 1e-13  # of the targets: errors that are rounding


@dataclass
class Learner:
    """One call of `learn_kernel`: the objective, the parameters and the limits."""

    model: Any
    objective: str
    unit: float  # of the targets
    intercept: bool
    control: Control
    rng: np.random.Generator
    restarts: int
    bounds: dict[str, Any]
    fixed: tuple[str, ...]
    total: int  # of rows, before some are chosen

    @property
    def _process(self) -> bool:
        """Whether the model is a Gaussian process, whose noise is in the unit of the targets."""
        return isinstance(self.model, GaussianProcessRegressor)

    @property
    def label(self) -> str:
        """What the model calls the strength of its penalty."""
        return NOISE if self._process else "alpha"

    def learn(
        self, kernel: Kernel, points: Points, Y: np.ndarray, X: Any, y: Any, ard: bool, chosen: np.ndarray | None
    ) -> Learned:
        if self.objective == "likelihood" and self.intercept:
            Y = Y - Y.mean(axis=0)
        noise = self._first_noise(kernel, points, Y, chosen)
        start = self._value(kernel, noise, points, Y)
        starts = [_apart(spread_scales(kernel, points), noise, share) for share in _SHARES] if ard else []
        history: list[tuple[int, float, float]] = []
        first = space = self._space(kernel, noise, points, Y, last=not ard)
        tuned = self._tune(space, points, Y) if space.free.any() else None
        if ard:
            history += [] if tuned is None else tuned.history
            kernel, noise = (kernel, noise) if tuned is None else space.at(tuned.theta)
            space = self._space(spread_scales(kernel, points), noise, points, Y, last=True)
            values = np.where(space.free, space.values, starts[-1])  # what is kept is kept as it was given
            kernel = with_parameters(space.kernel, values[: len(parameters(space.kernel))])
            space = replace(space, kernel=kernel, values=values)
            further = [np.log(np.maximum(start[space.free], 1e-300)) for start in starts]
            tuned = self._tune(space, points, Y, further) if space.free.any() else None
        if tuned is not None:
            kernel, noise = space.at(tuned.theta)
            history += tuned.history
        else:
            kernel = space.kernel
        whole = tuned is not None and tuned.rows == len(Y)
        value = tuned.likelihood if tuned and whole else self._evidence(points, Y).factor(kernel, noise).likelihood
        found = _values(space, tuned)
        model = self._fitted(kernel, noise, X, y)
        known = Learned(
            model,
            kernel,
            self._natural(value, Y.size),
            [(rows, self._natural(v, rows * Y.shape[1]), seconds) for rows, v, seconds in history],
            "",
            start,
            found,
            self.objective,
        )
        ends = [] if tuned is None else space.at_bounds(tuned.theta)
        said = account(known, first, space, points, ends, "converged" if tuned is None else tuned.stopped, chosen)
        return replace(known, account=said)

    # -- the objective ------------------------------------------------------------------------------------

    def _evidence(self, points: Points, Y: np.ndarray, memory: Any = None) -> Any:
        if self.objective == "likelihood":
            return (Evidence if self._process else Profile)(points, Y, memory)
        return LeaveOneOut(
            points, Y, intercept=self.intercept, measure="squares" if self.objective == "loo" else "density"
        )

    def _value(self, kernel: Kernel, noise: Any, points: Points, Y: np.ndarray) -> float:
        return self._natural(self._evidence(points, Y).factor(kernel, noise).likelihood, Y.size)

    def _natural(self, value: float, size: int) -> float:
        """Return what the climb has maximised in the units of the user."""
        if self.objective == "loo":
            with np.errstate(over="ignore"):
                return float(np.exp(-2.0 * value / size) * np.square(self.unit))
        return value / size if self.objective == "density" else value - size * math.log(self.unit)

    # -- the parameters -----------------------------------------------------------------------------------

    def _first_noise(self, kernel: Kernel, points: Points, Y: np.ndarray, chosen: np.ndarray | None) -> Any:
        model = self.model
        if self._process:
            if model.alpha is not None:
                raise ValueError(
                    f"alpha={model.alpha!r:.80} is kept by a Gaussian process; learn_kernel learns the noise, so give "
                    "it as `noise`."
                )
            noise = model._first_noise(float(np.mean(Y**2)) or 1.0, self.total)
            return np.asarray(noise)[chosen] if np.ndim(noise) and chosen is not None else noise
        alpha = getattr(model, "alpha", None)
        if alpha is None:
            return _ALPHA * _size(kernel, points)
        if np.ndim(alpha):
            raise ValueError(f"alpha={alpha!r} has a number for each target; learn_kernel learns one, so give one.")
        return float(alpha)

    def _space(self, kernel: Kernel, noise: Any, points: Points, Y: np.ndarray, last: bool) -> Space:
        """Return the parameters; entries of lists that come later are not yet known by name."""
        given = {(NOISE if k == self.label else k): v for k, v in self.bounds.items() if last or "[" not in k}
        fixed = [NOISE if k == self.label else k for k in self.fixed if last or "[" not in k]
        relative = self.objective == "loo" or (self.objective == "likelihood" and not self._process)
        if relative and NOISE not in given and not np.ndim(noise) and noise > 0:
            size = _size(kernel, points)
            given[NOISE] = (min(_ALPHAS[0] * size, noise), max(_ALPHAS[1] * size, noise))
        space = space_of(kernel, noise, points, Y, given, fixed)
        if np.ndim(noise):
            return space
        held = {self.label if k == NOISE else k: v for k, v in space.held.items()}
        return replace(space, names=[*space.names[:-1], self.label], held=held)

    def _tune(self, space: Space, points: Points, Y: np.ndarray, starts: list[np.ndarray] | None = None) -> Tuned:
        memory = None if self.objective == "likelihood" else np.empty(0, np.uint8)
        return tune(
            points,
            Y,
            space,
            self.control,
            restarts=self.restarts,
            rng=self.rng,
            memory=memory,
            evidence=self._evidence,
            starts=starts or (),
        )

    # -- the model ----------------------------------------------------------------------------------------

    def _fitted(self, kernel: Kernel, noise: Any, X: Any, y: Any) -> Any:
        given: dict[str, Any] = {"kernel": kernel}
        if self._process:
            given["optimizer"] = None
            if not np.ndim(noise):
                given["noise"] = float(noise)
        elif getattr(self.model, "alpha", None) is not None:
            given["alpha"] = float(noise)
        return clone(self.model).set_params(**given).fit(X, y)


def spread_scales(kernel: Kernel, points: Points) -> Kernel:
    """Return the kernel with one scale for each feature in place of one for all.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Linear
    >>> spread_scales(RBF(2.0) + 3.0 * RBF(1.0).on([0]) + Linear(), Points(np.eye(2)))
    RBF(scale=[2.0, 2.0]) + 3.0 * RBF(scale=[1.0]).on([0]) + Linear()
    """
    found = _spread(kernel, points)
    if found == kernel and not _has_scales(kernel):
        raise ValueError(f"ard=True, but {kernel!r} has no scale that could be one for each feature.")
    return found


def _spread(kernel: Kernel, points: Points) -> Kernel:
    if isinstance(kernel, Radial):
        return kernel.replace(scale=[float(kernel.scale)] * points.width) if np.isscalar(kernel.scale) else kernel  # type: ignore[arg-type]
    parts = {name: part for name, part in kernel._params().items() if isinstance(part, Kernel)}
    seen = kernel._seen(points) if parts else points
    return kernel.replace(**{name: _spread(part, seen) for name, part in parts.items()})


def _has_scales(kernel: Kernel) -> bool:
    parts = (part for part in kernel._params().values() if isinstance(part, Kernel))
    return isinstance(kernel, Radial) or any(map(_has_scales, parts))


def _apart(kernel: Kernel, noise: Any, share: float) -> np.ndarray:
    """Return the parameters of a kernel and the noise with all scales multiplied by a number.

    One scale for all may be best where all but the coarsest is smoothed away, and no slope leads back from there.
    """
    values = [p.value * (share if last_part(p.name) == "scale" else 1.0) for p in parameters(kernel)]
    return np.array(values if np.ndim(noise) else [*values, float(noise)])


def _size(kernel: Kernel, points: Points) -> float:
    """Return the mean of k(x, x)."""
    return float(np.mean(kernel.diag(points))) or 1.0


def _values(space: Space, tuned: Tuned | None) -> dict[str, float]:
    values = space.values.copy()
    if tuned is not None:
        values[space.free] = np.exp(tuned.theta)
    return dict(zip(space.names, values.tolist(), strict=True))


# -- leave-one-out predictions as a function of the kernel, with their gradient ---------------------------


Measure = Literal["squares", "density"]


@dataclass(frozen=True)
class LeftOut:
    """The errors of all samples, each by the fit without it, and what is maximised.

    Attributes
    ----------
    errors
        y_i - f_{-i}(x_i), (n, m).
    precisions
        C_ii: the inverse of the variance with which the others predict sample i.
    likelihood
        `LeaveOneOut` says of what.
    """

    errors: np.ndarray
    precisions: np.ndarray
    likelihood: float


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
    >>> found = LeaveOneOut(Points(X), np.sin(6 * X)).factor(RBF(scale=0.3), 0.01)
    >>> model = KernelRidge(alpha=0.01, kernel=RBF(scale=0.3)).fit(X, np.sin(6 * X))
    >>> bool(np.allclose(found.errors, model.loo_residuals()))
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
            raise np.linalg.LinAlgError(diagnose(Products(Gram(kernel, self.points)), shift))
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
        least = _NOTHING * float(np.abs(self.Y).max(initial=0.0))
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
