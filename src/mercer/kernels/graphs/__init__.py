"""Kernels on graphs."""

from mercer.kernels.graphs.weisfeiler_lehman import WeisfeilerLehman, WLOptimalAssignment

__all__ = ["WLOptimalAssignment", "WeisfeilerLehman"]
