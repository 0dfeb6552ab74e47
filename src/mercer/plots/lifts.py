"""The classic lifts (F4): data that no line separates, and the map after which one does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_circles

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
