"""Kernels: the catalogue, the algebra and the proofs."""

from mercer.kernels.algebra import Exponential, Geometric, Power, Product, Scaled, Sum
from mercer.kernels.arccosine import ArcCosine
from mercer.kernels.base import Kernel, kernel
from mercer.kernels.constant import Constant
from mercer.kernels.cosine import Cosine
from mercer.kernels.delta import Delta
from mercer.kernels.expression import parse_kernel
from mercer.kernels.graphs import (
    Graphlets,
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
from mercer.kernels.precomputed import Precomputed
from mercer.kernels.proof import Proof
from mercer.kernels.pullback import Composed, Normalized, On, Rescaled
from mercer.kernels.python import FromFeatures, FromFunction
from mercer.kernels.rational import Cauchy, RationalQuadratic
from mercer.kernels.rbf import RBF
from mercer.kernels.sigmoid import Sigmoid
from mercer.kernels.spectral import Spectral
from mercer.kernels.spectral_mixture import SpectralMixture
from mercer.kernels.state import kernel_from_state, kernel_to_state, register_kernel
from mercer.kernels.stationary import Radial, Stationary
from mercer.kernels.wendland import Wendland

__all__ = [
    "RBF",
    "ArcCosine",
    "Cauchy",
    "ChiSquared",
    "Composed",
    "Constant",
    "Cosine",
    "Delta",
    "Exponential",
    "ExpressionError",
    "FromFeatures",
    "FromFunction",
    "Geometric",
    "Graphlets",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Normalized",
    "On",
    "Periodic",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "Proof",
    "Propagation",
    "Radial",
    "RandomWalk",
    "RationalQuadratic",
    "Rescaled",
    "Scaled",
    "ShortestPath",
    "Sigmoid",
    "Spectral",
    "SpectralMixture",
    "Stationary",
    "Sum",
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
