"""Kernels on graphs."""

from mercer.kernels.graphs.shortest_path import ShortestPath
from mercer.kernels.graphs.wasserstein import WLSlicedWasserstein
from mercer.kernels.graphs.weisfeiler_lehman import WeisfeilerLehman, WLOptimalAssignment

__all__ = ["ShortestPath", "WLOptimalAssignment", "WLSlicedWasserstein", "WeisfeilerLehman"]
