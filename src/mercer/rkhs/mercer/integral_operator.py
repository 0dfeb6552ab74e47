"""The spectrum of f -> integral of k(x, z) f(z) dm(z), from nodes and weights that stand for the measure m."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, eigvalsh

from mercer.certify import seen_indefinite
from mercer.gram import Gram, top_eigenpairs
from mercer.gram.eigenpairs import signed
from mercer.gram.gram import in_double
from mercer.gram.similarities import symmetric_part
from mercer.kernels import Kernel
from mercer.machine.budget import Budget
from mercer.points import Points
from mercer.rkhs.mercer.measures import Measure, Nodes, Rule

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 4 * _EPS  # of the largest eigenvalue, what LAPACK may add to an error
_NOISE = 32 * _EPS  # of the largest eigenvalue: those below are not told from 0
_SETTLED = 1e-10  # relative change of eigenvalues at which a rule has enough nodes
_EXACT, _COARSE = 1e-13, 0.25  # what a rule may lack without harm, and what is too much to be put right
_SMOOTH_NODES = 512  # nodes with which the eigenvalues of a smooth kernel have converged
_WHOLE_NODES = 640  # nodes up to which the whole spectrum is computed
_TRACE_AT_ENDS = 1e-3  # of the trace: the most that may be at the ends of a law
_DENSE_POINTS = 2500  # points of a sample up to which all digits of its matrix are used
_TOL = 1e-10  # of the largest eigenvalue: residuals of larger samples


class Spectrum(NamedTuple):
    """Eigenvalues, largest first, how far off they may be, vectors, and the coefficients of their functions.

    The vectors are the functions at the nodes times the roots of the weights: orthonormal for small eigenvalues, too.
    """

    rule: Rule
    values: np.ndarray
    errors: np.ndarray
    vectors: np.ndarray
    coefficients: np.ndarray
    how: str


def spectrum(kernel: Kernel, measure: Measure, rank: int, nodes: int | None, budget: Budget, seed: int) -> Spectrum:
    """Return the leading part of the spectrum of a kernel under a measure."""
    if measure.fixed:
        return _of_points(kernel, measure, rank, budget, seed)
    if not kernel.resolved:
        raise ValueError(
            f"{kernel!r} takes a parameter from data, and a law or a box has none; give the parameter a number, or "
            "pass a sample as the measure."
        )
    before = np.zeros(0)
    for rule in measure.rules(rank, nodes):
        n = len(rule.weights)
        beyond = _beyond(kernel, rule, measure.outermost(rule))
        split = measure.split(n // 4) if n > _SMOOTH_NODES else None
        gap = None if split is None else _missing(kernel, rule, split)
        values, errors, U, A = _dense(kernel, rule, rank, budget, gap)
        both = min(len(values), len(before))
        change = values.copy()  # nothing is known of those that are new
        change[:both] = np.abs(values[:both] - before[:both])
        before = values
        if (change <= _SETTLED * values + _NOISE * values[0]).all():
            break
    how = rule.name + ("" if gap is None else ", corrected on the diagonal")
    return Spectrum(rule, values, errors if measure.exact else errors + change + beyond, U, A, how)


def _beyond(kernel: Kernel, rule: Rule, outermost: np.ndarray) -> float:
    """Return what the farthest nodes of a law hold of the trace, since as much may lie beyond them, if it is little."""
    if not len(outermost):
        return 0.0
    parts = rule.weights * np.abs(np.asarray(kernel.diag(rule.points), dtype=np.float64))
    if parts[outermost].sum() > _TRACE_AT_ENDS * parts.sum():
        raise ValueError(
            f"the integral of k(x, x) under the law is not finite, or lies too far out to be found: {kernel!r} grows "
            "too fast for the tails of the law. Take a law with lighter tails, a bounded kernel, or a sample."
        )
    return float(parts[outermost].sum())


def _of_points(kernel: Kernel, measure: Measure, rank: int, budget: Budget, seed: int) -> Spectrum:
    (rule,) = measure.rules(rank, None)
    points = in_double(Points.of(rule.points))
    rule = rule._replace(points=points.data)
    kernel = kernel.resolve(points)
    n = len(points)
    if n <= _DENSE_POINTS and 32 * n * n <= budget:
        return Spectrum(rule, *_dense(kernel, rule, rank, budget), rule.name)
    gram = Gram(kernel, points, budget=budget)
    if said := seen_indefinite(gram):
        raise _not_mercers(kernel, said)
    pairs = top_eigenpairs(gram, min(rank, n), weights=rule.weights, tol=_TOL, seed=seed)
    kept = _above(pairs.values, pairs.rounding)
    values, U = pairs.values[kept], pairs.vectors[:, kept]
    A = np.sqrt(rule.weights)[:, None] * U / values
    return Spectrum(rule, values, pairs.residuals[kept] + _ROUNDING * values[0], U, A, f"{rule.name}; {pairs.how}")


def _dense(
    kernel: Kernel, rule: Rule, rank: int, budget: Budget, gap: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return eigenvalues, what rounding makes of them, vectors, and coefficients of the functions, by LAPACK."""
    n = len(rule.weights)
    budget.require(32 * n * n, f"the matrix of {n} nodes", "raise the budget, or pass a smaller number as nodes.")
    gap = np.zeros(n) if gap is None else gap
    root = np.sqrt(rule.weights)
    B = root[:, None] * np.asarray(kernel(rule.points), dtype=np.float64) * root
    B = symmetric_part(B)
    if not kernel.proof().proven:
        ends = eigvalsh(B)[[0, -1]]
        if ends[0] < -max(n, 100) * _EPS * np.abs(ends).max():
            seen = f"its operator has the eigenvalue {ends[0]:.3g} beside {ends[1]:.3g}"
            raise _not_mercers(kernel, f"the kernel is not positive semidefinite on this measure ({seen})")
    B[np.diag_indices(n)] += gap
    # All of the spectrum of a graded matrix, such as Gauss weights make, comes with small errors in small eigenvalues.
    some = (max(0, n - rank), n - 1) if n > _WHOLE_NODES else None
    values, U = eigh(B, subset_by_index=some, driver="evr")
    values, U = values[::-1][:rank], U[:, ::-1][:, :rank]
    kept = _above(values, 0.0)
    values, U = values[kept], signed(U[:, kept])
    residuals = np.linalg.norm((B @ U - U * values) / values[0], axis=0) * values[0]  # squares stay in range
    inside = values - gap[:, None]
    A = root[:, None] * U / np.where(np.abs(gap[:, None]) < 0.5 * values, inside, values)
    return values, residuals + _ROUNDING * values[0], U, A


