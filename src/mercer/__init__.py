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
    Graphlets,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    Proof,
    Propagation,
    RandomWalk,
    RationalQuadratic,
    ShortestPath,
    Sigmoid,
    SpectralMixture,
    Stationary,
    WeisfeilerLehman,
    Wendland,
    WLOptimalAssignment,
    WLSlicedWasserstein,
    kernel,
    parse_kernel,
)
from mercer.points import Graph
from mercer.rkhs import (
    MercerExpansion,
    MercerFeatures,
    RKHSFunction,
    RKHSVector,
    hsic_test,
    mean_embedding,
    mmd_test,
)

if TYPE_CHECKING:
    from mercer.estimators import (
        SVC,
        SVR,
        GaussianProcessRegressor,
        KernelCCA,
        KernelDensity,
        KernelKMeans,
        KernelLogisticRegression,
        KernelMachine,
        KernelPCA,
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
    from mercer.io import load, save
    from mercer.selection import AutoClassifier, AutoRegressor, KernelMixture, KernelSearchCV, auto, learn_kernel
    from mercer.tables import TableEncoder, read_table

__version__ = "0.1.0"

__all__ = [
    "ArcCosine",
    "AutoClassifier",
    "AutoRegressor",
    "Cauchy",
    "Certificate",
    "ChiSquared",
    "Constant",
    "Cosine",
    "Delta",
    "FromFeatures",
    "FromFunction",
    "GaussianProcessRegressor",
    "Gram",
    "Graph",
    "Graphlets",
    "Intersection",
    "Kernel",
    "KernelCCA",
    "KernelDensity",
    "KernelKMeans",
    "KernelLogisticRegression",
    "KernelMachine",
    "KernelMixture",
    "KernelPCA",
    "KernelQuantileRegressor",
    "KernelRidge",
    "KernelRidgeCV",
    "KernelRobustRegressor",
    "KernelSearchCV",
    "Laplacian",
    "Linear",
    "LinearSVC",
    "LinearSVR",
    "Matern",
    "MercerExpansion",
    "MercerFeatures",
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
    "Propagation",
    "RBF",
    "RKHSFunction",
    "RKHSVector",
    "RandomFourier",
    "RandomWalk",
    "RationalQuadratic",
    "Repaired",
    "Ridge",
    "SVC",
    "SVR",
    "ShortestPath",
    "Sigmoid",
    "SpectralMixture",
    "Stationary",
    "TableEncoder",
    "TaylorFeatures",
    "Verdict",
    "WLOptimalAssignment",
    "WLSlicedWasserstein",
    "WeisfeilerLehman",
    "Wendland",
    "auto",
    "hsic_test",
    "kernel",
    "learn_kernel",
    "load",
    "mean_embedding",
    "mmd_test",
    "parse_kernel",
    "read_table",
    "repair",
    "save",
    "verdict",
]

_FOLDERS = ("estimators", "io", "losses", "plots", "report", "selection", "solvers", "tables", "testing")
_ELSEWHERE = {
    "AutoClassifier": "mercer.selection",
    "AutoRegressor": "mercer.selection",
    "KernelMixture": "mercer.selection",
    "KernelSearchCV": "mercer.selection",
    "TableEncoder": "mercer.tables",
    "auto": "mercer.selection",
    "learn_kernel": "mercer.selection",
    "load": "mercer.io",
    "read_table": "mercer.tables",
    "save": "mercer.io",
}


def __getattr__(name: str) -> Any:
    """Load the estimators when one is first asked for: whoever wants kernels only does not wait for them."""
    if name in _FOLDERS:
        return import_module(f"mercer.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    folder = import_module(_ELSEWHERE.get(name, "mercer.estimators"))
    globals().update({known: getattr(folder, known) for known in folder.__all__ if known in __all__})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
