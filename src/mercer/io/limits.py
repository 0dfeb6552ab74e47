"""Limits on the size of a model file beside its numbers, counted before anything is made of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Each bounds what a small file can ask for: 2 seconds, and 50 MB beside four times its size.
HEADER = 16 * 2**20  # bytes, the manifest among them: arrays and long lists are not in it
VALUES = 1_000_000  # of a header or a manifest, and of its objects where each counts as often as it is referred to
CONTAINERS = 150_000  # lists and dictionaries among them
ARRAYS = 30_000  # of a file, each with an entry in the header
OBJECTS = 20_000  # estimators, kernels and their parts, where each counts as often as it is referred to
LEVELS = 400  # lists and dictionaries within each other
KERNELS = 200  # kernels within each other
NESTED = 40  # other objects within each other
WORDS = 500_000  # values of a kernel, those of a part once for each level above it, as its proof writes them
SHOWN = 2_000  # estimators, each twice for each level above it, as the `repr` of scikit-learn goes through them,
PER_ESTIMATOR = 4  # and so many more for each that is there
COSTLY = 1_000  # laws, tables, sparse matrices, scorers and generators of random numbers, which take long to make
ENTRIES = 1_000_000  # texts, lists and tuples that are kept in arrays
ROWS = 50_000  # objects that are kept as columns in arrays, such as the certificates of class pairs,
ROW = 64  # and one more for so many bytes of arrays
EMPTY = 1_000_000  # product of the other sides of an array without entries
TRIALS = 200  # estimators that answer for a point when they are loaded
COLUMNS = 2**24  # longer side of a sparse matrix that has few entries

_COSTLY = {"scipy.stats", "table", "sparse", "scorer", "random"}
_RECHECK = "mercer.estimators.svm.machine.Recheck"  # the one object that may refer back to what it is a part of


class TooLarge(ValueError):
    """A model with more parts than a model file holds."""


class _Size(NamedTuple):
    values: int = 0
    objects: int = 0
    kernels: int = 0
    nested: int = 0
    words: int = 0
    shown: int = 0


def require(number: int, limit: int, what: str) -> None:
    """Raise TooLarge where there are more of something than a file may hold."""
    if number > limit:
        raise TooLarge(f"it has {what}, and a model file holds at most {limit:,}")


def check_text(text: bytes) -> None:
    """Count the values in JSON, those in texts too, before it is parsed."""
    containers = text.count(b"{") + text.count(b"[")
    require(containers, CONTAINERS, f"{containers:,} lists and dictionaries")
    values = containers + text.count(b",")
    require(values, VALUES, f"{values:,} values beside its arrays")


def check_manifest(manifest: dict[str, Any]) -> None:
    """Count what a manifest makes, and find objects that are made of themselves.

    Each object is counted once for itself and once more for each further object that refers to it: kernels that share
    their parts are small in a file and large wherever they are written, compared or evaluated.
    """
    records = manifest.get("objects")
    if not isinstance(records, list):
        raise ValueError("its objects are no list")
    costly = 0
    sizes: dict[int, _Size] = {}
    shown = SHOWN + PER_ESTIMATOR * sum(isinstance(r, dict) and "parameters" in r and "class" in r for r in records)
    walked: dict[int, tuple[int, list[int]]] = {}
    open_: set[int] = set()
    stack = list(range(len(records)))
    while stack:
        number = stack[-1]
        if number in sizes:
            stack.pop()
            continue
        if number not in walked:
            values, costs, parts = _walk(records[number], len(records))
            costly += costs
            walked[number] = values, parts
            open_.add(number)
            for part in open_.intersection(parts):
                if not isinstance(records[number], dict) or records[number].get("class") != _RECHECK:
                    raise ValueError(f"object {part} is made of itself")
        missing = [part for part in walked[number][1] if part not in sizes and part not in open_]
        if missing:
            stack += missing
            continue
        values, parts = walked[number]
        size = _sum(records[number], values, [sizes[part] for part in parts if part in sizes])
        if isinstance(records[number], dict) and "class" in records[number]:
            inside = references(records[number].get("parameters"), len(records))
            size = size._replace(shown=1 + 2 * sum(sizes[part].shown for part in inside if part in sizes))
            require(size.shown, shown, f"estimators within estimators that take {size.shown:,} steps to show")
        sizes[number] = size
        open_.discard(number)
        stack.pop()
    for key in ("model", "facts"):
        values, costs, parts = _walk(manifest.get(key), len(records))
        costly += costs
        _sum(None, values, [sizes[part] for part in parts])
    require(costly, COSTLY, f"{costly:,} laws, tables, sparse matrices, scorers and generators")


def references(code: Any, objects: int) -> list[int]:
    """Return the numbers of the objects that a code refers to, out of so many."""
    return _walk(code, objects)[2]


def _walk(code: Any, objects: int) -> tuple[int, int, list[int]]:
    """Return the number of values in a code, of those that take long to make, and the objects it refers to."""
    values, costly, parts = 1, 0, []
    stack = [(code, 1)]
    while stack:
        inner, level = stack.pop()
        require(level, LEVELS, "lists within lists without end")
        values += len(inner) if isinstance(inner, dict | list) else 0
        if isinstance(inner, dict):
            costly += not _COSTLY.isdisjoint(inner)
            number = inner.get("object")
            if type(number) is int and 0 <= number < objects:  # any other is refused where it is read
                parts.append(number)
        entries = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
        stack += [(entry, level + 1) for entry in entries if isinstance(entry, dict | list)]
    return values, costly, parts


def _sum(record: Any, values: int, parts: list[_Size]) -> _Size:
    """Return the size of an object from the sizes of its parts."""
    is_kernel = isinstance(record, dict) and "kernel" in record
    values += sum(part.values for part in parts)
    size = _Size(
        values,
        1 + sum(part.objects for part in parts),
        is_kernel + max((part.kernels for part in parts), default=0),
        (not is_kernel) + max((part.nested for part in parts), default=0),
        values + sum(part.words for part in parts) if is_kernel else 0,
    )
    require(size.kernels, KERNELS, f"{size.kernels:,} kernels within each other")
    require(size.nested, NESTED, f"{size.nested:,} objects within each other")
    again = "each counted as often as it occurs"
    require(size.objects, OBJECTS, f"{size.objects:,} objects, {again}")
    require(size.values, VALUES, f"{size.values:,} values, {again}")
    require(size.words, WORDS, f"a kernel whose proof takes {size.words:,} values, {again}")
    return size


def check_shape(name: str, shape: tuple[int, ...]) -> None:
    """Refuse an array without entries that has long sides: it costs a file nothing, and its lists cost memory."""
    if 0 in shape:
        sides = int(np.prod([float(n) for n in shape if n]))
        require(sides, EMPTY, f"the array {name!r:.80} of shape {shape}, which holds nothing but has {sides:,} places")


def check_sparse(shape: tuple[int, ...], pointers: int) -> None:
    """Refuse a sparse matrix with a long side that has few entries: it costs a file nothing, and sums cost memory."""
    require(max(shape, default=0), max(COLUMNS, pointers), f"a sparse matrix of shape {shape}")


class Stored(dict[str, np.ndarray]):
    """The arrays of a file, each to be copied into lists, tables and kernels a few times and not without end."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        super().__init__(arrays)
        self._left = 2**22 + 2 * sum(a.nbytes for a in arrays.values())

    def __getitem__(self, name: str) -> np.ndarray:
        array = super().__getitem__(name)
        self._left -= array.nbytes
        if self._left < 0:
            raise TooLarge(f"it copies its arrays, such as {name!r:.80}, more than twice")
        return array
