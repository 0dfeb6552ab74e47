"""A low-rank part of the kernel matrix made of polynomials, which come close to the kernel's eigenfunctions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import groupby, islice

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, eigh, solve_triangular

from mercer.gram.factor import PivotedCholesky
from mercer.gram.matrix import KernelMatrix
from mercer.machine.threads import one_thread_each, run, shares
from mercer.solvers.systems.preconditioners.low_rank import VISIBLE

_ORDERS = 8  # degree of the polynomials at most
_COORDINATES = 64  # principal axes at most
_WIDEST = 512  # features from which on principal axes are too dear
_FLAT = 1e-6  # of the largest variance, below which an axis is left out
_TINY = 1e-300  # the variance of points that are all equal
_FAR = 6.0  # standard deviations beyond which a coordinate counts as that much
_PILOT, _TRIED = 8_000, 24  # points and polynomials of each order by which the orders are compared
_STANDARD_ERRORS = 3.0  # by which an order must show in the sample
_ALIKE = 1e-5  # of its square, below which a polynomial is a combination of those before it
_LEAST_EIGENVALUE = 0.3  # of the mean of the diagonal of K: smaller ones are left to the nearest points
_COMPARED_POINTS = 2_048  # by which two low-rank parts are compared
_LOOKED_AT = 20  # polynomials that are looked at for each that is wanted: where variances are equal, many tie
_CHUNK = 512  # points whose polynomials are computed at a time, to stay in the cache

Powers = tuple[tuple[int, int], ...]  # of coordinates, in their order


class Polynomials:
    r"""K projected onto some polynomials g of the points' principal coordinates.

    .. math:: K \approx g(X)^T C\, g(X), \qquad
              C = \frac{1}{m (m - 1)} \sum_{s \ne t} g(x_s)\, k(x_s, x_t)\, g(x_t)^T

    with g orthonormal over a sample of m points. Where points spread like an ellipsoid and the kernel is smooth, its
    eigenfunctions are almost products of Hermite polynomials, with eigenvalues about :math:`c_{|a|} \lambda^a` for the
    powers a and the variances lambda of the coordinates. The c are found on a sample; the polynomials with the largest
    eigenvalues are taken. As many pivots of a Cholesky factor leave more of each eigenfunction: they show the kernel
    at points, where all other eigenfunctions disturb.

    Parameters
    ----------
    matrix
        The kernel matrix of dense vectors.
    rank
        The number of polynomials.
    seed
        Of the samples.

    Attributes
    ----------
    rank : int
        Of the approximation: directions of which nothing but noise is seen are left out. The largest come first.
    """

    def __init__(self, matrix: KernelMatrix, rank: int, seed: int = 0) -> None:
        self._matrix = matrix
        n = matrix.n
        rng = np.random.default_rng(seed)
        some = np.sort(rng.choice(n, min(n, max(n // 15, 12 * rank)), replace=False))
        self._rest = np.setdiff1d(rng.choice(n, min(n, _COMPARED_POINTS), replace=False), some)
        X = matrix.gram.left.vectors[some].astype(np.float64, copy=False)
        self._middle = X.mean(axis=0)
        centred = X - self._middle
        variance, axes = eigh(centred.T @ centred / len(some))
        variance, axes = variance[::-1][:_COORDINATES].clip(min=_TINY), axes[:, ::-1][:, :_COORDINATES]
        used = variance >= _FLAT * variance[0]
        self._variance = variance[used]
        self._axes = axes[:, used] / np.sqrt(self._variance)
        with one_thread_each():
            self._fit(some, rank, rng)

    @staticmethod
    def applies_to(matrix: KernelMatrix) -> bool:
        """Return whether the points have principal coordinates that are cheap to find."""
        points = matrix.gram.left
        return points.numeric and not sparse.issparse(points.vectors) and points.width <= _WIDEST

    def _fit(self, some: np.ndarray, rank: int, rng: np.random.Generator) -> None:
        logs = np.log(self._variance / self._variance.sum())
        pilot = rng.permutation(some)[:_PILOT]
        tried = [a for order in range(_ORDERS + 1) for a in _best(logs, {order: 0.0}, _TRIED)]
        tree = _Tree([a for _, a in tried])
        C, _ = self._seen(tree, pilot)
        weights = _weights(tried, tree, C, len(pilot), self._spread(pilot[:_COMPARED_POINTS]))
        self._tree = _Tree([a for _, a in _best(logs, weights, rank)], complete=False)
        C, inverse = self._seen(self._tree, some)
        values, vectors = eigh(C)
        least = _LEAST_EIGENVALUE * float(self._matrix.diagonal().mean()) / self._matrix.n
        kept = np.flatnonzero(values > least)[::-1]
        self._rows = ((vectors[:, kept] * np.sqrt(values[kept])).T @ inverse).astype(np.float32)
        self.rank = len(kept)

    def _spread(self, at: np.ndarray) -> float:
        """Return the root mean square of k between different points."""
        values = self._matrix.block(at, at, True).astype(np.float64)
        np.fill_diagonal(values, 0.0)
        return float(np.sqrt((values**2).sum() / (len(at) * max(len(at) - 1, 1))))

    def _seen(self, tree: _Tree, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return C of polynomials made orthonormal one after the other over some points, and the matrix that does."""
        m, cols = len(some), shares(len(some))
        g = np.concatenate(run(lambda c: self._values(tree, some[c]), cols), axis=1)
        size = np.sqrt(np.einsum("ij,ij->i", g, g, dtype=np.float64) / m)
        size = np.where(size > 0, size, 1.0)
        g /= size[:, None].astype(g.dtype)
        alike = np.sum(run(lambda c: g[:, c] @ g[:, c].T, cols), axis=0, dtype=np.float64) / m
        L = cholesky(alike + _ALIKE * np.eye(len(g)), lower=True, check_finite=False)
        inverse = solve_triangular(L, np.eye(len(g)), lower=True, check_finite=False)
        g = np.concatenate(run(lambda c: inverse.astype(g.dtype) @ g[:, c], cols), axis=1)
        part, diagonal = self._matrix.take(some), self._matrix.diagonal()[some]

        def share(columns: slice) -> np.ndarray:
            total = np.zeros((len(g), len(g)))
            for i in range(columns.start, columns.stop, _CHUNK):
                c = slice(i, min(i + _CHUNK, columns.stop))
                image = g @ part.rough.block(slice(0, m), c).astype(g.dtype, copy=False)
                image -= g[:, c] * diagonal[c].astype(g.dtype)
                total += image @ g[:, c].T
            return total

        C = np.sum(run(share, cols), axis=0) / (m * (m - 1.0))
        return 0.5 * (C + C.T), inverse / size

    def _values(self, tree: _Tree, at: np.ndarray | slice) -> np.ndarray:
        """Return the values of polynomials at some points, by number: one row each."""
        X = self._matrix.gram.left.vectors[at]
        chunks = [
            tree.values((X[i : i + _CHUNK] - self._middle) @ self._axes).astype(np.float32)
            for i in range(0, len(X), _CHUNK)
        ]
        return np.concatenate(chunks, axis=1)

    def rows(self, at: np.ndarray | slice) -> np.ndarray:
        """Return the columns of R of some points, by number."""
        return np.asarray(self._rows @ self._values(self._tree, at))

    def leaves(self, factor: PivotedCholesky) -> float:
        """Return how much this leaves of K, in units of what a factor does: of its squares off the diagonal.

        They sum up to the squares of the eigenvalues that are left, and are taken at points outside the sample.
        """
        at = self._rest
        K = self._matrix.block(at, at, True)

        def left(R: np.ndarray) -> float:
            rest = K - R.T @ R
            np.fill_diagonal(rest, 0.0)
            return float((rest.astype(np.float64) ** 2).sum())

        return left(self.rows(at)) / max(left(factor.R[:, at]), _TINY)


