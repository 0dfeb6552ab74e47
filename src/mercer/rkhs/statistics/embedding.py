"""Samples as functions: the mean embedding, the distance of two of them, and the test of whether it is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.features.spectral.law import generator
from mercer.gram import Gram
from mercer.kernels import RBF, Kernel
from mercer.kernels.rules.scikit_learn import as_kernel
from mercer.machine.threads import cores, run
from mercer.points import Points
from mercer.rkhs.functions.centres import doubled, joined, plain
from mercer.rkhs.functions.function import RKHSFunction
from mercer.rkhs.statistics.outcome import (
    Invariants,
    MMDResult,
    Permuted,
    block_size_for,
    checked_count,
    checked_method,
    combined,
    divided,
    hollow_blocks,
    skewed,
)

_COLUMNS = 256  # permutations at a time where the matrix is held
_ROUNDING = 1e-13  # of the largest kernel value: statistics this close are ties


def mean_embedding(kernel: Kernel, X: Any, weights: Any = None) -> RKHSFunction:
    r"""Return the mean of the functions k(x_i, .), the point of H that stands for the law of a sample.

    .. math:: \mu = \sum_i w_i k(x_i, \cdot), \qquad \langle f, \mu \rangle_H = \sum_i w_i f(x_i), \qquad \sum_i w_i = 1

    Parameters
    ----------
    kernel
        The kernel of H; parameters that wait for data are resolved on X.
    X
        The sample: whatever the kernel compares.
    weights
        One number per point, at least 0; they are divided by their sum. None for 1/n each.

    Examples
    --------
    >>> from mercer import RBF, RKHSFunction, mean_embedding
    >>> mean = mean_embedding(RBF(1.0), [[0.0], [2.0], [4.0]])
    >>> f = RKHSFunction(RBF(1.0), [[1.0]], [1.0])
    >>> bool(abs(f @ mean - f([[0.0], [2.0], [4.0]]).mean()) < 1e-15)
    True
    """
    n = len(Points.of(X))
    return RKHSFunction(kernel, X, _shares(weights, n))


def witness(X: Any, Y: Any, kernel: Kernel | None = None) -> RKHSFunction:
    r"""Return the function that tells two samples apart: positive where X is dense, negative where Y is.

    .. math:: f = \mu_P - \mu_Q = \frac1n \sum_i k(x_i, \cdot) - \frac1m \sum_j k(y_j, \cdot)

    Among the functions of norm 1, f / \|f\| has the largest difference of means, and that is the distance of the two
    embeddings (the maximum mean discrepancy).

    Parameters
    ----------
    X, Y
        The samples, in containers of one kind.
    kernel
        The kernel of H; parameters that wait for data are resolved on both samples together. None for
        `RBF("median")`, the Gaussian kernel whose scale is the median distance of the pooled points.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.rkhs import witness
    >>> rng = np.random.default_rng(0)
    >>> f = witness(rng.normal(size=(200, 1)), rng.normal(2.0, 1.0, size=(200, 1)))
    >>> f([[-1.0], [3.0]]).round(1)
    array([ 0.5, -0.5])
    """
    return Pooled(X, Y, kernel).witness()


def squared_mmd(X: Any, Y: Any, kernel: Kernel | None = None, *, unbiased: bool = True) -> float:
    r"""Return an estimate of the squared distance in H of the laws of two samples.

    .. math::

        \mathrm{MMD}^2 = \|\mu_P - \mu_Q\|_H^2 = E k(x, x') + E k(y, y') - 2 E k(x, y)

    The biased estimate takes all pairs, the unbiased one leaves out those of a point with itself; its mean is 0 when
    the laws are equal, so that it may be negative.

    Parameters
    ----------
    X, Y, kernel
        As for `witness`.
    unbiased
        Which of the two. The biased one is the squared distance of the mean embeddings of the samples.

    Examples
    --------
    >>> from mercer import RBF, mean_embedding
    >>> from mercer.rkhs import squared_mmd
    >>> X, Y = [[0.0], [1.0]], [[2.0], [3.0]]
    >>> distance = mean_embedding(RBF(1.0), X).distance(mean_embedding(RBF(1.0), Y))
    >>> bool(abs(squared_mmd(X, Y, RBF(1.0), unbiased=False) - distance**2) < 1e-12)
    True
    """
    sample = Pooled(X, Y, kernel)
    f = sample.witness()
    if not unbiased:
        return f.norm() ** 2
    sample.check_pairs()
    K, a = Gram(sample.kernel, sample.points), sample.indicator()[:, None]
    return float(sample.estimates(a, K.matvec(a), K.matvec(np.ones(len(a))), K.diag(), True)[0])


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
    >>> test = mmd_test(X, Y, random_state=0)
    >>> test.pvalue, test.rejects(0.01), test.statistic > test.threshold(0.01)
    (0.001, True, True)
    >>> test.witness([[0.0, -1.0], [0.0, 2.0]]) > 0  # where X is denser, and where Y is
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


class Pooled:
    """Two samples in one container, the first n points those of X, and the kernel resolved on all of them."""

    def __init__(self, X: Any, Y: Any, kernel: Kernel | None) -> None:
        X, Y = (plain(Points.of(data, name).data) for data, name in ((X, "X"), (Y, "Y")))
        _check_alike(X, Y)
        self.n, self.m = len(Points(X)), len(Points(Y))
        self.points = Points(doubled(joined(X, Y)), "the pooled sample")
        if kernel is None and not self.points.numeric:
            self.points.vectors  # noqa: B018 - says what is no vector, and what to do
        self.kernel = checked_kernel(kernel, "kernel").resolve(self.points)

    def indicator(self) -> np.ndarray:
        """Return 1 for the points of X and 0 for those of Y."""
        return np.repeat([1.0, 0.0], [self.n, self.m])

    def witness(self) -> RKHSFunction:
        """Return the difference of the two mean embeddings."""
        shares = np.repeat([1.0 / self.n, -1.0 / self.m], [self.n, self.m])
        return RKHSFunction(self.kernel, self.points.data, shares)

    def check_pairs(self) -> None:
        """Raise unless each sample has a pair of points."""
        if min(self.n, self.m) < 2:
            raise ValueError(
                f"the samples have {self.n} and {self.m} points; the unbiased estimate averages over pairs and needs "
                "two of each. Use unbiased=False."
            )

    def estimates(self, A: np.ndarray, KA: np.ndarray, ones: np.ndarray, diagonal: Any, unbiased: bool) -> np.ndarray:
        """Return the squared MMD for each way of dividing the pooled points.

        Parameters
        ----------
        A
            1 for the points that play X, 0 for those that play Y; one column per division.
        KA, ones, diagonal
            K times A, K times a vector of ones, and the diagonal of K.
        unbiased
            Which estimate.
        """
        n, m = float(self.n), float(self.m)
        within = np.einsum("ij,ij->j", A, KA)  # the sum of K over X x X
        along = ones @ A  # over X and all
        cross = along - within
        other = ones.sum() - along - cross
        if not unbiased:
            return np.asarray(within / n**2 + other / m**2 - 2 * cross / (n * m))
        own = np.asarray(diagonal, dtype=np.float64) @ A
        rest = float(np.sum(diagonal, dtype=np.float64)) - own
        return np.asarray((within - own) / (n * (n - 1)) + (other - rest) / (m * (m - 1)) - 2 * cross / (n * m))


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
    estimates = [sample.estimates(A, K @ A, ones, diagonal, unbiased)]
    for start in range(0, n_permutations, step):
        A = _divisions(first, min(step, n_permutations - start), rng)
        estimates.append(sample.estimates(A, K @ A, ones, diagonal, unbiased))
    statistic, *others = np.concatenate(estimates)
    largest = max(float(np.abs(diagonal).max()), float(np.abs(ones).max()) / size)
    null = Permuted(np.sort(others), _ROUNDING * largest)
    pvalue = null.pvalue(statistic)
    return MMDResult(float(statistic), pvalue, "permutation", null, sample.witness(), (sample.n, sample.m))


def _divisions(first: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return random orders of the entries of `first`, one per column."""
    return np.ascontiguousarray(rng.permuted(np.tile(first, (count, 1)), axis=1).T)


