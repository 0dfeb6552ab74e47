"""How a problem will be solved, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mercer.points.budget import readable
from mercer.solvers.control import Control
from mercer.solvers.dual import SVMDual
from mercer.solvers.matrix import single_is_enough

WHOLE = 3000  # points up to which the whole matrix is one working set
LARGEST = 4096  # points of a working set
_DOUBLE = 600  # points up to which float64 costs nothing
_SINGLE_TOL = 1e-6  # the smallest relative gap that is looked for in float32


@dataclass
class Method:
    """How a problem will be solved, and why."""

    name: str
    single: bool
    whole: bool
    size: int  # of the working set
    memory: int
    why: str


def method(problem: SVMDual, control: Control) -> Method:
    """Choose between the whole matrix and decomposition, and between float32 and float64."""
    n = len(problem)
    gram = problem.gram
    single = n > _DOUBLE and control.tol >= _SINGLE_TOL and control.precision != "float64"
    if control.precision == "float32":
        single = True
    single = single and single_is_enough(gram)
    item = 4 if single else 8
    if n <= WHOLE and n * n * item <= gram.budget:
        return Method("SMO on the whole matrix", single, True, n, n * n * item, f"{n} points fit in one working set")
    size = int(min(LARGEST, math.isqrt(gram.budget // 4 // item)))
    if size < 2:
        gram.budget.require(64 * item, "the smallest working set", "raise the budget.")
    if not gram.compiled and n * n * item <= gram.budget // 2:
        return Method(
            "decomposition",
            False,
            False,
            size,
            n * n * item,
            "the kernel is computed by Python: each value once, all kept",
        )
    return Method(
        "decomposition",
        single,
        False,
        size,
        size * size * item,
        f"{n} points: blocks of up to {size}, never the whole matrix",
    )


def plan(problems: list[SVMDual], control: Control | None = None) -> str:
    """Return how the problems will be solved and why, in a sentence."""
    control = control or Control()
    largest = max(problems, key=len)
    chosen = method(largest, control)
    many = f"{len(problems)} problems of up to {len(largest)} points, side by side: " if len(problems) > 1 else ""
    kind = "float32" if chosen.single else "float64"
    return f"{many}{chosen.name} in {kind}, {readable(chosen.memory)}: {chosen.why}."
