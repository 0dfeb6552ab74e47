"""The outcome of a test: statistic, p-value and the law under the null hypothesis, by moments over permutations."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.points import Points
from mercer.rkhs.functions.function import RKHSFunction

SMALLEST, _USUAL, _LARGEST = 6, 32, 1024  # points in a block: for the third moment, and by default
_SKEWED = 64  # blocks whose third moments are computed; the more there are, the less they matter


@dataclass(frozen=True, eq=False)
class Permuted:
    """The statistic of the permuted samples, in ascending order.

    Parameters
    ----------
    values
        One per permutation.
    rounding
        Differences up to this are ties.
    """

    values: np.ndarray
    rounding: float = 0.0

    def pvalue(self, statistic: float) -> float:
        """Return (1 + the number of permutations that reach the statistic) / (1 + their number).

        The sample itself is one of the permutations that were as likely, so that P(p <= a) <= a exactly.
        """
        reached = len(self.values) - int(np.searchsorted(self.values, statistic - self.rounding))
        return (1 + reached) / (1 + len(self.values))

    def threshold(self, level: float) -> float:
        """Return what the statistic must exceed; infinity where there are too few permutations for the level."""
        allowed = math.floor(level * (1 + len(self.values)) + 1e-9)
        return float(self.values[-allowed] + self.rounding) if allowed else math.inf


@dataclass(frozen=True)
class Approximated:
    """A law with mean 0, a standard deviation and a skewness (Pearson's type III; normal where the skewness is 0)."""

    deviation: float
    skewness: float

    def pvalue(self, statistic: float) -> float:
        """Return the probability of a larger statistic."""
        if not self.deviation > 0:
            return 1.0
        return float(stats.pearson3.sf(statistic / self.deviation, self.skewness))

    def threshold(self, level: float) -> float:
        """Return what the statistic must exceed."""
        return float(self.deviation * stats.pearson3.isf(level, self.skewness)) if self.deviation > 0 else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """A statistic and how surprising it is when the null hypothesis holds.

    Attributes
    ----------
    statistic
        Large where the null hypothesis fails.
    pvalue
        The probability under the null hypothesis of a statistic as large as this one.
    method
        "permutation" or "block".
    null
        The law of the statistic under the null hypothesis: `Permuted`, whose `values` are the statistics of the
        permuted samples, or `Approximated`, with a `deviation` and a `skewness`.
    """

    statistic: float
    pvalue: float
    method: str
    null: Permuted | Approximated

    def threshold(self, level: float = 0.05) -> float:
        """Return the value that the statistic must exceed for the test to reject at a level."""
        return self.null.threshold(checked_level(level))

    def rejects(self, level: float = 0.05) -> bool:
        """Return whether the p-value is at most the level."""
        return self.pvalue <= checked_level(level)

    def _shown(self) -> dict[str, Any]:
        return {"statistic": f"{self.statistic:.6g}", "pvalue": f"{self.pvalue:.4g}", "method": repr(self.method)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self._shown().items())})"


@dataclass(frozen=True, eq=False, repr=False)
class MMDResult(Outcome):
    """The outcome of `mmd_test`.

    Attributes
    ----------
    statistic, pvalue, method, null
        As of `Outcome`; the statistic is the squared MMD.
    witness
        mu_P - mu_Q as a function: where it is far from 0 the samples differ. Its norm is the (biased) MMD itself.
    sizes
        The numbers of points of X and of Y.
    """

    witness: RKHSFunction
    sizes: tuple[int, int]

    def _shown(self) -> dict[str, Any]:
        return {**super()._shown(), "sizes": self.sizes, "kernel": repr(self.witness.kernel)}


@dataclass(frozen=True, eq=False, repr=False)
class HSICResult(Outcome):
    """The outcome of `hsic_test`.

    Attributes
    ----------
    statistic, pvalue, method, null
        As of `Outcome`; the statistic is the HSIC.
    cka
        The same between -1 and 1: HSIC(X, Y) / sqrt(HSIC(X, X) HSIC(Y, Y)), the centred kernel alignment; 0 where a
        side is constant.
    size
        The number of pairs.
    kernels
        The kernels of X and Y, resolved.
    error
        A bound on the error of `cka` from kernel matrices of low rank; 0.0 where they were used as they are.
    computed
        How, in words.
    """

    cka: float
    size: int
    kernels: tuple[Any, Any]
    error: float = 0.0
    computed: str = ""

    def _shown(self) -> dict[str, Any]:
        x, y = self.kernels
        return {**super()._shown(), "cka": f"{self.cka:.4g}", "size": self.size, "kernel_x": x, "kernel_y": y}


def checked_level(level: float) -> float:
    """Return a level between 0 and 1, or a sentence."""
    if isinstance(level, bool) or not isinstance(level, numbers.Real) or not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.05; it is {level!r}.")
    return float(level)


def checked_method(method: str) -> str:
    """Return the name of a method, or a sentence."""
    if method not in ("permutation", "block"):
        raise ValueError(f"method must be 'permutation' or 'block'; it is {method!r}.")
    return method


