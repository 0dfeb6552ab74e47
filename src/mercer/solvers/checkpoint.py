"""What a killed fit leaves behind, so that the next one need not begin again."""

from __future__ import annotations

import os
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from mercer.solvers.control import Control

if TYPE_CHECKING:
    from mercer.solvers.state import State


class Checkpoint:
    """The coefficients of a run, in a file that is only ever whole.

    The gradient is not stored: it follows from the coefficients, and computing it again removes what rounding has left
    in it. A file that belongs to another problem (other labels, bounds, sums or number of points) is refused.
    """

    def __init__(self, control: Control, state: State) -> None:
        self._path = None if control.checkpoint is None else Path(control.checkpoint)
        self._every, self._state = control.every, state
        self._written = time.perf_counter()
        self._sums = state.sums()

    def _key(self) -> int:
        s = self._state
        return zlib.crc32(b"".join(a.tobytes() for a in (s.linear, s.upper, s.lower, s.width)))

    def restore(self) -> None:
        """Start from the file, if there is one."""
        if self._path is None or not self._path.exists():
            return
        try:
            with np.load(self._path, allow_pickle=False) as saved:
                key, sums, plus, minus = int(saved["key"]), saved["sums"], saved["plus"], saved["minus"]
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as problem:
            raise ValueError(
                f"checkpoint {str(self._path)!r} cannot be read ({problem}); remove it to start anew."
            ) from None
        s = self._state
        same = key == self._key() and plus.shape == minus.shape == s.plus.shape and sums.shape == self._sums.shape
        if not same or not np.allclose(sums, self._sums, rtol=1e-9, atol=1e-9 * float((plus + minus).max())):
            raise ValueError(
                f"checkpoint {str(self._path)!r} belongs to another problem (other labels, bounds or nu); remove "
                "it, or name another file."
            )
        s.plus[:], s.minus[:] = plus, minus

    def write(self) -> None:
        """Write the file now; a reader never sees half of it."""
        if self._path is None:
            return
        draft = self._path.with_name(self._path.name + ".part")
        with open(draft, "wb") as file:
            np.savez(file, key=self._key(), sums=self._sums, plus=self._state.plus, minus=self._state.minus)
        os.replace(draft, self._path)
        self._written = time.perf_counter()

    def write_now_and_then(self) -> None:
        """Write the file if the last one is old."""
        if self._path is not None and time.perf_counter() - self._written >= self._every:
            self.write()

    def remove(self) -> None:
        """The fit is done: nothing to resume."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
