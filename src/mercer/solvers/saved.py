"""Arrays that a killed run leaves behind in a file that is only ever whole."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from mercer.solvers.control import Control


class Saved:
    """One array in the checkpoint file of a run.

    Parameters
    ----------
    control
        Names the file, and how often it is written.
    problem
        Arrays that no other problem has: a file written for others is refused.
    """

    def __init__(self, control: Control, problem: Iterable[np.ndarray]) -> None:
        self._path = None if control.checkpoint is None else Path(control.checkpoint)
        self._every, self._written = control.every, time.perf_counter()
        self._key = 0
        for array in problem if self._path is not None else ():
            self._key = zlib.crc32(repr((array.shape, str(array.dtype))).encode() + array.tobytes(), self._key)

    def restore(self) -> np.ndarray | None:
        """Return what an earlier run on the same problem has left, if it has."""
        if self._path is None or not self._path.exists():
            return None
        try:
            with np.load(self._path, allow_pickle=False) as saved:
                key, array = int(saved["key"]), saved["array"]
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as problem:
            raise ValueError(
                f"checkpoint {str(self._path)!r} cannot be read ({problem}); remove it to start anew."
            ) from None
        if key != self._key:
            raise ValueError(
                f"checkpoint {str(self._path)!r} belongs to another problem (other points, targets or parameters); "
                "remove it, or name another file."
            )
        return np.asarray(array)

    def write(self, array: np.ndarray) -> None:
        """Write the file now; a reader never sees half of it."""
        if self._path is None:
            return
        draft = self._path.with_name(self._path.name + ".part")
        with open(draft, "wb") as file:
            np.savez(file, key=self._key, array=array)
        os.replace(draft, self._path)
        self._written = time.perf_counter()

    def write_now_and_then(self, array: np.ndarray) -> None:
        """Write the file if the last one is old."""
        if self._path is not None and time.perf_counter() - self._written >= self._every:
            self.write(array)

    def remove(self) -> None:
        """The run is done: nothing to resume."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
