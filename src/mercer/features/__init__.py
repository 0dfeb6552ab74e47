"""Explicit feature maps, as scikit-learn transformers, and the spectral laws behind random ones."""

from mercer.features.combine import TensorFeatures
from mercer.features.fourier import RandomFourier
from mercer.features.monomials import Monomials
from mercer.features.named import NamedFeatures
from mercer.features.spectral import (
    ConvolvedLaw,
    DiscreteLaw,
    GaussianScaleMixture,
    HarmonicLaw,
    IndependentLaw,
    LinearImage,
    MixtureLaw,
    ShiftedGaussian,
    SpectralLaw,
    as_law,
)
from mercer.features.taylor import TaylorFeatures

__all__ = [
    "ConvolvedLaw",
    "DiscreteLaw",
    "GaussianScaleMixture",
    "HarmonicLaw",
    "IndependentLaw",
    "LinearImage",
    "MixtureLaw",
    "Monomials",
    "NamedFeatures",
    "RandomFourier",
    "ShiftedGaussian",
    "SpectralLaw",
    "TaylorFeatures",
    "TensorFeatures",
    "as_law",
]
