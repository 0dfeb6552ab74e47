"""Metrics learned from the gradients of fitted functions (recursive feature machines).

A function is fitted. The mean outer product of its gradients shows the directions along which it changes, and a root of
it is the metric in which the next function is fitted (Radhakrishnan, Beaglehole, Pandit and Belkin, 2024). The kernel,
the number of rounds and the scale are chosen by rows that the metric has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.gram import Gram, gradient
from mercer.kernels import RBF, Kernel, Laplacian, Matern, PowerExponential, Ranked
from mercer.kernels.rules.pullback import NormalScores
from mercer.machine.budget import Budget
from mercer.machine.clock import Clock
from mercer.machine.threads import cores, one_thread_each, run
from mercer.points import Points
from mercer.solvers.systems.inverse import left_out

Steps = tuple[tuple[int, int], ...]
LeftOut = tuple[np.ndarray, np.ndarray] | None  # coefficients and leave-one-out errors, where there are some

SCREENED_ROWS = 1000  # in each half, on which all families are compared: an error is found in 20 ms
JUDGED_ROWS = 2000  # in each half, on which the best are: in 0.1 s
_FIRST_ROUNDS, _MORE_ROUNDS = 3, 2  # of a metric on the first rows, and on more
_SCREENED_SHARE, _JUDGED_SHARE = 0.25, 0.4  # of the time limit, after which no further family is looked at
_GRACE = 2.0  # seconds after Ctrl-C, in which the best so far is fitted
_FINALISTS = 3  # families that are looked at on more rows
_HOPELESS = 1.3  # times the least error: families beyond are not looked at again
_GAIN = 0.9995  # of the error, without which a search goes no further: rounding decides, and alphas near 0 are dear
_JOINT_GAIN = 0.99  # of the error, which a further kernel in the mean must reach: it costs as much as the first
_MOST_MIXED = 300  # columns up to which a metric may mix them: beyond, it has too many entries for the rows
_PAIRS = 4000  # of rows, by whose distances the unit of length is taken
_STEPS: Steps = ((4, 2), (2, 1), (1, 1))  # of the search: factors root 2 of the scale, root 10 of alpha
_SCALES, _ALPHAS = (-8, 14), (-10, 4)  # where it ends, in such steps about 1
_START = (2, -3)  # of scale and alpha, in such steps: twice the unit of length, and a thirtieth
_TUNED_ROWS = 500  # on which scale and alpha are searched, or on half of the rows: twice as many change them little
_SINGLE_ROWS = 500  # from which on float32 is tried: of fewer, a factor takes no time worth saving
_PAIR_BYTES = 24  # for each pair of rows: the matrix in both types, and its factor
_BUDGET_SHARE = 0.4  # of the budget, for the matrices of all cores
_LEAST_UNIT = 1e-290  # of a column: the map that divides by it must be finite
_LEAST_PART = 1e-12  # of the largest, that an eigenvalue of a metric may be


@dataclass(frozen=True)
class Family:
    """Kernels of one form at all scales, and the form of their metric."""

    name: str
    make: Callable[[float], Kernel]
    mixes: bool  # whether the metric may mix columns, or has one factor for each
    ranked: bool  # whether columns are compared by their ranks


FAMILIES = (
    Family("Laplacian of ranks", Laplacian, mixes=False, ranked=True),
    Family("Laplacian", Laplacian, mixes=False, ranked=False),
    Family("exponential", lambda s: PowerExponential(1.0, s), mixes=True, ranked=False),
    Family("exponential of ranks", lambda s: PowerExponential(1.0, s), mixes=True, ranked=True),
    Family("Matern", lambda s: Matern(1.5, s), mixes=True, ranked=False),
    Family("RBF", RBF, mixes=True, ranked=False),
)


# -- columns ----------------------------------------------------------------------------------------------


class Columns:
    """Rows as a family sees them, in units of each column's deviation: as they are, or by their ranks."""

    def __init__(self, X: np.ndarray, ranked: bool) -> None:
        self.sample = NormalScores.sample(X) if ranked else None
        rows = X if self.sample is None else NormalScores(self.sample.shape, self.sample.tobytes())(Points(X))
        top = np.abs(rows).max(axis=0, initial=0.0)
        top = np.where(top > _LEAST_UNIT, top, 1.0)
        rows = rows / top  # squares of huge numbers overflow
        deviation = rows.std(axis=0)
        moves = deviation > max(1e-12, _LEAST_UNIT / top.min())  # a constant column has no part in a distance
        self.unit = np.where(moves, deviation * top, np.inf)
        self.rows = (rows - rows.mean(axis=0)) / np.where(moves, deviation, np.inf)

    def kernel(self, base: Kernel, matrix: np.ndarray) -> Kernel:
        """Return the kernel of rows as they were given, from one of these rows after a linear map."""
        k = base.transformed(matrix / self.unit)
        return k if self.sample is None else Ranked(k, self.sample)


