"""Subgradient descent on the SVM objective with steps 1 / (lambda t): Pegasos, and full-batch descent (M5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from mercer.certify import Certificate, Stop
from mercer.losses import Hinge
from mercer.solvers.control import Control
from mercer.solvers.online.perceptron import Coefficients, Iterate
from mercer.solvers.run import Run

_HINGE = Hinge()
_FOLD = 1e-3  # scale, in units of the mean of all so far, below which it is folded into the vector


class Watched(NamedTuple):
    """One look at the descent: passes over the data, steps, both objectives, seconds, points with a coefficient."""

    epoch: int
    step: int
    primal: float
    dual: float
    seconds: float
    support: float = math.nan  # files of earlier versions do not tell


@dataclass
class Descent:
    """What a descent returns.

    Attributes
    ----------
    coefficients
        c of f(x) = sum c_i k(x_i, x); the offset, if there is one, is their sum.
    certificate
        Objectives in units of lambda/2 |f|² + (weighted) mean hinge.
    history
        The looks that were taken on the way.
    """

    coefficients: np.ndarray
    certificate: Certificate
    history: list[Watched] = field(default_factory=list)


@dataclass
class _State:
    """The iterate s * v and the sum of all iterates, kept so that a step touches only the points of its batch."""

    lam: float
    rate: Callable[[int], float]  # the step length of step t = 1, 2, ...
    scale: float = 1.0
    total: float = 0.0  # sum of the scales so far
    steps: int = 0
    square: float = 0.0  # |f|^2, kept for the projection alone

    @property
    def shrunk(self) -> bool:
        """Whether the scale is so far below the earlier ones that sums with both would lose digits."""
        return self.scale * self.steps < _FOLD * self.total

    def advance(self) -> tuple[float, float]:
        """Shrink for the next step; return by what, and the step length."""
        self.steps += 1
        eta = float(self.rate(self.steps))
        shrink = 1.0 - self.lam * eta
        if not (shrink > 0 or (shrink >= -1e-12 and self.steps == 1)) or eta <= 0:
            raise ValueError(
                f"the step length at t={self.steps} is {eta:g}; it must be > 0 and below 1/lambda = {1 / self.lam:g} "
                "(at t=1 at most that), or the penalty turns f around."
            )
        self.scale = self.scale * shrink if shrink > 1e-12 else 1.0 / self.lam  # the first iterate is 0 in any scale
        return shrink, eta


def pegasos(
    iterate: Iterate,
    y: np.ndarray,
    lam: float,
    *,
    batch: int = 1,
    max_epochs: int = 50,
    project: bool = False,
    average: bool = False,
    random: np.random.Generator | None = None,
    evaluate: Literal["epoch", "log"] = "epoch",
    control: Control | None = None,
    weights: np.ndarray | None = None,
    rate: Callable[[int], float] | None = None,
) -> Descent:
    r"""Minimise lambda/2 \|f\|² + (weighted) mean hinge by steps along subgradients of mini-batches.

    .. math:: f_{t+1} = (1 - \eta_t \lambda) f_t
              + \frac{\eta_t}{k} \sum_{i \in A_t,\, y_i f_t(x_i) < 1} s_i y_i \phi(x_i),
              \qquad \eta_t = \frac{1}{\lambda t}

    (Shalev-Shwartz, Singer, Srebro, Cotter 2011.) Each pass takes every point once; the paper draws with replacement.
    After whole passes the coefficients lie in the dual's box, y_i c_i between 0 and C_i = s_i/(lambda n): the duality
    gap is known. Means, projected iterates and those of other step lengths may lie outside; for the dual they are
    clipped to the box. A batch of all points is plain subgradient descent.

    Parameters
    ----------
    iterate
        A fresh `Vector` or `Coefficients`; changed in place.
    y
        Labels, -1 or +1.
    lam
        lambda > 0.
    batch
        Points per step.
    max_epochs
        Passes over the data at most.
    project
        Whether to scale f back to norm 1/sqrt(lambda), within which the solution lies, after each step.
    average
        Whether the result is the mean of all iterates rather than the last one.
    random
        Shuffles the points before each pass; None visits them as they come.
    evaluate
        When to look at the objective: after each epoch, or after the first, second, fourth, eighth, ...
    control
        Stops at a relative gap of `tol`, or at a limit.
    weights
        s, positive numbers whose mean is 1; None where all are 1.
    rate
        The step length as a function of t = 1, 2, ...; None for 1 / (lambda t).

    Examples
    --------
    >>> from mercer.solvers.online.perceptron import Vector
    >>> X, y = np.array([[2.0], [1.0], [-1.0]]), np.array([1.0, 1.0, -1.0])
    >>> done = pegasos(Vector(X, constant=False), y, lam=0.5, max_epochs=200, control=Control(tol=0.01))
    >>> done.certificate.converged, round(done.certificate.primal, 2)
    (True, 0.25)
    """
    progress = Run(control or Control())
    s = np.ones(len(y)) if weights is None else weights
    run = _Iteration(iterate, y, lam, project, average, s, rate or (lambda t: 1.0 / (lam * t)))
    history: list[Watched] = []
    stopped = None
    certificate = run.certificate(progress.control)
    for epoch in range(1, max_epochs + 1):
        order = np.arange(len(y)) if random is None or batch >= len(y) else random.permutation(len(y))
        run.sweep(order, batch)
        progress.steps = run.state.steps
        stopped = progress.limit()
        if evaluate == "epoch" or epoch & (epoch - 1) == 0 or epoch == max_epochs or stopped:
            claim = certificate = run.certificate(progress.control)
            support = int(np.count_nonzero(run.coefficients))
            history.append(Watched(epoch, progress.steps, claim.primal, claim.dual, claim.seconds, support))
            if claim.converged:
                stopped = Stop.CONVERGED
            else:
                progress.note(claim.primal, claim.dual, claim.relative_gap, support, keep=False)
                stopped = progress.limit()
        if stopped:
            break
    name = "subgradient descent" if batch >= len(y) else "Pegasos"
    finished = replace(certificate, solver=name, stopped=stopped or f"max_epochs={max_epochs} reached")
    return Descent(run.coefficients, finished, history)


class _Iteration:
    """A descent under way."""

    def __init__(
        self,
        iterate: Iterate,
        y: np.ndarray,
        lam: float,
        project: bool,
        average: bool,
        weights: np.ndarray,
        rate: Callable[[int], float],
    ) -> None:
        self.iterate, self.y, self.lam, self.project, self.average = iterate, y, lam, project, average
        self.weights, self.pulls = weights, weights * y
        self.state = _State(lam, rate)
        self.v = np.zeros(len(y))
        # The sum of all iterates is past + total v - late, where late is what was added to v times the total before.
        self.past = np.zeros(len(y))
        self.late = np.zeros(len(y))

    def sweep(self, order: np.ndarray, batch: int) -> None:
        """Pass over the points once, in batches."""
        n = len(order)
        batch = min(batch, n)
        share = -(-n // batch) / n  # one over the mean size of a batch, so that every point weighs the same
        whole = max(1, self.iterate.panel // batch) * batch
        for start in range(0, n, whole):
            rows = order[start : start + whole]
            y, pulls = self.y[rows], self.pulls[rows]
            f = self.iterate.values(rows)  # of v: the scale comes in at each step
            alone = len(rows) <= batch
            inner = np.zeros((0, 0)) if alone else self.iterate.inner(rows)
            added = np.zeros(len(rows))
            for at in range(0, len(rows), batch):
                part = slice(at, min(at + batch, len(rows)))
                value = self.state.scale * f[part]
                hit = at + np.flatnonzero(y[part] * value < 1.0)
                shrink, eta = self.state.advance()
                delta = (eta * share / self.state.scale) * pulls[hit]
                if self.project:
                    step = eta * share * pulls[hit]
                    across = self._product(rows[hit], step) if alone else inner[np.ix_(hit, hit)] @ step
                    self._project(shrink, step, value[hit - at], across)
                added[hit] = delta
                self.v[rows[hit]] += delta
                self.late[rows[hit]] += delta * self.state.total
                self.state.total += self.state.scale
                if not alone and len(hit):
                    f += delta @ inner[hit]  # symmetric: rows lie together
                if self.state.shrunk:
                    f *= self.state.scale
                    added *= self.state.scale
                    self._fold()
            self.iterate.add(rows, added)

    def _fold(self) -> None:
        """Make the scale 1 again: projections from far outside would shrink it until sums lose all digits."""
        self.past += self.state.total * self.v - self.late
        self.late[:] = 0.0
        self.state.total = 0.0
        self.v *= self.state.scale
        self.iterate.multiply(self.state.scale)
        self.state.scale = 1.0

    def _product(self, rows: np.ndarray, c: np.ndarray) -> np.ndarray:
        spread = np.zeros(len(self.y))
        spread[rows] = c
        return self.iterate.everywhere(spread)[rows]

    def _project(self, shrink: float, step: np.ndarray, value: np.ndarray, across: np.ndarray) -> None:
        """Scale back to the ball; f before the step has values `value`, and `across` are those of the step itself."""
        state = self.state
        state.square = max(0.0, shrink**2 * state.square + 2 * shrink * float(step @ value) + float(step @ across))
        if state.square * self.lam > 1.0:
            state.scale /= math.sqrt(state.square * self.lam)
            state.square = 1.0 / self.lam

    @property
    def coefficients(self) -> np.ndarray:
        """Those of the last iterate, or of the mean of all."""
        if not self.state.steps:
            return np.zeros(len(self.y))
        if self.average:
            return (self.past + self.state.total * self.v - self.late) / self.state.steps
        return self.state.scale * self.v

    def certificate(self, control: Control) -> Certificate:
        """Look at both objectives: the primal at f, the dual at its coefficients cut to the box."""
        precision = self.iterate.gram.dtype if isinstance(self.iterate, Coefficients) else np.float64
        return objectives(
            self.iterate.everywhere,
            self.coefficients,
            self.y,
            self.lam,
            self.weights,
            tol=control.tol,
            iterations=self.state.steps,
            seconds=control.seconds,
            precision=str(np.dtype(precision)),
        )


def objectives(
    product: Callable[[np.ndarray], np.ndarray],
    c: np.ndarray,
    y: np.ndarray,
    lam: float,
    weights: np.ndarray,
    **about: Any,
) -> Certificate:
    """Return the certificate of f = sum c_i k(x_i, .), in units of lambda/2 |f|² + weighted mean hinge.

    Parameters
    ----------
    product
        Computes K c for coefficients c.
    c, y, lam, weights
        The coefficients, the labels, lambda, and weights whose mean is 1.
    **about
        The other fields of the certificate.
    """
    top = weights / (lam * len(y))
    f = product(c)
    primal = 0.5 * lam * float(c @ f) + float((weights * _HINGE.value(y, f)).mean())
    alpha = np.clip(y * c, 0.0, top)
    cut = y * alpha
    inside = (np.abs(cut - c) <= 1e-13 * top).all()
    dual = lam * (float(alpha.sum()) - 0.5 * float(cut @ (f if inside else product(cut))))
    r = y * f - 1.0
    tiny = 1e-12 * top
    kkt = np.maximum(np.where(alpha > tiny, r, 0.0), np.where(alpha < top - tiny, -r, 0.0)).max(initial=0.0)
    return Certificate(primal, dual, float(kkt), **about)
