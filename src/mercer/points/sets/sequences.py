"""Sequences of letters: texts, bytes or lists of tokens as whole numbers, one sequence after the other.

A letter of a text is its code point and a letter of bytes its value. A token is named by 61 bits of a hash of what it
is (see `token_name`), so that equal tokens have equal names in every process.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from scipy import sparse

from mercer import _core
from mercer.machine.threads import cores, run, stop
from mercer.points.sets.named import bags
from mercer.points.sets.points import Points

Kind = Literal["text", "bytes", "tokens"]
_RECURRENCES = ("subsequences", "local alignments", "best alignment", "edits")  # in the order of the core


@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences as one array of letters (int32 of texts and bytes, int64 of tokens) and where each begins and ends."""

    letters: np.ndarray
    starts: np.ndarray
    kind: Kind

    ndim = 1

    @property
    def shape(self) -> tuple[int]:
        """How many sequences there are."""
        return (len(self.starts) - 1,)

    @property
    def lengths(self) -> np.ndarray:
        """The number of letters of each."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: slice | np.ndarray) -> Sequences:
        """Return some of the sequences; those of a slice share the letters."""
        return Sequences(*_cut(self.letters, self.starts, rows), self.kind)

    @classmethod
    def joined(cls, words: Sequence[np.ndarray]) -> Sequences:
        """Return sequences of tokens from an array of names for each."""
        return cls(np.concatenate([np.empty(0, np.int64), *words]), _starts(map(len, words)), "tokens")


def _starts(lengths: Any) -> np.ndarray:
    return np.cumsum(np.fromiter((0, *lengths), np.int64), dtype=np.int64)


def _cut(values: np.ndarray, starts: np.ndarray, rows: slice | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of some rows, one after the other, and where each begins and ends."""
    if isinstance(rows, slice):
        first, last, step = rows.indices(len(starts) - 1)
        if step == 1:
            return values, starts[first : max(first, last) + 1]
        rows = np.arange(first, last, step)
    chosen = [values[starts[i] : starts[i + 1]] for i in np.asarray(rows)]
    return np.concatenate([values[:0], *chosen]), _starts(map(len, chosen))


# -- from objects to letters ------------------------------------------------------------------------------


def letters(points: Points) -> Sequences:
    """Return points that are texts, bytes, or lists or tuples of tokens, as sequences; a map for `pair.through`.

    Examples
    --------
    >>> from mercer.points import Points
    >>> letters(Points(["ab", "", "b"])).letters.tolist()
    [97, 98, 98]
    """
    if isinstance(points.data, Sequences):
        return points.data
    items = points.items
    if all(isinstance(item, str) for item in items):
        joined = "".join(items).encode("utf-32-le", "surrogatepass")
        return Sequences(np.frombuffer(joined, np.int32), _starts(map(len, items)), "text")
    if all(isinstance(item, bytes) for item in items):
        codes = np.frombuffer(b"".join(items), np.uint8).astype(np.int32)
        return Sequences(codes, _starts(map(len, items)), "bytes")
    known: dict[Any, int] = {}
    return Sequences.joined([_tokens(item, i, points, items, known) for i, item in enumerate(items)])


def texts(points: Points) -> list[str]:
    """Return points that are texts, or say which is none."""
    items = points.items
    for i, item in enumerate(items):
        if not isinstance(item, str):
            raise TypeError(
                f"point {points.place(i)} of {points.name} is {_described(item)}; this kernel compares texts: pass str."
            )
    return list(items)


