"""The kernels of scikit-learn's Gaussian processes as kernels of this library."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.kernels.base import Kernel, is_whole
from mercer.kernels.rules.algebra import Power, Product, Sum
from mercer.kernels.vectors.cosine import Cosine
from mercer.kernels.vectors.histogram import ChiSquared
from mercer.kernels.vectors.laplacian import Laplacian
from mercer.kernels.vectors.linear import Constant, Linear
from mercer.kernels.vectors.matern import Matern
from mercer.kernels.vectors.periodic import Periodic
from mercer.kernels.vectors.polynomial import Polynomial, Sigmoid
from mercer.kernels.vectors.rational import RationalQuadratic
from mercer.kernels.vectors.rbf import RBF

Range = tuple[float, float]

_MODULE = "sklearn.gaussian_process.kernels"
_LIMITS = 1e-300, 1e300  # bounds whose logarithms are numbers


@dataclass(frozen=True)
class Noise:
    """A variance on the diagonal of the training matrix, and between what it may be found."""

    value: float
    bounds: Range

    def __add__(self, other: Noise) -> Noise:
        return Noise(self.value + other.value, _range(a + b for a, b in zip(self.bounds, other.bounds, strict=True)))

    def times(self, factor: float, bounds: Range) -> Noise:
        """Return the multiple by a factor that is itself to be found between bounds."""
        return Noise(self.value * factor, _range(a * b for a, b in zip(self.bounds, bounds, strict=True)))


@dataclass(frozen=True)
class Translation:
    """What a kernel of scikit-learn's Gaussian processes says.

    Attributes
    ----------
    kernel
        The same kernel; None where there is nothing but noise.
    bounds
        Between what its parameters may be found, by the names of `mercer.gram.parameters`; both ends are the same for a
        parameter that is "fixed" there.
    noise
        What its WhiteKernels add; None where there are none.
    """

    kernel: Kernel | None
    bounds: dict[str, Range] = field(default_factory=dict)
    noise: Noise | None = None


def translated(kernel: Any) -> Translation | None:
    """Return what a kernel of `sklearn.gaussian_process.kernels` says; None for any other thing.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    >>> translation = translated(ConstantKernel(2.0) * RBF(5.0, "fixed") + WhiteKernel(0.1))
    >>> translation.kernel, translation.noise.value
    (Constant(value=2.0) * RBF(scale=5.0), 0.1)
    >>> translation.bounds
    {'left__value': (1e-05, 100000.0), 'right__scale': (5.0, 5.0)}
    """
    module = sys.modules.get(_MODULE)  # who has such a kernel has loaded it
    if module is None or not isinstance(kernel, module.Kernel):
        return None
    rule = _RULES.get(type(kernel).__name__) if type(kernel).__module__ == _MODULE else None
    if rule is None:
        raise TypeError(
            f"{type(kernel).__name__} of scikit-learn's Gaussian processes has no counterpart here; make it of kernel "
            "objects, or pass kernel=lambda X, Z: k(X, Z) to have its values computed as they are."
        )
    return rule(kernel)


def as_kernel(value: Any, name: str = "kernel") -> Any:
    """Return a kernel of scikit-learn's Gaussian processes as one of ours, and any other thing but a class as it is.

    Parameters
    ----------
    value
        What was given.
    name
        As what.
    """
    if isinstance(value, Kernel | str):
        return value
    refuse_class(value, name)
    translation = translated(value)
    if translation is None:
        return value
    if translation.noise is not None or translation.kernel is None:
        raise ValueError(
            f"{name}={value!r} has a WhiteKernel, which is noise and no similarity: leave it out. KernelRidge has "
            "alpha for it, SVC has C; GaussianProcessRegressor makes it the noise."
        )
    return translation.kernel


def refuse_class(value: Any, name: str = "kernel") -> None:
    """Raise TypeError for a class where an object of it is meant."""
    if isinstance(value, type):
        raise TypeError(f"{name}={value.__name__} is a class; pass an object: {value.__name__}().")


# -- from one kernel of theirs to one of ours ---------------------------------------------------------------


def _range(pair: Any) -> Range:
    low, high = sorted(float(v) for v in pair)
    return (low, high) if low == high else (max(low, _LIMITS[0]), min(high, _LIMITS[1]))


def _bounds(k: Any, theirs: str, ours: str, change: Callable[[float], float] = float) -> dict[str, Range]:
    """Return the bounds of a parameter under our name; `change` makes our value of theirs."""
    values, hyper = np.atleast_1d(getattr(k, theirs)), getattr(k, f"hyperparameter_{theirs}")
    pairs = np.stack([values, values], axis=1) if hyper.fixed else np.broadcast_to(hyper.bounds, (len(values), 2))
    names = [ours] if len(values) == 1 else [f"{ours}[{i}]" for i in range(len(values))]
    with np.errstate(divide="ignore"):
        return {name: _range(map(change, pair)) for name, pair in zip(names, pairs, strict=True)}


def _scale(k: Any) -> float | list[float]:
    scale = np.squeeze(k.length_scale)
    return float(scale) if scale.ndim == 0 else [float(s) for s in scale]


def _constant(k: Any) -> Translation:
    return Translation(Constant(k.constant_value), _bounds(k, "constant_value", "value"))


def _white(k: Any) -> Translation:
    return Translation(None, noise=Noise(float(k.noise_level), _bounds(k, "noise_level", "noise")["noise"]))


def _rbf(k: Any) -> Translation:
    return Translation(RBF(_scale(k)), _bounds(k, "length_scale", "scale"))


def _matern(k: Any) -> Translation:
    kernel = RBF(_scale(k)) if k.nu == math.inf else Matern(float(k.nu), _scale(k))
    return Translation(kernel, _bounds(k, "length_scale", "scale"))


def _rational(k: Any) -> Translation:
    kernel = RationalQuadratic(float(k.alpha), float(k.length_scale))
    return Translation(kernel, _bounds(k, "alpha", "alpha") | _bounds(k, "length_scale", "scale"))


def _periodic(k: Any) -> Translation:
    kernel = Periodic([float(k.periodicity)], float(k.length_scale))  # a period for one feature: it refuses several
    return Translation(kernel, _bounds(k, "periodicity", "period[0]") | _bounds(k, "length_scale", "scale"))


def _dot_product(k: Any) -> Translation:
    bounds = _bounds(k, "sigma_0", "left__value", lambda s: float(s) ** 2)
    return Translation(Sum(Constant(float(k.sigma_0) ** 2), Linear()), bounds)


def _pairwise(k: Any) -> Translation:
    metric, more = k.metric, k.pairwise_kernels_kwargs or {}
    gamma, coef0 = float(k.gamma), float(more.get("coef0", 1.0))
    if metric == "rbf":
        return Translation(RBF.from_gamma(gamma), _bounds(k, "gamma", "scale", lambda g: float(np.sqrt(0.5 / g))))
    if metric == "laplacian":
        return Translation(Laplacian(1.0 / gamma), _bounds(k, "gamma", "scale", lambda g: float(1.0 / g)))
    if metric in ("poly", "polynomial"):
        kernel = Polynomial(int(more.get("degree", 3)), coef0, gamma)
        return Translation(kernel, {"c1": (coef0, coef0)} | _bounds(k, "gamma", "c2"))
    if metric == "sigmoid":
        return Translation(Sigmoid(gamma, coef0), {"c": (coef0, coef0)} | _bounds(k, "gamma", "gamma"))
    if metric == "chi2":
        return Translation(ChiSquared(gamma), _bounds(k, "gamma", "gamma"))
    if metric == "linear":
        return Translation(Linear())
    if metric == "cosine":
        return Translation(Cosine())
    raise TypeError(
        f"{k!r} of scikit-learn's Gaussian processes has no counterpart here; FromFunction makes a kernel of a "
        "function of two points."
    )


def _under(prefix: str, bounds: dict[str, Range]) -> dict[str, Range]:
    return {f"{prefix}__{name}": pair for name, pair in bounds.items()}


def _both(kind: Callable[[Kernel, Kernel], Kernel], a: Translation, b: Translation, noise: Noise | None) -> Translation:
    if a.kernel is None or b.kernel is None:
        return Translation(a.kernel or b.kernel, a.bounds | b.bounds, noise)
    return Translation(kind(a.kernel, b.kernel), _under("left", a.bounds) | _under("right", b.bounds), noise)


def _sum(k: Any) -> Translation:
    a, b = _required(k.k1), _required(k.k2)
    return _both(Sum, a, b, a.noise + b.noise if a.noise and b.noise else a.noise or b.noise)


def _product(k: Any) -> Translation:
    a, b = _required(k.k1), _required(k.k2)
    if a.noise is None and b.noise is None:
        return _both(Product, a, b, None)
    noisy, factor = (a, b) if a.noise is not None else (b, a)
    if noisy.noise is None or factor.noise is not None or not isinstance(factor.kernel, Constant):
        raise TypeError(
            f"{k!r} multiplies a WhiteKernel by what is no constant, which has no counterpart here; add it instead."
        )
    noise = noisy.noise.times(factor.kernel.value, factor.bounds["value"])
    return Translation(None, noise=noise) if noisy.kernel is None else _both(Product, a, b, noise)


def _power(k: Any) -> Translation:
    base = _required(k.kernel)
    if base.noise is not None or base.kernel is None or not is_whole(k.exponent) or k.exponent < 1:
        raise TypeError(
            f"{k!r} has no counterpart here: a kernel has whole powers >= 1 (other ones need not be positive "
            "semidefinite), and noise has none."
        )
    return Translation(Power(base.kernel, int(k.exponent)), _under("base", base.bounds))


def _required(k: Any) -> Translation:
    translation = translated(k)
    assert translation is not None, k
    return translation


_RULES: dict[str, Callable[[Any], Translation]] = {
    "ConstantKernel": _constant,
    "WhiteKernel": _white,
    "RBF": _rbf,
    "Matern": _matern,
    "RationalQuadratic": _rational,
    "ExpSineSquared": _periodic,
    "DotProduct": _dot_product,
    "PairwiseKernel": _pairwise,
    "Sum": _sum,
    "Product": _product,
    "Exponentiation": _power,
}
