"""Selection: which kernel, and how much of it (M14)."""

from mercer.estimators.choosing import register_chooser
from mercer.selection.auto_account import Account
from mercer.selection.auto_choice import choose_kernel
from mercer.selection.auto_classifier import AutoClassifier
from mercer.selection.auto_regressor import AutoRegressor
from mercer.selection.automatic import auto
from mercer.selection.grids import default_grid, scales
from mercer.selection.learned import Learned
from mercer.selection.learning import learn_kernel
from mercer.selection.mixture import KernelMixture
from mercer.selection.search import KernelSearchCV

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

register_chooser(choose_kernel)
