"""Functions of a reproducing kernel Hilbert space."""

from mercer.rkhs.functions.function import RKHSFunction
from mercer.rkhs.functions.preimage import Preimages, preimages
from mercer.rkhs.functions.pruning import Projected, Pruned
from mercer.rkhs.functions.vector import RKHSVector
from mercer.rkhs.mercer.expansion import MercerExpansion, MercerFeatures, Truncation
from mercer.rkhs.mercer.measures import Box
from mercer.rkhs.statistics.embedding import mean_embedding, mmd_test, squared_mmd, witness
from mercer.rkhs.statistics.independence import hsic_test
from mercer.rkhs.statistics.outcome import HSICResult, MMDResult

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
