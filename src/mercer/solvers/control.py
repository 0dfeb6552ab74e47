"""The control of a solver: its limits, its listener and its checkpoint."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.certify import Stop
from mercer.machine.warn import warn


@dataclass(frozen=True)
class Progress:
    """Where a solver stands."""

    iteration: int
    gap: float  # relative; infinite while no primal value is known
    dual: float
    support: int
    seconds: float
    primal: float = math.nan  # where the solver says it


@dataclass
class Signals:
    """Messages between the parts of one fit, possibly in several threads: copies of a `Control` share them."""

    cancelled: bool = False  # somebody wants every part to return what it has
    folder_seen: bool = False  # the checkpoint's folder has been looked at
    warned: bool = False  # of the checkpoint


@dataclass(frozen=True)
class Control:
    """The limits of a run. Parts of it get copies with other limits (`dataclasses.replace`).

    Parameters
    ----------
    tol
        Stop when the relative duality gap is at most this.
    max_iter
        Stop after so many steps; -1 for no limit.
    time_limit
        Stop after so many seconds; None for no limit.
    checkpoint
        A file to which the state is written every `every` seconds; a later run on the same problem resumes from it.
        Its folder must be there.
    report
        Called with a `Progress` now and then; returning True stops the run.
    precision
        "auto", or the arithmetic to use: "float32", "float64".
    steady
        Whether the dual value is to be steady, too, which a small gap alone does not say.
    """

    tol: float = 1e-3
    max_iter: int = -1
    time_limit: float | None = None
    checkpoint: str | Path | None = None
    report: Callable[[Progress], Any] | None = None
    precision: str = "auto"
    steady: bool = True
    every: float = 5.0
    started: float = field(default_factory=time.perf_counter)
    signals: Signals = field(default_factory=Signals, repr=False)

    def __post_init__(self) -> None:
        if self.checkpoint is None or self.signals.folder_seen:
            return
        self.signals.folder_seen = True
        folder, name = os.path.split(os.path.realpath(self.checkpoint))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"there is no folder {folder!r} for the checkpoint {name!r}; make it.")
        if os.path.exists(self.checkpoint) and not os.path.isfile(self.checkpoint):
            raise ValueError(f"checkpoint {str(self.checkpoint)!r} is a folder or a device; name a file.")
        if not os.access(folder, os.W_OK | os.X_OK):
            self.warn_of_checkpoint(f"cannot be written (no permission to write in {folder!r})")

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return time.perf_counter() - self.started

    @property
    def cancelled(self) -> bool:
        """Whether somebody has called `cancel`, on this control or on a copy."""
        return self.signals.cancelled

    def exhausted(self, steps: int) -> str | None:
        """Return which limit has been reached, if one has."""
        if self.cancelled:
            return Stop.INTERRUPTED
        if 0 <= self.max_iter <= steps:
            return Stop.steps(self.max_iter)
        if self.time_limit is not None and self.seconds >= self.time_limit:
            return Stop.time(self.time_limit)
        return None

    def warn_of_checkpoint(self, why: str) -> None:
        """Warn, once per fit, that the fit goes on but another could not go on from its checkpoint."""
        if not self.signals.warned:
            self.signals.warned = True
            warn(f"the checkpoint {str(self.checkpoint)!r} {why}; the fit goes on without it.")

    def cancel(self) -> None:
        """Ask every run under this control, or under a copy of it, to return what it has."""
        self.signals.cancelled = True

    def tell(self, **where: Any) -> bool:
        """Report progress; return whether the listener asks to stop."""
        return self.report is not None and self.report(Progress(seconds=self.seconds, **where)) is True


def warn_unfinished(stopped: str, gap: float, tol: float, advice: str = "") -> None:
    """Warn that a fit ended before its tolerance was reached; the model is usable all the same."""
    warn(
        f"the fit stopped early ({stopped}) at a relative duality gap of {gap:.2g}; tol={tol:g} was asked. "
        f"The model is the best so far and its certificate says how good it is. {advice}".rstrip(),
        ConvergenceWarning,
    )


def warn_stationary(kernel: Any, why: str) -> None:
    """Warn that the objective of a fit has no minimum: its kernel is indefinite on the training points."""
    warn(
        f"{why.replace('the kernel', f'the kernel {kernel!r}', 1)}: the objective has no minimum, and the model is a "
        "stationary point of it. Take another kernel, or repair its matrix (mercer.repair); mercer.verdict shows a "
        "witness.",
        ConvergenceWarning,
    )


def check_vector(name: str, value: Any, n: int) -> np.ndarray:
    """Return `value` as n finite-or-infinite float64 numbers, one per point."""
    vector = np.asarray(value, dtype=np.float64)
    if vector.shape != (n,):
        vector = np.full(n, vector)  # one number for all, or an error that names both shapes
    if np.isnan(vector).any():
        raise ValueError(f"{name} contains NaN.")
    return np.ascontiguousarray(vector)
