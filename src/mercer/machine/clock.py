"""The clock of a job: what is left of its time limit, and what the seconds were spent on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LEAST_LIMIT = 0.1  # seconds: a fit takes no time limit of 0


class Clock:
    """The clock of a job, which starts when it is made.

    Parameters
    ----------
    limit
        Seconds that there are from now on; None for no limit.

    Attributes
    ----------
    spent
        Seconds by what they were spent on: `with clock("search"): ...`.
    interrupted
        Whether `interrupt` was called.

    Examples
    --------
    >>> from mercer.machine.clock import Clock
    >>> clock = Clock(10.0)
    >>> clock.part(0.5).left <= 5.0, Clock(0.0).out, Clock().time_limit()
    (True, True, None)
    >>> with clock("search"):
    ...     pass
    >>> list(clock.spent)
    ['search']
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit, self.began, self.interrupted = limit, time.perf_counter(), False
        self.spent: dict[str, float] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[what] = time.perf_counter() - began

    def interrupt(self, moment: float) -> None:
        """Leave only a moment, in seconds, for what remains to be done: the user does not want to wait."""
        self.limit, self.began, self.interrupted = moment, time.perf_counter(), True

    def _left(self, share: float = 1.0) -> float:
        if self.limit is None:
            return math.inf
        return share * float(self.limit) - (time.perf_counter() - self.began)

    @property
    def left(self) -> float:
        """Seconds left; 0 when there are none."""
        return max(0.0, self._left())

    @property
    def out(self) -> bool:
        """Whether there are none left."""
        return self.left <= 0.0

    def over(self, share: float) -> bool:
        """Return whether a share of the limit has passed."""
        return self._left(share) <= 0.0

    def part(self, share: float) -> Clock:
        """Return a clock with a share of what is left."""
        return Clock(share * self.left)

    def time_limit(self, share: float = 1.0) -> float | None:
        """Return what is left of a share of the limit as the time limit of a fit; None without limit."""
        return None if self.limit is None else max(self._left(share), _LEAST_LIMIT)


def pace(work: Callable[[Any], Any], rows: Any, few: int = 64) -> float:
    """Return the seconds that work takes for one row, measured on a few of them after a first call."""
    some = rows[:few]
    work(some[:1])
    began = time.perf_counter()
    work(some)
    return (time.perf_counter() - began) / max(1, len(some))
