"""Metrics learned from the gradients of fitted functions (recursive feature machines).

A function is fitted, the mean outer product of its gradients says which directions it changes along, and a root of that
is the metric in which the next one is fitted (Radhakrishnan, Beaglehole, Pandit and Belkin, 2024). Which kernel, how
many rounds and which scale is judged by rows that the metric has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer.gram import Gram, gradient
from mercer.kernels import RBF, Kernel, Laplacian, PowerExponential, Ranked
from mercer.kernels.rules.pullback import NormalScores
from mercer.machine.clock import Clock
from mercer.machine.threads import one_thread_each, run
from mercer.points import Points
from mercer.solvers.systems.inverse import left_out

SCREENED_ROWS = 1000  # in each half, on which all families are compared: an error is found in 20 ms
JUDGED_ROWS = 2000  # in each half, on which the best are: in 0.1 s
_FIRST_ROUNDS, _MORE_ROUNDS = 3, 2  # of a metric on the first rows, and on more
_FINALISTS = 3  # families that are looked at on more rows
_HOPELESS = 1.3  # times the least error, beyond which a family is not
_JOINT_GAIN = 0.99  # of the error: what a further kernel in the mean must bring, since it costs as much as the first
_MOST_MIXED = 300  # columns up to which a metric may mix them: beyond, it has too many entries for the rows
_PAIRS = 4000  # of rows, by whose distances the unit of length is taken
_STEPS = ((4, 2), (2, 1), (1, 1))  # of the search, in halvings of the scale by root 2 and of alpha by root 10
_SCALES, _ALPHAS = (-8, 14), (-10, 4)  # where it ends, in such steps about 1
_START = (2, -3)
_LEAST_PART = 1e-12  # of the largest, that an eigenvalue of a metric may be


@dataclass(frozen=True)
class Family:
    """Kernels of one form at all scales, and what metric they are given."""

    name: str
    make: Callable[[float], Kernel]
    mixes: bool  # whether the metric may mix columns, or has one factor for each
    ranked: bool  # whether columns are compared by their ranks


FAMILIES = (
    Family("Laplacian of ranks", Laplacian, mixes=False, ranked=True),
    Family("Laplacian", Laplacian, mixes=False, ranked=False),
    Family("exponential", lambda s: PowerExponential(1.0, s), mixes=True, ranked=False),
    Family("exponential of ranks", lambda s: PowerExponential(1.0, s), mixes=True, ranked=True),
    Family("RBF", RBF, mixes=True, ranked=False),
)


# -- columns ----------------------------------------------------------------------------------------------


class Columns:
    """Rows as a family sees them, in units of each column's deviation: as they are, or by their ranks."""

    def __init__(self, X: np.ndarray, ranked: bool) -> None:
        self.sample = NormalScores.sample(X) if ranked else None
        rows = X if self.sample is None else NormalScores(self.sample.shape, self.sample.tobytes())(Points(X))
        top = np.abs(rows).max(axis=0, initial=0.0)
        top = np.where(top > 0, top, 1.0)  # squares of huge numbers overflow
        deviation = (rows / top).std(axis=0) * top
        self.unit = np.where(deviation > 1e-12 * top, deviation, np.inf)  # a constant column has no part in a distance
        self.rows = (rows - rows.mean(axis=0)) / self.unit

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
    """

    family: Family
    number: int
    matrix: np.ndarray
    scale: int
    alpha: int
    error: float = math.inf
    left: np.ndarray = field(default_factory=lambda: np.zeros((0, 1)))

    @property
    def strength(self) -> float:
        """Alpha as a number."""
        return float(f"{10 ** (self.alpha / 2):.4g}")

    @property
    def base(self) -> Kernel:
        """The kernel of rows after the map."""
        return self.family.make(float(f"{2 ** (self.scale / 2):.4g}"))

    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return the kernel matrix of rows."""
        return np.array(Gram(self.base, times(rows, self.matrix)).dense(), dtype=np.float64)

    def judged(self, K: np.ndarray, Y: np.ndarray, shift: np.ndarray) -> Round:
        """Return the same with its errors on the rows of K, whose memory is used."""
        found = left_out(K, Y, self.strength * shift)
        return self if found is None else replace(self, error=mean_square(found[1], Y, shift), left=found[1])


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


