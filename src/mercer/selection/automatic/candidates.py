"""Kernels that are worth trying on rows of numbers and strings, and why: where candidates are proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from mercer.kernels import (
    RBF,
    Cosine,
    GappedKmers,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Spectrum,
    TextNGrams,
    WeightedDegree,
    parse_kernel,
)
from mercer.points import Block, Points
from mercer.selection.search.grids import scales

_UNEQUAL_UNITS = 10.0  # ratio of the columns' deviations from which on one scale cannot serve them all
_SPARSE_SHARE = 0.9  # share of zeros from which on rows are compared by their directions, too
_JOINED_FAMILIES = 4  # kernels of strings, beyond which each is joined with the numbers at one scale instead of three
_LETTER_PAIRS = 4e11  # that gapped k-mers of all rows may compare: some 4 seconds, at 1e11 pairs a second
_SAMPLE_ROWS = 300  # rows whose distances are looked at
HEAVY, LIGHT = "RBF, categories weigh more", "RBF, categories weigh less"
REASONS = {
    "linear": "the simplest, a weighted sum of the columns",
    "polynomial": "squares and products of columns",
    "RBF": "smooth functions, the usual first choice",
    "Matern": "functions with bends, which RBF would round off",
    "Laplacian": "steps and thresholds in single columns",
    "RBF + linear": "a linear trend, and what departs from it",
    HEAVY: "a product of RBF of the numbers and RBF of the categories, the latter at half the scale",
    LIGHT: "such a product, with the categories at twice the scale",
    "cosine": "directions of rows, since most entries are 0",
    "learned Laplacian": "steps in single columns, each weighted by how much a first function changes along it",
    "learned Laplacian of ranks": "the same, of the columns' ranks",
    "learned exponential": "functions with kinks of the directions along which a first function changes most",
    "learned exponential of ranks": "the same, of the columns' ranks",
    "learned Matern": "functions of such directions with a slope everywhere, and kinks of it",
    "learned RBF": "smooth functions of such directions",
}


@dataclass(frozen=True)
class Candidate:
    """A kernel to try; `make` gives the kernel of its family at another scale, where there is one."""

    kernel: Kernel
    family: str  # what it has in common with its neighbours at other scales
    scale: float = float("nan")  # NaN where it has none
    make: Callable[[float], Kernel] | None = field(default=None, compare=False, repr=False)

    def at(self, scale: float) -> Candidate:
        """Return its neighbour at another scale."""
        assert self.make is not None
        return Candidate(self.make(scale), self.family, scale, self.make)


@dataclass(frozen=True)
class Look:
    """What a matrix of numbers looks like before anything is learned from it."""

    rows: int
    columns: int
    categories: tuple[int, ...]  # the columns that stand for categories
    units: tuple[float, ...] | None  # the columns' deviations, where these are very unequal
    zeros: float  # the share of entries that are 0
    copies: int  # rows that repeat an earlier one
    strings: tuple[tuple[int, str], ...] = ()  # columns that hold none, and what they hold: "text" or "sequence"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The columns that do not stand for categories."""
        return tuple(sorted(set(range(self.columns)) - set(self.categories)))


def look_at(
    X: Any, categories: Sequence[int] = (), encoded: bool = False, strings: Sequence[tuple[int, str]] = ()
) -> Look:
    """Return what a matrix looks like: dense, sparse, or of objects where some columns hold strings.

    `encoded` says that distances mean something already, so that deviations are not to be made equal. Beside columns of
    strings the others are looked at as if they were all.
    """
    if strings:
        X, kept = numbers_of(X, strings)
        categories = [kept.index(i) for i in categories]
    n, d = X.shape
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        deviations, zeros, copies = np.sqrt(np.maximum(square - mean**2, 0.0)), 1.0 - X.nnz / max(1, n * d), 0
    else:
        top = np.abs(X).max(axis=0, initial=0.0)
        unit = np.where(top > 0, top, 1.0)  # squares of huge numbers overflow
        deviations = (X / unit).std(axis=0) * unit
        zeros, copies = (float((X == 0).mean()), n - _distinct(X)) if X.size else (0.0, 0)
    moving = deviations[deviations > 0]
    unequal = moving.size > 1 and moving.max() > _UNEQUAL_UNITS * moving.min() and not (encoded or sparse.issparse(X))
    units = tuple(short(s) if s > 0 else 1.0 for s in deviations) if unequal else None
    return Look(n, d, tuple(categories), units, zeros, 0 if strings else copies, tuple(strings))


