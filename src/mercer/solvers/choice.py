"""Which solver suits a loss: what each needs, and what the loss offers."""

from __future__ import annotations

from typing import Literal

from mercer.losses.squared import Squared
from mercer.solvers.problem import Representer

Solver = Literal["auto", "ridge", "newton", "dual", "proximal"]
SOLVERS = ("auto", "ridge", "newton", "dual", "proximal")


def choose(problem: Representer, wish: str) -> tuple[str, str]:
    """Return which solver, and what of the loss makes it the one."""
    loss = problem.loss
    if wish not in SOLVERS:
        raise ValueError(f"solver is {wish!r}; it must be one of {', '.join(map(repr, SOLVERS))}.")
    smooth = bool(getattr(loss, "smooth", False)) or hasattr(loss, "curvature")
    box, convex = hasattr(loss, "box"), bool(getattr(loss, "convex", True))
    squared = isinstance(loss, Squared)
    if problem.classes is not None:
        if wish not in ("auto", "newton"):
            raise ValueError(
                f"solver={wish!r} is for one function; {loss!r} has one per class: use 'newton' or 'auto'."
            )
        if not smooth:
            raise ValueError(f"{loss!r} has classes and is not smooth; only smooth losses of classes can be minimised.")
        return "multinomial", "all classes together"
    if wish == "auto":
        wish = "ridge" if squared else "dual" if box else "newton" if smooth else "proximal"
        if wish == "proximal" and not convex:
            raise ValueError(
                f"{loss!r} says neither smooth = True nor convex = True; a loss needs one of the two. Set "
                "smooth = True if its derivative is continuous."
            )
    if getattr(loss, "joint", False) and wish != "dual":
        raise ValueError(f"solver={wish!r} adds up losses of single predictions, and {loss!r} is none; use 'dual'.")
    if wish == "ridge":
        if not squared:
            raise ValueError(f"solver='ridge' solves the linear system of the squared loss; {loss!r} is not Squared().")
        return "ridge", "the squared loss is quadratic"
    if wish == "dual":
        if not box:
            raise ValueError(
                f"solver='dual' needs a piecewise linear loss, one with a method box(y), which {loss!r} does not have; "
                f"use {'newton' if smooth else 'proximal'!r}."
            )
        return "dual", f"{loss!r} is piecewise linear"
    if wish == "newton":
        if not smooth:
            raise ValueError(
                f"solver='newton' needs a method curvature(y, f), or smooth = True and a continuous derivative; "
                f"{loss!r} has neither: use {'dual' if box else 'proximal'!r}."
            )
        if hasattr(loss, "curvature"):
            return "newton", f"{loss!r} has a curvature"
        return "newton", f"{loss!r} is smooth; its curvature is found by differences"
    if not convex:
        raise ValueError(f"solver='proximal' needs a convex loss; {loss!r} says convex = False: use 'newton'.")
    known = "has a prox" if hasattr(loss, "prox") else "is known by its derivative, which gives the prox by a search"
    return "proximal", f"{loss!r} {known}"
