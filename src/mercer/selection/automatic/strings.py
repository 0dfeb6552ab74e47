"""Strings in tables: kernels that are worth trying on them, and their values, computed once for a whole search."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from threading import Lock
from typing import Any

import numpy as np

from mercer.gram import Gram
from mercer.kernels import GappedKmers, Kernel, Spectrum, TextNGrams, WeightedDegree
from mercer.kernels.base import kernel as kernel_class
from mercer.kernels.proof import Proof
from mercer.kernels.rules.pullback import On
from mercer.machine.budget import Budget
from mercer.points import Pair, Points
from mercer.selection.automatic.kernels import Candidate, Look, kernel_list, numbers_of

_JOINED_FAMILIES = 4  # kernels of strings, beyond which each is joined with the numbers at one scale instead of three
_LETTER_PAIRS = 4e11  # that gapped k-mers of all rows may compare: some 4 seconds, at 1e11 pairs a second
_BUDGET_PART = 4  # a fourth of the budget is for the matrices of the strings, all of them together


def mixed_list(look: Look, Z: np.ndarray) -> list[Candidate]:
    """Return the kernels to try on rows of numbers and strings: of the strings, of the numbers, and of both.

    A row has the value 1 with itself in each of them, so that numbers and strings weigh the same in a mean.

    Parameters
    ----------
    look
        What the rows look like.
    Z
        The rows, an array of objects.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.selection.automatic.kernels import look_at
    >>> Z = np.array([["to be"], ["or not"]], dtype=object)
    >>> [c.family for c in mixed_list(look_at(Z, strings=[(0, "text")]), Z)]
    ['words', 'letters', 'words and letters']
    """
    matrix, numbers = numbers_of(Z, look.strings)
    of_numbers = kernel_list(look, matrix) if numbers else []

    def on(candidate: Candidate) -> Candidate:
        make = candidate.make
        wider = None if make is None else lambda s: make(s).on(numbers)
        return Candidate(candidate.kernel.on(numbers), candidate.family, candidate.scale, wider)

    both: list[Candidate] = []
    of_strings = _of_strings(Z, dict(look.strings))
    smooth = [c for c in of_numbers if c.family == "RBF"]
    smooth = smooth[1:7:2] if len(of_strings) <= _JOINED_FAMILIES else smooth[3:4]
    for family, kernel in of_strings.items():
        both.append(Candidate(kernel, family))
        for name, joined in (("RBF + ", _mean), ("RBF x ", _product)):
            for candidate in smooth:

                def make(s: float, k: Kernel = kernel, join: Any = joined, c: Candidate = candidate) -> Kernel:
                    joint: Kernel = join(c.at(s).kernel.on(numbers), k)
                    return joint

                both.append(Candidate(make(candidate.scale), name + family, candidate.scale, make))
    return [*both, *(on(candidate) for candidate in of_numbers)]


def _mean(k: Kernel, other: Kernel) -> Kernel:
    return 0.5 * k + 0.5 * other


def _product(k: Kernel, other: Kernel) -> Kernel:
    return k * (0.5 + 0.5 * other)


def _of_strings(Z: np.ndarray, strings: dict[int, str]) -> dict[str, Kernel]:
    """Return kernels of the columns of strings, each the mean of one kernel for every column, by what they count.

    All texts are compared in one way and all sequences in one, so that more columns make no longer list.
    """
    lengths = [np.array(list(map(len, Z[:, i]))) for i, kind in strings.items() if kind == "sequence"]
    gaps = ((8, 2), (10, 4), (12, 6)) if all(float(one.sum()) ** 2 <= _LETTER_PAIRS for one in lengths) else ()
    bases: list[tuple[str, Kernel]] = [(f"{g - m}-mers with {m} gaps", GappedKmers(g, m).normalized()) for g, m in gaps]
    bases = bases or [(f"{k}-mers", Spectrum(k).normalized()) for k in (4, 6, 8)]
    if all(len(np.unique(one[one > 0])) == 1 for one in lengths):  # so that a place may mean the same in all of them
        bases.insert(0, ("runs of letters at a place", WeightedDegree(8, shift=2).normalized()))
    words, letters = TextNGrams((1, 2)), TextNGrams(None, (2, 5))
    each: dict[str, list[tuple[str, Kernel]]] = {
        "text": [("words", words), ("letters", letters), ("words and letters", _mean(words, letters))],
        "sequence": bases,
    }
    present = list(dict.fromkeys(strings.values()))
    kernels: dict[str, Kernel] = {}
    for ways in product(*(each[kind] for kind in present)):
        chosen = dict(zip(present, ways, strict=True))
        # Words are weighted once, by all rows, so that all folds share a kernel.
        first, *others = (chosen[kind][1].on([place]).resolve(Z) for place, kind in strings.items())
        total = first * (1.0 / len(strings)) if others else first
        for other in others:
            total = total + other * (1.0 / len(strings))
        kernels[", ".join(name for name, _ in chosen.values())] = total
    return kernels


# -- kernel values at the rows of a search, computed once for all kernels, folds and penalties ------------


class KernelValues:
    """The matrix of a kernel on some points, computed when it is first asked for."""

    def __init__(self, kernel: Kernel, points: Points, budget: Budget) -> None:
        self._kernel, self._points, self._budget, self._lock = kernel, points, budget, Lock()
        self._matrix: np.ndarray | None = None

    def get(self) -> np.ndarray:
        """Return the matrix; two threads may want one that neither has."""
        with self._lock:
            if self._matrix is None:
                gram = Gram(self._kernel, self._points, budget=int(self._budget))
                self._matrix = np.asarray(gram.dense(), dtype=np.float64)
            return self._matrix


@kernel_class
class Tabulated(Kernel):
    """A kernel by its values at some points; the points that it compares are the numbers of these.

    Two of them are equal if their kernels are: they speak of the points of one search.
    """

    base: Kernel
    values: Any

    def of(self, pair: Pair) -> Any:
        return pair.lookup(self.values.get())

    @property
    def resolved(self) -> bool:
        return True

    def _key(self) -> tuple[Any, ...]:
        return (self.base,)

    def _proof(self) -> Proof:
        return self.base._proof()

    def __sklearn_clone__(self) -> Tabulated:
        return self

    def __repr__(self) -> str:
        return repr(self.base)


def tabulated(
    X: np.ndarray, kernels: Sequence[Kernel], strings: Sequence[int], budget: Any
) -> tuple[Any, list[Kernel]]:
    """Return rows with numbers of rows in the place of strings, and kernels of such rows with the same values.

    Several kernels look at a column in the same way, alone and in sums and products with others. What one of them has
    computed serves all, in every fold.

    Parameters
    ----------
    X
        Rows, an array of objects.
    kernels
        Kernels of these rows.
    strings
        The columns of strings.
    budget
        Bytes for everything. Where a quarter of it does not hold the matrices, X and the kernels are returned as they
        are.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF, Spectrum
    >>> X = np.array([[1.0, "ACGT"], [2.0, "ACCC"], [4.0, "GGGT"]], dtype=object)
    >>> k = RBF(1.0).on([0]) * Spectrum(2).on([1])
    >>> rows, (same,) = tabulated(X, [k], [1], None)
    >>> rows
    array([[1., 0.],
           [2., 1.],
           [4., 2.]])
    >>> np.allclose(same(rows[:2], rows[2:]), k(X[:2], X[2:]))
    True
    """
    limit = Budget.for_points(budget, len(X))
    points, tables = Points(X), dict[Kernel, KernelValues]()

    def put(k: Kernel) -> Kernel:
        if isinstance(k, On) and isinstance(k.columns, list | tuple) and set(k.columns) <= set(strings):
            return On(Tabulated(k.base, tables.setdefault(k, KernelValues(k, points, limit))), list(k.columns[:1]))
        parts = k._children()
        return k.replace(**{name: put(part) for name, part in parts.items()}) if parts else k

    same = [put(k) for k in kernels]
    if 8 * len(X) ** 2 * len(tables) > int(limit) // _BUDGET_PART:
        return X, list(kernels)
    rows = X.copy()
    rows[:, list(strings)] = np.arange(len(X))[:, None]
    return rows.astype(np.float64), same
