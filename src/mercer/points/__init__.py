"""Sets of points, and what a kernel may ask about pairs of them."""

from mercer.points.coarse import Coarse
from mercer.points.comparison import Comparison, diagonal
from mercer.points.formula import Formula, Untraceable, trace
from mercer.points.graph import Graph
from mercer.points.pair import Block, Diagonal, Pair, PairRule, PointMap, PointValues
from mercer.points.points import Points

__all__ = [
    "Block",
    "Coarse",
    "Comparison",
    "Diagonal",
    "Formula",
    "Graph",
    "Pair",
    "PairRule",
    "PointMap",
    "PointValues",
    "Points",
    "Untraceable",
    "diagonal",
    "trace",
]
