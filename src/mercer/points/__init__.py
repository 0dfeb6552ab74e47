"""Sets of points, and what a kernel may ask about pairs of them."""

from mercer.points.comparison import Comparison, diagonal
from mercer.points.formulas.formula import Formula, Untraceable, trace
from mercer.points.formulas.pair import Block, Diagonal, Pair, PairRule, PointMap, PointValues
from mercer.points.sets.graph import Graph
from mercer.points.sets.points import Points

__all__ = [
    "Block",
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
