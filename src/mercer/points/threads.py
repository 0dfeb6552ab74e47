"""One pool of threads for the whole process; the core releases the GIL, so tiles run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock, local
from typing import Any

_lock = Lock()
_here = local()
_pool: ThreadPoolExecutor | None = None


def cores() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(task: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
    """Apply `task` to each argument, on all cores when there is more than one of both.

    Inside a task the call runs in place: a thread that waited for its own pool would wait for ever.
    """
    arguments = list(arguments)
    if len(arguments) <= 1 or getattr(_here, "working", False) or cores() == 1:
        return [task(a) for a in arguments]
    return list(_workers().map(task, arguments))


def shares(n: int) -> list[slice]:
    """Return one slice of n numbers for each core."""
    step = -(-n // cores()) if n >= 1024 else n
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread_each() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread, where the work is shared here.

    The threads of BLAS wait for one another by spinning, and take the cores from those that compute kernel values.
    """
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


def _workers() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(cores(), "mercer", initializer=_mark)
        return _pool


def _mark() -> None:
    _here.working = True


def _forget() -> None:
    """Drop the pool in a forked child, whose threads did not come along."""
    global _pool, _lock
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
