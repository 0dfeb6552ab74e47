"""What the parameters of the machines may be, and the sentences for what they may not."""

from __future__ import annotations

import math
import numbers
from typing import Any

from mercer.estimators.kernel_names import NAMES
from mercer.kernels import Kernel
from mercer.points.budget import Budget


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _positive(value: Any) -> bool:
    return _is_real(value) and value > 0


def _whole(value: Any, low: int) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= low


# name: (test, what it must be)
_RULES: dict[str, tuple[Any, str]] = {
    "C": (_positive, "a number > 0, or inf for a hard margin"),
    "nu": (lambda v: _is_real(v) and 0 < v <= 1, "a number with 0 < nu <= 1"),
    "epsilon": (lambda v: _is_real(v) and 0 <= v < math.inf, "a number >= 0"),
    "kernel": (
        lambda v: v in NAMES if isinstance(v, str) else isinstance(v, Kernel) or callable(v),
        f"a kernel object, a function of two sets of points, or one of {', '.join(map(repr, NAMES))}",
    ),
    "degree": (lambda v: _whole(v, 1), "a whole number >= 1"),
    "gamma": (
        lambda v: v in ("scale", "auto") if isinstance(v, str) else _positive(v) and v < math.inf,
        "a number > 0, 'scale' or 'auto'",
    ),
    "coef0": (lambda v: _is_real(v) and math.isfinite(v), "a finite number"),
    "tol": (lambda v: _positive(v) and v < 1, "a relative duality gap with 0 < tol < 1"),
    "max_iter": (lambda v: _whole(v, -1), "a whole number >= 0, or -1 for no limit"),
    "time_limit": (lambda v: v is None or _positive(v), "a number of seconds > 0, or None for no limit"),
    "class_weight": (
        lambda v: v is None or v == "balanced" or isinstance(v, dict),
        "a dictionary of weights by class, 'balanced' or None",
    ),
    "decision_function_shape": (lambda v: v in ("ovr", "ovo"), "'ovr' or 'ovo'"),
    "break_ties": (lambda v: isinstance(v, bool) or str(v) in ("True", "False"), "True or False"),
    "warm_start": (lambda v: isinstance(v, bool) or str(v) in ("True", "False"), "True or False"),
    "dtype": (lambda v: isinstance(v, str) and v in ("auto", "float32", "float64"), "'auto', 'float32' or 'float64'"),
    "verbose": (lambda v: isinstance(v, bool) or _whole(v, 0), "0 (silent) or 1 (a progress bar)"),
}


def check_parameters(estimator: Any) -> None:
    """Raise ValueError, naming the parameter and its value, unless every parameter is in its domain."""
    for name, value in vars(estimator).items():
        rule = _RULES.get(name)
        if rule is not None and not rule[0](value):
            raise ValueError(f"{name}={value!r} of {type(estimator).__name__} must be {rule[1]}.")
    if estimator.budget is not None:
        Budget(estimator.budget)
