"""Kernels: the catalogue, the algebra and the proofs."""

from mercer.kernels.base import Kernel, kernel
from mercer.kernels.expression import ExpressionError, parse_kernel
from mercer.kernels.graphs.graphlets import Graphlets
from mercer.kernels.graphs.propagation import Propagation, WLSlicedWasserstein
from mercer.kernels.graphs.random_walk import RandomWalk
from mercer.kernels.graphs.shortest_path import ShortestPath
from mercer.kernels.graphs.weisfeiler_lehman import NeighbourhoodHash, WeisfeilerLehman, WLOptimalAssignment
from mercer.kernels.metric import Metric
from mercer.kernels.objects.delta import Categorical, Delta
from mercer.kernels.objects.dissimilarity import FromDissimilarity
from mercer.kernels.objects.fingerprints import MinMax, Tanimoto
from mercer.kernels.objects.given import FromFeatures, FromFunction, Precomputed
from mercer.kernels.objects.rankings import Kendall, Mallows
from mercer.kernels.objects.sets import SetKernel
from mercer.kernels.proof import Proof
from mercer.kernels.rules.algebra import Power, Product, Scaled, Sum
from mercer.kernels.rules.power_series import Exponential, Geometric, PowerSeries
from mercer.kernels.rules.pullback import Composed, Normalized, On, Ranked, Rescaled, Transformed
from mercer.kernels.state import kernel_from_state, kernel_to_state, register_kernel
from mercer.kernels.strings.alignment import EditSimilarity, GlobalAlignment, LocalAlignment, SmithWaterman, Subsequence
from mercer.kernels.strings.gapped import GappedKmers, Mismatch
from mercer.kernels.strings.ngrams import Spectrum, TextNGrams
from mercer.kernels.strings.weighted_degree import WeightedDegree
from mercer.kernels.vectors.cosine import ArcCosine, Cosine
from mercer.kernels.vectors.histogram import ChiSquared, Intersection
from mercer.kernels.vectors.laplacian import Laplacian
from mercer.kernels.vectors.linear import Constant, Linear
from mercer.kernels.vectors.matern import Matern
from mercer.kernels.vectors.periodic import Periodic
from mercer.kernels.vectors.polynomial import Polynomial, Sigmoid
from mercer.kernels.vectors.power_exponential import PowerExponential
from mercer.kernels.vectors.rational import Cauchy, RationalQuadratic
from mercer.kernels.vectors.rbf import RBF
from mercer.kernels.vectors.spectral import Spectral, SpectralMixture
from mercer.kernels.vectors.stationary import Radial, Stationary
from mercer.kernels.vectors.wendland import Wendland

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
    "Metric",
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
    "Ranked",
    "PowerExponential",
    "RationalQuadratic",
    "Rescaled",
    "Transformed",
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
