"""Kernels on graphs."""

from mercer.kernels.graphs.graphlets import Graphlets
from mercer.kernels.graphs.neighbourhood_hash import NeighbourhoodHash
from mercer.kernels.graphs.propagation import Propagation
from mercer.kernels.graphs.random_walk import RandomWalk
from mercer.kernels.graphs.shortest_path import ShortestPath
from mercer.kernels.graphs.wasserstein import WLSlicedWasserstein
from mercer.kernels.graphs.weisfeiler_lehman import WeisfeilerLehman, WLOptimalAssignment

__all__ = [
    "Graphlets",
    "NeighbourhoodHash",
    "Propagation",
    "RandomWalk",
    "ShortestPath",
    "WLOptimalAssignment",
    "WLSlicedWasserstein",
    "WeisfeilerLehman",
]
