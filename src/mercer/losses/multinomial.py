"""The loss of logistic regression with many classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax, wrightomega, xlogy

from mercer.losses.base import Loss
from mercer.losses.numeric import increasing_root

_ON_SIMPLEX = 1e-12  # how far rounding may take a point off the simplex, for each class


@dataclass(frozen=True)
class Multinomial(Loss):
    r"""Minus the log-likelihood of a class, where f holds the log-odds of all k.

    .. math:: L(y, f) = \log \sum_{j=0}^{k-1} e^{f_j} - f_y, \qquad y \in \{0, \dots, k-1\}

    f has k columns, y has one class for each row. With p = softmax(f), and e_y the unit vector of y:

    - derivative: p - e_y, of k columns
    - curvature: diag(p) - p p', of k by k
    - conjugate: L*(y, u) = sum_j q_j log q_j at q = u + e_y >= 0 with sum 1, else infinite; to 1e-12
    - prox: g_j = a_j - W(step exp(a_j - c)) with a = f + step e_y, W of Lambert and c = log sum exp(g), which is the
      root of sum_j W(step exp(a_j - c)) = step: a search in one dimension, for any k
    - inverse link: p, the probabilities

    Examples
    --------
    >>> f = [[0.0, 0.0], [1000.0, 0.0], [0.0, 1000.0]]
    >>> Multinomial().value([0, 0, 0], f).round(4)
    array([6.931e-01, 0.000e+00, 1.000e+03])
    >>> Multinomial().inverse_link(f)
    array([[0.5, 0.5],
           [1. , 0. ],
           [0. , 1. ]])
    """

    target = "class"
    smooth = True

    def value(self, y: Any, f: Any) -> np.ndarray:
        f, mark = _mark(y, f)
        ahead = f - np.sum(f, axis=-1, keepdims=True, where=mark)
        top = np.argmax(ahead, axis=-1)[..., None]
        most = np.take_along_axis(ahead, top, axis=-1)
        others = np.exp(ahead - most)
        np.put_along_axis(others, top, 0.0, axis=-1)  # so that log1p keeps what a certain prediction still costs
        return most[..., 0] + np.log1p(others.sum(axis=-1))

    def derivative(self, y: Any, f: Any) -> np.ndarray:
        f, mark = _mark(y, f)
        others = np.where(mark, 0.0, softmax(f, axis=-1))
        return np.where(mark, -others.sum(axis=-1, keepdims=True), others)

    def curvature(self, y: Any, f: Any) -> np.ndarray:
        p = softmax(_mark(y, f)[0], axis=-1)
        matrix = -p[..., :, None] * p[..., None, :]
        diagonal = np.einsum("...jj->...j", matrix)
        diagonal[...] = 0.0
        diagonal[...] = -matrix.sum(axis=-1)
        return matrix

    def conjugate(self, y: Any, u: Any) -> np.ndarray:
        u, mark = _mark(y, u)
        q = u + mark
        inside = (q.min(axis=-1) >= -_ON_SIMPLEX) & (np.abs(u.sum(axis=-1)) <= _ON_SIMPLEX * u.shape[-1])
        q = np.clip(q, 0.0, 1.0)
        return np.where(inside, xlogy(q, q).sum(axis=-1), np.inf)

    @np.errstate(divide="ignore")
    def prox(self, y: Any, f: Any, step: Any) -> np.ndarray:
        f, mark = _mark(y, f)
        step = np.broadcast_to(np.asarray(step, dtype=float), f.shape[:-1])
        a = f + step[..., None] * mark
        log_step = np.log(step)
        z = a + log_step[..., None]
        k, most = f.shape[-1], a.max(axis=-1)

        def falls(c: np.ndarray) -> np.ndarray:
            return wrightomega(z - c[..., None])

        def excess(minus_c: np.ndarray) -> np.ndarray:
            return (1.0 + step) * (np.log(falls(-minus_c).sum(axis=-1)) - log_step)

        # The largest term of the sum is between its k-th part and all of it.
        low, high = most - step, most - step / k + np.log(k)
        c = -increasing_root(excess, -high, -low, np.abs(most))
        fall = falls(c)
        return np.where(fall > 1.0, np.log(fall) - log_step[..., None] + c[..., None], a - fall)

    def inverse_link(self, f: Any) -> np.ndarray:
        return softmax(np.asarray(f, dtype=float), axis=-1)


def _mark(y: Any, f: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return f as an array of one shape with y, and where its column is that of the class."""
    y, f = np.asarray(y), np.asarray(f, dtype=float)
    k = f.shape[-1] if f.ndim else 0
    good = (y >= 0) & (y < k) & (y == np.floor(y))
    if not np.all(good):
        raise ValueError(
            f"y of Multinomial must be classes 0 ... {k - 1}, one for each column of f; one is {y[~good].flat[0]!r}."
        )
    mark = y[..., None] == np.arange(k)
    f, mark = np.broadcast_arrays(f, mark)
    return f, mark
