"""Points that are bags of others, with sums over the pairs of elements of two bags; and points that are plain sets."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from mercer.points.sets.points import Points

_EDGE = 724  # elements on either side of a tile: 4 MiB of values are held at a time
_TOGETHER = 64  # elements of small bags that are compared at once to have each bag with itself


class Bags:
    """Bags in a row: the elements of all of them one after the other, and how many each has.

    Parameters
    ----------
    elements
        All elements; None where every bag is empty.
    counts
        The number of elements of each bag.
    """

    ndim = 1  # a flat row of objects to whoever asks

    def __init__(self, elements: Points | None, counts: np.ndarray) -> None:
        self.elements, self.counts = elements, counts
        self.shape = (len(counts),)

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, rows: slice | np.ndarray) -> Bags:
        """Return some of the bags."""
        counts = self.counts[rows]
        if self.elements is None or not counts.any():
            return Bags(None, counts)
        ends = np.cumsum(self.counts)
        starts = (ends - self.counts)[rows]
        if isinstance(rows, slice) and rows.step in (None, 1):
            return Bags(self.elements.take(slice(int(starts[0]), int(starts[0] + counts.sum()))), counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return Bags(self.elements.take(np.repeat(starts, counts) + within), counts)


def bagged(points: Points) -> Bags:
    """Return points that are bags as `Bags`: matrices with one row per element, or sequences of other objects."""
    parts = [_elements(points, i) for i in range(len(points))]
    counts = np.array([0 if part is None else part.shape[0] if hasattr(part, "shape") else len(part) for part in parts])
    full = [(i, part) for i, part in enumerate(parts) if counts[i]]
    if not full:
        return Bags(None, counts)
    widths = [part.shape[1] if hasattr(part, "shape") else None for _, part in full]
    for (i, _), width in zip(full, widths, strict=True):
        if width != widths[0]:
            said = [f"vectors of {w} numbers" if w is not None else "objects that are no vectors" for w in widths]
            raise ValueError(
                f"{points.name}[{points.place(i)}] holds {said[widths.index(width)]} and "
                f"{points.name}[{points.place(full[0][0])}] {said[0]}; the elements of all bags are compared with one "
                "another and must be of one kind."
            )
    bags = [part for _, part in full]
    elements: Any
    if widths[0] is None:
        elements = [x for bag in bags for x in bag]
    elif any(map(sparse.issparse, bags)):
        elements = sparse.vstack([sparse.csr_array(bag) for bag in bags])
    else:
        elements = np.concatenate(bags)
    return Bags(Points(elements, points.name), counts)


def counts(points: Points) -> np.ndarray:
    """Return the number of elements of each bag, of points that are `Bags`."""
    return np.asarray(points.data.counts, dtype=np.float64)


def sums(left: Bags, right: Bags, values: Callable[[Points, Points], np.ndarray]) -> np.ndarray:
    """Return for each two bags the sum of `values` over all pairs of their elements; 0 where one is empty."""
    out = np.zeros((len(left), len(right)))
    if left.elements is None or right.elements is None:
        return out
    x, z = left.elements, right.elements
    rows, cols = (np.repeat(np.arange(len(b)), b.counts) for b in (left, right))
    for r in pairwise(_cuts(left.counts)):
        some, starts = np.unique(rows[slice(*r)], return_index=True)
        for c in pairwise(_cuts(right.counts)):
            others, ends = np.unique(cols[slice(*c)], return_index=True)
            tile = values(x.take(slice(*r)), z.take(slice(*c))).astype(np.float64, copy=False)
            # In both orders, so that the sum of A and B is that of B and A to the last bit.
            both = _summed(tile, starts, ends) + _summed(np.ascontiguousarray(tile.T), ends, starts).T
            out[np.ix_(some, others)] += 0.5 * both
    return out


def _summed(tile: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.reduceat(np.add.reduceat(tile, ends, axis=1), starts, axis=0))


def _cuts(counts: np.ndarray) -> list[int]:
    """Return where to cut the elements into runs that make a tile: between bags, and within those that are larger."""
    cuts, before = [0], 0
    for end in np.cumsum(counts).tolist():
        while end - cuts[-1] > _EDGE:
            cuts.append(before if before > cuts[-1] else cuts[-1] + _EDGE)
        before = end
    return [*cuts, before]


def own_sums(all_bags: Bags, values: Callable[[Points, Points], np.ndarray]) -> np.ndarray:
    """Return for each bag the sum of `values` over all pairs of its own elements, small bags several at a time."""
    out = np.zeros(len(all_bags))
    start, held = 0, 0
    for i, count in enumerate(all_bags.counts):
        if held and held + count > _TOGETHER:
            part = all_bags[start:i]
            out[start:i] = np.diag(sums(part, part, values))
            start, held = i, 0
        held += int(count)
    part = all_bags[start:]
    out[start:] = np.diag(sums(part, part, values))
    return out


def _elements(points: Points, i: int) -> Any:
    """Return the elements of a bag: a matrix, a list of objects, or None where there are none."""
    bag, where = points.items[i], f"{points.name}[{points.place(i)}]"
    if sparse.issparse(bag):
        return bag
    if isinstance(bag, str | bytes) or not hasattr(bag, "__len__"):
        raise TypeError(
            f"{where} is a {type(bag).__name__}, {bag!r:.60}, and no bag: pass a matrix with one row per element, or a "
            "list of the elements."
        )
    if len(bag) == 0:
        return None
    if isinstance(bag, set | frozenset):
        return list(bag)
    try:
        array = np.asarray(bag)
    except ValueError:  # elements of different lengths
        return list(bag)
    if array.dtype.kind not in "fiub":
        return list(bag)
    if array.ndim == 1:
        raise ValueError(
            f"{where} is flat, of shape {array.shape}: is it one vector or a bag of numbers? A bag is a matrix with "
            "one row per element; x.reshape(-1, 1) makes one of numbers."
        )
    return array if array.ndim == 2 else list(bag)


# -- sets of hashable objects, compared by the elements they share ---------------------------------------


def sizes(points: Points) -> np.ndarray:
    """Return the number of elements of each set."""
    return np.array([len(_as_set(points, i)) for i in range(len(points))], dtype=np.float64)


def common(left: Points, right: Points) -> np.ndarray:
    """Return the number of elements that each set on the left shares with each on the right.

    Elements are numbered for these two sets of points alone. Each set is then a row of ones, and the numbers of common
    elements are products of sparse matrices.

    Examples
    --------
    >>> common(Points([{1, 2, 3}, {4}]), Points([{2, 3, 9}]))
    array([[2.],
           [0.]])
    """
    numbers: dict[Hashable, int] = {}
    x, z = _numbered(left, numbers), _numbered(right, numbers)
    return np.asarray((_ones(x, len(numbers)) @ _ones(z, len(numbers)).T).toarray())


def _numbered(points: Points, numbers: dict[Hashable, int]) -> list[list[int]]:
    return [[numbers.setdefault(e, len(numbers)) for e in _as_set(points, i)] for i in range(len(points))]


def _ones(rows: list[list[int]], width: int) -> sparse.csr_array:
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    columns = np.array([column for row in rows for column in row], dtype=np.intp)
    return sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(len(rows), max(1, width)))


def _as_set(points: Points, i: int) -> set[Hashable] | frozenset[Hashable]:
    item = points.items[i]
    if not isinstance(item, set | frozenset):
        raise TypeError(
            f"{points.name}[{points.place(i)}] is a {type(item).__name__}, {item!r:.60}, among points that are sets; "
            "all of them must be: pass set(x)."
        )
    return item
