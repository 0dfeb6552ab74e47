"""The certificates of linear models recomputed from their definitions, in float64, by code that no solver shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.certify import Certificate

_STRIP = 2**16  # rows converted to float64 at a time
_EXTREME = 1e75  # beyond this, or below its inverse, numbers are measured in a unit whose squares float64 can hold
_EPS = float(np.finfo(float).eps)


def check_linear(
    X: Any,
    *,
    w: np.ndarray,
    b: float,
    sign: np.ndarray,
    target: np.ndarray,
    cost: np.ndarray,
    alpha: np.ndarray,
    squared: bool,
    intercept: bool,
    tol: float,
    few_weights: bool = False,
) -> Certificate:
    """Return the objectives of (w, b) and of alpha for the problem of `LinearProblem`, and the worst KKT residual.

    Parameters
    ----------
    X
        The points, dense or sparse.
    w, b
        The model f(x) = w.x + b.
    sign, target, cost, squared
        As for `LinearProblem`.
    alpha
        The dual variables, of the shape of `sign`.
    intercept
        Whether b is free; then sum(sign alpha) = 0 is asked.
    tol
        The relative gap that was asked for.
    few_weights
        Whether |w|_1 is the penalty; then |sum sign alpha x| <= 1 is asked.

    Examples
    --------
    >>> one = np.array([[-1.0, 1.0]])
    >>> claim = check_linear(np.array([[-1.0], [1.0]]), w=np.ones(1), b=0.0, sign=one, target=np.ones((1, 2)),
    ...     cost=np.ones(2), alpha=np.full((1, 2), 0.5), squared=False, intercept=True, tol=1e-3)
    >>> claim.primal, claim.dual
    (0.5, 0.5)
    """
    n = X.shape[0]
    beta = np.sum(sign * alpha, axis=0)
    strips = [slice(i, min(i + _STRIP, n)) for i in range(0, n, _STRIP)]
    pull, squares, f = np.zeros(len(w)), 0.0, np.empty(n)
    # sum(beta) = 0 up to rounding, which columns far from zero would make large: X' beta = (X - mean)' beta.
    mean = sum(np.asarray(_plain(X[s]).sum(axis=0)).ravel() for s in strips) / n if intercept else np.zeros(len(w))
    for s in strips:
        part = _plain(X[s])
        f[s] = part @ w + b
        pull += (part.T @ beta[s] - mean * beta[s].sum()) if sparse.issparse(part) else (part - mean).T @ beta[s]
        squares += float(part.multiply(part).sum() if sparse.issparse(part) else np.einsum("ij,ij->", part, part))
    size = float(np.abs(w).max(initial=0.0))
    step = np.sign(w + size * pull) * np.maximum(np.abs(w + size * pull) - size, 0.0) - w if few_weights else pull - w
    apart = max((float(np.abs(_plain(X[s]) @ step).max(initial=0.0)) for s in strips), default=0.0)
    z = target - sign * f
    loss = np.where(z > 0, z, 0.0)
    penalty, square = (float(np.abs(w).sum()), 0.0) if few_weights else (0.5 * float(w @ w), 0.5 * float(pull @ pull))
    primal = penalty + float(np.sum(cost * (loss**2 if squared else loss)))
    dual = float(np.sum(target * alpha)) - square
    if squared:
        dual -= float(np.sum(alpha**2 / (4 * cost)))
        slackness = float(np.abs(alpha / (2 * cost) - loss).max(initial=0.0))
    else:
        scale = squares / max(1, n) or 1.0
        slackness = scale * float(np.abs(np.clip(alpha + z / scale, 0.0, cost) - alpha).max(initial=0.0))
    largest = float(np.abs(alpha).max(initial=0.0))
    outside = alpha.min(initial=0.0) < 0 or (not squared and bool((alpha > cost * (1 + 1e-12)).any()))
    outside = outside or (few_weights and float(np.abs(pull).max(initial=0.0)) > 1 + 1e-9)
    unbalanced = intercept and abs(float(beta.sum())) > 1e-9 * max(largest, float(np.abs(beta).sum()))
    if outside or unbalanced:
        raise _infeasible()
    return Certificate(primal, dual, max(slackness, apart), tol, solver="recomputed")


def check_crammer_singer(
    X: Any,
    *,
    w: np.ndarray,
    b: np.ndarray,
    codes: np.ndarray,
    cost: np.ndarray,
    beta: np.ndarray,
    intercept: bool,
    tol: float,
) -> Certificate:
    """Return the objectives of a machine for all classes at once and of its dual variables (see `Classes`).

    Parameters
    ----------
    X
        The points, dense or sparse.
    w, b
        A row and a number for each class.
    codes, cost
        The class and the price of each point.
    beta
        The dual variables, a row for each class.
    intercept
        Whether b is free.
    tol
        The relative gap that was asked for.
    """
    X, at = _plain(X), np.arange(len(codes))
    F = np.asarray(X @ w.T) + b
    wanted = np.ones_like(F)
    wanted[at, codes] = 0.0
    signed = cost[:, None] * (1.0 - wanted) - beta.T
    mean = np.asarray(X.mean(axis=0)).ravel() if intercept else np.zeros(X.shape[1])
    pull = np.asarray(X.T @ signed) - np.multiply.outer(mean, signed.sum(axis=0))
    loss = (F + wanted).max(axis=1) - F[at, codes]
    primal = 0.5 * float((w * w).sum()) + float(cost @ loss)
    dual = float((beta.T * wanted).sum()) - 0.5 * float((pull * pull).sum())
    size = 1e-9 * float(cost.sum())
    unbalanced = intercept and float(np.abs(signed.sum(axis=0)).max()) > size
    if beta.min() < 0 or unbalanced or float(np.abs(beta.sum(axis=0) - cost).max()) > 1e-9 * float(cost.max()):
        raise _infeasible()
    slack = (F + wanted).max(axis=1, keepdims=True) - F - wanted
    slackness = float(((beta.T * slack).sum(axis=1) / cost).max())
    apart = float(np.abs(np.asarray(X @ (pull - w.T))).max(initial=0.0))
    return Certificate(primal, dual, max(slackness, apart), tol, solver="recomputed")


def check_ridge(
    X: Any,
    Y: np.ndarray,
    *,
    w: np.ndarray,
    b: np.ndarray,
    alpha: np.ndarray,
    weights: np.ndarray | None,
    intercept: bool,
    positive: bool,
    tol: float,
    **about: Any,
) -> list[Certificate]:
    r"""Return the certificate of each target of a ridge regression.

    .. math:: \min_{w, b} \sum_i s_i (y_i - w \cdot x_i - b)^2 + \alpha |w|^2 \; = \;
              \max_{u : \sum u_i = 0} \sum_i (2 u_i y_i - u_i^2 / s_i) - |\textstyle\sum_i u_i x_i|^2 / \alpha

    The dual point is that of the residuals, u = s (y - w.x - b), moved to meet its constraint. The gap
    is then |alpha w - sum u x|² / alpha (with w >= 0, what of it is no slack). Where alpha is so small that this is
    rounding divided by nothing, it is the change of the objective over a distance |w|.

    Parameters
    ----------
    X
        The points, dense or sparse.
    Y
        The targets in columns.
    w, b, alpha
        One column, one number and one number for each target.
    weights
        s; None where all are 1.
    intercept
        Whether b is free.
    positive
        Whether w >= 0 was asked.
    tol
        The relative gap that was asked for.
    **about
        The other fields of the certificates.

    Notes
    -----
    Features or targets beyond 1e75 are measured in a unit of their own, and so are the objectives.

    Examples
    --------
    >>> claim = check_ridge(np.eye(2), np.array([[2.0], [4.0]]), w=np.array([[1.0], [2.0]]), b=np.zeros(1),
    ...     alpha=np.ones(1), weights=None, intercept=False, positive=False, tol=1e-3)[0]
    >>> claim.primal, claim.dual
    (10.0, 10.0)
    """
    X, wide, tall = _plain(X), _unit(X), _unit(Y)
    if wide != 1.0:
        X, w = X / wide, w * wide
    Y, w, b = Y / tall, w / tall, b / tall
    s = np.ones((len(Y), 1)) if weights is None else weights[:, None]
    centre = np.zeros(X.shape[1]) if not intercept else np.asarray(X.T @ s).ravel() / s.sum()
    middle = (s * Y).sum(axis=0) / s.sum() if intercept else np.zeros(Y.shape[1])
    R = Y - np.asarray(X @ w) - b
    U = s * R
    if intercept:
        U = U - s * (U.sum(axis=0) / s.sum())
    if sparse.issparse(X):
        pull = np.asarray(X.T @ U) - np.multiply.outer(centre, U.sum(axis=0))
        square = np.asarray(X.multiply(X).T @ s).ravel() - s.sum() * centre**2
    else:
        X = X - centre if intercept else X  # no digits are lost where columns are far from zero
        square = np.einsum("ij,ij,ik->j", X, X, s)
        free = alpha == 0
        if free.any() and not positive:  # then sum u x = 0 is asked
            root = np.sqrt(s)
            U[:, free] -= s * (X @ np.linalg.lstsq(root * X, U[:, free] / root, rcond=None)[0])
        pull = X.T @ U
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        alpha = alpha / wide / wide
        apart = np.where(np.isinf(alpha), 0.0, alpha * w) - pull
        if positive:
            apart = np.where((w <= 0) & (apart > 0), 0.0, apart)
        each = np.where(apart == 0, 0.0, apart * apart / alpha)
        if positive:  # where u pulls below 0, the dual's w is 0
            each = np.where((w > 0) & (pull < 0), alpha * w * w - 2 * w * pull, each)
        primal = (s * R * R).sum(axis=0) + np.where(w.any(axis=0), alpha, 0.0) * (w * w).sum(axis=0)
        gap = each.sum(axis=0)
    unit = (s * (Y - middle) ** 2).sum(axis=0)  # the objective of w = 0
    square = np.maximum(square, 0.0)
    noise = max(16, *X.shape) * _EPS * np.sqrt(square.sum() * unit) + 1e-300  # as a numerical rank counts it
    near = np.abs(apart).max(axis=0, initial=0.0) <= noise
    gap = np.where(near, np.minimum(gap, 2 * np.linalg.norm(apart, axis=0) * np.linalg.norm(w, axis=0)), gap)
    gap = gap + ((U / s - R) ** 2 * s).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        step = np.nan_to_num(apart / (square[:, None] + alpha))
    f = np.asarray(X @ step) - (centre @ step if sparse.issparse(X) else 0.0)
    return [
        Certificate(
            float(primal[j]),
            float(primal[j] - gap[j]),
            tall * float(np.abs(f[:, j]).max(initial=0.0)),
            tol,
            rounding=16 * _EPS * float(unit[j]),
            **about,
        )
        for j in range(Y.shape[1])
    ]


def _infeasible() -> ValueError:
    return ValueError(
        "the dual variables are not feasible for these data, so that their value bounds nothing; verify with the X, y "
        "and sample_weight of the fit."
    )


def _unit(values: Any) -> float:
    """Return 1, or the largest of the values where its square would leave float64."""
    largest = float(abs(values).max()) if min(values.shape) else 0.0
    return largest if largest > _EXTREME or 0 < largest < 1 / _EXTREME else 1.0


def _plain(part: Any) -> Any:
    return part.astype(np.float64) if sparse.issparse(part) else np.asarray(part, dtype=np.float64)
