"""The claims of a fit about itself, and how anyone can check them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any


class Stop:
    """Why solvers stop, in the words of certificates."""

    CONVERGED = "converged"
    STATIONARY = "stationary point"  # the end of a solver where there is no duality
    INTERRUPTED = "interrupted"
    CALLBACK = "stopped by the callback"
    FLOOR = "at the limit of float64"
    LARGE_GAP = "the gap is larger than tol"
    ROUNDING = "rounding errors"

    @classmethod
    def rounding(cls, what: str) -> str:
        """Return the reason where rounding has ended a run, with its symptom."""
        return f"{cls.ROUNDING}: {what}"

    @staticmethod
    def steps(max_iter: int) -> str:
        """Return the reason where a run has taken all of its steps."""
        return f"max_iter={max_iter} reached"

    @staticmethod
    def time(limit: float) -> str:
        """Return the reason where a run has taken all of its time."""
        return f"time_limit={limit:g} s reached"


def relative_gap(gap: float, primal: float, dual: float) -> float:
    """Return a gap in units of the larger objective: 0 if it is not positive, infinite if an objective is not finite.

    The gap is mostly primal - dual, less rounding.

    Examples
    --------
    >>> relative_gap(1.0, 10.0, 9.0), relative_gap(-1.0, 9.0, 10.0), relative_gap(1.0, float("inf"), 0.0)
    (0.1, 0.0, inf)
    """
    if gap <= 0:
        return 0.0
    size = max(abs(primal), abs(dual))
    return gap / size if 0 < size < math.inf else math.inf


@dataclass(frozen=True)
class Certificate:
    """Weak duality as a receipt: dual <= optimum <= primal, so the gap bounds how far a fit can be from the best.

    Parameters
    ----------
    primal, dual
        The two objectives at the solution. `primal` is infinite where no feasible primal point is known.
    kkt
        The worst violation of the conditions of optimality, in units of the decision function.
    tol
        The relative gap that was asked for.
    solver
        How the solution was found.
    iterations, seconds
        What it cost.
    rounding
        What rounding alone can have added to the gap: a gap below it is no gap.
    precision
        The arithmetic in which kernel values were computed: "float32" or "float64".
    stopped
        Why the solver stopped: "converged", "stationary point", or what ended it before.
    stationary
        Why duality does not hold, so that a stationary point is all that is certified: the kernel is not positive
        semidefinite on these points, the loss or the penalty is not convex. Mostly empty. Where it is not, the gap
        bounds nothing; it says how nearly stationary the point is.
    parts
        The certificates of the problems that make up the model (the class pairs of a classifier).
    check
        Recomputes everything from scratch: what `verify` calls.

    Examples
    --------
    >>> c = Certificate(primal=10.001, dual=10.0, kkt=2e-4, tol=1e-3)
    >>> c.converged, f"{c.relative_gap:.0e}"
    (True, '1e-04')
    """

    primal: float
    dual: float
    kkt: float
    tol: float
    solver: str = ""
    iterations: int = 0
    seconds: float = 0.0
    rounding: float = 0.0
    precision: str = "float64"
    stopped: str = Stop.CONVERGED
    stationary: str = ""
    parts: tuple[Certificate, ...] = ()
    check: Callable[..., Certificate] | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """Primal minus dual objective: no solution is better than this one by more."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap beyond rounding, in units of the larger objective; 0 where there is none."""
        return relative_gap(self.gap - self.rounding, self.primal, self.dual)

    @property
    def converged(self) -> bool:
        """Whether the solution is the best there is, but for the relative gap that was asked for."""
        return not self.stationary and self.relative_gap <= self.tol

    @property
    def finished(self) -> bool:
        """Whether the solver came to its end: at the minimum, or at a stationary point."""
        return self.stopped in (Stop.CONVERGED, Stop.STATIONARY)

    def verify(self, X: Any, y: Any = None, **weights: Any) -> Certificate:
        """Recompute the certificate in float64 from the training data, by code the solver does not share.

        Parameters
        ----------
        X, y
            What the model was fitted to.
        **weights
            `sample_weight`, if the fit had one.
        """
        if self.check is None:
            raise ValueError("this certificate is not attached to a fitted model; take model.certificate_.")
        return self.check(X, y, **weights)

    def __str__(self) -> str:
        lines = [
            f"primal {self.primal:.8g}  dual {self.dual:.8g}  gap {self.gap:.2g} ({self.relative_gap:.1e} relative, "
            f"asked {self.tol:.1g})",
            f"worst KKT residual {self.kkt:.2g}; {self.stopped} after {self.iterations} steps in {self.seconds:.3g} s "
            f"({self.solver}, kernel values in {self.precision})",
        ]
        if len(self.parts) > 1:
            worst = max(range(len(self.parts)), key=lambda i: self.parts[i].relative_gap)
            lines.append(f"{len(self.parts)} problems; the worst relative gap is {self.parts[worst].relative_gap:.1e}")
        if self.stationary:
            lines.append(f"no minimum is certified, only a stationary point: {self.stationary}")
        return "\n".join(lines)


def without_duality(claim: Certificate, why: str) -> Certificate:
    """Return a claim without its duality, which does not hold for the reason `why`; all of it if that is empty.

    Examples
    --------
    >>> c = without_duality(Certificate(primal=10.0, dual=10.0, kkt=0.0, tol=1e-3), "the loss is not convex")
    >>> c.converged, c.stopped
    (False, 'stationary point')
    """
    if not why:
        return claim
    return replace(claim, stationary=why, stopped=Stop.STATIONARY if claim.stopped == Stop.CONVERGED else claim.stopped)


def combined(parts: list[Certificate], **changes: Any) -> Certificate:
    """Return one certificate for several independent problems: objectives add up, residuals do not."""
    first = parts[0]
    others = sorted((p for p in parts if p.stopped != Stop.CONVERGED), key=lambda p: p.finished)  # the unfinished first
    return Certificate(
        primal=math.fsum(p.primal for p in parts),
        dual=math.fsum(p.dual for p in parts),
        kkt=max(p.kkt for p in parts),
        tol=first.tol,
        solver=first.solver,
        iterations=sum(p.iterations for p in parts),
        seconds=changes.pop("seconds", sum(p.seconds for p in parts)),
        rounding=math.fsum(p.rounding for p in parts),
        precision="float32" if any(p.precision == "float32" for p in parts) else "float64",
        stopped=others[0].stopped if others else Stop.CONVERGED,
        stationary=next((p.stationary for p in parts if p.stationary), ""),
        parts=tuple(parts) if len(parts) > 1 else (),
        **changes,
    )
