"""The parameters under which the data are most likely: several starts on few rows, the best of them on all."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.machine.threads import one_thread_each, within_limit
from mercer.points import Points
from mercer.solvers.control import Control
from mercer.solvers.gp.climb import Top, climb
from mercer.solvers.gp.likelihood import Evidence, rows_of
from mercer.solvers.gp.space import Space

_FIRST = (300, 1_000, 30)  # rows that the starts are compared on: at least, at most, and for each parameter
_GROWTH = 2.5  # from one number of rows to the next: an evaluation on the fewer costs a sixteenth
_FEW_ROWS_SLOPE = 0.3  # at which a climb on few rows ends
_SAME = 0.3  # distance of logarithms up to which two tops count as one
_KEPT_TOPS = 2  # that are followed to more rows
_START_RADIUS = 3.0  # how far other starts lie from the first, in logarithms
_ONE_THREAD_ROWS = 600  # rows up to which threads of BLAS wait for one another longer than they work
Optimizer = Callable[..., tuple[Any, Any]]  # (objective, start, bounds=limits): theta, value, as in scikit-learn
_REFUSED = (np.linalg.LinAlgError, ValueError, FloatingPointError, OverflowError)


@dataclass
class Tuned:
    """The result of `tune`.

    Attributes
    ----------
    theta
        The logarithms of the free parameters.
    likelihood
        Of the rows that were used last.
    rows
        How many these were.
    starts
        How many starts there were, and on how many rows they were compared.
    evaluations
        How often the likelihood was computed on the rows used last, and in all.
    stopped
        "converged", or what ended the search before.
    history
        One row (rows, likelihood, seconds) for each evaluation.
    """

    theta: np.ndarray
    likelihood: float
    rows: int
    starts: tuple[int, int]
    evaluations: tuple[int, int]
    stopped: str
    history: list[tuple[int, float, float]] = field(default_factory=list)


class _Likelihood:
    """The log marginal likelihood of some rows, as `climb` sees it."""

    def __init__(self, evidence: Any, space: Space, search: _Search) -> None:
        self.evidence, self.space, self.search = evidence, space, search
        self.error: Exception | None = None
        self.best = Top(space.start, -math.inf, None, 0)  # what is left of a climb that was interrupted

    def value(self, theta: np.ndarray) -> float:
        likelihood = -math.inf
        try:
            kernel, noise = self.space.at(theta)
            likelihood = self.evidence.factor(kernel, noise, careful=False).likelihood
        except _REFUSED as error:
            self.error = error
        likelihood = likelihood if math.isfinite(likelihood) else -math.inf
        self.theta = theta
        if likelihood > self.best.value:
            self.best = Top(theta, likelihood, None, 0)
        self.search.note(len(self.evidence.Y), likelihood)
        return likelihood

    def slopes(self) -> np.ndarray:
        if self.evidence.factored is None:
            self.evidence.factor(*self.space.at(self.theta), careful=False)
        kernel, _ = self.space.at(self.theta)
        return self.space.slopes(self.theta, *self.evidence.gradient(kernel))

    def loss(self, theta: Any, eval_gradient: bool = True) -> Any:
        """Return minus the likelihood, and its slopes: what an optimizer of scikit-learn's form minimises."""
        theta = np.array(theta, dtype=np.float64)
        value = -self.value(theta)
        if not eval_gradient:
            return value
        return value, -self.slopes() if math.isfinite(value) else np.zeros_like(theta)


