"""Straight cuts for pictures: the best line before a lift, a separating plane after it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@dataclass(frozen=True)
class Cut:
    """The affine function <w, x> + b, positive on the side of the second class.

    Parameters
    ----------
    w, b
        Normal vector and offset.
    accuracy
        The share of the points it was made from that lie on the side of their class.
    """

    w: np.ndarray
    b: float
    accuracy: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the function's values."""
        return X @ self.w + self.b

    @property
    def percent(self) -> str:
        """The accuracy rounded down, so that 100% means all of the points."""
        return f"{math.floor(100 * self.accuracy + 1e-9)}%"


def separate(X: np.ndarray, y: np.ndarray) -> Cut:
    """Return a nearly maximal-margin cut between two classes 0 and 1, by lightly regularised logistic regression.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.plots.separate import separate
    >>> cut = separate(np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([0, 1]))
    >>> cut.accuracy
    1.0
    >>> (cut(np.array([[5.0, 1.0]])) / cut.w[1]).round(3) + 0.0
    array([0.])
    """
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=10_000)).fit(X, y)
    scaler, fitted = model[0], model[1]
    w = fitted.coef_[0] / scaler.scale_
    b = float(fitted.intercept_[0] - w @ scaler.mean_)
    return Cut(w, b, float(np.mean((X @ w + b > 0) == (y == 1))))


def best_cut(X: np.ndarray, y: np.ndarray, directions: int = 720) -> Cut:
    """Return the straight cut with the fewest mistakes, by trying every threshold along many directions.

    Unlike a fitted classifier this shows what *no* line can do: on data that are far from separable, convex losses
    can prefer lines that are worse than the best one.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.plots.separate import best_cut
    >>> best_cut(np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 1, 1, 0])).accuracy
    0.75
    """
    n, width = X.shape
    if width == 1:
        normals = np.array([[1.0], [-1.0]])
    else:
        angles = 2 * np.pi * np.arange(directions) / directions
        normals = np.column_stack([np.cos(angles), np.sin(angles)])
    best, w, b = -1, normals[0], 0.0
    for normal in normals:
        t = X @ normal
        order = np.argsort(t)
        t, ahead = t[order], y[order] == 1
        # Right when the first m are called 0 and the others 1, for m = 0 to n.
        right = np.concatenate([[0], np.cumsum(~ahead)]) + ahead.sum() - np.concatenate([[0], np.cumsum(ahead)])
        ends = np.concatenate([[t[0] - 1.0], t, [t[-1] + 1.0]])
        right[1:-1][np.diff(t) == 0] = -1  # no threshold fits between equal values
        m = int(np.argmax(right))
        if right[m] > best:
            best, w, b = int(right[m]), normal, -0.5 * float(ends[m] + ends[m + 1])
    return Cut(w, b, best / n)
