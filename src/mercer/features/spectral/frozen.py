"""Reading frozen univariate laws of scipy.stats."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def is_frozen(law: Any) -> bool:
    """Whether ``law`` is a frozen univariate law of scipy.stats, such as ``stats.cauchy(scale=2)``."""
    return isinstance(getattr(law, "dist", None), (stats.rv_continuous, stats.rv_discrete)) and hasattr(law, "ppf")


def check_frozen(law: Any, role: str) -> Any:
    """Return a frozen continuous law with scalar parameters, or raise a sentence.

    A law that needs no shape, such as ``stats.norm``, may come unfrozen: it means ``stats.norm()``.
    """
    if isinstance(law, (stats.rv_continuous, stats.rv_discrete)):
        if law.numargs:
            raise ValueError(
                f"{role} is scipy.stats.{law.name} without its shape parameters ({law.shapes}): "
                f"call it first, as in scipy.stats.{law.name}({law.shapes})."
            )
        law = law()
    if not is_frozen(law):
        raise TypeError(
            f"{role} must be a frozen univariate law of scipy.stats, such as scipy.stats.cauchy(scale=2); "
            f"got {type(law).__name__}."
        )
    if isinstance(law.dist, stats.rv_discrete):
        raise TypeError(
            f"{role} is scipy.stats.{law.dist.name}, a discrete law: give its points and probabilities to "
            "DiscreteLaw(frequencies, weights) instead."
        )
    for key, value in parameters(law).items():
        if np.ndim(value):
            raise ValueError(
                f"{role} has an array as its parameter {key!r}: use one number, and `scale` of the spectral "
                "law for one scale per coordinate."
            )
    if not np.isfinite(law.ppf(0.5)):
        raise ValueError(f"{role}, {describe(law)}, has parameters outside its domain: its median is not a number.")
    return law


def parameters(law: Any) -> dict[str, Any]:
    """Shapes, loc and scale of a frozen law, by name, defaults filled in."""
    shapes = [name.strip() for name in (law.dist.shapes or "").split(",") if name.strip()]
    named = dict(zip([*shapes, "loc", "scale"], law.args, strict=False))
    found = {"loc": 0.0, "scale": 1.0} | named | law.kwds
    return {key: found[key] for key in [*shapes, "loc", "scale"]}


def describe(law: Any) -> str:
    """A frozen law as the expression that builds it."""
    shown = []
    for key, value in parameters(law).items():
        if (key, value) not in (("loc", 0.0), ("scale", 1.0)):
            shown.append(f"{key}={value.item() if isinstance(value, np.generic) else value!r}")
    return f"scipy.stats.{law.dist.name or type(law.dist).__name__}({', '.join(shown)})"


def fingerprint(law: Any) -> Hashable:
    """Equal for equal laws; a few quantiles tell apart those whose parameters do not, such as histograms."""
    quantiles = law.ppf(np.linspace(0.05, 0.95, 7))
    return (type(law.dist), tuple(map(float, parameters(law).values())), quantiles.tobytes())


def quantile_rule(law: Any, n_points: int) -> tuple[Floats, Floats]:
    """Points and weights with sum(weights * g(points)) close to E g(law), for bounded smooth g.

    The double-exponential rule (Takahasi and Mori, 1974) in the probability u: u = 1 / (1 + exp(-pi sinh t)),
    trapezoids in t, points = quantiles. The weights are positive and sum to one, so that the rule is itself a
    law, and a kernel built on it is exactly positive semi-definite.
    """
    t = np.linspace(-3.2, 3.2, n_points)
    lower = 1.0 / (1.0 + np.exp(np.pi * np.sinh(np.abs(t))))
    weights = np.cosh(t) * lower * (1.0 - lower)
    # The upper half goes through the survival function: 1 - u would lose the tail to rounding.
    points = np.where(t <= 0, law.ppf(lower), law.isf(lower))
    usable = np.isfinite(points)
    points, weights = points[usable], weights[usable]
    return points, weights / weights.sum()
