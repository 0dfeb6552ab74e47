"""Checkpoints: files from which the next fit goes on where a killed one stopped."""

from __future__ import annotations

import io
import math
import os
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from mercer.machine.files import placed, sweep
from mercer.solvers.control import Control


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
        """Return what an earlier run on the same problem has left, if it has.

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
        buffer = io.BytesIO()  # an archive that could not be written to its end would complain again when it is closed
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
        """The run is done: nothing to resume, and nothing is left of those that were killed while they wrote."""
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
