"""Selection: which kernel, and how much of it (M14)."""

from mercer.selection.grids import default_grid, scales
from mercer.selection.search import KernelSearchCV

__all__ = ["KernelSearchCV", "default_grid", "scales"]
