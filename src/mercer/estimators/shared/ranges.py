"""Numbers beyond float64: a fit ends in a whole model or in a sentence, and answers are finite."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

# What a product of ours and a decomposition of SciPy's say of what they are given.
_OVERFLOW = ("contains NaN or infinite values", "must not contain infs or NaNs")
_COEFFICIENTS = ("coef_", "dual_coef_", "intercept_")  # where a fit sets them; properties answer for themselves
_Method = TypeVar("_Method", bound=Callable[..., Any])


def whole_fit(method: _Method) -> _Method:
    """Decorate a fit: it ends in a whole model, or leaves the model as it was after an error or an interruption.

    Overflow on the way is no error by itself. Coefficients that are not finite are one, and so is overflow that
    Python, LAPACK or a check of ours stumbles on; the sentence names the sizes of what the model was fitted to.
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
    """Decorate what answers for new points: numbers that are not finite are an error."""

    @wraps(method)
    def answer(self: Any, X: Any, *args: Any, **kwargs: Any) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            found = method(self, X, *args, **kwargs)
        if not np.isfinite(found).all():
            sizes = _sizes({"X": X}) or "the points"
            raise FloatingPointError(
                f"answers of {type(self).__name__} leave the range of float64: {sizes}. Scale the features, and the "
                "targets where they are large, before the fit."
            )
        return found

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