@dataclass
class _Search:
    """A search on its way; what it is given is what `tune` is."""

    points: Points
    Y: np.ndarray
    space: Space
    control: Control
    restarts: int
    rng: np.random.Generator
    memory: np.ndarray
    evidence: Callable[..., Any]
    given: Sequence[np.ndarray]
    optimizer: Optimizer | None
    slope: float
    history: list[tuple[int, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = self.rng.permutation(len(self.Y))

    def note(self, rows: int, likelihood: float) -> None:
        self.history.append((rows, likelihood, self.control.seconds))

    def run(self) -> Tuned:
        sizes = self._sizes()
        tops = [Top(theta, -math.inf, None, 0) for theta in self._starts()]
        for number, size in enumerate(sizes):
            last = size == sizes[-1]
            likelihood = self._on(size)
            if last and number and len(tops) > 1:  # from the best one only, on all rows
                tops = [max(tops, key=lambda top: likelihood.value(top.theta))]
            with one_thread_each() if size <= _ONE_THREAD_ROWS else nullcontext():
                reached = [self._climb(likelihood, top, number, size / sizes[number - 1], last) for top in tops]
            reached.sort(key=lambda top: -top.value)
            if reached[0].value > -math.inf:
                tops = _distinct(reached)[:_KEPT_TOPS]
            elif not self.control.cancelled:  # an interruption leaves the tops of fewer rows, or the starts
                assert likelihood.error is not None
                raise likelihood.error
            if self._ended():
                break
        best = tops[0]
        here = sum(1 for rows, _, _ in self.history if rows == size)
        starts, evaluations = (1 + len(self.given) + self.restarts, sizes[0]), (here, len(self.history))
        stopped = self._ended() or best.stopped
        return Tuned(best.theta, best.value, size, starts, evaluations, stopped, self.history)

    def _climb(self, likelihood: _Likelihood, top: Top, number: int, growth: float, last: bool) -> Top:
        curvature = None if top.curvature is None or not number else top.curvature * growth
        if self.control.cancelled:
            return likelihood.best
        try:
            if self.optimizer is not None:
                return self._asked(likelihood, top.theta)
            return climb(
                likelihood,
                top.theta,
                self.space.limits,
                curvature=curvature,
                tol=self.slope if last else _FEW_ROWS_SLOPE,
                max_iter=self.control.max_iter if self.control.max_iter >= 0 else 1_000,
                watch=self._ended,
            )
        except KeyboardInterrupt:
            self.control.cancel()
            return likelihood.best

    def _asked(self, likelihood: _Likelihood, start: np.ndarray) -> Top:
        """Return where the user's optimizer ends."""
        assert self.optimizer is not None
        answer = self.optimizer(likelihood.loss, start, bounds=self.space.limits)
        try:
            theta = np.array(answer[0], dtype=np.float64)
        except (TypeError, ValueError, IndexError, KeyError):
            theta = np.empty(0)
        if theta.shape != start.shape or not np.isfinite(theta).all():
            raise ValueError(
                f"the optimizer returned {answer!r:.80}; it must return (theta, value), with one finite number in "
                f"theta for each of the {len(start)} parameters."
            )
        return Top(theta, likelihood.value(theta), None, 0)

    def _ended(self) -> str | None:
        return self.control.exhausted(-1)

    def _sizes(self) -> list[int]:
        """Return how many rows are used, one after the other."""
        n = len(self.Y)
        if self.optimizer is not None:
            return [n]
        least, most, each = _FIRST
        first = min(max(least, each * int(self.space.free.sum())), most)
        sizes = [n]
        while sizes[0] > 1.6 * first:
            sizes.insert(0, max(first, int(sizes[0] / _GROWTH)))
        return sizes

    def _starts(self) -> list[np.ndarray]:
        start, (low, high) = self.space.start, self.space.limits.T
        low, high = np.maximum(low, start - _START_RADIUS), np.minimum(high, start + _START_RADIUS)
        return [start, *self.given, *(self.rng.uniform(low, high) for _ in range(self.restarts))]

    def _on(self, size: int) -> _Likelihood:
        """Return the likelihood of some rows, those of the fewer among those of the more."""
        if size == len(self.Y):
            return _Likelihood(self.evidence(self.points, self.Y, self.memory), self.space, self)
        rows = np.sort(self.order[:size])
        evidence = self.evidence(rows_of(self.points, rows), self.Y[rows], self.memory)
        return _Likelihood(evidence, self.space.of_rows(rows), self)


def _distinct(tops: list[Top]) -> list[Top]:
    kept: list[Top] = []
    for top in tops:
        if top.value > -math.inf and all(np.abs(top.theta - other.theta).max(initial=0.0) > _SAME for other in kept):
            kept.append(top)
    return kept


@within_limit
def tune(
    points: Points,
    Y: np.ndarray,
    space: Space,
    control: Control,
    *,
    restarts: int = 0,
    rng: np.random.Generator | None = None,
    memory: np.ndarray | None = None,
    evidence: Callable[..., Any] = Evidence,
    starts: Sequence[np.ndarray] = (),
    optimizer: Optimizer | None = None,
    slope: float = 1e-2,
) -> Tuned:
    """Maximise the log marginal likelihood over the free parameters.

    With many rows, the starts are compared on a few hundred of them, the two best tops are followed to more, and the
    better of these is climbed to on all rows, with the curvature that the smaller problems have shown: a few
    evaluations where a search from the start would take some dozens.

    Parameters
    ----------
    points, Y
        The training points and targets (n, m).
    space
        The parameters and their bounds.
    control
        The limits: `max_iter` steps of each climb, and the time. What is best by then is returned.
    restarts
        How many further starts, drawn around that of the space within the bounds.
    rng
        Draws the starts and the order of the rows.
    memory
        At least 8 n² bytes to work in.
    evidence
        What is maximised: called with points, targets and memory, it gives something with `factor` and `gradient` as
        `Evidence` has them.
    starts
        Further places to start from, as logarithms of the free parameters.
    optimizer
        What to call in place of the climbs, on all rows, once for each start, in scikit-learn's form: with a function
        objective(theta, eval_gradient=True) that gives minus the likelihood and its slopes, the start, and
        bounds=(low, high) in rows; it returns the best theta and its value.
    slope
        The slopes at which the last climb ends.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> from mercer.solvers.gp.space import space_of
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (60, 1))
    >>> y = np.sin(X) + 0.1 * rng.normal(size=X.shape)
    >>> space = space_of(1.0 * RBF(scale=1.0), 1.0, Points(X), y)
    >>> tuned = tune(Points(X), y, space, Control(), restarts=2)
    >>> kernel, noise = space.at(tuned.theta)
    >>> bool(0.005 < noise < 0.02), tuned.stopped
    (True, 'converged')
    """
    rng = np.random.default_rng(0) if rng is None else rng
    memory = np.empty(8 * len(Y) ** 2, np.uint8) if memory is None else memory
    return _Search(points, Y, space, control, restarts, rng, memory, evidence, starts, optimizer, slope).run()
