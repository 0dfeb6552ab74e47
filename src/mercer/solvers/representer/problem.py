"""The problem of the representer theorem, and what its solvers share: a squared norm, to which penalties come down."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mercer.certify import Stop, relative_gap
from mercer.gram import Gram
from mercer.losses.base import check_elementwise
from mercer.losses.numeric import curvature
from mercer.losses.penalties import SquaredNorm
from mercer.solvers.control import check_vector
from mercer.solvers.run import Run
from mercer.solvers.systems.system import Systems

EPS = float(np.finfo(np.float64).eps)
_HELD_POINTS = 2500  # up to which all kernel values are kept in float64: 50 MB


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
        zero = np.zeros(n if self.classes is None else (n, self.classes))
        if type(self.loss).__module__.startswith("mercer."):  # those are tested
            self.loss.derivative(self.y[:1], zero[:1])  # the 0-1 loss says why it has none
        else:
            check_elementwise(self.loss, self.y, zero)
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
    meant, good = {
        "label": ("the labels -1 and +1", np.abs(y) == 1),
        "count": ("numbers of at least 0", y >= 0),
        "class": ("the classes 0, 1, ..., k - 1", (y >= 0) & (y == np.floor(y))),
    }.get(target, ("numbers", np.isfinite(y)))
    if not good.all():
        raise ValueError(f"y must hold {meant} for the loss {loss!r}; it contains {y[~good][0]:g}.")


# -- the squared norm: what its solvers share ------------------------------------------------------------


def hold_few(systems: Systems) -> None:
    """Compute the kernel values of few points once, in float64, and keep them."""
    n = systems.gram.shape[0]
    if systems.matrix.held is None and n <= _HELD_POINTS and 24 * n * n <= systems.gram.budget:
        systems.matrix.hold(np.float64)


def hidden(a: np.ndarray, lengths: np.ndarray, strength: float) -> float:
    """Return the error that the rounding errors e of f can make in the objective, at most strength |a'e|.

    They change strength |f|^2 / 2 by strength a'e / 2, and at the optimum, where the slopes of the losses are
    -strength a, the losses by -strength a'e. e_i is of the size of EPS |x_i| times the root of the sum of
    (a_j |x_j|)^2, in feature space.
    """
    parts = np.abs(a.T) * lengths
    return EPS * strength * float(parts.sum()) * float(np.linalg.norm(parts))


def note(run: Run, primal: float, gap: float, a: np.ndarray, b: Any, strength: float, keep: bool = True) -> None:
    """Note a point of a run: coefficients a, an offset b and a relative gap; see `Run.note`."""
    support = int(np.count_nonzero(a.any(axis=1) if a.ndim == 2 else a))
    dual = primal - gap * abs(primal) if gap < math.inf else -math.inf
    run.note(primal, dual, gap, support, keep, **checkpoint(a, b, strength))


def checkpoint(a: np.ndarray, b: Any, strength: float) -> dict[str, Any]:
    """Return what another run needs to go on."""
    return {"a": a, "b": np.broadcast_to(b, a.shape[1:]), "strength": strength}


@dataclass
class Task:
    """Minimise sum_i w_i L(y_i, f(x_i) + b) + strength/2 |f|^2 over f = sum_i a_i k(x_i, .) and b.

    Parameters
    ----------
    systems
        The kernel matrix, and equations with it; None where only the losses count.
    y, loss, weights, intercept
        The losses; without an intercept b is 0.
    strength
        Above 0.
    a, b
        Where to start; zeros when not given.
    """

    systems: Systems | None
    y: np.ndarray
    loss: Any
    weights: np.ndarray
    intercept: bool
    strength: float
    a: np.ndarray | None = None
    b: float | np.ndarray = 0.0

    def __post_init__(self) -> None:
        self.convex = bool(getattr(self.loss, "convex", True))
        self._some = None if (self.weights > 0).all() else self.weights > 0

    def __len__(self) -> int:
        return len(self.y)

    def total(self, v: np.ndarray) -> float:
        """Return the sum of the losses; infinite where one is not a number."""
        with np.errstate(all="ignore"):
            each = np.asarray(self.loss.value(self.y, v), dtype=np.float64)
            if self._some is not None:
                each = np.where(self._some, each, 0.0)
            total = float(self.weights @ each)
        return total if total == total else math.inf

    def slopes(self, v: np.ndarray) -> np.ndarray:
        """Return the derivative of each weighted loss."""
        with np.errstate(all="ignore"):
            u = np.asarray(self.loss.derivative(self.y, v), dtype=np.float64)
            if self._some is not None:
                u = np.where(self._some if u.ndim == 1 else self._some[:, None], u, 0.0)
            return u * (self.weights if u.ndim == 1 else self.weights[:, None])

    def curvatures(self, v: np.ndarray) -> np.ndarray:
        """Return the second derivative of each weighted loss; its size, where the loss is not convex."""
        with np.errstate(all="ignore"):
            d = self.weights * np.abs(curvature(self.loss, self.y, v))
        if self._some is not None:
            d = np.where(self._some, d, 0.0)
        return np.nan_to_num(d, copy=False, nan=0.0, posinf=1e300)

    def best_offset(self, f: np.ndarray, b: float) -> float:
        """Return the b at which the derivatives at f + b sum to 0, near `b`; f + b there minimises over b.

        Newton's step inside a bracket. Where there is no such b (all labels agree) it ends where the sum of the
        derivatives is at the level of rounding.
        """
        if not self.intercept:
            return b

        def slope(c: float) -> tuple[float, float, float]:
            v = f + c
            u, d = self.slopes(v), self.curvatures(v)
            total, curve = float(u.sum()), float(d.sum())
            size = max(float(v.max()), -float(v.min()))
            floor = max(4.0 * EPS * float(np.abs(u).sum()), 2.0 * EPS * size * curve, EPS * self._unit())
            return total if total == total else math.inf, curve, floor

        g, curve, floor = slope(b)
        low, high, at, step = -math.inf, math.inf, b, 0.0
        before = g
        for _ in range(300):
            if abs(g) <= floor:
                break
            low, high = (at, high) if g < 0 else (low, at)
            newton = -g / curve if curve > 0 and math.isfinite(g) else math.copysign(math.inf, -g)
            if high - low < math.inf:
                new = at + newton
                slow = abs(g) > 0.5 * abs(before)
                if not low < new < high or slow:
                    new = low + 0.5 * (high - low)
                if new in (low, high):
                    break
            else:  # no bracket yet: far enough to make one, but not farther than it must be
                step = max(2.0 * step, min(abs(newton), max(1.0, abs(at))), 4.0 * EPS * abs(at))
                new = at + math.copysign(step, -g)
                if not math.isfinite(new):
                    break
            before, at = g, new
            g, curve, floor = slope(at)
        return at

    def _unit(self) -> float:
        if not hasattr(self, "_slope_at_0"):
            self._slope_at_0 = float(np.abs(np.nan_to_num(self.slopes(np.zeros(len(self.y))))).sum())
        return self._slope_at_0


class Dual(NamedTuple):
    """A dual point.

    Attributes
    ----------
    gap
        A bound on primal minus dual.
    u
        The point.
    apart
        A bound on the norm of sum_i rest_i k(x_i, .).
    conjugates
        The sum of the conjugates at u.
    missing
        The part of the gap that the losses have; the other is |rest|^2 / (2 strength).
    rest
        strength a + u.
    """

    gap: float
    u: np.ndarray
    apart: float
    conjugates: float
    missing: float
    rest: np.ndarray


def dual_point(
    task: Task, a: np.ndarray, v: np.ndarray, u: np.ndarray, lengths: np.ndarray, spread: np.ndarray
) -> Dual | None:
    """Return a dual point with a gap; None where there is none.

    No product with K is needed. The dual point is -strength a, or the loss's own slope u_i where that is outside of the
    conjugate's domain. The gap has two parts. The first is the slack in the inequalities of Fenchel and Young. The
    second is |r|^2 / (2 strength) for the remainder r = sum_i (strength a_i + u_i) k(x_i, .), whose length is at most
    the sum of |r_i| sqrt(k(x_i, x_i)).

    Parameters
    ----------
    task, a, v, u
        The problem, coefficients, values with the offset, and the derivatives of the weighted losses there.
    lengths
        sqrt(k(x_i, x_i)).
    spread
        How much each point contributes when the sum of the dual point must be changed to 0.
    """
    loss, y, w = task.loss, task.y, task.weights
    if not hasattr(loss, "conjugate") or not task.convex:
        return None
    wide = a.ndim == 2
    column = w[:, None] if wide else w
    with np.errstate(all="ignore"):
        scaled = (-task.strength * a) / column
        inside = np.isfinite(loss.conjugate(y, scaled)) & (w > 0)
        dual = np.where(inside[:, None] if wide else inside, scaled * column, u)
        if task.intercept:
            share = np.where(inside, spread, 0.0)
            total = float(share.sum())
            if not total > 0:
                return None
            share = share / total
            dual = dual - (np.outer(share, dual.sum(axis=0)) if wide else share * dual.sum())
        terms = loss.value(y, v) + loss.conjugate(y, dual / column)
        terms = w * terms - (np.einsum("ij,ij->i", v, dual) if wide else v * dual)
    missing = float(np.maximum(terms, 0.0)[inside].sum())
    rest = task.strength * a + dual
    size = np.linalg.norm(rest, axis=1) if wide else np.abs(rest)
    apart = float(size @ lengths)
    conjugates = missing + float(np.vdot(dual, v)) - task.total(v)
    gap = missing + apart * (apart / (2.0 * task.strength))
    return Dual(gap, dual, apart, conjugates, missing, rest) if math.isfinite(gap) else None


@dataclass
class Point:
    """An iterate with what is known about it.

    Attributes
    ----------
    a, b, f
        The coefficients, the offset and f(x_i) without it.
    u
        The dual point.
    loss, square
        The sum of the losses, and |f|^2.
    gap
        P - D of the squared-norm problem; for a loss that is not convex the squared norm of the gradient.
    pull
        |sum_i u_i k(x_i, .)|^2, or a number above it.
    conjugates
        sum_i w_i L*(y_i, u_i / w_i), the conjugates of the losses: the dual is minus this sum minus
        the penalty's conjugate at the root of `pull`.
    kkt
        The worst violation of optimality in units of f.
    rounding
        What rounding can have added to the gap.
    """

    a: np.ndarray
    b: Any
    f: np.ndarray
    u: np.ndarray
    loss: float
    square: float
    gap: float
    pull: float
    conjugates: float
    kkt: float
    rounding: float
    strength: float
    solver: str = ""
    stopped: str = Stop.CONVERGED
    precision: str = "float64"

    @property
    def primal(self) -> float:
        """The objective of the squared-norm problem."""
        return self.loss + 0.5 * self.strength * self.square

    @property
    def relative_gap(self) -> float:
        """The gap beyond rounding, in units of the larger objective."""
        primal = self.primal
        return relative_gap(self.gap - self.rounding, primal, primal - self.gap)