# -- rounds -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Round:
    """A metric, and the scale and the strength of the penalty that suit it.

    Attributes
    ----------
    family, number
        How columns are compared, and how often the metric has been learned: 0 for the one that treats all alike.
    matrix
        The root of the metric, as `Kernel.transformed` takes it.
    scale, alpha
        In steps of the search.
    error
        The mean square of the errors of the judging rows, each by the fit without it, in units of the targets'.
    left
        These errors.
    closer
        Whether it was judged on more rows than others.
    optimism
        How many times larger mean squares are on rows that the metric has not seen than on those it was learned from.
    """

    family: Family
    number: int
    matrix: np.ndarray
    scale: int
    alpha: int
    error: float = math.inf
    left: np.ndarray = field(default_factory=lambda: np.zeros((0, 1)))
    closer: bool = False
    optimism: float = 1.0

    @property
    def strength(self) -> float:
        """Alpha as a number."""
        return float(f"{10 ** (self.alpha / 2):.4g}")

    @property
    def base(self) -> Kernel:
        """The kernel of rows after the map."""
        return self.family.make(float(f"{2 ** (self.scale / 2):.4g}"))

    def values(self, rows: np.ndarray, kind: Any = np.float64) -> np.ndarray:
        """Return the kernel matrix of rows."""
        return np.asarray(Gram(self.base, times(rows, self.matrix).astype(kind, copy=False)).fill(), dtype=kind)

    def left_out(self, rows: np.ndarray, Y: np.ndarray, shift: np.ndarray) -> LeftOut:
        """Return the coefficients and the leave-one-out errors on rows."""
        return left_out_by(partial(self.values, rows), Y, self.strength * shift)

    def with_errors(self, solution: LeftOut, Y: np.ndarray, shift: np.ndarray) -> Round:
        """Return the same with the leave-one-out errors of a solution for targets Y, if there is one."""
        return self if solution is None else replace(self, error=mean_square(solution[1], Y, shift), left=solution[1])


def left_out_by(values: Callable[[Any], np.ndarray], Y: np.ndarray, shift: Any) -> LeftOut:
    """Return `left_out` of the kernel matrix; for many rows in float32, if that is exact enough.

    Parameters
    ----------
    values
        Returns the kernel matrix in a type, in memory that may be used.
    Y, shift
        As for `left_out`.
    """
    for kind in (np.float32, np.float64) if len(Y) >= _SINGLE_ROWS else (np.float64,):
        if (solution := left_out(values(kind), Y, shift)) is not None:
            return solution
    return None


