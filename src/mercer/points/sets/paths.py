"""Shortest paths of graphs, counted by the core."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mercer import _core
from mercer.machine.threads import run, shares


class PathCounts(NamedTuple):
    """How many shortest paths of a graph lead from nodes of one label to nodes of another, by length."""

    graph: np.ndarray
    start: np.ndarray
    end: np.ndarray
    length: np.ndarray
    number: np.ndarray


def path_counts(
    starts: np.ndarray,
    arc_starts: np.ndarray,
    target: np.ndarray,
    label: np.ndarray,
    longest: int | None = None,
    length: np.ndarray | None = None,
) -> PathCounts:
    """Return the counts of shortest paths between different nodes, in the order of graphs.

    Parameters
    ----------
    starts
        Where the nodes of each graph begin, and their number at the end.
    arc_starts
        Where the arcs of each node begin, and their number at the end.
    target
        The node in which each arc ends, one of the same graph.
    label
        The label of each node, counted from 0 within its graph.
    longest
        The length up to which paths count; None for all.
    length
        The length of each arc, a whole number >= 0; None for 1.

    Examples
    --------
    >>> import numpy as np
    >>> path = path_counts(*map(np.array, ([0, 3], [0, 1, 3, 4], [1, 0, 2, 1], [0, 0, 1])))
    >>> np.column_stack(path[1:]).tolist()  # 0 - 0 - 1
    [[0, 0, 1, 2], [0, 1, 1, 1], [0, 1, 2, 1], [1, 0, 1, 1], [1, 0, 2, 1]]
    """
    nodes, begin, end, named = (np.ascontiguousarray(a, dtype=np.int64) for a in (starts, arc_starts, target, label))
    far = None if length is None else np.ascontiguousarray(length, dtype=np.int64)
    most = np.iinfo(np.int64).max if longest is None else longest
    parts = run(
        lambda part: _core.path_counts(nodes, begin, end, named, part.start, part.stop, most, far),
        shares(len(starts) - 1),
    )
    return PathCounts(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