def _above(values: np.ndarray, rounding: float) -> np.ndarray:
    kept = values > max(_NOISE * values[0], rounding)
    if not kept.any():
        raise ValueError(
            "no eigenvalue is above 0: the kernel is 0 on all of the measure, or negative definite, and has no "
            "expansion there."
        )
    return np.flatnonzero(kept)


def _not_mercers(kernel: Kernel, said: str) -> ValueError:
    """Return the error for a kernel that Mercer's theorem does not speak of."""
    return ValueError(
        f"{said.replace('the kernel', repr(kernel), 1)}, and Mercer's theorem needs one that is: what such a series "
        "leaves out is not bounded by the next eigenvalues. mercer.verdict shows a witness; take another kernel, or "
        "repair its matrix (mercer.repair)."
    )


def _missing(kernel: Kernel, rule: Rule, split: Callable[[float], Nodes]) -> np.ndarray | None:
    """Return what a rule lacks of the integrals of k(z, .) at its nodes z, which have their kinks there.

    Adding it to the diagonal takes phi(x) out of the integral of k(x, z) phi(z): the kink is left with a factor
    phi(z) - phi(x) that vanishes there (singularity subtraction; Anselone 1981).
    """
    x = rule.points
    exact = np.empty(len(x))
    for i, at in enumerate(x[:, 0]):
        z, w = split(float(at))
        exact[i] = np.asarray(kernel(x[i : i + 1], z[:, None]))[0] @ w
    w, diag = rule.weights, np.abs(np.asarray(kernel.diag(x), dtype=np.float64))
    gap = exact - np.asarray(Gram(kernel, x).matvec(w))
    if np.abs(gap).max() <= _EXACT * np.abs(exact).max() or w @ np.abs(gap) > _COARSE * (w * w) @ diag:
        return None  # nothing is missing; or the kernel is narrower than the nodes are apart
    return np.where(np.abs(gap) <= 0.5 * w * diag, gap, 0.0)