def tuned(one: Round, rows: np.ndarray, Y: np.ndarray, shift: np.ndarray, steps: Any = _STEPS) -> tuple[Round, Any]:
    """Return a round at the scale and strength with the least leave-one-out error, and its coefficients.

    A search along both, in steps that become finer.
    """
    image, looked = times(rows, one.matrix), dict[tuple[int, int], tuple[float, Any]]()

    def look(place: tuple[int, int]) -> tuple[float, Any]:
        there = replace(one, scale=place[0], alpha=place[1])
        K = np.array(Gram(there.base, image).dense(), dtype=np.float64)
        found = left_out(K, Y, there.strength * shift)
        return (math.inf, None) if found is None else (mean_square(found[1], Y, shift), found)

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
            if best == at:
                break
            at = best
    found = looked[at][1]
    there = replace(one, scale=at[0], alpha=at[1], error=looked[at][0])
    return (there, None) if found is None else (replace(there, left=found[1]), found[0])


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
    steps: Any = _STEPS,
) -> Iterator[Round]:
    """Yield the start at its best scale and strength, and after each of `count` updates of the metric."""
    one = start
    for number in range(count + 1):
        one, a = tuned(one, rows, Y, shift, steps if number == 0 else _STEPS[-1:])
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
    """What was learned: a kernel, and how it was found.

    Attributes
    ----------
    kernel, alpha
        The mean of the chosen kernels, and the strength of the penalty for ridge regression.
    kernels
        These kernels.
    chosen
        The rounds it is made of, the best first.
    others
        A kernel of each family that was not chosen, by its name: the best that was judged, the best family first.
    tried
        Every round that was judged, with the number of rows.
    metrics
        The metric of each of the chosen, (d, d), in units of the columns (or of their normal scores).
    """

    kernel: Kernel
    alpha: float
    kernels: list[Kernel]
    chosen: list[Round]
    others: dict[str, Kernel]
    tried: list[tuple[Round, int]]
    metrics: list[np.ndarray]
    rows: np.ndarray  # the judging rows
    errors: np.ndarray  # of the mean on them, each by the fit without it

    @property
    def importances(self) -> np.ndarray:
        """The share of each column in the squared gradients of the best kernel's function."""
        diagonal = np.diagonal(self.metrics[0])
        return np.asarray(diagonal / max(float(diagonal.sum()), 1e-300))


def families_for(columns: int, names: Any = None) -> list[Family]:
    """Return the families that are tried on so many columns: all that suit them, or those that are named."""
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
) -> Learned:
    """Return the kernel whose metric predicts rows best that had no part in learning it.

    The rows are halved. All families learn their metric on some rows of one half and are judged by the leave-one-out
    errors of ridge regression on the other; the best go on with more rows. Few rows are judged from both sides. What is
    chosen learns again on as many rows as it may.

    Parameters
    ----------
    X, Y, weights
        Rows, targets in columns (for classes, their indicators less their means), and weights.
    families
        What is tried; None for `families_for`.
    joint
        How many kernels the mean may have.
    seed
        Of the halves.
    clock
        Of the whole fit: learning ends early where it says so, with the best so far.
    listen
        Called with every round that was judged, and the rows it was judged on.
    """
    with one_thread_each():  # of BLAS, whose threads wait for one another where others compute: places are shared here
        return _learned(X, Y, weights, families, joint, seed, Clock() if clock is None else clock, listen)


