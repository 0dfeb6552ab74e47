"""Selection: which kernel, and how much of it (M14)."""

from mercer.selection.automatic.account import Account
from mercer.selection.automatic.models import AutoClassifier, AutoRegressor, auto
from mercer.selection.automatic.search import choose_kernel
from mercer.selection.learning.learner import Learned
from mercer.selection.learning.learning import learn_kernel
from mercer.selection.learning.mixture import KernelMixture
from mercer.selection.search.grids import default_grid, scales
from mercer.selection.search.search import KernelSearchCV

__all__ = [
    "Account",
    "AutoClassifier",
    "AutoRegressor",
    "KernelMixture",
    "KernelSearchCV",
    "Learned",
    "auto",
    "choose_kernel",
    "default_grid",
    "learn_kernel",
    "scales",
]
