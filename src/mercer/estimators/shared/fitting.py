"""The way through a fit: a whole model or a sentence, finite answers, and listeners on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from inspect import signature
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from mercer.solvers.control import Progress

# From the errors that our products and SciPy's decompositions raise of their input.
_OVERFLOW = ("contains NaN or infinite values", "must not contain infs or NaNs")
_COEFFICIENTS = ("coef_", "dual_coef_", "intercept_")  # where a fit sets them; properties answer for themselves
_Method = TypeVar("_Method", bound=Callable[..., Any])


def whole_fit(method: _Method) -> _Method:
    """Decorate a fit: it ends in a whole model, or leaves the model as it was after an error or an interruption.

    Overflow on the way is no error by itself. Coefficients that are not finite are one, and so is overflow at
    which Python, LAPACK or a check of ours raises. The sentence names the sizes of the training data.
    """

    @wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                fitted = method(self, *args, **kwargs)
            for name in _COEFFICIENTS:
                if name in vars(self) and not _finite(vars(self)[name]):
                    raise OverflowError(f"{name} is not finite")
        except BaseException as error:
            vars(self).clear()
            vars(self).update(before)
            raw = isinstance(error, ArithmeticError | np.linalg.LinAlgError) and not str(error).endswith(".")
            if not raw and not (isinstance(error, ValueError) and any(said in str(error) for said in _OVERFLOW)):
                raise
            given = signature(method).bind(self, *args, **kwargs).arguments
            sizes = _sizes({name: given.get(name) for name in ("X", "y", "sample_weight")}) or "the data"
            raise FloatingPointError(
                f"the fit of {type(self).__name__} leaves the range of float64 ({str(error)[:80]}): {sizes}. Scale "
                "what is far from 1, and choose parameters nearer to their defaults."
            ) from error
        return fitted

    return fit  # type: ignore[return-value]


def finite(method: _Method) -> _Method:
    """Decorate a method of prediction: it raises an error for values that are not finite."""

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **kwargs: Any) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            values = method(self, X, *args, **kwargs)
        if not np.isfinite(values).all():
            sizes = _sizes({"X": X}) or "the points"
            raise FloatingPointError(
                f"answers of {type(self).__name__} leave the range of float64: {sizes}. Scale the features, and the "
                "targets where they are large, before the fit."
            )
        return values

    return answer  # type: ignore[return-value]


def _finite(values: Any) -> bool:
    return bool(np.isfinite(values.data if sparse.issparse(values) else values).all())


def _sizes(given: dict[str, Any]) -> str:
    """Say how large numbers are, where they are numbers."""
    said = []
    for name, values in given.items():
        numbers = np.asarray(values.data if sparse.issparse(values) else values)
        if numbers.dtype.kind in "iuf" and numbers.size:
            said.append(f"{name} reaches {np.abs(numbers.astype(np.float64)).max():.3g}")
    return ", ".join(said)


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
    """Yield the listener of a solver, or None if nobody listens; tol is the estimator's unless given."""
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
    """A progress bar on a logarithmic scale of gaps, full at tol."""
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
