"""Spectral laws: the probability laws on frequencies behind stationary kernels (Bochner)."""

from mercer.features.spectral.combined import ConvolvedLaw, LinearImage, MixtureLaw, as_law
from mercer.features.spectral.discrete import DiscreteLaw, HarmonicLaw
from mercer.features.spectral.gaussian import GaussianScaleMixture, ShiftedGaussian
from mercer.features.spectral.independent import IndependentLaw
from mercer.features.spectral.law import SpectralLaw
from mercer.features.spectral.matern import matern

__all__ = [
    "ConvolvedLaw",
    "DiscreteLaw",
    "GaussianScaleMixture",
    "HarmonicLaw",
    "IndependentLaw",
    "LinearImage",
    "MixtureLaw",
    "ShiftedGaussian",
    "SpectralLaw",
    "as_law",
    "matern",
]
