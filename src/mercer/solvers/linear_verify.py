"""The certificate of a linear model recomputed from its definition, in float64, by code that no solver shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mercer.certify import Certificate

_STRIP = 2**16  # rows converted to float64 at a time


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
    apart = max((float(np.abs(_plain(X[s]) @ (pull - w)).max(initial=0.0)) for s in strips), default=0.0)
    z = target - sign * f
    loss = np.where(z > 0, z, 0.0)
    primal = 0.5 * float(w @ w) + float(np.sum(cost * (loss**2 if squared else loss)))
    dual = float(np.sum(target * alpha)) - 0.5 * float(pull @ pull)
    if squared:
        dual -= float(np.sum(alpha**2 / (4 * cost)))
        slackness = float(np.abs(alpha / (2 * cost) - loss).max(initial=0.0))
    else:
        scale = squares / max(1, n) or 1.0
        slackness = scale * float(np.abs(np.clip(alpha + z / scale, 0.0, cost) - alpha).max(initial=0.0))
    largest = float(np.abs(alpha).max(initial=0.0))
    outside = alpha.min(initial=0.0) < 0 or (not squared and bool((alpha > cost * (1 + 1e-12)).any()))
    unbalanced = intercept and abs(float(beta.sum())) > 1e-9 * max(largest, float(np.abs(beta).sum()))
    if outside or unbalanced:
        raise ValueError(
            "the dual variables are not feasible for these data, so that their value bounds nothing; verify with the "
            "X, y and sample_weight of the fit."
        )
    return Certificate(primal, dual, max(slackness, apart), tol, solver="recomputed")


def _plain(part: Any) -> Any:
    return part.astype(np.float64) if sparse.issparse(part) else np.asarray(part, dtype=np.float64)
