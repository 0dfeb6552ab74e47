"""A learned kernel, as an object and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.kernels import Kernel
from mercer.points import Points
from mercer.solvers.gp.space import Space, last_part

_SHOWN = 12  # parameters that are listed one by one
_LITTLE = 0.05  # of the largest effect of a feature: one that hardly counts
_SAMPLE = 500  # rows at which effects are measured

_NAMES = {
    "loo": "the mean squared error where each sample is predicted by all others",
    "density": "the mean log density of each sample given all others",
    "likelihood": "the log marginal likelihood",
}


@dataclass(frozen=True)
class Learned:
    """What `learn_kernel` returns.

    Attributes
    ----------
    estimator
        The estimator with the learned kernel, fitted to all rows.
    kernel
        The kernel.
    value
        Of the objective there: the mean squared error of predictions that leave out one sample ("loo"), the mean log
        density of samples that are left out ("density"), or the log marginal likelihood ("likelihood").
    start
        The same before.
    parameters
        The parameters of the kernel and alpha (or noise) by name.
    history
        One row (rows, value, seconds) for each evaluation.
    objective
        Which objective it was.
    account
        What was done and found, to be read.
    """

    estimator: Any
    kernel: Kernel
    value: float
    history: list[tuple[int, float, float]] = field(repr=False)
    account: str = field(repr=False)
    start: float = math.nan
    parameters: dict[str, float] = field(default_factory=dict, repr=False)
    objective: str = ""

    def __str__(self) -> str:
        return self.account


def account(
    learned: Learned,
    first: Space,
    last: Space,
    points: Points,
    ends: list[str],
    stopped: str,
    chosen: np.ndarray | None,
) -> str:
    """Return what `learn_kernel` has done, in sentences.

    Parameters
    ----------
    learned
        What was found.
    first, last
        The parameters at the start, and as they were learned in the end.
    points
        The rows that were used.
    ends
        Which parameters ended at a bound, in words.
    stopped
        Why the search ended.
    chosen
        Which rows were used; None for all.
    """
    n, tries = len(points), len(learned.history)
    rows = f"all {n:,} rows" if chosen is None else f"{n:,} rows drawn at random"
    lines = [
        f"{_NAMES[learned.objective].capitalize()}, on {rows}: {learned.value:.6g}, from {learned.start:.6g} at the "
        f"start. {int(last.free.sum())} parameters were learned in {tries} evaluations."
    ]
    lines += _parameters(learned.parameters, first, last)
    silent = _silent(learned, points)
    if silent:
        lines.append(
            f"{len(silent)} of {points.width} features hardly count (their effect is less than {_LITTLE:.0%} of the "
            f"largest): {', '.join(map(str, silent[:_SHOWN]))}{', ...' if len(silent) > _SHOWN else ''}."
        )
    far = [end for end in ends if not ("scale" in end and "upper" in end)]
    if far:
        lines.append(f"{'; '.join(far)}: it may be better beyond. Widen `bounds` there, or name it in `fixed`.")
    if last.held:
        lines.append("Kept: " + ", ".join(f"{name} ({why})" for name, why in last.held.items()) + ".")
    if stopped != "converged":
        lines.append(f"The search ended early ({stopped}); this is the best so far.")
    if "alpha" in learned.parameters and not hasattr(learned.estimator, "alpha"):
        lines.append(
            f"alpha is that of ridge regression; {type(learned.estimator).__name__} has its own parameters as given."
        )
    return "\n".join(lines)


def _parameters(found: dict[str, float], first: Space, last: Space) -> list[str]:
    """Return a line for each free parameter, with where it came from, or one for all where there are many."""
    before = dict(zip(first.names, first.values.tolist(), strict=True))
    lines = []
    for name in last.free_names[:_SHOWN]:
        start = before.get(name, before.get(name.split("[")[0], math.nan))
        lines.append(f"  {name}: {found[name]:.4g} (from {start:.4g})")
    if len(last.free_names) > _SHOWN:
        lines.append(f"  ... and {len(last.free_names) - _SHOWN} more")
    return lines


def _silent(learned: Learned, points: Points) -> list[int]:
    """Return the features that the function hardly depends on: by its slopes, in units of their deviations.

    A large scale is no sign of it by itself: what is linear is best said with a large scale and a small alpha.
    """
    listed = any(last_part(name) == "scale" and name.endswith("]") for name in learned.parameters)
    if not listed or not points.numeric or not isinstance(points.vectors, np.ndarray):
        return []
    some = np.asarray(points.vectors[:: max(1, len(points) // _SAMPLE)], dtype=np.float64)
    try:
        slopes = np.asarray(learned.estimator.function_.gradient(some))
    except (TypeError, ValueError):  # a kernel without a gradient, or on parts of a table
        return []
    if slopes.shape[1] != points.width:
        return []
    effect = np.sqrt(np.mean(slopes.reshape(len(some), points.width, -1) ** 2, axis=(0, 2))) * some.std(axis=0)
    return [int(j) for j in np.flatnonzero(effect < _LITTLE * effect.max())]
