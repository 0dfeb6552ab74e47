"""The time that a picture may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Clock:
    """Seconds that run out.

    Parameters
    ----------
    seconds
        How many there are from now on.

    Examples
    --------
    >>> clock = Clock(10.0)
    >>> clock.part(0.5).left <= 5.0, Clock(0.0).out
    (True, True)
    """

    def __init__(self, seconds: float) -> None:
        self.end = time.perf_counter() + seconds

    @property
    def left(self) -> float:
        """Seconds left; 0 when there are none."""
        return max(0.0, self.end - time.perf_counter())

    @property
    def out(self) -> bool:
        """Whether there are none left."""
        return self.left <= 0.0

    def part(self, share: float) -> Clock:
        """Return a clock with a share of what is left."""
        return Clock(share * self.left)


def pace(work: Callable[[Any], Any], rows: Any, few: int = 64) -> float:
    """Return the seconds that work takes for one row, measured on a few of them after a first call."""
    some = rows[:few]
    work(some[:1])
    began = time.perf_counter()
    work(some)
    return (time.perf_counter() - began) / max(1, len(some))
