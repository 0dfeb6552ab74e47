"""Rosenblatt's perceptron (M1), and what it and Pegasos change step by step: a vector w, or coefficients."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gram import Gram


class Iterate(ABC):
    """f(x) = sum_i c_i <phi(x_i), phi(x)>, where phi may have one more feature that is constantly 1.

    Online learners visit one point after another, but their arithmetic is done for a panel of points at once: the
    values of f at all of them, and their inner products, from which the values after each update follow.

    Parameters
    ----------
    size
        The number of training points.
    constant
        Whether phi has the constant feature; its weight is the offset.
    """

    panel: int  # points whose inner products are computed at once

    def __init__(self, size: int, constant: bool) -> None:
        self.size, self.constant = size, constant
        self.offset = 0.0

    @abstractmethod
    def values(self, rows: np.ndarray) -> np.ndarray:
        """Return f at some training points."""

    @abstractmethod
    def inner(self, rows: np.ndarray) -> np.ndarray:
        """Return the inner products of some training points with one another."""

    @abstractmethod
    def add(self, rows: np.ndarray, c: np.ndarray) -> None:
        """Add c_i phi(x_i) for some training points, all different."""

    @abstractmethod
    def multiply(self, factor: float) -> None:
        """Multiply f by a number."""

    @abstractmethod
    def everywhere(self, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i <phi(x_i), phi(x)> at every training point, whatever the iterate is."""


class Vector(Iterate):
    """The iterate as w, for points that are rows of a dense or sparse matrix (and phi the identity).

    Examples
    --------
    >>> import numpy as np
    >>> w = Vector(np.array([[1.0, 0.0], [0.0, 2.0]]), constant=True)
    >>> w.add(np.array([1]), np.array([0.5]))
    >>> w.w, w.offset, w.values(np.array([0, 1]))
    (array([0., 1.]), 0.5, array([0.5, 2.5]))
    """

    panel = 256

    def __init__(self, X: Any, constant: bool) -> None:
        super().__init__(X.shape[0], constant)
        self.X = X.tocsr() if sparse.issparse(X) else X
        self.w = np.zeros(X.shape[1])

    def values(self, rows: np.ndarray) -> np.ndarray:
        return self.X[rows] @ self.w + self.offset

    def inner(self, rows: np.ndarray) -> np.ndarray:
        part = self.X[rows]
        products = part @ part.T
        dense = products.toarray() if sparse.issparse(products) else products
        return np.asarray(dense, dtype=np.float64) + self.constant

    def add(self, rows: np.ndarray, c: np.ndarray) -> None:
        self.w += self.X[rows].T @ c
        self.offset += self.constant * float(c.sum())

    def multiply(self, factor: float) -> None:
        self.w *= factor
        self.offset *= factor

    def combine(self, c: np.ndarray) -> np.ndarray:
        """Return sum_i c_i x_i."""
        return np.asarray(self.X.T @ c, dtype=np.float64)

    def everywhere(self, c: np.ndarray) -> np.ndarray:
        return np.asarray(self.X @ self.combine(c), dtype=np.float64) + self.constant * float(c.sum())


