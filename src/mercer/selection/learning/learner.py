"""The climb from one kernel to a better one, first with one scale for all features, then with one for each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.estimators import GaussianProcessRegressor
from mercer.gram import parameters, with_parameters
from mercer.kernels import Kernel
from mercer.kernels.vectors.stationary import Radial
from mercer.points import Points
from mercer.selection.learning.leave_one_out import LeaveOneOut
from mercer.solvers.control import Control
from mercer.solvers.gp.likelihood import Evidence, Profile
from mercer.solvers.gp.search import Tuned, tune
from mercer.solvers.gp.space import NOISE, Space, last_part, space_of

_ALPHA_BOUNDS = (1e-8, 1e4)  # bounds of alpha, in units of the mean of k(x, x)
_SCALE_STARTS = (0.5, 1.0)  # of the scales given: where those of each feature start, besides at the best one for all
_FIRST_ALPHA = 0.1  # where it starts for models that have none, in the same unit
_LISTED_PARAMETERS = 12  # parameters that are listed one by one
_SMALL_EFFECT = 0.05  # of the largest effect of a feature: one that hardly counts
_EFFECT_ROWS = 500  # rows at which effects are measured
_NAMES = {
    "loo": "the mean squared error where each sample is predicted by all others",
    "density": "the mean log density of each sample given all others",
    "likelihood": "the log marginal likelihood",
}


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
        starts = [_apart(spread_scales(kernel, points), noise, share) for share in _SCALE_STARTS] if ard else []
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
        on_all = tuned is not None and tuned.rows == len(Y)
        value = tuned.likelihood if tuned and on_all else self._evidence(points, Y).factor(kernel, noise).likelihood
        learned = _values(space, tuned)
        model = self._fitted(kernel, noise, X, y)
        result = Learned(
            model,
            kernel,
            self._natural(value, Y.size),
            [(rows, self._natural(v, rows * Y.shape[1]), seconds) for rows, v, seconds in history],
            "",
            start,
            learned,
            self.objective,
        )
        ends = [] if tuned is None else space.at_bounds(tuned.theta)
        said = account(result, first, space, points, ends, "converged" if tuned is None else tuned.stopped, chosen)
        return replace(result, account=said)

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
            noise = model.first_noise(float(np.mean(Y**2)) or 1.0, self.total)
            return np.asarray(noise)[chosen] if np.ndim(noise) and chosen is not None else noise
        alpha = getattr(model, "alpha", None)
        if alpha is None:
            return _FIRST_ALPHA * _size(kernel, points)
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
            given[NOISE] = (min(_ALPHA_BOUNDS[0] * size, noise), max(_ALPHA_BOUNDS[1] * size, noise))
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
    scaled = _spread(kernel, points)
    if scaled == kernel and not _has_scales(kernel):
        raise ValueError(f"ard=True, but {kernel!r} has no scale that could be one for each feature.")
    return scaled


def _spread(kernel: Kernel, points: Points) -> Kernel:
    if isinstance(kernel, Radial):
        return kernel.replace(scale=[float(kernel.scale)] * points.width) if np.isscalar(kernel.scale) else kernel  # type: ignore[arg-type]
    parts = kernel.children()
    seen = kernel._seen(points) if parts else points
    return kernel.replace(**{name: _spread(part, seen) for name, part in parts.items()})


def _has_scales(kernel: Kernel) -> bool:
    return isinstance(kernel, Radial) or any(map(_has_scales, kernel.children().values()))


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


# -- the learned kernel, as an object and in words ---------------------------------------------------------


@dataclass(frozen=True)
class Learned:
    """What `learn_kernel` returns.

    Attributes
    ----------
    estimator
        The estimator with the learned kernel, fitted to all rows.
    kernel
        The kernel.
    value
        Of the objective there: the mean squared error of predictions that leave out one sample ("loo"), the mean log
        density of samples that are left out ("density"), or the log marginal likelihood ("likelihood").
    start
        The same before.
    parameters
        The parameters of the kernel and alpha (or noise) by name.
    history
        One row (rows, value, seconds) for each evaluation.
    objective
        Which objective it was.
    account
        What was done and found, to be read.
    """

    estimator: Any
    kernel: Kernel
    value: float
    history: list[tuple[int, float, float]] = field(repr=False)
    account: str = field(repr=False)
    start: float = math.nan
    parameters: dict[str, float] = field(default_factory=dict, repr=False)
    objective: str = ""

    def __str__(self) -> str:
        return self.account


def account(
    learned: Learned,
    first: Space,
    last: Space,
    points: Points,
    ends: list[str],
    stopped: str,
    chosen: np.ndarray | None,
) -> str:
    """Return what `learn_kernel` has done, in sentences.

    `first` and `last` are the parameters at the start and as they were learned, `ends` says which ended at a bound, and
    `chosen` are the rows that were used, None for all.
    """
    n, tries = len(points), len(learned.history)
    rows = f"all {n:,} rows" if chosen is None else f"{n:,} rows drawn at random"
    lines = [
        f"{_NAMES[learned.objective].capitalize()}, on {rows}: {learned.value:.6g}, from {learned.start:.6g} at the "
        f"start. {int(last.free.sum())} parameters were learned in {tries} evaluations."
    ]
    lines += _parameters(learned.parameters, first, last)
    silent = _silent(learned, points)
    if silent:
        listed = ", ".join([*map(str, silent[:_LISTED_PARAMETERS]), *["..."] * (len(silent) > _LISTED_PARAMETERS)])
        lines.append(
            f"{len(silent)} of {points.width} features hardly count (their effect is less than {_SMALL_EFFECT:.0%} of "
            f"the largest): {listed}."
        )
    far = [end for end in ends if not ("scale" in end and "upper" in end)]
    if far:
        lines.append(f"{'; '.join(far)}: it may be better beyond. Widen `bounds` there, or name it in `fixed`.")
    if last.held:
        lines.append("Kept: " + ", ".join(f"{name} ({why})" for name, why in last.held.items()) + ".")
    if stopped != "converged":
        lines.append(f"The search ended early ({stopped}); this is the best so far.")
    if "alpha" in learned.parameters and not hasattr(learned.estimator, "alpha"):
        lines.append(
            f"alpha is that of ridge regression; {type(learned.estimator).__name__} has its own parameters as given."
        )
    return "\n".join(lines)


def _parameters(learned: dict[str, float], first: Space, last: Space) -> list[str]:
    """Return a line for each free parameter, with where it came from, or one for all where there are many."""
    before = dict(zip(first.names, first.values.tolist(), strict=True))
    lines = []
    for name in last.free_names[:_LISTED_PARAMETERS]:
        start = before.get(name, before.get(name.split("[")[0], math.nan))
        lines.append(f"  {name}: {learned[name]:.4g} (from {start:.4g})")
    if len(last.free_names) > _LISTED_PARAMETERS:
        lines.append(f"  ... and {len(last.free_names) - _LISTED_PARAMETERS} more")
    return lines


def _silent(learned: Learned, points: Points) -> list[int]:
    """Return the features that the function hardly depends on: by its slopes, in units of their deviations.

    A large scale is no sign of it by itself: what is linear is best said with a large scale and a small alpha.
    """
    listed = any(last_part(name) == "scale" and name.endswith("]") for name in learned.parameters)
    if not listed or not points.numeric or not isinstance(points.vectors, np.ndarray):
        return []
    some = np.asarray(points.vectors[:: max(1, len(points) // _EFFECT_ROWS)], dtype=np.float64)
    try:
        slopes = np.asarray(learned.estimator.function_.gradient(some))
    except (TypeError, ValueError):  # a kernel without a gradient, or on parts of a table
        return []
    if slopes.shape[1] != points.width:
        return []
    effect = np.sqrt(np.mean(slopes.reshape(len(some), points.width, -1) ** 2, axis=(0, 2))) * some.std(axis=0)
    return [int(j) for j in np.flatnonzero(effect < _SMALL_EFFECT * effect.max())]
