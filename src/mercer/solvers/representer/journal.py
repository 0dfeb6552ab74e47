"""The journal of a run of the engine: its history, its progress for listeners, its state for the next run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.solvers.checkpoint import Checkpoint
from mercer.solvers.control import Control
from mercer.solvers.history import Row

FLOOR = "at the limit of float64"


@dataclass
class Journal:
    """The course of one problem through however many solvers and strengths it takes.

    Parameters
    ----------
    control
        Limits, listener and checkpoint file.
    identity
        What tells the problem from others, so that a checkpoint of another one is refused.
    quiet
        Whether listeners hear of the run from another journal.
    """

    control: Control
    identity: Iterable[Any] = ()
    quiet: bool = False
    steps: int = 0
    history: list[Row] = field(default_factory=list)
    asked_to_stop: bool = False

    def __post_init__(self) -> None:
        self._checkpoint = Checkpoint(self.control, (_as_array(part) for part in self.identity))

    def part(self) -> Journal:
        """Return a quiet journal for a problem within this one, which counts its steps on from here."""
        return Journal(self.control, self.identity, True, self.steps)

    def note(self, primal: float, gap: float, a: np.ndarray, b: Any, strength: float, keep: bool = True) -> None:
        """Tell where the run stands, and `keep` it in the history; `gap` is relative, and may be an estimate."""
        control = self.control
        support = int(np.count_nonzero(a.any(axis=1) if a.ndim == 2 else a))
        dual = primal - gap * abs(primal) if gap < math.inf else -math.inf
        if keep:
            known = dual if math.isfinite(dual) else math.nan
            self.history.append(Row(self.steps, primal, known, gap, support, control.seconds))
        if self.quiet:
            return
        if control.report is not None:
            try:
                self.asked_to_stop |= control.tell(iteration=self.steps, gap=gap, dual=dual, support=support)
            except KeyboardInterrupt:
                control.cancel()
        if control.checkpoint is not None:
            self._checkpoint.write_now_and_then(a=a, b=np.broadcast_to(b, a.shape[1:]), strength=strength)

    def limit(self) -> str | None:
        """Return what ends the run now, if anything."""
        return "stopped by the callback" if self.asked_to_stop else self.control.exhausted(self.steps)

    def write(self, a: np.ndarray, b: Any, strength: float) -> None:
        """Write the checkpoint."""
        self._checkpoint.write(a=a, b=np.broadcast_to(b, a.shape[1:]), strength=strength)

    def read(self, shape: tuple[int, ...]) -> tuple[np.ndarray, Any, float] | None:
        """Return coefficients of this shape, offset and strength of the checkpoint, if there is one."""
        saved = self._checkpoint.restore(a=shape, b=shape[1:], strength=())
        if saved is None:
            return None
        strength = float(saved["strength"])
        if strength <= 0:
            raise self._checkpoint.refusal(f"holds a strength that no run leaves: {strength:g} is not above 0")
        return saved["a"], saved["b"] if shape[1:] else float(saved["b"]), strength

    def remove(self) -> None:
        """The fit is done: nothing to resume."""
        self._checkpoint.remove()


def _as_array(part: Any) -> np.ndarray:
    """Return what names an object in another run, too: its numbers, or its parameters."""
    if isinstance(part, np.ndarray):
        return part
    text = repr(part)
    if " object at 0x" in text:  # the address is not part of the problem
        text = f"{type(part).__qualname__} {sorted(vars(part).items())}"
    return np.frombuffer(text.encode(), dtype=np.uint8)
