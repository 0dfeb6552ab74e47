"""Functions of a reproducing kernel Hilbert space."""

from mercer.rkhs.embedding import mean_embedding, squared_mmd, witness
from mercer.rkhs.function import RKHSFunction
from mercer.rkhs.independence import hsic_test
from mercer.rkhs.measures import Box
from mercer.rkhs.mercer_expansion import MercerExpansion, Truncation
from mercer.rkhs.mercer_features import MercerFeatures
from mercer.rkhs.outcome import HSICResult, MMDResult
from mercer.rkhs.preimage import Preimages, preimages
from mercer.rkhs.projection import Projected
from mercer.rkhs.pruning import Pruned
from mercer.rkhs.two_sample import mmd_test
from mercer.rkhs.vector import RKHSVector

__all__ = [
    "Box",
    "HSICResult",
    "MMDResult",
    "MercerExpansion",
    "MercerFeatures",
    "Preimages",
    "Projected",
    "Pruned",
    "RKHSFunction",
    "RKHSVector",
    "Truncation",
    "hsic_test",
    "mean_embedding",
    "mmd_test",
    "preimages",
    "squared_mmd",
    "witness",
]
