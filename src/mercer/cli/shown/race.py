"""The Gram engine against scikit-learn, on the machine at hand."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from mercer.gram import Gram
from mercer.kernels import RBF

Work = Callable[[], np.ndarray]
ROUNDS = 3
LIMIT = 8.0  # seconds after which a contest on a slow or busy machine begins no further round
BLOCK = 500  # rows at a time of the peer's product; between 250 and 4,000 it matters little


@dataclass(frozen=True)
class Contest:
    """The same numbers asked of both."""

    task: str
    size: str
    dtype: str
    ours: Work
    theirs: Work


@dataclass(frozen=True)
class Result:
    """The best time of each, in seconds, and the largest difference relative to the largest value."""

    contest: Contest
    ours: float
    theirs: float
    difference: float

    @property
    def ratio(self) -> float:
        """How many times faster mercer is."""
        return self.theirs / self.ours


def contests(quick: bool = False) -> Iterator[Contest]:
    """Yield the contests: a dense matrix and a product with a matrix that is not formed, in both precisions."""
    for dtype in ("float32", "float64"):
        yield _dense(500 if quick else 4000, 26, dtype)
    for dtype in ("float32", "float64"):
        yield _product(1500 if quick else 20_000, 20, dtype)


def run(contest: Contest) -> Result:
    """Time both in turn, after one run each that warms caches, threads and memory."""
    start = time.perf_counter()
    ours, theirs = contest.ours(), contest.theirs()
    difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    del ours, theirs
    times: list[tuple[float, float]] = []
    while len(times) < ROUNDS and (not times or time.perf_counter() - start < LIMIT):
        times.append((_time(contest.ours), _time(contest.theirs)))
    best = np.min(times, axis=0)
    return Result(contest, float(best[0]), float(best[1]), difference)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _dense(n: int, d: int, dtype: str) -> Contest:
    X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    kernel, gamma = RBF.from_gamma(1 / d), 1 / d
    return Contest("RBF matrix", f"{n:,} x {d}", dtype, lambda: kernel(X), lambda: rbf_kernel(X, gamma=gamma))


def _product(n: int, d: int, dtype: str) -> Contest:
    rng = np.random.default_rng(0)
    X, v = rng.standard_normal((n, d)).astype(dtype), rng.standard_normal(n).astype(dtype)
    kernel, gamma = RBF.from_gamma(1 / d), 1 / d

    def theirs() -> np.ndarray:
        return np.concatenate([rbf_kernel(X[i : i + BLOCK], X, gamma=gamma) @ v for i in range(0, n, BLOCK)])

    return Contest("RBF K v", f"{n:,} x {d}", dtype, lambda: Gram(kernel, X).matvec(v), theirs)


def _time(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
