"""Posterior variances at a fraction of the price where the kernel matrix is of low rank, with a bound on the error."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import blas, cho_factor

from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.points import Comparison, Points
from mercer.solvers.cholesky import rounding
from mercer.solvers.greedy import Greedy
from mercer.solvers.products import Products

_LEFT = 5e-7  # trace that may be left of K, in units of the noise
_SURE = 2e-6  # relative error of a variance that the bound must allow for
_BLOCK = 512  # candidates for pivots that are drawn at first
_FLOOR, _LOWER = (
    1 / 64,
    2.0,
)  # of that trace: the smallest pivot at first; and how much lower it is where too few are left
_CHUNK = 2_048  # columns of R that are weighted at a time
_TILE = 1 << 25  # bytes of kernel values at a time


class LowRank:
    r"""The process as one with the kernel matrix R'R, which leaves the trace t of K - R'R out, plus a small rest.

    .. math:: \operatorname{var} f(x) \approx e + \rho^T (I + R S^{-1} R^T)^{-1} \rho, \qquad
              \rho = L_P^{-1} k_P(x), \quad e = k(x, x) - |\rho|^2

    with the pivots P. Write f = g + h, where h is what the values at P leave open. The first term is the variance of h
    before the data are seen, the second, u, that of g after they are seen if h is ignored. What is neglected is at
    most :math:`2 \sqrt{\delta e u} + \delta e` with :math:`\delta = t / \min_i s_i`, by Cauchy and Schwarz: the data
    say about h through the noise alone, which hides it by that factor.

    Parameters
    ----------
    kernel
        With every parameter known.
    pivots
        The points P.
    root
        L_P, lower triangular.
    inner
        The lower Cholesky factor of I + R S^-1 R'.
    delta
        As above.
    """

    def __init__(self, kernel: Kernel, pivots: Points, root: np.ndarray, inner: np.ndarray, delta: float) -> None:
        self.kernel, self.pivots, self.root, self.inner, self.delta = kernel, pivots, root, inner, delta

    @property
    def rank(self) -> int:
        """The number of pivots."""
        return len(self.pivots)

    @classmethod
    def of(cls, gram: Gram, shift: float | np.ndarray, most: int) -> LowRank | None:
        """Return the kernel matrix as one of rank at most `most`; None where too much would be left out."""
        least = float(np.min(shift))
        products = Products(gram)
        goal = _LEFT * least
        if most < 1 or goal < rounding(products):
            return None
        cover, floor = Greedy(products, most), _FLOOR * goal
        while cover.trace > goal:
            block = max(_BLOCK, cover.rank)
            pivots, L = cover.choose(block, floor)
            if len(pivots) > most - cover.rank or (len(pivots) == block and _hopeless(L, cover.rank, floor, most)):
                return None
            if len(pivots):
                cover.add(pivots, L)
            elif floor <= cover.noise or floor * products.n < goal:  # smaller ones are rounding, or no longer matter
                return None
            if len(pivots) < block // 8:
                floor /= _LOWER
        if not cover.rank:
            return None
        at = cover.pivots
        root = np.asfortranarray(np.tril(cover.R[:, at].T))
        inner = np.eye(len(at))
        weight = 1.0 / np.sqrt(np.broadcast_to(np.asarray(shift, dtype=np.float64), products.n))
        for i in range(0, products.n, _CHUNK):
            part = cover.R[:, i : i + _CHUNK] * weight[i : i + _CHUNK]
            inner += part @ part.T
        factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)[0]
        return cls(gram.kernel, Points(gram.left.take(at).data), root, np.asfortranarray(factor), cover.trace / least)

    def variance(self, new: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the variances, and of which it is certain that they are good to 2e-6 of themselves."""
        m, r = len(new), self.rank
        found = np.array(Comparison(self.kernel.of, new).diag(), dtype=np.float64)
        certain = np.empty(m, dtype=bool)
        step = min(m, max(64, _TILE // (8 * r)))
        tile = np.empty((step, r))
        for i in range(0, m, step):
            rows = slice(i, min(i + step, m))
            part = tile[: rows.stop - i]
            compared = Comparison(self.kernel.of, new.take(rows), self.pivots)
            if compared.dtype == part.dtype:
                compared.dense(part)
            else:
                part[...] = compared.dense()
            rho = blas.dtrsm(1.0, self.root, part.T, lower=1, overwrite_b=1).T
            open_ = np.maximum(found[rows] - np.einsum("ij,ij->i", rho, rho), 0.0)
            u = blas.dtrsm(1.0, self.inner, rho.T, lower=1, overwrite_b=1).T
            seen = np.einsum("ij,ij->i", u, u)
            found[rows] = open_ + seen
            missed = 2 * np.sqrt(self.delta * open_ * seen) + self.delta * open_
            certain[rows] = missed <= _SURE * found[rows]
        return found, certain


def _hopeless(L: np.ndarray, rank: int, floor: float, most: int) -> bool:
    """Whether pivots fall too slowly to reach the floor by rank `most`, where all candidates of a block were taken.

    The pivots of a few points fall faster than those of all, and the eigenvalues of smooth kernels at best as a
    geometric series: going on at the rate of the last half is more than can be hoped for.
    """
    d = np.square(L.diagonal())
    half = len(d) // 2
    rate = math.log(d[half] / d[-1]) / (len(d) - half)
    return rate <= 0 or rank + len(d) + math.log(d[-1] / floor) / rate > 1.3 * most
