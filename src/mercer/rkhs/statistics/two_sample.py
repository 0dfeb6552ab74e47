"""A test of whether two samples come from one law, by the distance of their mean embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.features.spectral.law import generator
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.machine.threads import cores, run
from mercer.rkhs.statistics.embedding import Pooled
from mercer.rkhs.statistics.outcome import (
    Invariants,
    MMDResult,
    Permuted,
    block_size_for,
    checked_count,
    checked_method,
    combined,
    divided,
    hollow_centred,
    skewed,
)

_COLUMNS = 256  # permutations at a time where the matrix is held
_ROUNDING = 1e-13  # of the largest kernel value: statistics this close are ties


def mmd_test(
    X: Any,
    Y: Any,
    kernel: Kernel | None = None,
    *,
    method: str = "permutation",
    n_permutations: int = 999,
    block_size: int | None = None,
    unbiased: bool = True,
    random_state: Any = None,
    budget: int | float | str | None = None,
) -> MMDResult:
    r"""Test whether two samples come from one law, by the squared distance of their mean embeddings.

    .. math:: \mathrm{MMD}^2 = \Bigl\|\frac1n \sum_i k(x_i, \cdot) - \frac1m \sum_j k(y_j, \cdot)\Bigr\|_H^2

    Parameters
    ----------
    X, Y
        The samples, in containers of one kind: matrices, tables, or sequences of whatever the kernel compares. They
        need not have the same size.
    kernel
        A kernel; parameters that wait for data are resolved on both samples together, which no permutation changes.
        None for `RBF("median")`, the Gaussian kernel whose scale is the median distance of the pooled points.
    method
        "permutation": the pooled points are divided anew at random, `n_permutations` times; all divisions are columns
        of one matrix that the kernel matrix is multiplied with. The level is exact for every sample size. The cost is
        (n + m)^2 kernel values, and (n + m)^2 `n_permutations` multiplications.
        "block": the mean of the unbiased estimate over blocks of points (Zaremba, Gretton and Blaschko 2013), with a
        normal law corrected for skewness; variance and skewness are those over all permutations within the blocks,
        computed without permuting. The cost is (n + m) `block_size` kernel values: linear.
    n_permutations
        How many; the smallest p-value is 1 / (1 + n_permutations).
    block_size
        Points of both samples together in a block of the second method; None for sqrt(n + m), between 32 and 1024.
    unbiased
        Which estimate the statistic is (see `squared_mmd`); "block" has the unbiased one.
    random_state
        Of the permutations or of the division into blocks.
    budget
        Bytes that may be used, as for `Gram`. Where they do not suffice for the matrix, its values are computed as they
        are needed.

    Returns
    -------
    MMDResult
        With `statistic`, `pvalue`, `witness`, `threshold(level)` and `rejects(level)`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import mmd_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(80, 2)), rng.normal(size=(60, 2)) + [0.0, 1.0]
    >>> found = mmd_test(X, Y, random_state=0)
    >>> found.pvalue, found.rejects(0.01), found.statistic > found.threshold(0.01)
    (0.001, True, True)
    >>> found.witness([[0.0, -1.0], [0.0, 2.0]]) > 0  # where X is denser, and where Y is
    array([ True, False])
    """
    checked_method(method)
    checked_count(n_permutations, "n_permutations", 1)
    rng = generator(random_state)
    sample = Pooled(X, Y, kernel)
    if unbiased or method == "block":
        sample.check_pairs()
    if method == "block":
        return _by_blocks(sample, block_size, rng)
    return _by_permutations(sample, n_permutations, unbiased, rng, Gram(sample.kernel, sample.points, budget=budget))


def _by_permutations(
    sample: Pooled, n_permutations: int, unbiased: bool, rng: np.random.Generator, gram: Gram
) -> MMDResult:
    size = len(sample.points)
    held = 16 * size * size <= gram.budget
    K: Any = np.asarray(gram.dense(), dtype=np.float64) if held else gram
    ones, diagonal = K @ np.ones(size), np.asarray(gram.diag(), dtype=np.float64)
    # Each step computes the values anew where they are not held, so that it takes what memory allows.
    step = _COLUMNS if held else max(16, int(gram.budget // (8 * size * (4 + cores()))))
    first = sample.indicator()
    A = first[:, None]
    found = [sample.estimates(A, K @ A, ones, diagonal, unbiased)]
    for start in range(0, n_permutations, step):
        A = _divisions(first, min(step, n_permutations - start), rng)
        found.append(sample.estimates(A, K @ A, ones, diagonal, unbiased))
    statistic, *others = np.concatenate(found)
    largest = max(float(np.abs(diagonal).max()), float(np.abs(ones).max()) / size)
    null = Permuted(np.sort(others), _ROUNDING * largest)
    return MMDResult(
        statistic=float(statistic),
        pvalue=null.pvalue(statistic),
        method="permutation",
        null=null,
        witness=sample.witness(),
        sizes=(sample.n, sample.m),
    )


def _divisions(first: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return random orders of the entries of `first`, one per column."""
    return np.ascontiguousarray(rng.permuted(np.tile(first, (count, 1)), axis=1).T)


def _by_blocks(sample: Pooled, block_size: int | None, rng: np.random.Generator) -> MMDResult:
    n, m = sample.n, sample.m
    size = block_size_for(n + m, block_size, f"samples of {n} and {m} points")
    count = max(1, min((n + m) // size, n // 2, m // 2))
    parts = [divided(n, count, rng), divided(m, count, rng)]
    order = np.concatenate([np.concatenate([x, n + y]) for x, y in zip(*parts, strict=True)])
    gram = Gram(sample.kernel, sample.points.take(order))
    sizes = [(len(x), len(y)) for x, y in zip(*parts, strict=True)]
    ends = np.cumsum([sum(pair) for pair in sizes])
    labels = {pair: _labels(*pair) for pair in set(sizes)}
    known = {pair: Invariants.of(L) for pair, L in labels.items()}

    def block(i: int) -> tuple[float, Invariants]:
        rows = slice(int(ends[i]) - sum(sizes[i]), int(ends[i]))
        A = hollow_centred(gram.block(rows, rows))
        return float(np.vdot(A, labels[sizes[i]])), Invariants.of(A, skewed(i))

    blocks = run(block, range(count))
    statistic, null = combined(
        [value for value, _ in blocks], [(a, known[pair]) for (_, a), pair in zip(blocks, sizes, strict=True)]
    )
    return MMDResult(
        statistic=statistic,
        pvalue=null.pvalue(statistic),
        method="block",
        null=null,
        witness=sample.witness(),
        sizes=(n, m),
    )


def _labels(n: int, m: int) -> np.ndarray:
    """Return the matrix whose inner product with that of a kernel is the unbiased squared MMD.

    Its rows sum to 0 and its diagonal is 0, so that a matrix and the same one centred have the same product with it.
    """
    L = np.full((n + m, n + m), -1.0 / (n * m))
    L[:n, :n] = 1.0 / (n * (n - 1))
    L[n:, n:] = 1.0 / (m * (m - 1))
    np.fill_diagonal(L, 0.0)
    return L
