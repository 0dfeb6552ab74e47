"""Kernels of strings and sequences: texts, bytes, lists of tokens, time series."""

from mercer.kernels.strings.alignment import EditSimilarity, GlobalAlignment, LocalAlignment, SmithWaterman
from mercer.kernels.strings.gapped import GappedKmers
from mercer.kernels.strings.mismatch import Mismatch
from mercer.kernels.strings.ngrams import TextNGrams
from mercer.kernels.strings.spectrum import Spectrum
from mercer.kernels.strings.subsequence import Subsequence
from mercer.kernels.strings.weighted_degree import WeightedDegree

__all__ = [
    "EditSimilarity",
    "GappedKmers",
    "GlobalAlignment",
    "LocalAlignment",
    "Mismatch",
    "SmithWaterman",
    "Spectrum",
    "Subsequence",
    "TextNGrams",
    "WeightedDegree",
]
