"""A test of independence, by the covariance of the features of two variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.features.spectral.law import generator
from mercer.gram import Gram
from mercer.gram.factor import PivotedCholesky
from mercer.kernels import Kernel
from mercer.machine.threads import one_thread_each, run
from mercer.points import Points
from mercer.rkhs.functions.centres import doubled, plain
from mercer.rkhs.statistics.embedding import checked_kernel
from mercer.rkhs.statistics.outcome import (
    HSICResult,
    Invariants,
    Permuted,
    block_size_for,
    checked_count,
    checked_method,
    combined,
    divided,
    hollow_blocks,
    skewed,
)

_PERMUTED_PAIRS = 200  # pairs up to which a matrix is permuted faster than its factors are found
_BAND = 64  # rows that are permuted at a time
_PORTION = 64 * 2**20  # bytes of permutations held at a time, at most
_EXACT = 1e-9  # of the trace, below which what factors leave out counts as nothing
_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of a norm times an entry: the rounding of sums of products


def hsic_test(
    X: Any,
    Y: Any,
    kernel_x: Kernel | None = None,
    kernel_y: Kernel | None = None,
    *,
    method: str = "permutation",
    n_permutations: int = 999,
    block_size: int | None = None,
    unbiased: bool = True,
    random_state: Any = None,
    budget: int | float | str | None = None,
) -> HSICResult:
    r"""Test whether paired samples are independent, by the Hilbert-Schmidt norm of the covariance of their features.

    .. math:: \mathrm{HSIC} = \frac{1}{n^2} \operatorname{tr}(K H L H), \qquad H = I - \tfrac1n 1 1^T

    With kernels that tell all laws apart (Gaussian, Laplacian, Matern, ...) it is 0 in the limit of large n only for
    independent variables. The unbiased estimate leaves out the pairs of a point with itself (Song et al. 2012):
    <A, B> / (n (n - 3)) for both matrices `hollow_centred`.

    Parameters
    ----------
    X, Y
        The pairs: n points of any kind and n points of any kind.
    kernel_x, kernel_y
        Kernels, each resolved on its sample. None for `RBF("median")`, the Gaussian kernel whose scale is the median
        distance of the sample.
    method
        "permutation": the points of Y are put in a random order, `n_permutations` times. Within the budget the level is
        exact. Matrices of low rank are permuted as factors, F'G for K = FF' and L = GG', found by pivoted Cholesky
        decomposition; others entry by entry. Matrices beyond the budget are replaced by factors with a stated error.
        "block": the mean of the unbiased estimate over blocks of pairs, with a normal law corrected for skewness;
        variance and skewness are those over all permutations within the blocks, computed without permuting. The cost is
        n `block_size` values of both kernels: linear.
    n_permutations
        How many; the smallest p-value is 1 / (1 + n_permutations).
    block_size
        Pairs in a block; None for sqrt(n), between 32 and 1024.
    unbiased
        Which estimate the statistic is; "block" has the unbiased one.
    random_state
        Of the permutations, the pivots or the division into blocks.
    budget
        Bytes that may be used, as for `Gram`.

    Returns
    -------
    HSICResult
        With `statistic`, `pvalue`, `cka`, `threshold(level)` and `rejects(level)`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import hsic_test
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, size=(200, 1))
    >>> x, y = np.cos(angle), np.sin(angle)  # uncorrelated, and not independent
    >>> hsic_test(x, y, random_state=0).pvalue
    0.001
    >>> hsic_test(x, rng.permutation(y), random_state=0).rejects(0.01)
    False
    """
    checked_method(method)
    checked_count(n_permutations, "n_permutations", 1)
    rng = generator(random_state)
    sides = [Points(doubled(plain(Points.of(data, name).data)), name) for data, name in ((X, "X"), (Y, "Y"))]
    n = len(sides[0])
    if len(sides[1]) != n:
        raise ValueError(f"X has {n} points and Y has {len(sides[1])}; independence is a question about pairs.")
    if n < 4 and (unbiased or method == "block"):
        raise ValueError(f"there are {n} pairs; the unbiased estimate needs 4 of them. Use unbiased=False.")
    kernels = [
        checked_kernel(kernel, name).resolve(points)
        for kernel, name, points in zip((kernel_x, kernel_y), ("kernel_x", "kernel_y"), sides, strict=True)
    ]
    if method == "block":
        return _by_blocks(kernels, sides, block_size, rng)
    grams = [Gram(k, points, budget=budget) for k, points in zip(kernels, sides, strict=True)]
    return _by_permutations(grams, n_permutations, unbiased, rng)


def _by_permutations(grams: list[Gram], n_permutations: int, unbiased: bool, rng: np.random.Generator) -> HSICResult:
    aligned = _aligned(grams, rng)
    statistic = aligned.statistics(np.arange(aligned.n)[None], unbiased)[0]
    others = [
        aligned.statistics(rng.permuted(np.tile(np.arange(aligned.n), (count, 1)), axis=1), unbiased)
        for count in aligned.portions(n_permutations, grams[0].budget // 8)
    ]
    null = Permuted(np.sort(np.concatenate(others)), aligned.rounding(unbiased))
    return HSICResult(
        statistic=float(statistic),
        pvalue=null.pvalue(statistic),
        method="permutation",
        null=null,
        cka=aligned.cka(unbiased),
        size=aligned.n,
        kernels=(grams[0].kernel, grams[1].kernel),
        error=aligned.error,
        computed=aligned.said,
    )


def _aligned(grams: list[Gram], rng: np.random.Generator) -> Alignment:
    """Return the two matrices in the form in which they are permuted at the least cost."""
    n, budget = grams[0].shape[0], grams[0].budget
    needed = 4 * 8 * n * n  # both, and room to compute them
    proven = all(gram.kernel.proof().proven for gram in grams)
    if n <= _PERMUTED_PAIRS and needed <= budget:
        return dense_alignment(grams)
    if proven:
        # 2 n r q multiplications against n^2 entries gathered, each of which takes as long as ten.
        most = math.isqrt(5 * n) if needed <= budget else int(min(n, 256, budget // (6 * 8 * n)))
        if most:
            factors = factored_alignment(grams, most, exactly=needed <= budget, rng=rng)
            if factors is not None:
                return factors
    budget.require(
        needed,
        f"permuting two matrices of {n} x {n}",
        "use method='block', which is linear in the number of points, or raise the budget."
        + ("" if proven else " Factors of low rank are for kernels that are proven positive semidefinite."),
    )
    return dense_alignment(grams)


def _by_blocks(
    kernels: list[Kernel], sides: list[Points], block_size: int | None, rng: np.random.Generator
) -> HSICResult:
    n = len(sides[0])
    size = block_size_for(n, block_size, f"{n} pairs")
    parts = divided(n, max(1, n // size), rng)
    centred = [hollow_blocks(k, points, parts) for k, points in zip(kernels, sides, strict=True)]
    factors = [1.0 / (len(part) * (len(part) - 3)) for part in parts]

    def block(i: int) -> tuple[float, tuple[Invariants, Invariants]]:
        A, B = (of(i) for of in centred)
        return factors[i] * float(np.vdot(A, B)), (Invariants.of(A, skewed(i)), Invariants.of(B, skewed(i)))

    results = run(block, range(len(parts)))
    moments = [pair for _, pair in results]
    statistic, null = combined([value for value, _ in results], moments, factors)
    own = [sum(f * pair[side].squares for f, pair in zip(factors, moments, strict=True)) for side in (0, 1)]
    scale = math.sqrt(own[0]) * math.sqrt(own[1]) / len(parts)
    return HSICResult(
        statistic=statistic,
        pvalue=null.pvalue(statistic),
        method="block",
        null=null,
        cka=statistic / scale if scale > 0 else 0.0,
        size=n,
        kernels=(kernels[0], kernels[1]),
        computed=f"{len(parts)} blocks of about {size} pairs",
    )


@dataclass(frozen=True, eq=False)
class Alignment:
    r"""Two centred kernel matrices, ready to be permuted against each other.

    .. math:: C(\pi) = \sum_{ij} \tilde K_{ij} \tilde L_{\pi_i \pi_j}, \qquad
              D(\pi) = \sum_i \tilde K_{ii} \tilde L_{\pi_i \pi_i}

    Both estimates of HSIC are made of these two: C / n^2, and without the pairs of a point with itself

    .. math:: \frac{1}{n (n - 3)} \Bigl(C(\pi) - \frac{n}{n - 2} D(\pi)
              + \frac{\operatorname{tr} \tilde K \operatorname{tr} \tilde L}{(n - 1)(n - 2)}\Bigr)

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
    error: float
    said: str

    def portions(self, count: int, room: int) -> Iterator[int]:
        """Return how many permutations to take at a time, within some bytes."""
        each = 24 * self.n  # bytes of a permutation: before and after, and the diagonal in its order
        step = max(1, min(_PORTION, room) // each)
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
    factors, traces = [], []
    for gram in grams:
        factor = _factor(gram, most, int(rng.integers(2**31)))
        F = np.ascontiguousarray(factor.R.T)
        F -= F.mean(axis=0)
        if exactly and factor.trace > _EXACT * float(np.vdot(F, F)):
            return None
        factors.append(F)
        traces.append(factor.trace)
    F, G = factors
    norms = float(np.linalg.norm(F.T @ F)), float(np.linalg.norm(G.T @ G))
    diagonals = np.einsum("ij,ij->i", F, F), np.einsum("ij,ij->i", G, G)

    def products(orders: np.ndarray) -> np.ndarray:
        return np.array([np.square(F.T @ G[order]).sum() for order in orders])

    # K - FF' is positive semidefinite with trace e, so that |<K - FF', L>| <= e |L|; the denominator errs as much.
    error = 2.0 * (math.prod(1.0 + e / norm for e, norm in zip(traces, norms, strict=True) if e > 0 and norm > 0) - 1.0)
    return Alignment(
        n=len(F),
        diagonals=diagonals,
        norms=norms,
        largest=tuple(float(np.abs(gram.diag()).max()) for gram in grams),  # type: ignore[arg-type]
        products=products,
        error=error,
        said=f"factors of rank {F.shape[1]} and {G.shape[1]} by pivoted Cholesky decomposition",
    )


def _factor(gram: Gram, most: int, seed: int) -> PivotedCholesky:
    from mercer.gram.matrix import KernelMatrix  # the solvers take a while to load

    factor = PivotedCholesky(KernelMatrix(gram), most, seed=seed)
    total = factor.trace
    with one_thread_each():
        while not factor.exhausted and factor.rank < most and factor.trace > 0.1 * _EXACT * total:
            factor.grow(max(8, most // 8))
    return factor
