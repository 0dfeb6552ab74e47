"""From values to places on a page: straight, logarithmic, and one band for each name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class Linear:
    """A straight scale from [low, high] to [start, stop] in units of the drawing."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: Any) -> Any:
        size = exponent([self.low, self.high])  # the width alone may be beyond the largest number
        low, high = np.ldexp([self.low, self.high], -size)
        return self.start + (np.ldexp(value, -size) - low) / (high - low or 1.0) * (self.stop - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round values within the scale, about as many as asked."""
        raw = self.high / max(1, most) - self.low / max(1, most)
        if not raw > 1e-322:  # no rounder number is left
            return [self.low]
        power = 10.0 ** math.floor(math.log10(raw))
        step = next((m * power for m in (1, 2, 2.5, 5) if m * power >= raw * (1 - 1e-9)), 10 * power)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(i * step, 12 - math.floor(math.log10(step))) + 0.0 for i in range(first, last + 1)]


@dataclass(frozen=True)
class Log:
    """A logarithmic scale."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: Any) -> Any:
        low, high = math.log(self.low), math.log(self.high)
        return self.start + (np.log(np.asarray(value, dtype=float)) - low) / (high - low or 1.0) * (
            self.stop - self.start
        )

    def ticks(self, most: int = 6) -> list[float]:
        """Return powers of ten within the scale; with 2 and 5 of each where there are few."""
        first, last = math.floor(math.log10(self.low) - 1e-9), math.ceil(math.log10(self.high) + 1e-9)
        every = max(1, math.ceil((last - first) / most))
        tens = [10.0**k for k in range(first, last + 1, every) if self._within(10.0**k)]
        if len(tens) >= 3:
            return tens
        fine = [m * 10.0**k for k in range(first, last + 1) for m in (1, 2, 5)]
        return [t for t in fine if self._within(t)] or [self.low]

    def _within(self, value: float) -> bool:
        return self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)


@dataclass(frozen=True)
class Bands:
    """One band for each of `count` things, from start to stop."""

    count: int
    start: float
    stop: float

    @property
    def size(self) -> float:
        """How wide a band is; negative where they run downwards."""
        return (self.stop - self.start) / max(1, self.count)

    def edge(self, i: int) -> float:
        """Where band i begins."""
        return self.start + i * self.size

    def middle(self, i: int) -> float:
        """The middle of band i."""
        return self.start + (i + 0.5) * self.size


def span(values: Any, margin: float = 0.05) -> tuple[float, float]:
    """Return the smallest and the largest finite value with some room about them."""
    values = np.asarray(values, dtype=float).ravel()
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = margin * high - margin * low if low < high else abs(low) / 3 or 1.0
    return max(low - room, -LARGEST), min(high + room, LARGEST)


def bins(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how many values are in each of equally wide bins, and where these begin and end.

    The same as `numpy.histogram`, and also for values whose differences are no longer numbers.

    Examples
    --------
    >>> heights, edges = bins(np.array([-1.7e308, 0.0, 1.7e308]), 2)
    >>> heights.tolist(), edges.tolist()
    ([1, 2], [-1.7e+308, 0.0, 1.7e+308])
    """
    size = exponent(values)
    heights, edges = np.histogram(np.ldexp(values, -size), count)
    return heights, _enlarged(edges, size)


def quantiles(values: np.ndarray, shares: list[float]) -> np.ndarray:
    """Return quantiles, as `numpy.quantile` does, and also of values whose differences are no longer numbers.

    Examples
    --------
    >>> quantiles(np.array([-1.7e308, 1.7e308]), [0.5]).tolist()
    [0.0]
    """
    size = exponent(values)
    return _enlarged(np.quantile(np.ldexp(values, -size), shares), size)


def spaced(low: float, high: float, count: int) -> np.ndarray:
    """Return equally spaced values from low to high, however far these are apart."""
    return 4 * np.linspace(low / 4, high / 4, count)


def exponent(values: Any) -> int:
    """Return the power of two below which all values are; dividing by it rounds nothing."""
    return int(np.frexp(np.abs(values).max())[1])


def _enlarged(values: np.ndarray, size: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.clip(np.ldexp(values, size), -LARGEST, LARGEST)
