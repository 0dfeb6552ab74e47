r"""Inner products of two centred kernel matrices, the second with its points permuted.

.. math:: C(\pi) = \sum_{ij} \tilde K_{ij} \tilde L_{\pi_i \pi_j}, \qquad
          D(\pi) = \sum_i \tilde K_{ii} \tilde L_{\pi_i \pi_i}

Both estimates of HSIC are made of these two: C / n^2, and without the pairs of a point with itself

.. math:: \frac{1}{n (n - 3)} \Bigl(C(\pi) - \frac{n}{n - 2} D(\pi)
          + \frac{\operatorname{tr} \tilde K \operatorname{tr} \tilde L}{(n - 1)(n - 2)}\Bigr)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mercer.gram import Gram
from mercer.gram.factor import PivotedCholesky
from mercer.machine.threads import one_thread_each, run

_BAND = 64  # rows that are permuted at a time
_PORTION = 64 * 2**20  # bytes of permutations held at a time, at most
_EXACT = 1e-9  # of the trace, below which what factors leave out counts as nothing
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two centred matrices, ready to be permuted against each other.

    Parameters
    ----------
    n
        The number of points.
    diagonals
        Those of the centred matrices.
    norms
        Their Frobenius norms.
    largest
        The largest absolute values before centring: what rounding is measured by.
    products
        From permutations (rows) to C.
    width
        Bytes that one permutation takes: before and after, and the diagonal in its order.
    error
        A bound on the error of C / (|K| |L|) that the form of the matrices makes.
    said
        How, in words.
    """

    n: int
    diagonals: tuple[np.ndarray, np.ndarray]
    norms: tuple[float, float]
    largest: tuple[float, float]
    products: Callable[[np.ndarray], np.ndarray]
    width: int
    error: float
    said: str

    def portions(self, count: int, room: int) -> Iterator[int]:
        """Return how many permutations to take at a time, within some bytes."""
        step = max(1, min(_PORTION, room) // self.width)
        for start in range(0, count, step):
            yield min(step, count - start)

    def statistics(self, orders: np.ndarray, unbiased: bool) -> np.ndarray:
        """Return HSIC for each order of the second points."""
        return self._estimate(self.products(orders), self.diagonals[1][orders] @ self.diagonals[0], unbiased)

    def _estimate(self, C: np.ndarray, D: np.ndarray, unbiased: bool) -> np.ndarray:
        n = float(self.n)
        if not unbiased:
            return C / n**2
        return self._unbiased(C, D, *(float(d.sum()) for d in self.diagonals)) / (n * (n - 3))

    def _unbiased(self, C: np.ndarray, D: np.ndarray, first: float, second: float) -> np.ndarray:
        n = float(self.n)
        return np.asarray(C - n / (n - 2) * D + first * second / ((n - 1) * (n - 2)))

    def rounding(self, unbiased: bool) -> float:
        """Return the difference of statistics that rounding can make."""
        n = self.n
        (first, second), (K, L) = self.norms, self.largest
        return _ROUNDING * (K * max(second, L) + L * max(first, K)) * n / (n * (n - 3) if unbiased else n * n)

    def cka(self, unbiased: bool) -> float:
        """Return the statistic of the points as they are, divided by those of each side with itself."""
        identity = np.arange(self.n)[None]
        C, D = self.products(identity), self.diagonals[1] @ self.diagonals[0]
        squares = [norm**2 for norm in self.norms]
        if unbiased:
            C = self._unbiased(C, D, *(float(d.sum()) for d in self.diagonals))
            squares = [
                float(self._unbiased(np.asarray(square), d @ d, d.sum(), d.sum()))
                for square, d in zip(squares, self.diagonals, strict=True)
            ]
        noise = [(_ROUNDING * self.n * size) ** 2 for size in self.largest]
        if any(square <= least for square, least in zip(squares, noise, strict=True)):
            return 0.0
        return float(np.clip(C[0] / (math.sqrt(squares[0]) * math.sqrt(squares[1])), -1.0, 1.0))


def dense_alignment(grams: list[Gram]) -> Alignment:
    """Return the alignment of two matrices that are held."""
    held = [np.array(gram.dense(), dtype=np.float64) for gram in grams]
    largest = [float(np.abs(K).max()) for K in held]
    for K in held:
        centre(K)
    K, L = held
    return Alignment(
        n=len(K),
        diagonals=(K.diagonal().copy(), L.diagonal().copy()),
        norms=(float(np.linalg.norm(K)), float(np.linalg.norm(L))),
        largest=(largest[0], largest[1]),
        products=lambda orders: np.array(run(lambda order: _permuted(K, L, order), orders)),
        width=24 * len(K),
        error=0.0,
        said="matrices held, permuted entry by entry",
    )


def centre(K: np.ndarray) -> None:
    """Subtract the means of rows and columns, in place."""
    means = K.mean(axis=1)
    K -= means[:, None]
    K -= means - means.mean()


def _permuted(K: np.ndarray, L: np.ndarray, order: np.ndarray) -> float:
    """Return the sum of K_ij L_{order_i order_j}: a band of rows at a time, and from the diagonal rightwards."""
    total = 0.0
    for i in range(0, len(K), _BAND):
        rows = L[order[i : i + _BAND]]
        part = rows.take(order[i:], axis=1)
        total += 2.0 * float(np.einsum("ij,ij->", part, K[i : i + _BAND, i:]))
        height = len(rows)
        total -= float(np.einsum("ij,ij->", part[:, :height], K[i : i + height, i : i + height]))
    return total


def factored_alignment(grams: list[Gram], most: int, exactly: bool, rng: np.random.Generator) -> Alignment | None:
    """Return the alignment of factors of a rank of at most `most`.

    The pivots are drawn at random, and not with the permutations in view: approximate factors make another statistic,
    not another level.

    Parameters
    ----------
    grams
        The matrices.
    most
        The largest rank.
    exactly
        Whether only factors that leave out nothing but rounding will do; None is returned where they need more rank.
    rng
        Of the pivots.
    """
    factors, left = [], []
    for gram in grams:
        factor = _factor(gram, most, int(rng.integers(2**31)))
        F = np.ascontiguousarray(factor.R.T)
        F -= F.mean(axis=0)
        if exactly and factor.trace > _EXACT * float(np.vdot(F, F)):
            return None
        factors.append(F)
        left.append(factor.trace)
    F, G = factors
    norms = float(np.linalg.norm(F.T @ F)), float(np.linalg.norm(G.T @ G))
    diagonals = np.einsum("ij,ij->i", F, F), np.einsum("ij,ij->i", G, G)

    def products(orders: np.ndarray) -> np.ndarray:
        return np.array([np.square(F.T @ G[order]).sum() for order in orders])

    # K - FF' is positive semidefinite with trace e, so that |<K - FF', L>| <= e |L|; the denominator errs as much.
    error = 2.0 * (math.prod(1.0 + e / norm for e, norm in zip(left, norms, strict=True) if e > 0 and norm > 0) - 1.0)
    return Alignment(
        n=len(F),
        diagonals=diagonals,
        norms=norms,
        largest=tuple(float(np.abs(gram.diag()).max()) for gram in grams),  # type: ignore[arg-type]
        products=products,
        width=24 * len(F),
        error=error,
        said=f"factors of rank {F.shape[1]} and {G.shape[1]} by pivoted Cholesky decomposition",
    )


def _factor(gram: Gram, most: int, seed: int) -> PivotedCholesky:
    from mercer.gram.products import Products  # the solvers take a while to load

    factor = PivotedCholesky(Products(gram), most, seed=seed)
    total = factor.trace
    with one_thread_each():
        while not factor.exhausted and factor.rank < most and factor.trace > 0.1 * _EXACT * total:
            factor.grow(max(8, most // 8))
    return factor
