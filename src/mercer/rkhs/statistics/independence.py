"""A test of independence, by the covariance of the features of two variables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.features.spectral.law import generator
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.threads import run
from mercer.points import Points
from mercer.rkhs.functions.centres import doubled, plain
from mercer.rkhs.statistics.alignment import Alignment, dense_alignment, factored_alignment
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
    hollow_centred,
    skewed,
)

_PERMUTED_PAIRS = 200  # pairs up to which a matrix is permuted faster than its factors are found


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
    found = _aligned(grams, rng)
    statistic = found.statistics(np.arange(found.n)[None], unbiased)[0]
    others = [
        found.statistics(rng.permuted(np.tile(np.arange(found.n), (count, 1)), axis=1), unbiased)
        for count in found.portions(n_permutations, grams[0].budget // 8)
    ]
    null = Permuted(np.sort(np.concatenate(others)), found.rounding(unbiased))
    return HSICResult(
        statistic=float(statistic),
        pvalue=null.pvalue(statistic),
        method="permutation",
        null=null,
        cka=found.cka(unbiased),
        size=found.n,
        kernels=(grams[0].kernel, grams[1].kernel),
        error=found.error,
        computed=found.said,
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
    order = np.concatenate(parts)
    grams = [Gram(k, points.take(order)) for k, points in zip(kernels, sides, strict=True)]
    ends = np.cumsum([len(part) for part in parts])
    factors = [1.0 / (len(part) * (len(part) - 3)) for part in parts]

    def block(i: int) -> tuple[float, tuple[Invariants, Invariants]]:
        rows = slice(int(ends[i]) - len(parts[i]), int(ends[i]))
        A, B = (hollow_centred(gram.block(rows, rows)) for gram in grams)
        return factors[i] * float(np.vdot(A, B)), (Invariants.of(A, skewed(i)), Invariants.of(B, skewed(i)))

    found = run(block, range(len(parts)))
    moments = [pair for _, pair in found]
    statistic, null = combined([value for value, _ in found], moments, factors)
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
