"""Single points: what is one point by itself, and the set that holds nothing else."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from scipy import sparse

from mercer.points.sets.vectors import NoMatrix


def is_one_point(data: Any) -> bool:
    """Return whether this can be one point only: a number, a text, a dictionary, a graph, what has no length.

    Examples
    --------
    >>> [is_one_point(data) for data in (1.5, "ACGT", {"age": 3}, [1.5], ["ACGT"])]
    [True, True, True, False, False]
    """
    if isinstance(data, str | bytes | dict) and not sparse.issparse(data):
        return True
    if data is None or isinstance(data, Iterator):
        return False
    if all(hasattr(data, part) for part in ("nodes", "edges", "is_directed")):  # of networkx, which has a length
        return True
    return getattr(data, "ndim", 1) == 0 or not (hasattr(data, "shape") or hasattr(data, "__len__"))


def of_sets(function: Callable[..., Any], *given: Any) -> tuple[Any, bool]:
    """Return a function of sets of points, and whether what was given are single points, each then a set of one.

    Flat arrays and lists of numbers are sets where the function takes them as such. Where it takes rows of numbers,
    they are one row each.

    Examples
    --------
    >>> of_sets(list, "ACGT"), of_sets(list, ["ACGT", "GT"])
    ((['ACGT'], True), (['ACGT', 'GT'], False))
    >>> from mercer import RBF
    >>> of_sets(RBF(1.0).diag, [1.0, 2.0])
    (array([1.]), True)
    """
    if all(map(is_one_point, given)):
        with suppress(NoMatrix):
            return function(*([x] for x in given)), True
        return function(*([[x]] for x in given)), True
    if all(map(_is_flat, given)):
        with suppress(NoMatrix):
            return function(*given), False
        return function(*map(_row, given)), True
    return function(*given), False


def _is_flat(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return all(isinstance(x, numbers.Real) for x in data)
    return getattr(data, "ndim", 0) == 1


def _row(data: Any) -> Any:
    """Return the set of one point: a matrix of one row, or a table of one row where the values have names."""
    if hasattr(data, "to_frame"):
        return data.to_frame().T.infer_objects()
    return [data] if isinstance(data, list | tuple) else data.reshape(1, -1)