def rows_within(budget: Any) -> int:
    """Return how many rows' matrices there is room for within a budget, one on each core."""
    return max(2, math.isqrt(int(_BUDGET_SHARE * int(Budget(budget))) // (_PAIR_BYTES * cores())))


def times(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return rows after a linear map, or after one factor for each column."""
    return rows * matrix if matrix.ndim == 1 else rows @ matrix.T


def mean_square(errors: np.ndarray, Y: np.ndarray, shift: np.ndarray) -> float:
    """Return the weighted mean square of errors, in units of the targets' variance; `shift` is 1 / weight."""
    weights = 1.0 / shift
    centred = Y - weights @ Y / weights.sum()
    return float(weights @ np.square(errors).sum(axis=1) / max(weights @ np.square(centred).sum(axis=1), 1e-300))


def in_unit_length(rows: np.ndarray, matrix: np.ndarray, mixes: bool) -> np.ndarray:
    """Return a map after which the median distance of two rows is 1, straight or along the axes."""
    pairs = np.random.default_rng(0).integers(len(rows), size=(2, _PAIRS))
    moved = np.abs(times(rows[pairs[0]] - rows[pairs[1]], matrix))
    lengths = np.sqrt(np.square(moved).sum(axis=1)) if mixes else moved.sum(axis=1)
    lengths = lengths[lengths > 0]
    return matrix / float(np.median(lengths)) if lengths.size else matrix


def tuned(one: Round, rows: np.ndarray, Y: np.ndarray, shift: np.ndarray, steps: Steps = _STEPS) -> tuple[Round, Any]:
    """Return a round at the scale and strength with the least leave-one-out error, and its coefficients.

    A search along both, in steps that become finer.
    """
    looked = dict[tuple[int, int], tuple[float, Any]]()

    def look(place: tuple[int, int]) -> tuple[float, Any]:
        solution = replace(one, scale=place[0], alpha=place[1]).left_out(rows, Y, shift)
        return (math.inf, None) if solution is None else (mean_square(solution[1], Y, shift), solution)

    def least(places: list[tuple[int, int]]) -> tuple[int, int]:
        """Return the place with the least error; on each core one that has not been looked at."""
        inside = [(i, j) for i, j in places if _SCALES[0] <= i <= _SCALES[1] and _ALPHAS[0] <= j <= _ALPHAS[1]]
        new = [place for place in inside if place not in looked]
        looked.update(zip(new, run(look, new), strict=True))
        return min(inside, key=lambda place: looked[place][0])

    at = least([(one.scale, one.alpha)])
    if looked[at][1] is None:  # singular: a stronger penalty
        at = least([(one.scale, max(one.alpha, _START[1]))])
    for along_scale, along_alpha in steps:
        while True:
            i, j = at
            around = [(i - along_scale, j), (i + along_scale, j), (i, j - along_alpha), (i, j + along_alpha)]
            best = least([at, *around])
            if looked[best][0] >= _GAIN**2 * looked[at][0]:
                break
            at = best
    solution = looked[at][1]
    there = replace(one, scale=at[0], alpha=at[1], error=looked[at][0])
    return (there, None) if solution is None else (replace(there, left=solution[1]), solution[0])


def next_matrix(one: Round, rows: np.ndarray, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the root of the mean outer product of the gradients of f = sum_i a_i k(x_i, .) at its own points."""
    image = times(rows, one.matrix)
    slopes = gradient(one.base, image, image, a)  # (rows, columns, functions), in the columns after the map
    w = np.sqrt(weights / weights.sum())[:, None, None]
    if one.matrix.ndim == 1:
        return np.sqrt(np.einsum("ndk,ndk->d", w * slopes, w * slopes)) * one.matrix
    flat = np.moveaxis(w * slopes, 2, 1).reshape(-1, slopes.shape[1]) @ one.matrix
    values, vectors = np.linalg.eigh(flat.T @ flat)
    return (vectors * np.sqrt(np.maximum(values, _LEAST_PART * max(values[-1], 0.0)))) @ vectors.T


def rounds(
    start: Round,
    rows: np.ndarray,
    Y: np.ndarray,
    shift: np.ndarray,
    count: int,
    steps: Steps = _STEPS,
) -> Iterator[Round]:
    """Yield the start at its best scale and strength, and after each of `count` updates of the metric."""
    one, few = start, max(_TUNED_ROWS, len(rows) // 2)
    for number in range(count + 1):
        one, a = tuned(one, rows[:few], Y[:few], shift[:few], steps if number == 0 else _STEPS[-1:])
        if few < len(rows):
            solution = one.left_out(rows, Y, shift)
            one, a = one.with_errors(solution, Y, shift), None if solution is None else solution[0]
        yield one
        if a is None or number == count:
            return
        matrix = next_matrix(one, rows, a, 1.0 / shift)
        if not (np.isfinite(matrix).all() and matrix.any()):  # f is constant: no direction matters
            return
        one = replace(one, number=one.number + 1, matrix=in_unit_length(rows, matrix, one.family.mixes))


# -- the choice -------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Learned:
    """What was learned: kernels, and how they were found.

    Attributes
    ----------
    chosen
        The rounds whose kernels are taken, in the mean; the best first.
    near
        The best round of each family whose error is not far from the least, the best first.
    kernel_of
        Gives the kernel of a round, of rows as they were given.
    unit
        Of alpha: the mean weight of the rows.
    tried
        Every round that was judged, with the number of rows.
    seen
        Places of the rows that the metrics were learned from.
    """

    chosen: list[Round]
    near: list[Round]
    kernel_of: Callable[[Round], Kernel]
    unit: float
    tried: list[tuple[Round, int]]
    seen: np.ndarray

    @property
    def kernel(self) -> Kernel:
        """The mean of the chosen kernels."""
        return mean_of([self.kernel_of(step) for step in self.chosen])

    @property
    def alpha(self) -> float:
        """The strength of the penalty for ridge regression with it."""
        return self.strength(sum(step.alpha for step in self.chosen) / len(self.chosen))

    def strength(self, steps: float) -> float:
        """Return an alpha that is given in steps of the search."""
        return float(f"{self.unit * 10 ** (steps / 2):.4g}")


def mean_of(kernels: Sequence[Kernel]) -> Kernel:
    """Return the mean of kernels."""
    if len(kernels) == 1:
        return kernels[0]
    first, *more = (kernel * float(f"{1.0 / len(kernels):.3g}") for kernel in kernels)
    return sum(more, first)


def families_for(columns: int, names: Any = None) -> list[Family]:
    """Return the families to try on so many columns: the named ones, else all that suit the number."""
    if names is not None:
        return [family for family in FAMILIES if family.name in names]
    return [family for family in FAMILIES if not family.mixes or columns <= _MOST_MIXED]


def learn_metric(
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
    families: Sequence[Family] | None = None,
    joint: int = 2,
    seed: int = 0,
    clock: Clock | None = None,
    listen: Callable[[Round, int], None] | None = None,
    budget: Any = None,
) -> Learned:
    """Return the kernel whose metric predicts rows best that had no part in learning it.

    The rows are halved. All families learn their metric on some rows of one half and are judged by the leave-one-out
    errors of ridge regression on the other; the best go on with more rows. Few rows are judged from both sides. The
    chosen family learns again on as many rows as it may.

    Parameters
    ----------
    X, Y, weights
        Rows, targets in columns (for classes, their indicators less their means), and weights.
    families
        What is tried; None for `families_for`.
    joint
        How many kernels the mean may have; with 1, all that are near the best are learned again on as many rows.
    seed
        Of the halves.
    clock
        Of the whole fit: learning ends early where it says so, with the best so far.
    listen
        Called with every round as soon as it was judged, and the rows it was judged on.
    budget
        Bytes that matrices may use, as for `Gram`.
    """
    clock = Clock() if clock is None else clock
    families = families_for(X.shape[1]) if families is None else families
    best: dict[str, Round] = {}
    with one_thread_each():  # of BLAS, whose threads wait for one another where others compute: places are shared here
        learning = _Learning(X, Y, weights, families, seed, clock, listen, rows_within(budget))
        try:
            learning.screen(families, best)
        except KeyboardInterrupt:
            if not best:
                raise
            clock.interrupt(_GRACE)
        ranking = sorted(best.values(), key=lambda step: (not step.closer, step.error))
        return learning.chosen(ranking, 1 if clock.interrupted else joint)


class _Learning:
    """Rows as all families see them, in two halves, and the rounds that were judged so far."""

    def __init__(
        self,
        X: np.ndarray,
        Y: np.ndarray,
        weights: np.ndarray | None,
        families: Sequence[Family],
        seed: int,
        clock: Clock,
        listen: Callable[[Round, int], None] | None,
        most: int,
    ) -> None:
        self.screened, self.judged = min(SCREENED_ROWS, most), min(JUDGED_ROWS, most)  # rows
        self.Y, self.clock, self.listen, self.width = Y, clock, listen, X.shape[1]
        self.shift, self.unit = np.ones(len(X)), 1.0
        if weights is not None:  # as weights with the mean 1
            top = float(weights.max())
            mean = float((weights / top).mean())
            self.shift, self.unit = mean / (weights / top), mean * top
        self.seen = {ranked: Columns(X, ranked) for ranked in {family.ranked for family in families}}
        self.order = np.random.default_rng(seed).permutation(len(X))
        self.half = len(X) // 2
        self.tried: list[tuple[Round, int]] = []
        self.errors: dict[str, float] = {}  # of each family's best round on the first rows

    def rows(self, family: Family, at: np.ndarray) -> np.ndarray:
        """Return some rows as a family sees them."""
        return self.seen[family.ranked].rows[at]

    def start(self, family: Family, at: np.ndarray, like: Round | None = None) -> Round:
        """Return a metric that treats all columns alike, in units of the distances of some rows."""
        alike = np.eye(self.width) if family.mixes else np.ones(self.width)
        scale, alpha = _START if like is None else (like.scale, like.alpha)
        return Round(family, 0, in_unit_length(self.rows(family, at), alike, family.mixes), scale, alpha)

    def screen(self, families: Sequence[Family], best: dict[str, Round]) -> None:
        """Fill in the best round of each family: of all on few rows, and of the best of them on more."""
        for family in families:
            if best and self.clock.over(_SCREENED_SHARE):
                return
            best[family.name] = self.best(family, self.screened, _FIRST_ROUNDS)
            self.errors[family.name] = best[family.name].error
        if self.half <= self.screened:
            return
        ranking = sorted(best.values(), key=lambda step: step.error)
        for step in ranking[:_FINALISTS]:
            if self.clock.over(_JUDGED_SHARE) or self.hopeless(step, ranking):
                return
            best[step.family.name] = replace(self.best(step.family, self.judged, _MORE_ROUNDS, step), closer=True)

    def hopeless(self, step: Round, ranking: Sequence[Round]) -> bool:
        """Whether a family is far behind the best on the rows on which all were compared."""
        return self.errors[step.family.name] > _HOPELESS**2 * min(self.errors[other.family.name] for other in ranking)

    def best(self, family: Family, size: int, count: int, before: Round | None = None) -> Round:
        """Return the round of a family with the least error on the other half; of few rows, on both halves."""
        halves = self.order[: self.half], self.order[self.half :]
        by_half: list[list[Round]] = []
        both = self.half <= size
        for one, other in (halves, halves[::-1])[: 2 if both else 1]:
            learn, judge = one[:size], other[:size]
            start, steps = self.start(family, learn), _STEPS
            if before is not None:
                matrix = in_unit_length(self.rows(family, learn), before.matrix, family.mixes)
                start, steps = replace(before, matrix=matrix), _STEPS[-1:]
            by_half.append([])
            for step in rounds(start, self.rows(family, learn), self.Y[learn], self.shift[learn], count, steps):
                Y, shift, seen = self.Y[judge], self.shift[judge], step.error
                step = step.with_errors(step.left_out(self.rows(family, judge), Y, shift), Y, shift)
                step = replace(step, optimism=_optimism(step.error, seen))
                by_half[-1].append(step)
                if self.listen is not None:
                    self.listen(step, len(judge))
                worse = not both and len(by_half[-1]) > 1 and step.error >= by_half[-1][-2].error
                if worse or self.clock.over(_SCREENED_SHARE):
                    break
        joined = [_both(parts) for parts in zip(*by_half, strict=False)]
        for step in joined:
            self.tried.append((step, len(step.left)))
        return min(joined, key=lambda step: step.error)

    def chosen(self, ranking: list[Round], joint: int) -> Learned:
        """Return the best round, and others whose mean with it errs less; of few rows, each is learned once more."""
        judge, seen = self.order[self.half :][: self.judged], self.order[: self.half][: self.judged]

        def mean(steps: list[Round]) -> Round:
            K = np.mean([step.values(self.rows(step.family, judge)) for step in steps], axis=0)
            alpha = round(sum(step.alpha for step in steps) / len(steps))
            one = replace(steps[0], alpha=alpha, error=math.inf)
            solution = left_out(K, self.Y[judge], one.strength * self.shift[judge])
            return one.with_errors(solution, self.Y[judge], self.shift[judge])

        near = [step for step in ranking if not self.hopeless(step, ranking)]
        taken, now = [0], mean(near[:1]) if joint > 1 else near[0]
        for place, step in enumerate(near[1:_FINALISTS], 1):
            both = mean([*(near[i] for i in taken), step]) if len(taken) < joint else now
            if both.error < _JOINT_GAIN**2 * now.error:
                taken, now = [*taken, place], both
        if self.half <= self.judged and not self.clock.over(_JUDGED_SHARE):  # the metric was learned on halves
            seen = self.order[: self.judged]
            near = [self.again(step, seen) if i in taken or joint == 1 else step for i, step in enumerate(near)]
        return Learned([near[i] for i in taken], near, self.kernel, self.unit, self.tried, seen)

    def again(self, step: Round, at: np.ndarray) -> Round:
        """Return as many rounds of a family on all rows in place of a half, which halves the optimism."""
        rows, start = self.rows(step.family, at), self.start(step.family, at, step)
        *_, last = rounds(start, rows, self.Y[at], self.shift[at], step.number, _STEPS[1:])
        return replace(last, optimism=(1.0 + step.optimism) / 2)

    def kernel(self, step: Round) -> Kernel:
        """Return the kernel of a round, of rows as they were given."""
        return self.seen[step.family.ranked].kernel(step.base, step.matrix)


def _both(parts: Sequence[Round]) -> Round:
    """Return one round for those of both halves: the errors of all rows, at the mean scale and strength."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([len(part.left) for part in parts])
    error = float(sizes @ [part.error for part in parts] / max(1, sizes.sum()))
    scale, alpha = (round(sum(getattr(part, name) for part in parts) / 2) for name in ("scale", "alpha"))
    left = np.concatenate([part.left for part in parts])
    seen = float(sizes @ [part.error / part.optimism for part in parts] / max(1, sizes.sum()))
    return replace(parts[0], scale=scale, alpha=alpha, error=error, left=left, optimism=_optimism(error, seen))


def _optimism(unseen: float, seen: float) -> float:
    return max(1.0, unseen / seen) if 0 < seen <= unseen < math.inf else 1.0