def numbers_of(X: np.ndarray, strings: Sequence[tuple[int, str]]) -> tuple[np.ndarray, list[int]]:
    """Return the columns of an array of objects that hold numbers, as a matrix, and which they are."""
    held = {place for place, _ in strings}
    kept = [i for i in range(X.shape[1]) if i not in held]
    return X[:, kept].astype(np.float64), kept


def _distinct(X: np.ndarray) -> int:
    rows = np.ascontiguousarray(X + 0.0)  # -0 is 0
    return len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


# -- the list ---------------------------------------------------------------------------------------------


def proposed(look: Look, X: Any, rows: np.ndarray, kernels: Any = None) -> list[Candidate]:
    """Return the kernels to try: those that a user names, or what suits the data, judged by some rows."""
    if kernels is not None:
        return given_kernels(kernels, X[rows])
    return mixed_list(look, X) if look.strings else kernel_list(look, X[rows])


def kernel_list(look: Look, X: Any) -> list[Candidate]:
    """Return the kernels to try on a matrix, the simplest first, at scales taken from its distances.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> tried = kernel_list(look_at(X), X)
    >>> list(dict.fromkeys(candidate.family for candidate in tried))
    ['linear', 'polynomial', 'RBF', 'Matern', 'Laplacian', 'RBF + linear']
    >>> all(candidate.kernel.proof().status == "proven" for candidate in tried)
    True
    """
    units = None if look.units is None else np.array(look.units)
    Z = X if units is None else X / units
    grid = [short(s) for s in scales(Z, 8)]
    middle = grid[1:7:2]  # where a second family is looked at, its neighbours come later if it does well
    city = city_ratio(Z)
    weight = short(1.0 / mean_square(Z))
    line = weight * Linear() if units is None else None
    candidates: list[Candidate] = []
    if line is not None:
        candidates.append(Candidate(line, "linear"))
        candidates += [Candidate(Polynomial(p, 1.0, weight), "polynomial", float("nan")) for p in (2, 3)]
    candidates += _family("RBF", lambda s: RBF(_scaled(s, units)), grid)
    candidates += _family("Matern", lambda s: Matern(1.5, _scaled(s, units)), grid[1::2])
    candidates += _family("Laplacian", lambda s: Laplacian(_scaled(s, units)), [short(city * s) for s in grid[1::2]])
    if line is not None:
        candidates += _family("RBF + linear", lambda s: RBF(s) + line, middle)
    if look.categories and look.numbers and units is None:
        candidates += _apart(look, grid)
    if look.zeros > _SPARSE_SHARE and not look.categories:
        candidates.append(Candidate(Cosine(), "cosine"))
    return list({candidate.kernel: candidate for candidate in candidates}.values())


def _family(name: str, make: Callable[[float], Kernel], grid: Sequence[float]) -> list[Candidate]:
    return [Candidate(make(s), name, s, make) for s in grid]


def _apart(look: Look, grid: Sequence[float]) -> list[Candidate]:
    """Return products of RBF of the numbers and RBF of the categories, whose scale is half or twice as large.

    Such a product is one RBF with a scale for each column, and so it is written: one comparison instead of two.
    """
    candidates: list[Candidate] = []
    for ratio, family in ((0.5, HEAVY), (2.0, LIGHT)):
        factors = np.ones(look.columns)
        factors[list(look.categories)] = ratio
        candidates += _family(family, lambda s, f=factors: RBF(_scaled(s, f)), grid[2:7:2])  # type: ignore[misc]
    return candidates


