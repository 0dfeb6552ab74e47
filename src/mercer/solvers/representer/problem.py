"""A problem of the representer theorem, and its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.certify import Certificate
from mercer.gram import Gram
from mercer.losses.base import check_elementwise
from mercer.losses.penalties import SquaredNorm
from mercer.solvers.control import check_vector
from mercer.solvers.run import Row


@dataclass
class Representer:
    r"""One problem of the representer theorem.

    .. math:: \min_{f \in H,\, b} \ \sum_i w_i L(y_i, f(x_i) + b) + R(|f|_H)

    Parameters
    ----------
    gram
        The kernel matrix of the training points (square).
    y
        One truth per point, as the loss's `target` says: labels -1 and +1, numbers, counts, or classes 0 ... k - 1.
    loss
        Any object with `value(y, f)` and `derivative(y, f)`; see `mercer.losses.Loss` for what else it may offer.
    penalty
        Any object with `value(t)` and `derivative(t)`, increasing; see `mercer.losses.Penalty`.
    weights
        One number >= 0 per point; None for 1.
    intercept
        Whether there is an offset b, which is not penalised.
    start
        Coefficients of a previous fit, to begin with.
    """

    gram: Gram
    y: np.ndarray
    loss: Any
    penalty: Any = field(default_factory=SquaredNorm)
    weights: np.ndarray | None = None
    intercept: bool = True
    start: Any = None

    def __post_init__(self) -> None:
        n = self.gram.shape[0]
        if not self.gram.symmetric:
            raise ValueError(
                f"the problem needs the square kernel matrix of the training points; this one is {n} x "
                f"{self.gram.shape[1]}."
            )
        for what, name in ((self.loss, "loss"), (self.penalty, "penalty")):
            for method in ("value", "derivative"):
                if not callable(getattr(what, method, None)):
                    raise TypeError(
                        f"the {name} {what!r} has no method {method}; every {name} needs value and derivative."
                    )
        self.y = check_vector("y", self.y, n)
        _check_targets(self.y, getattr(self.loss, "target", "real"), self.loss)
        if not type(self.loss).__module__.startswith("mercer."):  # those are tested
            check_elementwise(self.loss, self.y, np.zeros(n if self.classes is None else (n, self.classes)))
        if self.weights is not None:
            self.weights = check_vector("weights", self.weights, n)
            bad = ~((self.weights >= 0) & np.isfinite(self.weights))
            if bad.any():
                raise ValueError(f"weights must be at least 0 and finite; one is {self.weights[bad][0]:g}.")
            if not self.weights.any():
                raise ValueError("all weights are 0; there is nothing to fit.")
        if self.start is not None:
            start = np.asarray(self.start, dtype=np.float64)
            shape = (n,) if self.classes is None else (n, self.classes)
            if start.shape != shape or not np.isfinite(start).all():
                raise ValueError(f"start must be {shape} finite coefficients; it has shape {start.shape}.")
            self.start = start

    @property
    def classes(self) -> int | None:
        """How many functions there are for a loss of classes; None for one function."""
        if getattr(self.loss, "target", "real") != "class":
            return None
        return int(getattr(self.loss, "classes", 0) or max(2, int(self.y.max()) + 1))

    @property
    def mass(self) -> np.ndarray:
        """The weights, also where they are 1."""
        return np.ones(len(self.y)) if self.weights is None else self.weights


def _check_targets(y: np.ndarray, target: str, loss: Any) -> None:
    if not np.isfinite(y).all():
        raise ValueError(f"y must be finite; it contains {y[~np.isfinite(y)][0]}.")
    good = {
        "label": lambda: np.abs(y) == 1,
        "count": lambda: y >= 0,
        "class": lambda: (y >= 0) & (y == np.floor(y)),
    }.get(target, lambda: np.ones(len(y), bool))()
    if not good.all():
        meant = {
            "label": "the labels -1 and +1",
            "count": "numbers of at least 0",
            "class": "the classes 0, 1, ..., k - 1",
        }[target]
        raise ValueError(f"y must hold {meant} for the loss {loss!r}; it contains {y[~good][0]:g}.")


@dataclass
class Minimiser:
    """What the engine returns.

    Attributes
    ----------
    coefficients
        a of f = sum_i a_i k(x_i, .), (n,), or (n, k) for a loss of k classes.
    offset
        b, a number or one for each class; 0 without an intercept.
    values
        f(x_i) + b.
    certificate
        Primal, dual and gap. For a loss that is not convex the gap is the squared norm of the gradient in H over twice
        the strength, and `stationary` says so.
    history
        A row now and then.
    strength
        The strength of the squared-norm problem that has the same minimiser.
    """

    coefficients: np.ndarray
    offset: float | np.ndarray
    values: np.ndarray
    certificate: Certificate
    history: list[Row]
    strength: float
    systems: Any = field(default=None, repr=False)  # kept alive for the next problem on the same matrix
