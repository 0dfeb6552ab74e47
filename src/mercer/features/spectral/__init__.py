"""Spectral laws: the probability laws on frequencies behind stationary kernels (Bochner)."""

from mercer.features.spectral.combined import ConvolvedLaw, LinearImage, MixtureLaw
from mercer.features.spectral.discrete import DiscreteLaw
from mercer.features.spectral.gaussian import GaussianScaleMixture, ShiftedGaussian
from mercer.features.spectral.independent import IndependentLaw
from mercer.features.spectral.law import SpectralLaw
from mercer.features.spectral.matern import matern
from mercer.features.spectral.periodic import HarmonicLaw
from mercer.features.spectral.recognise import as_law

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
