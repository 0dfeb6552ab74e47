"""Statistics averaged over blocks of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.rkhs.statistics.moments import Invariants, second, third
from mercer.rkhs.statistics.outcome import Approximated, checked_count

SMALLEST, _USUAL, _LARGEST = 6, 32, 1024  # points in a block: for the third moment, and by default
_SKEWED = 64  # blocks whose third moments are computed; the more there are, the less they matter


def block_size_for(size: int, asked: int | None, what: str) -> int:
    """Return how many points a block has."""
    if size < SMALLEST:
        raise ValueError(f"{what} are too few for blocks, which need {SMALLEST}; use method='permutation'.")
    if asked is None:
        return min(size, max(_USUAL, min(math.isqrt(size), _LARGEST)))
    return min(size, checked_count(asked, "block_size", SMALLEST))


def divided(n: int, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the numbers below n in random order, in parts of equal size (to within one)."""
    return list(np.array_split(rng.permutation(n), count))


def skewed(block: int) -> bool:
    """Return whether the third moment of a block is computed; the first blocks, drawn at random, stand for all."""
    return block < _SKEWED


def combined(
    values: Sequence[float], moments: Sequence[tuple[Invariants, Invariants]], factors: Any = 1.0
) -> tuple[float, Approximated]:
    """Return the mean of the blocks' statistics, and its law over permutations within the blocks.

    Parameters
    ----------
    values
        The statistic of each block.
    moments
        The two matrices of which it is the inner product, up to a factor.
    factors
        Those factors.
    """
    f = np.broadcast_to(np.asarray(factors, dtype=np.float64), len(values))
    variance = math.fsum(g**2 * second(a, b) for g, (a, b) in zip(f, moments, strict=True))
    known = [g**3 * third(a, b) for i, (g, (a, b)) in enumerate(zip(f, moments, strict=True)) if skewed(i)]
    cubes = len(values) * float(np.mean(known))
    skewness = cubes / variance**1.5 if variance > 0 else 0.0
    return float(np.mean(values)), Approximated(math.sqrt(variance) / len(values), skewness)