def _scaled(scale: float, units: np.ndarray | None) -> Any:
    """A scale for all columns, or one for each that is `scale` times its unit."""
    return scale if units is None else tuple(short(scale * unit) for unit in units)


def _some(X: Any) -> Points:
    points = Points.of(X)
    return points.take(np.linspace(0, len(points) - 1, min(len(points), _SAMPLE_ROWS)).astype(np.intp))


def city_ratio(X: Any) -> float:
    """How much longer the way along the axes (L1) is than the straight one (L2)."""
    points = _some(X)
    block = Block(points, points)
    city, straight = np.median(np.asarray(block.l1())), np.median(np.sqrt(np.asarray(block.sqdist())))
    return float(city / straight) if straight > 0 else 1.0


def mean_square(X: Any) -> float:
    """The typical squared length of a row."""
    rows = _some(X).vectors
    squares = rows.multiply(rows).sum() if sparse.issparse(rows) else np.square(rows, dtype=np.float64).sum()
    mean = float(squares) / max(1, rows.shape[0])
    return mean if mean > 0 else 1.0


def short(value: float) -> float:
    """Three digits: a scale that one can read."""
    return float(f"{value:.3g}")


# -- strings: kernels of these, of the numbers beside them, and of both ----------------------------------


def mixed_list(look: Look, Z: np.ndarray) -> list[Candidate]:
    """Return the kernels to try on rows of numbers and strings: of the strings, of the numbers, and of both.

    A row has the value 1 with itself in each of them, so that numbers and strings weigh the same in a mean.

    Examples
    --------
    >>> import numpy as np
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
        for name, join in (("RBF + ", _mean), ("RBF x ", _product)):
            for c in smooth:

                def make(s: float, k: Kernel = kernel, join: Any = join, c: Candidate = c) -> Any:
                    return join(c.at(s).kernel.on(numbers), k)

                both.append(Candidate(make(c.scale), name + family, c.scale, make))
    return [*both, *map(on, of_numbers)]


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


# -- kernels that a user names ----------------------------------------------------------------------------


def given_kernels(kernels: Any, X: Any) -> list[Candidate]:
    """Return what a user wants to be tried: kernels, classes of kernels (at several scales), texts to be parsed."""
    if isinstance(kernels, Kernel | str | type):
        kernels = [kernels]
    candidates: list[Candidate] = []
    for k in kernels:
        if isinstance(k, str):
            k = parse_kernel(k)
        if isinstance(k, type) and issubclass(k, Kernel):
            if "scale" not in k.__dataclass_fields__:  # type: ignore[attr-defined]
                raise ValueError(
                    f"kernels contains the class {k.__name__}, which has no scale to try; give {k.__name__}() itself."
                )
            factor = city_ratio(X) if k is Laplacian else 1.0
            grid = [short(factor * s) for s in scales(X, 8)]
            candidates += _family(k.__name__, lambda s, k=k: k(scale=s), grid)  # type: ignore[misc]
        elif isinstance(k, Kernel):
            parts = any(isinstance(value, Kernel) for value in k.get_params(deep=False).values())
            scale = getattr(k, "scale", None)
            known = float(scale) if isinstance(scale, int | float) and not parts else float("nan")
            candidates.append(Candidate(k, repr(k) if parts else type(k).__name__, known))
        else:
            raise TypeError(f"kernels contains {k!r:.80}; it takes kernels, their classes, and texts such as 'RBF(2)'.")
    if not candidates:
        raise ValueError("kernels is empty; name at least one, or leave it None for a list that suits the data.")
    return list({candidate.kernel: candidate for candidate in candidates}.values())
