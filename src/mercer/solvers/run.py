"""One problem on its way to a solution: the steps, the history, the listeners, the checkpoint, and why it stops."""

from __future__ import annotations

import io
import math
import os
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from mercer.certify import Certificate, Stop
from mercer.machine.files import placed, sweep
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


_LOOKS = 13  # one ahead, and those at steps 1, 4, 16, ... of one call of the core, which makes fewer than 4^12


def begin_looks(problems: int = 1, steps: float = 0.0, dual: float = 0.0, seconds: float = 0.0) -> np.ndarray:
    """Return room in which the core keeps rows of the history of problems, behind one that says where they begin."""
    looks = np.zeros((problems, _LOOKS, len(Row._fields)))
    if steps or dual or seconds:
        looks[:, 0] = (steps, 0.0, dual, 0.0, 0.0, seconds)
    return looks


def early_rows(looks: np.ndarray, steps: float) -> list[Row]:
    """Return what the core has kept of one problem up to a step that somebody else looks at."""
    return [Row(*row) for row in takewhile(lambda row: 0 < row[0] < steps, looks[1:].tolist())]


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
        self.checkpoint = Checkpoint(control, (_as_array(part) for part in identity))

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
            self.checkpoint.write_now_and_then(**state)

    def limit(self) -> str | None:
        """Return what ends the run now, if anything."""
        return Stop.CALLBACK if self.asked_to_stop else self.control.exhausted(self.steps)

    def end(self, finished: bool, **state: Any) -> None:
        """Remove the checkpoint of a finished run; write that of another now."""
        if finished:
            self.checkpoint.remove()
        else:
            self.checkpoint.write(**state)

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


# -- checkpoints -------------------------------------------------------------------------------------------


class Checkpoint:
    """Arrays of a run in a file that is only ever whole, for the next run on the same problem.

    It never costs a fit: what cannot be written or removed is a warning, once for all parts of a fit. What is read may
    have been written by anyone: it has the shapes asked for and finite values, or it is refused.

    Parameters
    ----------
    control
        Names the file, and how often it is written.
    problem
        Arrays that no other problem has: a file written for others is refused.
    """

    def __init__(self, control: Control, problem: Iterable[np.ndarray] = ()) -> None:
        self._control, self._written = control, time.perf_counter()
        self._path = None if control.checkpoint is None else Path(control.checkpoint)
        self._key = 0
        for array in problem if self._path is not None else ():
            self._key = zlib.crc32(repr((array.shape, str(array.dtype))).encode() + array.tobytes(), self._key)

    def restore(self, **shapes: tuple[int, ...]) -> dict[str, np.ndarray] | None:
        """Return the arrays of an earlier run on the same problem; None without one.

        Parameters
        ----------
        **shapes
            Of the arrays, by name. No more is read than they hold, whatever the file says of itself.
        """
        if self._path is None or not os.path.isfile(self._path):
            return None
        try:
            with ZipFile(io.BytesIO(self._path.read_bytes())) as archive:
                same = float(_member(archive, "key", ())) == self._key
                arrays = {name: _member(archive, name, shape) for name, shape in shapes.items()} if same else None
        except FileNotFoundError:  # another process has finished the fit meanwhile
            return None
        except Exception as problem:  # what others have written can be wrong in any way
            raise self.refusal(f"cannot be read ({problem})") from None
        if arrays is None:
            raise self.refusal("belongs to another problem (other points, targets or parameters)")
        for name, values in arrays.items():
            if not np.isfinite(values).all():
                raise self.refusal(f"holds a value of {name} that is not finite")
        return arrays

    def refusal(self, why: str) -> ValueError:
        """Return the error that says why the file is not taken."""
        return ValueError(f"checkpoint {str(self._path)!r} {why}; remove it, or name another file.")

    def write(self, **arrays: Any) -> None:
        """Write the file now; a reader never sees half of it."""
        if self._path is None:
            return
        members: dict[str, Any] = {name: np.asarray(a, np.float64, "C") for name, a in arrays.items()}
        buffer = io.BytesIO()  # an archive on a full disk would complain again when it is closed
        np.savez(buffer, key=float(self._key), **members)
        try:
            with placed(self._path) as (draft,):
                draft.write_bytes(buffer.getbuffer())
        except OSError as problem:
            self._control.warn_of_checkpoint(f"cannot be written ({problem})")
        self._written = time.perf_counter()

    def write_now_and_then(self, **arrays: Any) -> None:
        """Write the file if the last one is old."""
        if self._path is not None and time.perf_counter() - self._written >= self._control.every:
            self.write(**arrays)

    def remove(self) -> None:
        """Remove the file at the end of a run, and the drafts of runs that were killed while they wrote."""
        if self._path is None:
            return
        file = Path(os.path.realpath(self._path))
        try:
            if os.path.exists(file):
                file.unlink(missing_ok=True)  # another process may have finished the same fit
        except OSError as problem:
            self._control.warn_of_checkpoint(f"cannot be removed ({problem})")
        sweep(file.parent)


def _member(archive: ZipFile, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of an archive; it must begin as NumPy begins an array of float64 of this shape."""
    start = io.BytesIO()
    np.lib.format.write_array_header_1_0(start, np.lib.format.header_data_from_array_1_0(np.empty(shape)))
    begin, size = start.getvalue(), 8 * math.prod(shape)
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as member:
        data = member.read(len(begin) + size + 1) if info.compress_type == ZIP_STORED else b""
    if len(data) != len(begin) + size or not data.startswith(begin):
        raise ValueError(f"{name} is no array of float64 of shape {shape}")
    return np.frombuffer(data, np.float64, offset=len(begin)).reshape(shape).copy()
