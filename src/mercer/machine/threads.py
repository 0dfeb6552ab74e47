"""One pool of threads for the whole process; the core releases the GIL, so tiles run side by side.

How many threads there may be is said, the strongest first, by a limit of threadpoolctl as long as it holds, by
MERCER_NUM_THREADS, and by the least of OMP_NUM_THREADS, the affinity mask and the processor quota of the container.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, wraps
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from threadpoolctl import LibController, ThreadpoolController, register

from mercer import _core
from mercer.machine.warn import warn

_lock = threading.Lock()
_here = threading.local()
_GO = np.zeros(1, np.uint8)  # of a thread that nobody has told to stop
_pool: ThreadPoolExecutor | None = None
_size = 0  # threads of the pool, at most
_limit: int | None = None  # what threadpoolctl has set

Given = ParamSpec("Given")
Found = TypeVar("Found")


def cores() -> int:
    """Return how many threads the caller may use.

    Those of the process; in a thread of a pool of multiprocessing, as joblib's backend "threading" has them, its share.
    """
    dummy = sys.modules.get("multiprocessing.dummy")
    if dummy is None or not isinstance(threading.current_thread(), dummy.DummyProcess):
        return limit()
    return max(1, limit() // sum(isinstance(thread, dummy.DummyProcess) for thread in threading.enumerate()))


def limit() -> int:
    """Return how many threads the process may use."""
    return _limit or _unlimited()


def run(task: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
    """Apply `task` to each argument, on all cores when there is more than one of both.

    Inside a task the call runs in place: a thread that waited for its own pool would wait for ever. Where the caller is
    interrupted, or a task fails, others do not begin, and those that have asked for `stop` end soon.
    """
    arguments = list(arguments)
    if len(arguments) <= 1 or inside() or cores() == 1:
        return _followed(map(task, arguments), len(arguments))
    asked = np.zeros(1, np.uint8)

    def told(argument: Any) -> Any:
        _here.stop = asked
        return task(argument)

    try:
        return _followed(_workers().map(told, arguments), len(arguments))
    except BaseException:
        asked[0] = 1
        raise


def _followed(results: Iterable[Any], total: int) -> list[Any]:
    """Return all results, and tell who watches this thread how many are there."""
    watch = getattr(_here, "watch", None)
    if watch is None or total == 1:
        return list(results)
    done = []
    for result in results:
        done.append(result)
        watch(len(done), total)
    return done


@contextmanager
def watched(watch: Callable[[int, int], Any]) -> Iterator[None]:
    """Call `watch` with how many parts are done, and of how many, of work that this thread shares among the cores."""
    before, _here.watch = getattr(_here, "watch", None), watch
    try:
        yield
    finally:
        _here.watch = before


@contextmanager
def progress(name: str = "kernel values") -> Iterator[None]:
    """Show a bar, on standard error, while long kernel matrices are computed.

    Each matrix, and each product with one, fills it anew; what takes no time is over before it is seen.

    Parameters
    ----------
    name
        What stands before the bar.

    Examples
    --------
    >>> import mercer
    >>> with mercer.progress():
    ...     K = mercer.Subsequence(3)(["a text", "another text", "words"])
    """
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(name, total=None)
        with watched(lambda done, total: bars.update(bar, completed=done, total=total)):
            yield


def stop() -> np.ndarray:
    """Return a byte that is 1 once the caller does not wait for this thread any more, for the core to look at."""
    flag: np.ndarray = getattr(_here, "stop", _GO)
    return flag


def inside() -> bool:
    """Return whether the caller is a task of the pool, where further tasks run in place."""
    return getattr(_here, "working", False)


def shares(n: int) -> list[slice]:
    """Return one slice of n numbers for each core."""
    step = -(-n // cores()) if n >= 1024 else n
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


# -- BLAS -------------------------------------------------------------------------------------------------


@cache  # finding the libraries takes longer than a small fit
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


def one_thread_each() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread, where the work is shared here.

    The threads of BLAS wait for one another by spinning, and take the cores from those that compute kernel values.
    NumPy and SciPy each bring their own: on a busy machine of two cores that made fits three to ten times as long.
    """
    return _held_to(1)


def scipy_alone() -> AbstractContextManager[Any]:
    """Hold NumPy's BLAS to one thread, and leave SciPy's, which factorises large matrices, its own."""
    paths = [library.filepath for library in _blas().lib_controllers]
    numpy = [path for path in paths if "numpy" in PurePath(path).parent.name + PurePath(path).parent.parent.name]
    if not numpy or len(numpy) == len(paths):
        return nullcontext()
    held: AbstractContextManager[Any] = _blas().select(filepath=numpy).limit(limits=1)
    return held


