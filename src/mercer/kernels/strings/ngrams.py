"""Kernels that count substrings: k-mers of sequences, n-grams of words or letters in texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mercer.features import NamedFeatures
from mercer.kernels.base import Kernel, check_integer, is_whole, kernel
from mercer.points import Pair, Points
from mercer.points.sets.sequences import Sequences, kmers, letters, texts, token_name


@kernel
class Spectrum(Kernel):
    r"""The number of k-mers that two strings share (Leslie, Eskin and Noble, 2002).

    .. math:: k(x, z) = \sum_{a \in A^k} |x|_a |z|_a

    with |x|_a the number of times that a occurs in x, and A the letters, whichever they are.

    Points are texts, bytes, or lists of tokens. A string of fewer than k letters has no feature: its values are 0.

    Parameters
    ----------
    k
        The length of the substrings.
    blended
        Whether shorter ones count, too: all lengths from 1 to k.

    Examples
    --------
    >>> from mercer import Spectrum
    >>> Spectrum(2)(["banana", "bandana", "xyz"])
    array([[9., 7., 0.],
           [7., 8., 0.],
           [0., 0., 2.]])
    """

    _of_objects = True

    k: int = 3
    blended: bool = False

    _because = "feature map", "the inner product of the numbers of times that each k-mer occurs."

    def _validate(self) -> None:
        check_integer(self, "k", self.k, 1)

    def of(self, pair: Pair) -> Any:
        return pair.through(self._map()).dot

    def feature_map(self) -> Any:
        return NamedFeatures(self._map())

    def _map(self) -> KMers:
        return KMers(1 if self.blended else int(self.k), int(self.k))


@dataclass(frozen=True)
class KMers:
    """How often each run of `low` to `high` letters occurs."""

    low: int
    high: int

    def __call__(self, points: Points) -> Any:
        return kmers(points.through(letters).data, self.low, self.high)


_WORD = re.compile(r"\b\w\w+\b")  # as scikit-learn's vectorizers cut texts


@kernel
class TextNGrams(Kernel):
    r"""The cosine of two texts as bags of n-grams of words, or of letters.

    .. math:: k(x, z) = \frac{\langle \Phi(x), \Phi(z) \rangle}{|\Phi(x)| |\Phi(z)|}, \quad
              \Phi_a(x) = (1 + \log |x|_a) \Bigl(1 + \log\frac{1 + n}{1 + n_a}\Bigr)

    with |x|_a the number of times that the n-gram a occurs in x, and n_a the number of n training texts that have it.
    It is 0 where a text has no n-gram at all.

    Parameters
    ----------
    words
        The least and the largest number of adjacent words; None to count letters.
    characters
        The least and the largest number of adjacent letters, blanks included; None to count words.
    lowercase
        Whether capitals are the same letters.
    sublinear
        Whether an n-gram counts 1 + log of the times that it occurs, rather than each time.
    idf
        The second factor: "auto" for that of the training points, None for none. Once resolved it is an array of rows
        (name, number of texts with it), and (-1, number of texts) in the first one. N-grams of none of these texts are
        left out, as scikit-learn does.

    Examples
    --------
    >>> from mercer import TextNGrams
    >>> TextNGrams(words=(1, 1), idf=None)(["to be or not", "to be", "Or not?"]).round(3)
    array([[1.   , 0.707, 0.707],
           [0.707, 1.   , 0.   ],
           [0.707, 0.   , 1.   ]])
    """

    _of_objects = True

    words: Any = (1, 1)
    characters: Any = None
    lowercase: bool = True
    sublinear: bool = True
    idf: Any = "auto"

    _because = "feature map", "the inner product of unit vectors of weighted counts, one for each n-gram."

    def _validate(self) -> None:
        chosen = [(name, v) for name, v in (("words", self.words), ("characters", self.characters)) if v is not None]
        if len(chosen) != 1:
            raise ValueError(
                f"TextNGrams counts words or characters: words is {self.words!r} and characters {self.characters!r}. "
                "Give one, such as words=None, characters=(2, 5)."
            )
        name, value = chosen[0]
        pair = isinstance(value, tuple | list) and len(value) == 2 and all(map(is_whole, value))
        if not pair or not 1 <= value[0] <= value[1]:
            raise ValueError(
                f"{name} of TextNGrams must be two whole numbers with 1 <= least <= largest, as in (1, 2); it is "
                f"{value!r}."
            )
        table = isinstance(self.idf, np.ndarray) and self.idf.ndim == 2 and self.idf.dtype == np.int64
        if not (self.idf is None or isinstance(self.idf, str) or (table and len(self.idf) and self.idf.shape[1] == 2)):
            raise ValueError(f'idf of TextNGrams must be "auto", None or a resolved table; it is {self.idf!r:.60}.')
        if isinstance(self.idf, str) and self.idf != "auto":
            raise ValueError(f'idf of TextNGrams must be "auto" or None; it is {self.idf!r}.')

    def of(self, pair: Pair) -> Any:
        return pair.through(self._map()).dot

    def feature_map(self) -> Any:
        return NamedFeatures(self._map())

    def _map(self) -> Weighted:
        return Weighted(self._counts(), self.sublinear, None if self.idf is None else Frequencies(self.idf))

    def _counts(self) -> NGrams:
        low, high = self.words or self.characters
        return NGrams(int(low), int(high), self.words is not None, self.lowercase)

    def _resolve(self, points: Points) -> Kernel:
        counts = points.through(self._counts()).vectors
        names, texts = np.unique(counts.indices, return_counts=True)  # a bag has each name once
        head = np.array([[-1, counts.shape[0]]], np.int64)
        return self.replace(idf=np.concatenate([head, np.column_stack([names, texts]).astype(np.int64)]))


@dataclass(frozen=True)
class NGrams:
    """How often each run of `low` to `high` words, or letters, occurs."""

    low: int
    high: int
    words: bool
    lowercase: bool

    def __call__(self, points: Points) -> Any:
        documents = texts(points)
        if self.lowercase:
            documents = [text.lower() for text in documents]
        sequences = _words(documents) if self.words else letters(Points(documents, points.name))
        return kmers(sequences, self.low, self.high)


def _words(documents: list[str]) -> Sequences:
    names: dict[str, int] = {}
    rows = []
    for text in documents:
        words = _WORD.findall(text)
        for word in words:
            if word not in names:
                names[word] = token_name(word)
        rows.append(np.fromiter((names[word] for word in words), np.int64, len(words)))
    return Sequences.joined(rows)


@dataclass(frozen=True, eq=False)
class Frequencies:
    """In how many texts each n-gram occurs; equal tables are equal."""

    table: np.ndarray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frequencies) and (self.table is other.table or np.array_equal(self.table, other.table))

    def __hash__(self) -> int:
        return hash((len(self.table), int(self.table[-1, 0]), int(self.table[:, 1].sum())))

    def weights(self, names: np.ndarray) -> np.ndarray:
        """Return 1 + log((1 + n) / (1 + n_a)) of some n-grams, 0 for those of no text."""
        order = np.searchsorted(self.table[1:, 0], names)
        order[order == len(self.table) - 1] = -1
        texts = self.table[1 + order, 1]
        known = self.table[1 + order, 0] == names
        return np.where(known, 1 + np.log((1 + self.table[0, 1]) / (1 + texts)), 0.0)


@dataclass(frozen=True)
class Weighted:
    """Counts of n-grams, weighted, and of length 1."""

    counts: NGrams
    sublinear: bool
    frequencies: Frequencies | None

    def __call__(self, points: Points) -> Any:
        bags = points.through(self.counts).vectors
        values = 1 + np.log(bags.data) if self.sublinear else bags.data
        if self.frequencies is not None:
            values = values * self.frequencies.weights(bags.indices)
        rows = sparse.csr_array((values, bags.indices, bags.indptr), shape=bags.shape)
        squares = np.add.reduceat(np.append(values**2, 0.0), bags.indptr[:-1]) * (np.diff(bags.indptr) > 0)
        lengths = np.sqrt(np.where(squares > 0, squares, 1.0))
        rows.data /= np.repeat(lengths, np.diff(bags.indptr))
        return rows