class Coefficients(Iterate):
    """The iterate as the coefficients of kernel functions.

    Parameters
    ----------
    gram
        The kernel matrix of the training points (square).
    constant
        Whether 1 is added to the kernel.

    Examples
    --------
    >>> from mercer import Gram, Linear
    >>> a = Coefficients(Gram(Linear(), [[1.0], [2.0]]), constant=False)
    >>> a.add(np.array([1]), np.array([0.5]))
    >>> a.values(np.array([0, 1]))
    array([1., 2.])
    """

    panel = 512

    def __init__(self, gram: Gram, constant: bool) -> None:
        super().__init__(gram.shape[0], constant)
        self.gram = gram
        self.c = np.zeros(self.size)

    def values(self, rows: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(self.c)
        return self._product(rows, used, self.c[used]) + self.offset

    def _product(self, rows: np.ndarray | None, columns: np.ndarray, c: np.ndarray) -> np.ndarray:
        if not len(columns):
            return np.zeros(self.size if rows is None else len(rows))
        product = self.gram.take(slice(None) if rows is None else rows, columns).matvec(c)
        return np.asarray(product, dtype=np.float64)

    def inner(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.gram.block(rows, rows), dtype=np.float64) + self.constant

    def add(self, rows: np.ndarray, c: np.ndarray) -> None:
        self.c[rows] += c
        self.offset += self.constant * float(c.sum())

    def multiply(self, factor: float) -> None:
        self.c *= factor
        self.offset *= factor

    def everywhere(self, c: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(c)
        return self._product(None, used, c[used]) + self.constant * float(c.sum())


@dataclass
class Mistakes:
    """What a perceptron did.

    Attributes
    ----------
    counts
        How often each training point was a mistake: the dual variables.
    per_epoch
        Mistakes in each pass over the data.
    order
        The points that were mistakes, one after another.
    converged
        Whether the last pass made none.
    history
        (corrections so far, points corrected so far, seconds) after each pass.
    """

    counts: np.ndarray
    per_epoch: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    converged: bool = False
    history: list[tuple[int, int, float]] = field(default_factory=list)


def perceptron(
    iterate: Iterate,
    y: np.ndarray,
    max_epochs: int = 100,
    random: np.random.Generator | None = None,
    steps: np.ndarray | float = 1.0,
) -> Mistakes:
    r"""Visit the points in turn; on a mistake, where y f(x) <= 0, add y phi(x) to the iterate, times a step.

    Novikoff (1962): if some unit vector separates the points with margin gamma, and all are within R of the origin,
    there are at most (R / gamma)² mistakes with equal steps, in whatever order the points come.

    Parameters
    ----------
    iterate
        Where to start; changed in place.
    y
        Labels, -1 or +1.
    max_epochs
        Passes over the data at most; points that cannot be separated never come to rest.
    random
        Shuffles the points before each pass; None visits them as they come.
    steps
        The step of each point, > 0; one number for all.

    Examples
    --------
    >>> X, y = np.array([[2.0], [1.0], [-1.0]]), np.array([1.0, 1.0, -1.0])
    >>> errors = perceptron(Vector(X, constant=False), y)
    >>> errors.order, errors.per_epoch, errors.converged
    ([0], [1, 0], True)
    """
    errors, started = Mistakes(np.zeros(len(y))), time.perf_counter()
    steps = np.broadcast_to(steps, len(y))
    for _ in range(max_epochs):
        order = np.arange(len(y)) if random is None else random.permutation(len(y))
        before = len(errors.order)
        for start in range(0, len(y), iterate.panel):
            _visit(iterate, y, order[start : start + iterate.panel], steps, errors)
        errors.per_epoch.append(len(errors.order) - before)
        errors.history.append((len(errors.order), int(np.count_nonzero(errors.counts)), time.perf_counter() - started))
        if errors.per_epoch[-1] == 0:
            errors.converged = True
            break
    return errors


def _visit(iterate: Iterate, y: np.ndarray, rows: np.ndarray, steps: np.ndarray, errors: Mistakes) -> None:
    """Visit a panel of points: only its mistakes cost a step of Python."""
    labels = y[rows]
    margins = labels * iterate.values(rows)
    wrong = np.flatnonzero(margins <= 0)
    if not len(wrong):
        return
    signed = (steps[rows] * labels)[:, None] * iterate.inner(rows) * labels
    chosen = []
    at = int(wrong[0])
    while True:
        chosen.append(at)
        margins += signed[at]
        later = np.flatnonzero(margins[at + 1 :] <= 0)
        if not len(later):
            break
        at += 1 + int(later[0])
    mistakes = rows[chosen]
    iterate.add(mistakes, steps[mistakes] * labels[chosen])
    errors.counts[mistakes] += 1
    errors.order += mistakes.tolist()
