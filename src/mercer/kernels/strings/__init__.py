"""Kernels of strings and sequences: texts, bytes, or lists of tokens."""

from mercer.kernels.strings.gapped import GappedKmers
from mercer.kernels.strings.ngrams import TextNGrams
from mercer.kernels.strings.spectrum import Spectrum

__all__ = ["GappedKmers", "Spectrum", "TextNGrams"]