def within_limit(solve: Callable[Given, Found]) -> Callable[Given, Found]:
    """Run a function within `held_blas`."""

    @wraps(solve)
    def held(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        with held_blas():
            return solve(*args, **kwargs)

    return held


def held_blas() -> AbstractContextManager[Any]:
    """Hold BLAS to what MERCER_NUM_THREADS and the quota allow, of which it knows nothing."""
    most = _said().blas
    return nullcontext() if most is None else _held_to(most)


def _held_to(most: int) -> AbstractContextManager[Any]:
    with _lock:  # of several threads one holds BLAS, and gives it back what it had
        if all(library.num_threads <= most for library in _blas().lib_controllers):
            return nullcontext()
        held: AbstractContextManager[Any] = _blas().limit(limits=most)
        return held


# -- how many ---------------------------------------------------------------------------------------------


class _Said(NamedTuple):
    """What is said of threads once and for all; None where nothing is."""

    own: int | None  # by MERCER_NUM_THREADS
    most: int | None  # by OMP_NUM_THREADS and the quota
    blas: int | None  # of which BLAS does not know


@cache
def _said() -> _Said:
    own, every, most = _variable("MERCER_NUM_THREADS"), _variable("OMP_NUM_THREADS"), quota()
    return _Said(own, min((n for n in (every, most) if n is not None), default=None), own or most)


def _unlimited() -> int:
    """Return how many threads there may be without threadpoolctl."""
    own, most, _ = _said()
    if own is not None:
        return own
    return _processors() if most is None else min(_processors(), most)


def _processors() -> int:
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _variable(name: str) -> int | None:
    """Return what a variable of the environment says; of several numbers, for nested loops, the first."""
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    first = text.split(",")[0].strip()
    if first.isdecimal() and int(first) > 0:
        return int(first)
    warn(f"{name}={text!r} is ignored: it must be a number of threads, a whole number >= 1.")
    return None


def quota(root: Path = Path("/")) -> int | None:
    """Return how many processors the control groups of this process let it keep busy; None where they do not say.

    Parameters
    ----------
    root
        The folder that holds proc and sys.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    shares = [share for line in lines for share in _shares_of(root / "sys/fs/cgroup", *line.split(":", 2)[1:])]
    return max(1, -int(-min(shares) // 1)) if shares else None  # a part of a processor counts as one


def _shares_of(mounted: Path, controllers: str, path: str) -> Iterator[float]:
    """Yield the processors that a group and those above it may keep busy, in version 2 or 1 of control groups."""
    if controllers and "cpu" not in controllers.split(","):
        return
    group = PurePosixPath(path)
    for place in (group, *group.parents):
        folder = mounted / (controllers and "cpu") / str(place).lstrip("/")
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
        try:
            used, period = " ".join((folder / name).read_text() for name in names).split()
            if float(used) > 0:  # not "max", and not -1
                yield float(used) / float(period)
        except (OSError, ValueError):
            continue


class _Pool(LibController):
    """The pool as threadpoolctl sees it, under the name of the compiled core."""

    user_api = "openmp"  # threads of loops, not those of BLAS
    internal_api = "mercer"
    filename_prefixes = (Path(_core.__file__).name.lower(),)

    def get_num_threads(self) -> int:
        """Return the limit."""
        return limit()

    def set_num_threads(self, num_threads: int) -> None:
        """Set the limit; what would be the limit anyhow removes it, as at the end of a block."""
        global _limit
        _limit = None if num_threads == _unlimited() else max(1, num_threads)

    def get_version(self) -> str:
        """Return the version of the library."""
        from mercer import __version__

        return __version__

    def set_additional_attributes(self) -> None:
        """Say which file it is: others have cores of the same name, and are taken for this one."""
        self.filepath = os.path.realpath(_core.__file__)


register(_Pool)

# -- the pool ---------------------------------------------------------------------------------------------


def _workers() -> ThreadPoolExecutor:
    """Return the pool; a new one where the limit is another, and the threads of the old one end with their work."""
    global _pool, _size
    with _lock:
        if _pool is None or _size != limit():
            _size = limit()
            _pool = ThreadPoolExecutor(_size, "mercer", initializer=_mark)
        return _pool


def _mark() -> None:
    _here.working = True


def _forget() -> None:
    """Drop the pool in a forked child, whose threads did not come along, and what was said to its parent."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()
    _said.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
