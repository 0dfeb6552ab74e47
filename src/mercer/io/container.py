"""The file itself: safetensors, with the manifest among its metadata and a digest of everything."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from mercer.points.files import placed
from mercer.points.state import Arrays

FORMAT = "mercer.model"
VERSION = 1
LARGEST = 32 * 2**20  # characters of a manifest: arrays and long lists are not in it
_HEADER = 10**8  # bytes of a header that safetensors reads
_EMPTY = 10**8  # the longest side of an array without entries, which costs a file nothing
_KNOWN = {  # how files of other kinds begin
    b"\x80": "a pickle, which is never opened here",
    b"PK": "a zip archive, perhaps of skops or NumPy",
    b"\x1f\x8b": "compressed by gzip",
    b"\x93NUMPY": "an array of NumPy",
}


class DamagedFile(ValueError):
    """A file that is no model file, or no longer the one that was written."""


class NewerFile(ValueError):
    """A model file in a format that this version does not know yet."""


# -- writing ----------------------------------------------------------------------------------------------


def write(path: str | os.PathLike[str], manifest: dict[str, Any], arrays: Arrays) -> None:
    """Write manifest and arrays into one file, which appears whole or not at all.

    Parameters
    ----------
    path
        The file; one that is there is replaced.
    manifest
        What JSON can write.
    arrays
        Contiguous arrays of numbers or truth values, by name.
    """
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":"))
    if len(text) > LARGEST:
        raise ValueError(
            f"the model has so many small parts that their list alone takes {len(text) / 2**20:.0f} MiB, and a model "
            f"file holds {LARGEST // 2**20}; keep its points in arrays rather than in lists of objects."
        )
    metadata = {"format": FORMAT, "version": str(VERSION), "sha256": _digest(VERSION, text, arrays), "manifest": text}
    try:
        with placed(path) as (draft,):
            save_file(arrays, draft, metadata)
    except SafetensorError as error:
        raise OSError(f"{os.fspath(path)!r} could not be written: {error}.") from None


# -- reading ----------------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Return manifest and arrays of a file, or say in a sentence what it is instead."""
    name = repr(os.fspath(path))
    _recognise(path, name)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            version = _version(metadata, name)
            arrays = {key: _sound(file.get_tensor(key), key) for key in file.keys()}  # noqa: SIM118 (no mapping)
    except (DamagedFile, NewerFile, OSError):
        raise
    except Exception as error:  # whatever the bytes made the parser say
        raise DamagedFile(f"{name} is damaged, or no model file of mercer: {_sentence(error)}") from None
    text = metadata.get("manifest", "")
    if metadata.get("sha256") != _digest(version, text, arrays):
        raise DamagedFile(
            f"{name} is damaged: its contents do not match their digest. Copy it again, or save the model again."
        )
    return _parsed(text, name), arrays


def _recognise(path: str | os.PathLike[str], name: str) -> None:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise DamagedFile(f"{name} is no file; a model file is one that mercer.save has written.")
    with open(path, "rb") as file:
        start = file.read(8)
    if len(start) < 8:
        raise DamagedFile(f"{name} is damaged: it has {len(start)} bytes, and a model file has hundreds.")
    if int.from_bytes(start, "little") <= _HEADER:  # how safetensors begin
        return
    for known, what in _KNOWN.items():
        if start.startswith(known):
            raise DamagedFile(f"{name} is no model file of mercer but {what}.")


def _version(metadata: dict[str, str], name: str) -> int:
    if metadata.get("format") != FORMAT:
        raise DamagedFile(f"{name} is a file of safetensors, but holds no model of mercer.")
    version = metadata.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) < 9):
        raise DamagedFile(f"{name} is damaged: its format has the version {version!r:.40}, which is no number.")
    if int(version) > VERSION:
        raise NewerFile(
            f"{name} was written by a newer mercer, in version {int(version)} of the format, and this one reads up to "
            f"{VERSION}; install a newer mercer."
        )
    return int(version)


def _sound(array: np.ndarray, key: str) -> np.ndarray:
    """Return an array of the file, unless there is something about it that NumPy takes on trust."""
    if not array.size and max(array.shape) > _EMPTY:
        raise ValueError(f"the array {key!r:.80} claims the shape {array.shape} and holds nothing.")
    if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise ValueError(f"the array {key!r:.80} holds truth values that are neither true nor false.")
    return array


def _parsed(text: str, name: str) -> dict[str, Any]:
    if len(text) > LARGEST:
        raise DamagedFile(f"{name} is damaged: its manifest has {len(text)} characters, more than any model needs.")
    try:
        manifest = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DamagedFile(f"{name} is damaged: its manifest is not JSON as mercer writes it.") from None
    if not isinstance(manifest, dict):
        raise DamagedFile(f"{name} is damaged: its manifest is no object of JSON.")
    return manifest


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _sentence(error: BaseException) -> str:
    """Return what an error says, as the end of a sentence."""
    said = " ".join(str(error).split())
    return f"{said[:300] or type(error).__name__}{'' if said.endswith('.') else '.'}"


def _digest(version: int, text: str, arrays: Arrays) -> str:
    """Return the SHA-256 of the manifest and of every array with its name, type and shape."""
    found = hashlib.sha256(f"{FORMAT} {version} {len(text)}\n{text}".encode())
    for name in sorted(arrays):
        a = arrays[name]
        found.update(f"\n{name} {a.dtype.name} {a.shape}\n".encode())
        if a.size:
            found.update(a.reshape(-1).view(np.uint8).data)
    return found.hexdigest()