def _tokens(item: Any, i: int, points: Points, items: Sequence[Any], known: dict[Any, int]) -> np.ndarray:
    tokens = item.tolist() if isinstance(item, np.ndarray) and item.ndim == 1 else item
    if not isinstance(tokens, list | tuple):
        other = next((j for j, one in enumerate(items) if type(one) is not type(item)), None)
        mixed = "" if other is None else f", point {points.place(other)} {_described(items[other])}"
        raise TypeError(
            f"point {points.place(i)} of {points.name} is {_described(item)}{mixed}; a kernel of strings compares "
            "points of one kind: str, bytes, or lists of tokens."
        )
    names = np.empty(len(tokens), np.int64)
    for j, token in enumerate(tokens):
        try:
            name = known.get((type(token), token))
        except TypeError:
            name = None
        if name is None:
            name = token_name(token)
            known[type(token), token] = name
        names[j] = name
    return names


def _described(item: Any) -> str:
    kind = type(item).__name__
    return f"the number {item!r}" if isinstance(item, numbers.Number) else f"a {kind}, {item!r:.40}"


def token_name(token: Any) -> int:
    """Return the name of a token, the same in every process: text, bytes, a number, None, or a tuple of such.

    Examples
    --------
    >>> token_name(2) == token_name(2.0), token_name("2") == token_name(b"2")
    (True, False)
    """
    digest = blake2b(_canonical(token), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 3 | 1 << 61


def _canonical(token: Any) -> bytes:
    if isinstance(token, str):
        return b"s" + token.encode("utf-8", "surrogatepass")
    if isinstance(token, bytes):
        return b"b" + token
    if token is None:
        return b"n"
    if isinstance(token, numbers.Integral):
        return b"i%d" % int(token)
    if isinstance(token, numbers.Real):
        number = float(token)
        return b"i%d" % int(number) if number.is_integer() else b"f" + repr(number).encode()
    if isinstance(token, tuple):
        parts = [_canonical(part) for part in token]
        return b"t" + b"".join(b"%d:" % len(part) + part for part in parts)
    raise TypeError(
        f"a token is a {type(token).__name__}, {token!r:.40}; tokens are texts, bytes, numbers, None or tuples of "
        "these: replace it by one of them."
    )


# -- k-mers -----------------------------------------------------------------------------------------------


def kmers(sequences: Sequences, low: int, high: int) -> sparse.csr_array:
    """Return how often each sequence has each run of `low` to `high` letters, as bags of named features.

    Examples
    --------
    >>> from mercer.points import Points
    >>> kmers(letters(Points(["banana"])), 2, 2).data  # an, ba and na
    array([2., 1., 2.])
    """
    names, counts = kmer_names(sequences, low, high)
    return bags(names, _starts(counts.sum(axis=1)))


def kmer_names(sequences: Sequences, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the name of each run of letters, and how many there are: a row for each sequence, a column for a length.

    Names are in the order of sequences, of each in that of lengths, and of each of these in that of places.
    """
    counts = np.maximum(sequences.lengths[:, None] - np.arange(low, high + 1) + 1, 0)
    starts = _starts(counts.sum(axis=1))
    names = np.empty(starts[-1], np.int64)
    n = len(sequences)
    step = max(1, -(-n // cores()))

    def fill(first: int) -> None:
        last = min(first + step, n)
        part = sequences.starts[first : last + 1]
        _core.kmers(
            sequences.letters, part, low, high, int(sequences.kind == "bytes"), names[starts[first] : starts[last]]
        )

    run(fill, range(0, n, step))
    return names, counts


# -- statistics of pairs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A number for each pair of two sets of sequences, for `pair.compare`."""

    def __call__(self, left: Points, right: Points) -> np.ndarray:
        x, z = left.data, right.data
        if x.kind != z.kind:
            raise TypeError(f"{left.name} has {x.kind} and {right.name} has {z.kind}; pass points of one kind.")
        out = np.empty((len(x), len(z)))
        self.fill(x, z, out)
        return out

    def fill(self, x: Sequences, z: Sequences, out: np.ndarray) -> None:
        """Compute the numbers."""
        raise NotImplementedError


@dataclass(frozen=True)
class WindowSums(Rule):
    """The sum over all pairs of windows of `length` letters of a weight that depends on how many letters are equal."""

    length: int
    weights: tuple[int, ...]  # of 0, 1, ..., length equal letters

    def fill(self, x: Sequences, z: Sequences, out: np.ndarray) -> None:
        weights = np.array(self.weights, np.uint64)
        _core.window_sums(x.letters, x.starts, z.letters, z.starts, self.length, weights, stop(), out)


@dataclass(frozen=True)
class Recurrence(Rule):
    """A recurrence over all pairs of letters of two sequences."""

    kind: Literal["subsequences", "local alignments", "best alignment", "edits"]
    parameters: tuple[float, ...] = ()

    def fill(self, x: Sequences, z: Sequences, out: np.ndarray) -> None:
        given = np.array(self.parameters, np.float64)
        _core.recurrence(_RECURRENCES.index(self.kind), given, x.letters, x.starts, z.letters, z.starts, stop(), out)


@dataclass(frozen=True)
class SharedRuns(Rule):
    """The sum over all pairs of places of a weight of their distance times one of the equal letters from there on."""

    runs: tuple[float, ...]  # weights of 0, 1, ... equal letters; of more, that of the last
    shifts: tuple[float, ...]  # weights of distances 0, 1, ...; of larger ones, 0

    def fill(self, x: Sequences, z: Sequences, out: np.ndarray) -> None:
        weights = np.array(self.runs), np.array(self.shifts)
        _core.shared_runs(x.letters, x.starts, z.letters, z.starts, *weights, stop(), out)


# -- series -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Series:
    """Series of points of R^d, one after the other, and where each begins and ends."""

    places: np.ndarray
    starts: np.ndarray

    ndim = 1

    @property
    def shape(self) -> tuple[int]:
        """How many series there are."""
        return (len(self.starts) - 1,)

    def __getitem__(self, rows: slice | np.ndarray) -> Series:
        """Return some of the series; those of a slice share the places."""
        return Series(*_cut(self.places, self.starts, rows))


def series(points: Points) -> Series:
    """Return points that are series of numbers, or of rows of numbers, of any lengths; a map for `pair.through`."""
    rows: list[np.ndarray] = []
    for i, item in enumerate(points.items):
        try:
            one = np.asarray(item, dtype=np.float64)
        except (TypeError, ValueError):
            one = np.empty((0, 0, 0))
        one = one[:, None] if one.ndim == 1 else one
        if one.ndim != 2 or not one.size:
            raise TypeError(
                f"point {points.place(i)} of {points.name} is a {type(item).__name__}, {item!r:.40}; this kernel "
                "compares series: arrays of one number, or of one row of numbers, for each time, and at least one."
            )
        if not np.isfinite(one).all():
            raise ValueError(f"point {points.place(i)} of {points.name} has NaN or infinite values; impute them.")
        if rows and one.shape[1] != rows[0].shape[1]:
            raise ValueError(
                f"point {points.place(i)} of {points.name} has {one.shape[1]} numbers at each time, point "
                f"{points.place(0)} has {rows[0].shape[1]}; all must have the same."
            )
        rows.append(one)
    return Series(np.concatenate(rows), _starts(map(len, rows)))


@dataclass(frozen=True)
class Alignments:
    """The logarithm of the sum over all alignments of two series of products of local kernel values."""

    scale: float
    divisible: bool

    def __call__(self, left: Points, right: Points) -> np.ndarray:
        x, z = left.data, right.data
        if x.places.shape[1] != z.places.shape[1]:
            raise ValueError(
                f"the series of {left.name} have {x.places.shape[1]} numbers at each time, those of {right.name} "
                f"{z.places.shape[1]}; both must have the same."
            )
        out = np.empty((x.shape[0], z.shape[0]))
        unit = 2**-0.5 / self.scale
        _core.align(self.divisible, x.places * unit, x.starts, z.places * unit, z.starts, stop(), out)
        return out
