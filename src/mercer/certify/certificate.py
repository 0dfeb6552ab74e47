"""What a fit claims about itself, and how anyone can check the claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


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
        Why the solver stopped: "converged", or what ended it before.
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
    stopped: str = "converged"
    parts: tuple[Certificate, ...] = ()
    check: Callable[..., Certificate] | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """Primal minus dual objective: no solution is better than this one by more."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap beyond rounding, in units of the larger objective; 0 where there is none."""
        gap, size = self.gap - self.rounding, max(abs(self.primal), abs(self.dual))
        if gap <= 0:
            return 0.0
        return gap / size if size < math.inf else math.inf  # also where an objective is not a number

    @property
    def converged(self) -> bool:
        """Whether the relative gap is what was asked for."""
        return self.relative_gap <= self.tol

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
        return "\n".join(lines)


def combined(parts: list[Certificate], **changes: Any) -> Certificate:
    """Return one certificate for several independent problems: objectives add up, residuals do not."""
    first = parts[0]
    unfinished = [p.stopped for p in parts if p.stopped != "converged"]
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
        stopped=unfinished[0] if unfinished else "converged",
        parts=tuple(parts) if len(parts) > 1 else (),
        **changes,
    )
