"""The classic lifts (F4): data that no line separates, the map after which one does, and straight cuts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Map = Callable[[np.ndarray], np.ndarray]
Sample = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Lift:
    """A feature map worth drawing, with two classes of points that need it.

    Calling it maps points, so that `FromFeatures(lift)` is its kernel.

    Parameters
    ----------
    title
        What the data are, in a few words.
    phi
        The map, from an (n, p) array with p = 1 or 2 to an (n, q) array with q = 2 or 3.
    inputs, outputs
        The labels of the coordinates before and after; matplotlib reads what stands between dollar signs as
        mathematics.
    draw
        A function of a random generator that returns the points and their classes, 0 and 1. None for a map that
        is used with given data only.

    Examples
    --------
    >>> from mercer import FromFeatures
    >>> from mercer.plots import LIFTS
    >>> LIFTS["xor"]([[-1.0, -1.0], [-1.0, 1.0]])
    array([[-1., -1.,  1.],
           [-1.,  1., -1.]])
    >>> FromFeatures(LIFTS["xor"])([[-1.0, -1.0], [-1.0, 1.0]])
    array([[ 3., -1.],
           [-1.,  3.]])
    """

    title: str
    phi: Map
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    draw: Callable[[np.random.Generator], Sample] | None = None

    def __call__(self, X: object) -> np.ndarray:
        """Return the points after the map."""
        return np.asarray(self.phi(np.asarray(X, dtype=float)))

    def sample(self, seed: int = 0) -> Sample:
        """Return points and classes of the example; the same seed gives the same points."""
        if self.draw is None:
            raise ValueError(f"the lift {self.title!r} has no data of its own; give X and y.")
        return self.draw(np.random.default_rng(seed))


# -- data -------------------------------------------------------------------------------------------------


def _clouds(rng: np.random.Generator, centres: list[list[float]], each: int, radius: float) -> np.ndarray:
    """Return points about each centre, bell-shaped but never further than `radius` in a coordinate."""
    around = rng.uniform(-radius, radius, (len(centres) * each, 2, 3)).mean(axis=2)
    return np.repeat(np.asarray(centres, dtype=float), each, axis=0) + around


def _rings(rng: np.random.Generator) -> Sample:
    X, y = make_circles(220, factor=0.45, noise=0.06, random_state=int(rng.integers(2**31)))
    return X, 1 - y


def _xor(rng: np.random.Generator) -> Sample:
    X = _clouds(rng, [[1, 1], [-1, -1], [1, -1], [-1, 1]], each=50, radius=0.85)
    return X, np.repeat([0, 1], 100)


def _line(rng: np.random.Generator) -> Sample:
    size = np.concatenate([rng.uniform(0.0, 0.85, 24), rng.uniform(1.25, 2.2, 28)])
    x = size * rng.choice([-1.0, 1.0], size.size)
    return x[:, None], np.repeat([1, 0], [24, 28])


def _stripes(rng: np.random.Generator) -> Sample:
    # The fourth power is compared with a slanted line, so that both coordinates of the lift are needed.
    X = rng.uniform(-1.25, 1.25, (4000, 2))
    total = X.sum(axis=1)
    excess = total**4 - (1.3 + 0.8 * X[:, 0])
    inside = np.flatnonzero((excess < -0.25) & (np.abs(total) < 1.65))[:100]
    outside = np.flatnonzero((excess > 0.25) & (np.abs(total) < 1.65))[:100]
    return X[np.concatenate([inside, outside])], np.repeat([1, 0], 100)


def _corners(rng: np.random.Generator) -> Sample:
    X = _clouds(rng, [[0, 0], [0, 1], [1, 0], [1, 1], *[[0.5, 0.5]] * 4], each=25, radius=0.28)
    return X, np.repeat([0, 1], 100)


# -- the catalogue ----------------------------------------------------------------------------------------

_PLANE = ("$x_1$", "$x_2$")

#: The lifts by name.
LIFTS: dict[str, Lift] = {
    "rings": Lift(
        "Concentric rings",
        lambda X: np.column_stack([X, (X**2).sum(axis=1)]),
        _PLANE,
        ("$x_1$", "$x_2$", "$x_1^2 + x_2^2$"),
        _rings,
    ),
    "xor": Lift(
        "Exclusive or",
        lambda X: np.column_stack([X, X[:, 0] * X[:, 1]]),
        _PLANE,
        ("$x_1$", "$x_2$", "$x_1 x_2$"),
        _xor,
    ),
    "line": Lift(
        "Points on a line",
        lambda X: np.column_stack([X, X**2]),
        ("$x$",),
        ("$x$", "$x^2$"),
        _line,
    ),
    "stripes": Lift(
        "Three stripes",
        lambda X: np.column_stack([X[:, 0], (X[:, 0] + X[:, 1]) ** 4]),
        _PLANE,
        ("$x_1$", "$(x_1 + x_2)^4$"),
        _stripes,
    ),
    "corners": Lift(
        "Corners and centre",
        lambda X: X**2 - X,
        _PLANE,
        ("$x_1^2 - x_1$", "$x_2^2 - x_2$"),
        _corners,
    ),
}


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
    """Return a nearly maximal-margin cut between two classes 0 and 1, by lightly regularised logistic regression."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=10_000)).fit(X, y)
    scaler, fitted = model[0], model[1]
    w = fitted.coef_[0] / scaler.scale_
    b = float(fitted.intercept_[0] - w @ scaler.mean_)
    return Cut(w, b, float(np.mean((X @ w + b > 0) == (y == 1))))


def best_cut(X: np.ndarray, y: np.ndarray, directions: int = 720) -> Cut:
    """Return the straight cut with the fewest mistakes, by trying every threshold along many directions.

    Unlike a fitted classifier this shows what *no* line can do: on data that are far from separable, convex losses
    can prefer lines that are worse than the best one.
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