def replace_rows(factor: PivotedCholesky, rank: int, columns: Callable[[slice], np.ndarray]) -> None:
    """Put other rows in the place of a factor's; long columns are cut, as no point has more than K.

    Parameters
    ----------
    factor
        The factor.
    rank
        The number of the new rows, at most `factor.most`.
    columns
        From some points to their columns of R.
    """
    diagonal = factor.matrix.diagonal().clip(min=0.0)

    def cut(some: slice) -> np.ndarray:
        R, most = columns(some), diagonal[some]
        squares = np.einsum("ij,ij->j", R, R, dtype=np.float64)
        over = np.sqrt(np.divide(most, squares, out=np.ones_like(squares), where=squares > most))
        return np.asarray(R * over.astype(factor.dtype))

    factor.overwrite(rank, cut)


def refine_leading(factor: PivotedCholesky, matrix: KernelMatrix, count: int) -> None:
    r"""Make R'R exact along its first rows, by one product with K.

    .. math:: R^T R \leftarrow K W H^{-1} W^T K + (I - K W H^{-1} W^T) R_>^T R_> (I - W H^{-1} W^T K), \qquad
              H = W^T K W

    with the first rows W' of R and the others R_>.
    """
    if not count:
        return
    W = factor.R[:count].T.astype(np.float64)
    W /= np.linalg.norm(W, axis=0)
    KW = matrix(W, factor.single)
    values, vectors = eigh(W.T @ KW)
    kept = values > VISIBLE * values[-1]
    root = vectors[:, kept] / np.sqrt(values[kept])
    first, others = (KW @ root).T.astype(factor.dtype), factor.R[count:]
    w = (W @ root).astype(factor.dtype)
    inside = np.sum(run(lambda c: others[:, c] @ w[c], shares(matrix.n)), axis=0)
    nothing = np.zeros((count - len(first), 1), factor.dtype)

    def columns(some: slice) -> np.ndarray:
        new = first[:, some]
        return np.concatenate([new, nothing.repeat(new.shape[1], axis=1), others[:, some] - inside @ new])

    factor.overwrite(factor.rank, columns)


