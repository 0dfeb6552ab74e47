"""Mercer: learning with kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.certify import Certificate
from mercer.features import Monomials, RandomFourier, TaylorFeatures
from mercer.gram import Gram, Repaired, Verdict, repair, verdict
from mercer.kernels import (
    RBF,
    ArcCosine,
    Cauchy,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    FromFeatures,
    FromFunction,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    Proof,
    RationalQuadratic,
    Sigmoid,
    SpectralMixture,
    Stationary,
    Wendland,
    kernel,
)
from mercer.rkhs import RKHSFunction

if TYPE_CHECKING:
    from mercer.estimators import (
        SVC,
        SVR,
        KernelLogisticRegression,
        KernelMachine,
        KernelQuantileRegressor,
        KernelRidge,
        KernelRidgeCV,
        KernelRobustRegressor,
        LinearSVC,
        LinearSVR,
        NuSVC,
        NuSVR,
        OneClassSVM,
        Pegasos,
        Perceptron,
        Ridge,
    )

__version__ = "0.1.0"

__all__ = [
    "ArcCosine",
    "Cauchy",
    "Certificate",
    "ChiSquared",
    "Constant",
    "Cosine",
    "Delta",
    "FromFeatures",
    "FromFunction",
    "Gram",
    "Intersection",
    "Kernel",
    "KernelLogisticRegression",
    "KernelMachine",
    "KernelQuantileRegressor",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRobustRegressor",
    "Laplacian",
    "Linear",
    "LinearSVC",
    "LinearSVR",
    "Matern",
    "Monomials",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "Pegasos",
    "Perceptron",
    "Periodic",
    "Polynomial",
    "Precomputed",
    "Proof",
    "RBF",
    "RKHSFunction",
    "RandomFourier",
    "RationalQuadratic",
    "Repaired",
    "Ridge",
    "SVC",
    "SVR",
    "Sigmoid",
    "SpectralMixture",
    "Stationary",
    "TaylorFeatures",
    "Verdict",
    "Wendland",
    "kernel",
    "repair",
    "verdict",
]

_FOLDERS = ("estimators", "losses", "plots", "solvers", "testing")


def __getattr__(name: str) -> Any:
    """Load the estimators when one is first asked for: whoever wants kernels only does not wait for them."""
    if name in _FOLDERS:
        return import_module(f"mercer.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    estimators = import_module("mercer.estimators")
    globals().update({known: getattr(estimators, known) for known in estimators.__all__ if known in __all__})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
