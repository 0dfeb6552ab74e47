"""Listeners of a fit: a bar in the terminal, and scikit-learn's callbacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

from mercer.solvers.control import Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is: this scikit-learn has no callbacks."""
        return method


Listener = Callable[[Progress], Any]

__all__ = ["CallbackSupportMixin", "listening", "with_callbacks"]


@contextmanager
def listening(
    estimator: Any, X: Any, y: Any, metadata: dict[str, Any], tol: float | None = None
) -> Iterator[Listener | None]:
    """Yield what a solver should report to, or None when nobody listens; tol is the estimator's unless given."""
    with ExitStack() as stack:
        listeners: list[Listener] = []
        if estimator.verbose:
            listeners.append(stack.enter_context(_bar(type(estimator).__name__, estimator.tol if tol is None else tol)))
        if hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx"):
            listeners.append(stack.enter_context(_relay(estimator, X, y, metadata)))
        if not listeners:
            yield None
            return
        lock = Lock()  # problems that run side by side report from their own threads

        def tell(progress: Progress) -> bool:
            with lock:
                answers = [listener(progress) for listener in listeners]  # all of them hear
                return any(answer is True for answer in answers)

        yield tell


@contextmanager
def _relay(estimator: Any, X: Any, y: Any, metadata: dict[str, Any]) -> Iterator[Listener]:
    """Each report is a task of scikit-learn's callbacks; its numbers are in the task's metadata."""
    context = estimator._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata=metadata)

    def tell(progress: Progress) -> bool:
        task = context.subcontext(task_name="iterations")
        seen = {**metadata, "progress": progress}
        task.call_on_fit_task_begin(estimator=estimator, X=X, y=y, metadata=seen)
        return bool(task.call_on_fit_task_end(estimator=estimator, X=X, y=y, metadata=seen))

    yield tell
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y, metadata=metadata)


@contextmanager
def _bar(name: str, tol: float) -> Iterator[Listener]:
    """A bar that is full when the logarithm of the gap has come all the way down to that of tol."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("gap {task.fields[gap]:.1e} of {task.fields[tol]:.0e}, {task.fields[support]} support vectors"),
        TimeElapsedColumn(),
    )
    with Bars(*columns) as bars:
        task = bars.add_task(name, total=1.0, gap=math.inf, tol=tol, support=0)
        widest = 1.0

        def tell(progress: Progress) -> None:
            nonlocal widest
            gap = progress.gap
            done = 0.0
            if math.isfinite(gap):
                widest = max(widest, gap)
                done = math.log(widest / max(gap, tol)) / math.log(widest / tol)
            bars.update(task, completed=done, gap=gap, support=progress.support)

        yield tell
        bars.update(task, completed=1.0)
