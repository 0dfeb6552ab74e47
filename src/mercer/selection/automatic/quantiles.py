"""Quantiles of a target from the residuals of rows that were held out: conformal prediction."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.estimators import KernelRidge
from mercer.gram import Gram
from mercer.kernels import Kernel, Laplacian
from mercer.machine.budget import Budget
from mercer.points import Points
from mercer.solvers.systems.spectrum import Spectrum

_RANK = 1e-9  # by which a rank may miss a whole number, and be it
_FEWEST_ROWS = 40  # held out, below which all sizes are one: so few squares are no evidence of anything else
_MOST_ROWS = 1000  # that sizes are learned from: the decomposition of their kernel matrix takes some 0.2 s
_MATRICES = 24  # bytes for each entry of that matrix while it is decomposed
_VARIANCE_ROWS = 300  # over which the variance of a kernel's functions is taken
# For kernels of variance 1 or 2. One residual says little of how large those about it are (the square root of a normal
# one has a deviation of 0.4 of its mean), so that smaller alphas would learn the residuals themselves.
_ALPHAS = np.logspace(-1, 3, 9)
_SURE = 2.0  # standard errors by which sizes that vary must predict better than one size for all
_MOST_PARTS, _PARTS_OF_ONE = 10, 5  # parts left out in turn: of many folds, and of a single one
# Roots of sizes, whose mean is 1, are kept between these quantiles of what was seen, and above the smallest: no
# interval is closed, nor wider than those that were calibrated.
_RANGE, _SMALLEST_ROOT = (0.01, 0.99), 0.1


def conformal_quantiles(residuals: np.ndarray, quantiles: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """Return quantiles of residuals on the safe side: ranks among n + 1, rounded away from the middle.

    Parameters
    ----------
    residuals
        y - f at points that f was not fitted to, ascending.
    quantiles
        Between 0 and 1.
    counts
        For how many points each residual stands; None for one.

    Examples
    --------
    >>> import numpy as np
    >>> conformal_quantiles(np.arange(1.0, 10.0), np.array([0.1, 0.5, 0.85]))
    array([1., 5., 9.])
    >>> conformal_quantiles(np.array([1.0, 2.0]), np.array([0.1, 0.5, 0.85]), np.array([8.0, 1.0]))
    array([1., 1., 2.])
    """
    counts = np.ones(len(residuals)) if counts is None else counts
    total, last = float(counts.sum()) + 1.0, len(residuals) - 1
    up = np.searchsorted(np.cumsum(counts), quantiles * total - _RANK)
    down = last - np.searchsorted(np.cumsum(counts[::-1]), (1.0 - quantiles) * total - _RANK)
    return np.asarray(residuals[np.clip(np.where(quantiles > 0.5, up, down), 0, last)])


@dataclass(frozen=True)
class ResidualScale:
    r"""How large residuals are about a row, and the residuals in this unit.

    .. math:: q(x) = f(x) + s(x) \, Q\bigl(r_i / s_{-i}(x_i)\bigr)

    The square root of s is a ridge regression of the square roots of residuals, a smooth function whose errors have
    nearly the same deviation everywhere; s_{-i} is the same without the fold of row i, so that the ratios of rows that
    were held out are like those of new ones (Papadopoulos et al. 2008; Lei et al. 2018).

    Attributes
    ----------
    scores, counts
        The ratios, ascending, and for how many rows each stands; None for one.
    root
        The square root of s, which is 1 on average; None where s is 1 for every row.
    low, high
        Between which the root is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (400, 1))
    >>> r = np.sort((0.1 + X[:, 0]) * rng.normal(size=400))  # not of these rows: nothing to learn
    >>> ResidualScale.of(r, None, np.arange(400) % 5, Points(X), RBF(0.5)).root is None
    True
    >>> r = (0.1 + X[:, 0]) * rng.normal(size=400)
    >>> order = np.argsort(r)
    >>> scale = ResidualScale.of(r[order], None, np.arange(400) % 5, Points(X[order]), RBF(0.5))
    >>> narrow, wide = np.diff(scale.quantiles(np.array([[0.1], [0.9]]), np.array([0.1, 0.9])))[:, 0]
    >>> bool(wide > 3 * narrow)
    True
    """

    scores: np.ndarray
    counts: np.ndarray | None
    root: KernelRidge | None = None
    low: float = 1.0
    high: float = 1.0

    @classmethod
    def of(
        cls,
        residuals: np.ndarray,
        counts: np.ndarray | None,
        folds: np.ndarray,
        points: Points,
        kernel: Kernel,
        budget: int | None = None,
    ) -> Self:
        """Learn how large residuals are.

        Parameters
        ----------
        residuals, counts
            y - f at points that f was not fitted to, ascending, and for how many rows each stands; None for one.
        folds
            Which of them were held out together.
        points
            Where they are.
        kernel
            That of f. Where the points are numbers a Laplacian kernel of all columns is added, since noise may depend
            on columns that f does not.
        budget
            Bytes for kernel matrices.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ridge regressions that nobody has asked for
            try:
                learned = _learned(residuals, counts, folds, points, kernel, budget)
            except np.linalg.LinAlgError:  # a similarity that is no kernel on these points
                learned = None
        if learned is None:
            return cls(residuals, counts)
        root, left = learned
        low = max(float(np.quantile(left, _RANGE[0])), _SMALLEST_ROOT)
        high = max(float(np.quantile(left, _RANGE[1])), low)
        scores = residuals / np.clip(left, low, high) ** 2
        order = np.argsort(scores, kind="stable")
        return cls(scores[order], None if counts is None else counts[order], root, low, high)

    def quantiles(self, Z: Any, asked: np.ndarray) -> np.ndarray:
        """Return quantiles of the residual at each row, (n, quantiles) or, where all rows have the same, (quantiles,).

        Parameters
        ----------
        Z
            Rows as the kernel compares them.
        asked
            Probabilities between 0 and 1.
        """
        quantiles = conformal_quantiles(self.scores, asked, self.counts)
        if self.root is None:
            return quantiles
        return np.asarray(np.clip(self.root.predict(Z), self.low, self.high)[:, None] ** 2 * quantiles)