def _learned(
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    families: Sequence[Family] | None,
    joint: int,
    seed: int,
    clock: Clock,
    listen: Callable[[Round, int], None] | None,
) -> Learned:
    n = len(X)
    families = families_for(X.shape[1]) if families is None else families
    order = np.random.default_rng(seed).permutation(n)
    halves = order[: n // 2], order[n // 2 :]
    shift = np.ones(n) if weights is None else 1.0 / weights
    seen = {ranked: Columns(X, ranked) for ranked in {family.ranked for family in families}}
    tried: list[tuple[Round, int]] = []

    def judged(family: Family, size: int, before: Round | None, count: int) -> list[Round]:
        """Return the rounds of a family, by their errors on the other half; on few rows, on both."""
        rows = seen[family.ranked].rows
        found: list[list[Round]] = []
        for one, other in (halves, halves[::-1])[: 2 if n <= 2 * size else 1]:
            learn, judge = one[:size], other[:size]
            start = Round(family, 0, _alike(rows.shape[1], family), *_START) if before is None else before
            start = replace(start, matrix=in_unit_length(rows[learn], start.matrix, family.mixes))
            steps = _STEPS if before is None else _STEPS[1:]
            found.append(
                [
                    step.judged(step.values(rows[judge]), Y[judge], shift[judge])
                    for step in rounds(start, rows[learn], Y[learn], shift[learn], count, steps)
                ]
            )
        joined = [_both(parts) for parts in zip(*found, strict=False)]
        for step in joined:
            tried.append((step, len(step.left)))
            if listen is not None:
                listen(step, len(step.left))
        return joined

    best: dict[str, Round] = {}
    for family in families:
        if best and clock.over(0.4):
            break
        steps = judged(family, min(SCREENED_ROWS, n // 2), None, _FIRST_ROUNDS)
        best[family.name] = min(steps, key=lambda step: step.error)
    ranking = sorted(best.values(), key=lambda step: step.error)
    ranking = [step for step in ranking[:_FINALISTS] if step.error <= _HOPELESS**2 * ranking[0].error]
    size = min(JUDGED_ROWS, n // 2)
    if n // 2 > SCREENED_ROWS:
        more = []
        for step in ranking:
            if more and clock.over(0.6):
                break
            more.append(min(judged(step.family, size, step, _MORE_ROUNDS), key=lambda s: s.error))
        ranking = sorted(more, key=lambda step: step.error)
    chosen, errors = _joined(ranking, seen, halves[1][:size], Y, shift, joint)
    rows = order[: min(n, JUDGED_ROWS)]
    if n <= 2 * size:  # judged on halves: the metric is learned once more, on all rows
        again = []
        for step in chosen:
            start = Round(step.family, 0, _alike(X.shape[1], step.family), step.scale, step.alpha)
            start = replace(start, matrix=in_unit_length(seen[step.family.ranked].rows[rows], start.matrix, step.family.mixes))
            of = seen[step.family.ranked].rows[rows]
            again.append(list(rounds(start, of, Y[rows], shift[rows], step.number, _STEPS[1:]))[-1])
        chosen = again
    kernels = [seen[step.family.ranked].kernel(step.base, step.matrix) for step in chosen]
    names = {step.family.name for step in chosen}
    best |= {step.family.name: step for step in ranking}
    rest = sorted((step for name, step in best.items() if name not in names), key=lambda step: step.error)
    others = {step.family.name: seen[step.family.ranked].kernel(step.base, step.matrix) for step in rest}
    alpha = float(f"{10 ** (sum(step.alpha for step in chosen) / 2 / len(chosen)):.4g}")
    metrics = [_squared(step.matrix) for step in chosen]
    return Learned(mean_of(kernels), alpha, kernels, chosen, others, tried, metrics, halves[1][:size], errors)


def mean_of(kernels: list[Kernel]) -> Kernel:
    """Return the mean of some kernels."""
    if len(kernels) == 1:
        return kernels[0]
    total = kernels[0] * (1.0 / len(kernels))
    for kernel in kernels[1:]:
        total = total + kernel * (1.0 / len(kernels))
    return total


def _alike(columns: int, family: Family) -> np.ndarray:
    return np.eye(columns) if family.mixes else np.ones(columns)


def _squared(matrix: np.ndarray) -> np.ndarray:
    return np.diag(np.square(matrix)) if matrix.ndim == 1 else matrix.T @ matrix


def _both(parts: Sequence[Round]) -> Round:
    """Return one round for those of both halves: the errors of all rows, at the mean scale and strength."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([len(part.left) for part in parts])
    error = float(sizes @ [part.error for part in parts] / max(1, sizes.sum()))
    scale, alpha = (round(sum(getattr(part, name) for part in parts) / 2) for name in ("scale", "alpha"))
    left = np.concatenate([part.left for part in parts])
    return replace(parts[0], scale=scale, alpha=alpha, error=error, left=left)


def _joined(
    ranking: list[Round], seen: dict[bool, Columns], rows: np.ndarray, Y: np.ndarray, shift: np.ndarray, most: int
) -> tuple[list[Round], np.ndarray]:
    """Return the best round and those that lower the error of a mean with it, and the errors of the mean."""

    def mean(steps: list[Round]) -> Round:
        K = sum(step.values(seen[step.family.ranked].rows[rows]) for step in steps) / len(steps)
        alpha = round(sum(step.alpha for step in steps) / len(steps))
        return replace(steps[0], alpha=alpha, error=math.inf).judged(K, Y[rows], shift[rows])

    chosen = ranking[:1]
    now = mean(chosen)
    for step in ranking[1:]:
        if len(chosen) >= most:
            break
        both = mean([*chosen, step])
        if both.error < _JOINT_GAIN**2 * now.error:
            chosen, now = [*chosen, step], both
    return chosen, now.left