def checked_count(value: Any, name: str, low: int) -> int:
    """Return a whole number of at least `low`, or a sentence."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise ValueError(f"{name} must be a whole number >= {low}; it is {value!r}.")
    return int(value)


# -- statistics averaged over blocks of points ------------------------------------------------------------


def block_size_for(size: int, asked: int | None, what: str) -> int:
    """Return how many points a block has."""
    if size < SMALLEST:
        raise ValueError(f"{what} are too few for blocks, which need {SMALLEST}; use method='permutation'.")
    if asked is None:
        return min(size, max(_USUAL, min(math.isqrt(size), _LARGEST)))
    return min(size, checked_count(asked, "block_size", SMALLEST))


def hollow_blocks(kernel: Kernel, points: Points, parts: list[np.ndarray]) -> Callable[[int], np.ndarray]:
    """Return what gives the hollow, centred kernel matrix of each part of the points."""
    gram = Gram(kernel, points.take(np.concatenate(parts)))
    ends = np.cumsum([len(part) for part in parts])

    def block(i: int) -> np.ndarray:
        rows = slice(int(ends[i]) - len(parts[i]), int(ends[i]))
        return hollow_centred(gram.block(rows, rows))

    return block


def divided(n: int, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the numbers below n in random order, in parts of equal size (to within one)."""
    return list(np.array_split(rng.permutation(n), count))


def skewed(block: int) -> bool:
    """Return whether the third moment of a block is computed; the first blocks, drawn at random, stand for all."""
    return block < _SKEWED


def combined(
    values: Sequence[float], moments: Sequence[tuple[Invariants, Invariants]], factors: Any = 1.0
) -> tuple[float, Approximated]:
    """Return the mean of the blocks' statistics, and its law over permutations within the blocks.

    Parameters
    ----------
    values
        The statistic of each block.
    moments
        The two matrices of which it is the inner product, up to a factor.
    factors
        Those factors.
    """
    f = np.broadcast_to(np.asarray(factors, dtype=np.float64), len(values))
    variance = math.fsum(g**2 * second(a, b) for g, (a, b) in zip(f, moments, strict=True))
    known = [g**3 * third(a, b) for i, (g, (a, b)) in enumerate(zip(f, moments, strict=True)) if skewed(i)]
    cubes = len(values) * float(np.mean(known))
    skewness = cubes / variance**1.5 if variance > 0 else 0.0
    return float(np.mean(values)), Approximated(math.sqrt(variance) / len(values), skewness)


_ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of the largest entry: a centred matrix below it is 0
# Graphs of three edges: how often one occurs among triples of pairs, its vertices, and the sum over distinct indices of
# the product of its entries, as multiples of the sum of cubes and of the sum over triangles.
_GRAPHS = (
    (4, 2, 1, 0),  # one edge three times
    (24, 3, -1, 0),  # one edge twice, and one at its end
    (6, 4, 2, 0),  # one edge twice, and one apart
    (8, 3, 0, 1),  # a triangle
    (8, 4, 2, 0),  # a star
    (24, 4, 1, -1),  # a path
    (12, 5, -4, 2),  # a path of two, and one apart
    (1, 6, 16, -8),  # three apart
)


def hollow_centred(K: np.ndarray) -> np.ndarray:
    r"""Return K with its diagonal set to zero and its rows and columns shifted to sum zero.

    .. math:: A_{ij} = K_{ij} - \frac{r_i + r_j}{n - 2} + \frac{\sum_k r_k}{(n - 1)(n - 2)} \quad (i \ne j), \qquad
              r_i = \sum_{j \ne i} K_{ij}

    (Szekely and Rizzo 2014, who call it U-centring.) Whatever is within rounding of zero becomes zero.

    Examples
    --------
    >>> import numpy as np
    >>> A = hollow_centred(np.arange(16.0).reshape(4, 4) + np.arange(16.0).reshape(4, 4).T)
    >>> float(np.abs(A).max())
    0.0
    """
    n = len(K)
    A = np.array(K, dtype=np.float64)
    size = float(np.abs(A).max())
    np.fill_diagonal(A, 0.0)
    r = A.sum(axis=1) / (n - 2)
    A -= r[:, None]
    A -= r - r.sum() / (n - 1)
    np.fill_diagonal(A, 0.0)
    return A if np.abs(A).max() > _ROUNDING * size else np.zeros_like(A)


@dataclass(frozen=True)
class Invariants:
    """What the moments need to know of a hollow, centred matrix.

    Parameters
    ----------
    size
        The number of rows.
    squares, cubes
        The sums of the squares and of the cubes of the entries.
    triangles
        The trace of A A A.
    """

    size: int
    squares: float
    cubes: float
    triangles: float

    @classmethod
    def of(cls, A: np.ndarray, third: bool = True) -> Invariants:
        """Read them off a matrix; without `third` only what the second moment needs, the rest is NaN."""
        squares = float(np.vdot(A, A))
        if not third:
            return cls(len(A), squares, math.nan, math.nan)
        return cls(len(A), squares, float(np.vdot(A * A, A)), float(np.vdot(A @ A, A)))


def second(a: Invariants, b: Invariants) -> float:
    r"""Return the mean over all permutations of <A, P B P'>^2.

    .. math:: \frac{2 \sum A_{ij}^2 \sum B_{ij}^2}{n (n - 3)}
    """
    return 2.0 * a.squares * b.squares / (a.size * (a.size - 3))


def third(a: Invariants, b: Invariants) -> float:
    """Return the mean over all permutations of <A, P B P'>^3, for matrices of at least six rows."""
    return sum(
        count * (c * a.cubes + t * a.triangles) * (c * b.cubes + t * b.triangles) / math.perm(a.size, vertices)
        for count, vertices, c, t in _GRAPHS
    )
