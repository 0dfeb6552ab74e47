"""The plan for a dual problem: which way, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mercer.machine.budget import readable
from mercer.solvers.control import Control
from mercer.solvers.dual.problem import SVMDual

WHOLE = 3000  # points up to which the whole matrix is one working set
LARGEST = 3072  # points of a working set
_SURELY = 2**16  # bytes that any budget allows; asking the system what is free takes longer than such a fit
_DOUBLE = 600  # points up to which float64 costs nothing
_SINGLE_TOL = 1e-6  # the smallest relative gap that is looked for in float32


@dataclass
class Method:
    """How a problem will be solved, and why."""

    name: str
    why: str
    single: bool
    size: int  # of the working set
    memory: int
    whole: bool = False
    held: bool = False  # whether all values are kept although the working set is smaller


def method(problem: SVMDual, control: Control) -> Method:
    """Choose between the whole matrix and decomposition, and between float32 and float64."""
    n, gram = len(problem), problem.gram
    single = n > _DOUBLE and control.tol >= _SINGLE_TOL and control.precision != "float64"
    single = (single or control.precision == "float32") and gram.single_is_enough
    item = 4 if single else 8
    if n <= WHOLE and (n * n * item <= _SURELY or n * n * whole_item(single) <= gram.budget):
        why = f"{n} points fit in one working set"
        return Method("SMO on the whole matrix", why, single, n, n * n * item, whole=True)
    if not gram.compiled and n * n * item <= gram.budget // 2:
        why = "the kernel is computed by Python: each value once, all kept"
        return Method("decomposition", why, False, LARGEST, n * n * item, held=True)
    size = int(min(LARGEST, math.isqrt(gram.budget // 4 // item)))
    if size < 16:
        gram.budget.require(16 * 16 * 4 * item, "the smallest working set", "raise the budget.")
    why = f"{n} points: blocks of up to {size}, never the whole matrix"
    return Method("decomposition", why, single, size, size * size * item)


def whole_item(single: bool) -> int:
    """Return the bytes that a value of the whole matrix may come to take: one of float32 is computed in float64 too."""
    return 12 if single else 8


def plan(problems: list[SVMDual], control: Control | None = None) -> str:
    """Return how the problems will be solved and why, in a sentence."""
    control = control or Control()
    largest = max(problems, key=len)
    chosen = method(largest, control)
    many = f"{len(problems)} problems of up to {len(largest)} points, side by side: " if len(problems) > 1 else ""
    kind = "float32" if chosen.single else "float64"
    return f"{many}{chosen.name} in {kind}, {readable(chosen.memory)}: {chosen.why}."
