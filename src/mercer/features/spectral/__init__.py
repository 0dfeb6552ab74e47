"""Spectral laws: the probability laws on frequencies behind stationary kernels (Bochner)."""

from mercer.features.spectral.combined import ConvolvedLaw, LinearImage, MixtureLaw, as_law
from mercer.features.spectral.gaussian import GaussianScaleMixture, ShiftedGaussian, matern
from mercer.features.spectral.independent import HarmonicLaw, IndependentLaw
from mercer.features.spectral.law import DiscreteLaw, SpectralLaw

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
