"""One problem on its way to a solution: the steps, the history, the listeners, the checkpoint, and why it stops."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer.certify import Certificate, Stop
from mercer.solvers.checkpoint import Checkpoint
from mercer.solvers.control import Control

HISTORY = np.dtype([(name, "f8") for name in ("steps", "primal", "dual", "gap", "support", "seconds")])


class Row(NamedTuple):
    """Where a fit stood: NaN for what was not known then, or has no meaning there."""

    steps: float
    primal: float
    dual: float
    gap: float  # relative
    support: float
    seconds: float


def history_table(rows: Iterable[Sequence[float]], known: str = "dual") -> np.ndarray:
    """Return rows as a table with the fields of `HISTORY`.

    Parameters
    ----------
    rows
        Six numbers each, or the five of older model files, which had one of the two objectives.
    known
        Which one: "primal" or "dual".

    Examples
    --------
    >>> table = history_table([Row(10, 2.0, 1.5, 0.25, 4, 0.01), (20, 1.75, 0.125, 4, 0.02)])
    >>> table["dual"], table["primal"]
    (array([1.5 , 1.75]), array([ 2., nan]))
    """
    missing = 1 if known == "dual" else 2
    full = [tuple(row) if len(row) == len(Row._fields) else (*row[:missing], np.nan, *row[missing:]) for row in rows]
    return np.array(full, dtype=HISTORY)


def history_tables(problems: Iterable[Iterable[Sequence[float]]], known: str = "dual") -> Any:
    """Return the table of one problem, or a tuple with those of several; see `history_table`."""
    tables = tuple(history_table(rows, known) for rows in problems)
    return tables[0] if len(tables) == 1 else tables


class Run:
    """What changes while a problem is solved, by however many solvers that takes.

    Parameters
    ----------
    control
        Limits, listener and checkpoint file.
    identity
        What tells the problem from others, so that a checkpoint of another one is refused.
    quiet
        Whether listeners and the checkpoint get their reports from another run, of which this is a part.
    steps
        To count on from; the solver does.

    Attributes
    ----------
    history
        A row for each `note` that was kept.
    asked_to_stop
        Whether the listener has.

    Examples
    --------
    >>> run = Run(Control(tol=0.1, max_iter=2))
    >>> run.note(primal=3.0, dual=1.0, gap=2 / 3, support=5)
    >>> run.steps += 2
    >>> run.limit()
    'max_iter=2 reached'
    >>> claim = run.certificate(2.0, 1.9, 0.01, solver="by hand", stopped=run.limit(), otherwise=Stop.LARGE_GAP)
    >>> claim.stopped, claim.iterations
    ('converged', 2)
    """

    def __init__(self, control: Control, identity: Iterable[Any] = (), quiet: bool = False, steps: int = 0) -> None:
        self.control, self.quiet, self.steps = control, quiet, steps
        self.history: list[Row] = []
        self.asked_to_stop = False
        self._checkpoint = Checkpoint(control, (_as_array(part) for part in identity))

    def note(self, primal: float, dual: float, gap: float, support: int, keep: bool = True, **state: Any) -> None:
        """Tell where the run stands.

        Parameters
        ----------
        primal, dual, gap, support
            The objectives, the relative gap, which may be an estimate, and how many points have a coefficient.
        keep
            Whether this is a row of the history, too.
        **state
            Arrays for the checkpoint, from which another run can go on.
        """
        control = self.control
        if keep:
            known = dual if math.isfinite(dual) else math.nan
            self.history.append(Row(self.steps, primal, known, gap, support, control.seconds))
        if self.quiet:
            return
        if control.report is not None:
            try:
                where = {"iteration": self.steps, "gap": gap, "dual": dual, "support": support, "primal": primal}
                self.asked_to_stop |= control.tell(**where)
            except KeyboardInterrupt:
                control.cancel()
        if state and control.checkpoint is not None:
            self._checkpoint.write_now_and_then(**state)

    def limit(self) -> str | None:
        """Return what ends the run now, if anything."""
        return Stop.CALLBACK if self.asked_to_stop else self.control.exhausted(self.steps)

    def restore(self, **shapes: tuple[int, ...]) -> dict[str, np.ndarray] | None:
        """Return the arrays of these names and shapes that an earlier run on the same problem has left, if it has."""
        return self._checkpoint.restore(**shapes)

    def refusal(self, why: str) -> ValueError:
        """Return the error that says why the checkpoint is not taken."""
        return self._checkpoint.refusal(why)

    def save(self, **state: Any) -> None:
        """Write the checkpoint if the last one is old."""
        self._checkpoint.write_now_and_then(**state)

    def end(self, finished: bool, **state: Any) -> None:
        """Remove the checkpoint of a finished run; write that of another now."""
        if finished:
            self._checkpoint.remove()
        else:
            self._checkpoint.write(**state)

    def certificate(
        self,
        primal: float,
        dual: float,
        kkt: float,
        solver: str,
        stopped: str = Stop.CONVERGED,
        otherwise: str | None = None,
        **others: Any,
    ) -> Certificate:
        """Return the certificate of a solution.

        Parameters
        ----------
        primal, dual, kkt, solver, stopped
            Of the certificate; the run itself knows tol, steps and seconds.
        otherwise
            What to say of a solution whose gap is larger than `tol` although nothing has ended the run before; where
            it is given, a gap of at most `tol` is convergence, whatever has ended the run.
        **others
            More fields of the certificate: rounding, precision.
        """
        control = self.control
        claim = Certificate(
            primal, dual, kkt, control.tol, solver, self.steps, control.seconds, stopped=stopped, **others
        )
        if otherwise is None or claim.converged == (stopped == Stop.CONVERGED):
            return claim
        if claim.converged:
            return replace(claim, stopped=Stop.CONVERGED)
        return replace(claim, stopped=otherwise)


def _as_array(part: Any) -> np.ndarray:
    """Return what names an object in another run, too: its numbers, or its parameters."""
    if isinstance(part, np.ndarray):
        return part
    text = repr(part)
    if " object at 0x" in text:  # the address is not part of the problem
        text = f"{type(part).__qualname__} {sorted(vars(part).items())}"
    return np.frombuffer(text.encode(), dtype=np.uint8)