def _learned(
    residuals: np.ndarray,
    counts: np.ndarray | None,
    folds: np.ndarray,
    points: Points,
    kernel: Kernel,
    budget: int | None,
) -> tuple[KernelRidge, np.ndarray] | None:
    """Return the root of the scale, and what it is at each row without the row's part; None where it is constant."""
    n, top = len(residuals), float(np.abs(residuals).max())
    if n < _FEWEST_ROWS or not top > 0:
        return None
    roots = np.sqrt(np.abs(residuals) / top)
    roots /= np.average(roots, weights=counts)
    parts = np.unique(folds, return_inverse=True)[1]
    parts = parts % _MOST_PARTS if parts.max() > 0 else np.arange(n) % _PARTS_OF_ONE
    most = min(_MOST_ROWS, math.isqrt(Budget.for_points(budget, _MOST_ROWS) // _MATRICES))
    # At even steps through the residuals in their order: large and small ones in their shares, in any order of rows.
    sample = np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.intp)
    of = parts[sample]
    if len(sample) < _FEWEST_ROWS or len(np.unique(of)) < 2:
        return None
    summed = _of_unit_variance(kernel, points.take(sample))
    if summed is None:
        return None
    weights = None if counts is None else counts[sample]
    alpha = _best_alpha(summed, points.take(sample), roots[sample], weights, of, budget)
    if alpha is None:
        return None

    def fitted(rows: np.ndarray) -> KernelRidge:
        model = KernelRidge(alpha, kernel=summed, fit_intercept=True, budget=budget)
        return model.fit(points.take(rows).data, roots[rows], None if counts is None else counts[rows])

    left = np.empty(n)
    for part in np.unique(parts):
        here = np.flatnonzero(parts == part)
        left[here] = fitted(sample[of != part]).predict(points.take(here).data)
    return fitted(sample), left


def _of_unit_variance(kernel: Kernel, points: Points) -> Kernel | None:
    """Return the sum of a kernel and, on numbers, a Laplacian one, each with functions of variance 1 on the points.

    One that is constant there is left out; None where both are.
    """
    few = points.take(np.linspace(0, len(points) - 1, min(len(points), _VARIANCE_ROWS)).round().astype(np.intp))
    vectors = few.vectors if few.numeric else None
    kernels = [kernel, Laplacian().resolve(few)] if isinstance(vectors, np.ndarray) else [kernel]
    terms: list[Kernel] = []
    for one in kernels:
        K = np.asarray(Gram(one, few).dense(), dtype=np.float64)
        variance, mean = float(np.diag(K).mean() - K.mean()), float(np.abs(np.diag(K)).mean())
        if np.isfinite(variance) and variance > np.sqrt(np.finfo(float).eps) * mean:
            terms.append((1.0 / variance) * one)
    return sum(terms[1:], terms[0]) if terms else None


def _best_alpha(
    kernel: Kernel,
    points: Points,
    roots: np.ndarray,
    weights: np.ndarray | None,
    parts: np.ndarray,
    budget: int | None,
) -> float | None:
    """Return the alpha that predicts parts best from the others; None where their mean does so about as well."""
    w = np.ones(len(roots)) if weights is None else weights
    gram = Gram(kernel, points, budget=Budget.for_points(budget, len(points)))
    spectrum = Spectrum(gram, float(_ALPHAS.min()), weights, intercept=True)
    errors, plain = np.empty((len(_ALPHAS), len(roots))), np.empty(len(roots))
    cut = [np.flatnonzero(parts == part) for part in np.unique(parts)]
    for fold, residuals in spectrum.leave_fold_out(roots[:, None], _ALPHAS, cut):
        others = np.setdiff1d(np.arange(len(roots)), fold)
        errors[:, fold], plain[fold] = residuals[:, :, 0], roots[fold] - np.average(roots[others], weights=w[others])
    best = int(np.average(errors**2, axis=1, weights=w).argmin())
    gains = plain**2 - errors[best] ** 2
    gain = np.average(gains, weights=w)
    error = np.sqrt(w @ (gains - gain) ** 2) / w.sum()
    return float(_ALPHAS[best]) if gain > _SURE * error else None