class _Tree:
    """Products of Hermite polynomials of coordinates, each computed from one with a factor less.

    Parameters
    ----------
    wanted
        The polynomials.
    complete
        Whether to add all that divide them, too.
    """

    def __init__(self, wanted: list[Powers], complete: bool = True) -> None:
        if complete:
            wanted = sorted({part for a in wanted for part in _parts(a)}, key=_order)
        self.polynomials = wanted
        nodes = sorted({a[:i] for a in wanted for i in range(len(a) + 1)}, key=len)
        number = {a: i for i, a in enumerate(nodes)}
        self._levels = [
            (
                np.array([number[a[:-1]] for a in level]),
                np.array([a[-1][0] * _ORDERS + a[-1][1] - 1 for a in level]),
            )
            for length, group in groupby(nodes, key=len)
            if length
            for level in [list(group)]
        ]
        self._count = len(nodes)
        self._wanted = np.array([number[a] for a in wanted])

    def values(self, U: np.ndarray) -> np.ndarray:
        """Return the values at points with these coordinates: one row for each polynomial."""
        U = np.clip(U.T, -_FAR, _FAR)
        powers = np.empty((len(U), _ORDERS, U.shape[1]), np.float32)
        before, now = np.ones_like(U), U
        for k in range(_ORDERS):
            powers[:, k] = now
            before, now = now, (U * now - math.sqrt(k + 1) * before) / math.sqrt(k + 2)
        single = powers.reshape(-1, U.shape[1])
        values = np.empty((self._count, U.shape[1]), np.float32)
        values[0], done = 1.0, 1
        for parents, factors in self._levels:
            np.multiply(values[parents], single[factors], out=values[done : done + len(parents)])
            done += len(parents)
        return np.asarray(values[self._wanted])


def _order(a: Powers) -> int:
    return sum(k for _, k in a)


def _parts(a: Powers) -> Iterator[Powers]:
    """Yield the polynomials that divide one."""
    if not a:
        yield ()
        return
    j, power = a[-1]
    for rest in _parts(a[:-1]):
        yield rest
        for k in range(1, power + 1):
            yield (*rest, (j, k))


def _best(logs: np.ndarray, weights: dict[int, float], count: int) -> list[tuple[float, Powers]]:
    """Return the polynomials with the largest weight of their order times product of variances, by their logarithms."""
    top = max(weight + order * logs[0] for order, weight in weights.items())
    most = sum(math.comb(len(logs) + order - 1, order) for order in weights)
    cut = top
    while True:
        cut -= 1.0
        several = (islice(_above(logs, order, weight, cut), _LOOKED_AT * count) for order, weight in weights.items())
        pairs = [pair for some in several for pair in some]
        if len(pairs) >= min(count, most):
            return sorted(pairs, key=lambda pair: -pair[0])[:count]


def _above(
    logs: np.ndarray, order: int, log: float, cut: float, first: int = 0, a: Powers = ()
) -> Iterator[tuple[float, Powers]]:
    """Yield the polynomials with more factors of coordinates from `first` on that stay above a cut."""
    if order == 0:
        if log >= cut:
            yield log, a
        return
    for j in range(first, len(logs)):
        if log + order * logs[j] < cut:
            return
        for k in range(1, order + 1):
            yield from _above(logs, order - k, log + k * float(logs[j]), cut, j + 1, (*a, (j, k)))


def _weights(tried: list[tuple[float, Powers]], tree: _Tree, C: np.ndarray, m: int, spread: float) -> dict[int, float]:
    """Return the logarithms of the c by which eigenvalues exceed the products of variances, by their order.

    Orders are left out that do not show in the sample.
    """
    number = {a: i for i, a in enumerate(tree.polynomials)}
    logs = {}
    for order, group in groupby(tried, key=lambda pair: _order(pair[1])):
        pairs = list(group)
        seen = float(sum(C[number[a], number[a]] for _, a in pairs))
        if seen > _STANDARD_ERRORS * spread / m * math.sqrt(2.0 * len(pairs)):
            logs[order] = math.log(seen) - math.log(sum(math.exp(log) for log, _ in pairs))
    return logs or {0: 0.0}
