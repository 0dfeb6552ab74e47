"""Features with names in place of numbers: what maps of objects (strings, graphs) count, whatever they have seen.

A map of objects cannot number its features: the k-mers of new strings are not known when the first ones are read. It
names each by an integer below `NAMES` instead (the k-mer itself, packed, or 62 bits of a hash), and returns a sparse
matrix with that many columns. Two sets of points are compared after the names that occur in either have been numbered.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from mercer import _core

NAMES = 2**62  # columns of a matrix whose columns are names
_NUMBERS = 2**31 - 1  # columns that can be numbered in the core


def bags(names: np.ndarray, starts: np.ndarray, values: np.ndarray | None = None) -> sparse.csr_array:
    """Return bags of named features as sparse rows, equal names of a row added up.

    Parameters
    ----------
    names
        Integers from 0 to `NAMES` - 1, one row after the other.
    starts
        Where each row begins, and the length of `names` at the end.
    values
        What each occurrence counts; None for 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.points.sets.named import bags
    >>> rows = bags(np.array([7, 9, 7]), np.array([0, 3, 3]))
    >>> rows.indices, rows.data, rows.indptr
    (array([7, 9]), array([2., 1.]), array([0, 2, 2]))
    """
    values = np.ones(len(names)) if values is None else np.asarray(values, dtype=np.float64)
    rows = sparse.csr_array(
        (values, np.array(names, np.int64), np.array(starts, np.int64)), shape=(len(starts) - 1, NAMES)
    )
    rows.sum_duplicates()
    return rows


def is_named(vectors: Any) -> bool:
    """Return whether the columns of a matrix are names."""
    return sparse.issparse(vectors) and len(vectors.shape) == 2 and vectors.shape[1] > _NUMBERS


def numbered(*matrices: Any) -> list[sparse.csr_array]:
    """Return matrices of named features with the same columns in the same order: one for each name that occurs.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.points.sets.named import bags, numbered
    >>> a, b = numbered(bags(np.array([7, 9]), np.array([0, 2])), bags(np.array([9, 5]), np.array([0, 2])))
    >>> a.toarray(), b.toarray()
    (array([[0., 1., 1.]]), array([[1., 0., 1.]]))
    """
    names = np.concatenate([m.indices for m in matrices])
    columns = np.empty(len(names), dtype=np.int32)
    width = max(1, _core.rank_names(names, columns))
    parts = np.split(columns, np.cumsum([len(m.indices) for m in matrices])[:-1])
    return [
        sparse.csr_array((m.data, part, m.indptr), shape=(m.shape[0], width))
        for m, part in zip(matrices, parts, strict=True)
    ]


# Names of things in 64 bits: labels, pairs and multisets, the same in every process and on every machine.
#
# Two different things get one name with a probability of about 2^-64 each, 2^-62 once they are names of features: among
# a billion of them one in ten.


# The constants of splitmix64; `_FACTOR`, odd, sets the first of a pair apart from the second.
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(2))


def mixed(x: np.ndarray) -> np.ndarray:
    """Return a permutation of the 64-bit numbers that looks random (splitmix64; Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        z = x + _GOLDEN
        z = (z ^ (z >> _SHIFTS[0])) * _MIX[0]
        z = (z ^ (z >> _SHIFTS[1])) * _MIX[1]
        return z ^ (z >> _SHIFTS[2])


def paired(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the hash of ordered pairs."""
    with np.errstate(over="ignore"):
        return mixed(mixed(a) * _FACTOR + b)


def sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the sums of segments modulo 2^64: the hash of a multiset is the sum of those of its elements."""
    total = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=total[1:])
    with np.errstate(over="ignore"):
        return total[starts[1:]] - total[starts[:-1]]


def names(hashes: np.ndarray) -> np.ndarray:
    """Return hashes as names of features, which have 62 bits."""
    return (hashes >> _SHIFTS[3]).view(np.int64)


def copies(counts: Any) -> Any:
    """Return counts of named features as 0/1 features: one for the first, one for the second ... of each name."""
    repeats = counts.data.astype(np.int64)
    copy = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    base = np.repeat(counts.indices.view(np.uint64), repeats)
    starts = np.concatenate([[0], np.cumsum(repeats)])[counts.indptr]
    return bags(names(paired(base, copy.view(np.uint64))), starts)


def hashed(labels: list[Any], counts: np.ndarray) -> np.ndarray:
    """Return the hashes of labels, one group after the other; a group without labels has one hash for all its members.

    Parameters
    ----------
    labels
        For each group None, an array of whole numbers, or a tuple of labels.
    counts
        The number of members of each group.
    """
    if all(isinstance(group, np.ndarray) for group in labels):
        whole = np.concatenate(labels) if labels else np.empty(0, dtype=np.int64)
        return mixed(whole.view(np.uint64))
    known: dict[Any, np.uint64] = {}
    parts = [
        np.full(count, _digest(None))
        if group is None
        else mixed(group.view(np.uint64))
        if isinstance(group, np.ndarray)
        else np.array([_remembered(label, known) for label in group], dtype=np.uint64)
        for group, count in zip(labels, counts, strict=True)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _remembered(label: Any, known: dict[Any, np.uint64]) -> np.uint64:
    if label not in known:
        known[label] = _digest(label)
    return known[label]


def _digest(label: Any) -> np.uint64:
    if type(label) is int and -(2**63) <= label < 2**63:  # as in an array of whole numbers
        return np.uint64(mixed(np.array([label], dtype=np.int64).view(np.uint64))[0])
    return np.uint64(int.from_bytes(blake2b(repr(label).encode("utf-8", "surrogatepass"), digest_size=8).digest()))
