"""Kernels: the catalogue, the algebra and the proofs."""

from mercer.kernels.algebra import Power, Product, Scaled, Sum
from mercer.kernels.arccosine import ArcCosine
from mercer.kernels.base import Kernel, kernel
from mercer.kernels.constant import Constant
from mercer.kernels.cosine import Cosine
from mercer.kernels.delta import Categorical, Delta
from mercer.kernels.dissimilarity import FromDissimilarity
from mercer.kernels.expression import parse_kernel
from mercer.kernels.fingerprints import MinMax, Tanimoto
from mercer.kernels.graphs import (
    Graphlets,
    NeighbourhoodHash,
    Propagation,
    RandomWalk,
    ShortestPath,
    WeisfeilerLehman,
    WLOptimalAssignment,
    WLSlicedWasserstein,
)
from mercer.kernels.histogram import ChiSquared, Intersection
from mercer.kernels.laplacian import Laplacian
from mercer.kernels.lexicon import ExpressionError
from mercer.kernels.linear import Linear
from mercer.kernels.matern import Matern
from mercer.kernels.periodic import Periodic
from mercer.kernels.polynomial import Polynomial
from mercer.kernels.power_series import Exponential, Geometric, PowerSeries
from mercer.kernels.precomputed import Precomputed
from mercer.kernels.proof import Proof
from mercer.kernels.pullback import Composed, Normalized, On, Rescaled
from mercer.kernels.python import FromFeatures, FromFunction
from mercer.kernels.rankings import Kendall, Mallows
from mercer.kernels.rational import Cauchy, RationalQuadratic
from mercer.kernels.rbf import RBF
from mercer.kernels.sets import SetKernel
from mercer.kernels.sigmoid import Sigmoid
from mercer.kernels.spectral import Spectral
from mercer.kernels.spectral_mixture import SpectralMixture
from mercer.kernels.state import kernel_from_state, kernel_to_state, register_kernel
from mercer.kernels.stationary import Radial, Stationary
from mercer.kernels.strings import (
    EditSimilarity,
    GappedKmers,
    GlobalAlignment,
    LocalAlignment,
    Mismatch,
    SmithWaterman,
    Spectrum,
    Subsequence,
    TextNGrams,
    WeightedDegree,
)
from mercer.kernels.wendland import Wendland

__all__ = [
    "WeightedDegree",
    "Subsequence",
    "SmithWaterman",
    "Mismatch",
    "LocalAlignment",
    "GlobalAlignment",
    "EditSimilarity",
    "TextNGrams",
    "Spectrum",
    "GappedKmers",
    "RBF",
    "ArcCosine",
    "Categorical",
    "Cauchy",
    "ChiSquared",
    "Composed",
    "Constant",
    "Cosine",
    "Delta",
    "Exponential",
    "ExpressionError",
    "FromDissimilarity",
    "FromFeatures",
    "FromFunction",
    "Geometric",
    "Graphlets",
    "Intersection",
    "Kendall",
    "Kernel",
    "Laplacian",
    "Linear",
    "Mallows",
    "Matern",
    "MinMax",
    "NeighbourhoodHash",
    "Normalized",
    "On",
    "Periodic",
    "Polynomial",
    "Power",
    "PowerSeries",
    "Precomputed",
    "Product",
    "Proof",
    "Propagation",
    "Radial",
    "RandomWalk",
    "RationalQuadratic",
    "Rescaled",
    "Scaled",
    "SetKernel",
    "ShortestPath",
    "Sigmoid",
    "Spectral",
    "SpectralMixture",
    "Stationary",
    "Sum",
    "Tanimoto",
    "WLOptimalAssignment",
    "WLSlicedWasserstein",
    "WeisfeilerLehman",
    "Wendland",
    "kernel",
    "kernel_from_state",
    "kernel_to_state",
    "parse_kernel",
    "register_kernel",
]