def _by_blocks(sample: Pooled, block_size: int | None, rng: np.random.Generator) -> MMDResult:
    n, m = sample.n, sample.m
    size = block_size_for(n + m, block_size, f"samples of {n} and {m} points")
    count = max(1, min((n + m) // size, n // 2, m // 2))
    parts = [divided(n, count, rng), divided(m, count, rng)]
    both = [np.concatenate([x, n + y]) for x, y in zip(*parts, strict=True)]
    sizes = [(len(x), len(y)) for x, y in zip(*parts, strict=True)]
    centred = hollow_blocks(sample.kernel, sample.points, both)
    labels = {pair: _labels(*pair) for pair in set(sizes)}
    known = {pair: Invariants.of(L) for pair, L in labels.items()}

    def block(i: int) -> tuple[float, Invariants]:
        A = centred(i)
        return float(np.vdot(A, labels[sizes[i]])), Invariants.of(A, skewed(i))

    blocks = run(block, range(count))
    statistic, null = combined(
        [value for value, _ in blocks], [(a, known[pair]) for (_, a), pair in zip(blocks, sizes, strict=True)]
    )
    return MMDResult(statistic, null.pvalue(statistic), "block", null, sample.witness(), (n, m))


def _labels(n: int, m: int) -> np.ndarray:
    """Return the matrix whose inner product with that of a kernel is the unbiased squared MMD.

    Its rows sum to 0 and its diagonal is 0, so that a matrix and the same one centred have the same product with it.
    """
    L = np.full((n + m, n + m), -1.0 / (n * m))
    L[:n, :n] = 1.0 / (n * (n - 1))
    L[n:, n:] = 1.0 / (m * (m - 1))
    np.fill_diagonal(L, 0.0)
    return L


def checked_kernel(kernel: Kernel | None, name: str) -> Kernel:
    """Return the kernel, or the default one."""
    if kernel is None:
        return RBF("median")
    kernel = as_kernel(kernel, name)
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"{name} must be a kernel object such as RBF('median'), or None for that one; it is {kernel!r}. "
            "FromFunction makes a kernel of a Python function."
        )
    return kernel


def _shares(weights: Any, n: int) -> np.ndarray:
    """Return the weights with sum 1."""
    if weights is None:
        return np.full(n, 1.0 / n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,):
        raise ValueError(f"weights have shape {w.shape} and there are {n} points; one number per point is needed.")
    if not (np.isfinite(w).all() and (w >= 0).all() and w.any()):
        raise ValueError(
            f"weights must be finite, at least 0 and not all 0; they lie between {w.min():g} and {w.max():g}."
        )
    w = w / w.max()
    return w / w.sum()


def _check_alike(X: Any, Y: Any) -> None:
    """Raise unless the samples have the same columns."""
    if hasattr(X, "columns") and hasattr(Y, "columns"):
        a, b = list(X.columns), list(Y.columns)
    elif getattr(X, "ndim", 1) == 2 and getattr(Y, "ndim", 1) == 2:
        a, b = list(range(X.shape[1])), list(range(Y.shape[1]))
    else:
        return
    if a != b:
        raise ValueError(
            f"X has the columns {_few(a)} and Y has {_few(b)}; two samples are compared by the same features, in the "
            "same order."
        )


def _few(names: list[Any]) -> str:
    shown = ", ".join(map(str, names[:5]))
    return f"{shown}, ... ({len(names)})" if len(names) > 5 else shown
