"""Model files, saved and loaded: safetensors, with the manifest among the metadata and a digest of everything."""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import sklearn
from safetensors import SafetensorError
from safetensors.numpy import save_file

from mercer.io import limits
from mercer.io.limits import Stored, TooLarge, check_manifest
from mercer.io.read import Reader
from mercer.io.registry import NotRegistered
from mercer.io.write import Writer
from mercer.machine.files import placed
from mercer.points.state import Arrays

FORMAT = "mercer.model"
VERSION = 2  # 1 named the modules of classes
_PIECE = 2**20  # bytes that are hashed at a time
_DTYPES = {"BOOL": "bool"} | {  # by the names that safetensors gives them
    f"{letter}{bits}": f"{kind}{bits}"
    for letter, kind, smallest in (("U", "uint", 8), ("I", "int", 8), ("F", "float", 16))
    for bits in (8, 16, 32, 64)
    if bits >= smallest
}
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
    metadata = {"format": FORMAT, "version": str(VERSION), "sha256": _digest(VERSION, text, arrays), "manifest": text}
    try:
        with placed(path) as (draft,):
            save_file(arrays, draft, metadata)
            with open(draft, "rb") as file:
                _header(file)
    except SafetensorError as error:
        raise OSError(f"{os.fspath(path)!r} could not be written: {error}.") from None


# -- reading ----------------------------------------------------------------------------------------------


class Declared(NamedTuple):
    """Where an array is in a file, and what it is."""

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Return manifest and arrays of a file, or say in a sentence what it is instead.

    Sizes are checked first, then the digest, piece by piece; only then is the manifest parsed, and only when its own
    sizes are seen to be right are arrays read.
    """
    name = repr(os.fspath(path))
    _recognise(path, name)
    with open(path, "rb") as file:
        try:
            metadata, declared = _header(file)
        except Exception as error:  # whatever the bytes made the parser say
            raise DamagedFile(f"{name} is damaged, or no model file of mercer: {_sentence(error)}") from None
        version = _version(metadata, name)
        text = metadata.get("manifest", "")
        if metadata.get("sha256") != _digest(version, text, declared, lambda array: _pieces(file, array)):
            raise DamagedFile(
                f"{name} is damaged: its contents do not match their digest. Copy it again, or save the model again."
            )
        del metadata
        manifest = _parsed(text, name)
        try:
            limits.check_manifest(manifest)
            return manifest, {key: _array(file, key, declared[key]) for key in sorted(declared)}
        except ValueError as error:
            raise DamagedFile(
                f"{name} is damaged, or was changed or written by other code: {_sentence(error)}"
            ) from None


def _recognise(path: str | os.PathLike[str], name: str) -> None:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise DamagedFile(f"{name} is no file; a model file is one that mercer.save has written.")
    with open(path, "rb") as file:
        start = file.read(8)
    if len(start) < 8:
        raise DamagedFile(f"{name} is damaged: it has {len(start)} bytes, and a model file has hundreds.")
    if int.from_bytes(start, "little") <= limits.HEADER:  # how safetensors begin
        return
    for known, what in _KNOWN.items():
        if start.startswith(known):
            raise DamagedFile(f"{name} is no model file of mercer but {what}.")


def _header(file: BinaryIO) -> tuple[dict[str, str], dict[str, Declared]]:
    """Return the metadata of a file and where its arrays are, once all sizes agree."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    limits.require(length, limits.HEADER, f"a header of {length:,} bytes")
    raw = file.read(length)
    if len(raw) < length:
        raise ValueError(f"its header should have {length:,} bytes, and the file ends after {len(raw):,}.")
    limits.check_text(raw)
    text = raw.decode("latin-1")  # a byte for each character; names are decoded one by one
    del raw
    header = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    del text
    if not isinstance(header, dict):
        raise ValueError("its header is no object of JSON.")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("its metadata are no texts.")
    if not metadata.get("manifest", "").isascii():
        raise ValueError("its manifest is written in other letters than mercer writes.")
    limits.require(len(header), limits.ARRAYS, f"{len(header):,} arrays")
    begin = 8 + length
    declared = {name.encode("latin-1").decode(): _declared(name, entry, begin) for name, entry in header.items()}
    place = begin
    for array in sorted(declared.values(), key=lambda array: (array.start, array.stop)):
        if array.start != place:
            raise ValueError(f"its arrays do not follow each other at byte {place:,}.")
        place = array.stop
    if place != size:
        raise ValueError(f"its arrays end at byte {place:,}, and the file at {size:,}.")
    return metadata, declared


def _declared(name: str, entry: Any, begin: int) -> Declared:
    """Return what a header says about one array, if it is possible."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the array {name!r:.80} has no type, shape and place.")
    shape, places = entry["shape"], entry["data_offsets"]
    for numbers in (shape, places):
        if not isinstance(numbers, list) or not all(type(n) is int and 0 <= n < 2**48 for n in numbers):
            raise ValueError(f"the array {name!r:.80} has no shape or place that an array can have.")
    if entry["dtype"] not in _DTYPES or len(shape) > 32 or len(places) != 2:
        raise ValueError(f"the array {name!r:.80} has the type {entry['dtype']!r:.40}, which no model has.")
    dtype = np.dtype(_DTYPES[entry["dtype"]])
    if places[1] - places[0] != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"the array {name!r:.80} claims the shape {tuple(shape)} and holds something else.")
    limits.check_shape(name, tuple(shape))
    return Declared(dtype, tuple(shape), begin + places[0], begin + places[1])


def _pieces(file: BinaryIO, array: Declared) -> Iterable[bytes]:
    file.seek(array.start)
    for place in range(array.start, array.stop, _PIECE):
        yield file.read(min(_PIECE, array.stop - place))


def _array(file: BinaryIO, name: str, declared: Declared) -> np.ndarray:
    """Return an array of the file, unless there is something about it that NumPy takes on trust."""
    file.seek(declared.start)
    array = np.empty(declared.shape, declared.dtype)
    if array.size and file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:  # type: ignore[attr-defined]
        raise ValueError(f"the file ends before the array {name!r:.80} does.")
    if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        raise ValueError(f"the array {name!r:.80} holds truth values that are neither true nor false.")
    return array


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


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        manifest = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise DamagedFile(f"{name} is damaged: its manifest is not JSON as mercer writes it.") from None
    if not isinstance(manifest, dict):
        raise DamagedFile(f"{name} is damaged: its manifest is no object of JSON.")
    return manifest


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("an object of JSON has a key twice")
    return mapping


def _sentence(error: BaseException) -> str:
    """Return what an error says, as the end of a sentence."""
    said = " ".join(str(error).split())
    return f"{said[:300] or type(error).__name__}{'' if said.endswith('.') else '.'}"


def _bytes(array: np.ndarray) -> Iterable[Any]:
    return [array.reshape(-1).view(np.uint8).data] if array.size else []


def _digest(version: int, text: str, arrays: Mapping[str, Any], pieces: Callable[[Any], Iterable[Any]] = _bytes) -> str:
    """Return the SHA-256 of the manifest and of every array with its name, type and shape."""
    digest = hashlib.sha256(f"{FORMAT} {version} {len(text)}\n{text}".encode())
    for name in sorted(arrays):
        digest.update(f"\n{name} {arrays[name].dtype.name} {arrays[name].shape}\n".encode())
        for piece in pieces(arrays[name]):
            digest.update(piece)
    return digest.hexdigest()


def save(model: Any, path: str | os.PathLike[str], *, facts: dict[str, Any] | None = None) -> None:
    """Write a model into one file: plain data, no code and no pickle.

    The file appears whole or not at all; one of that name is replaced when the new one is on the disk.

    Parameters
    ----------
    model
        Any estimator or kernel of mercer, fitted or not; a pipeline of scikit-learn's preprocessing and such an
        estimator; an `RKHSFunction` or `RKHSVector`. Classes and functions of one's own are registered first
        (`mercer.io.register`). Parameters that are places on this machine (`checkpoint`, a pipeline's `memory`) are
        saved as None.
    path
        The file, by custom `something.mercer`.
    facts
        Whatever else should be known of the model, as plain data: `mercer.io.facts(path)` returns it.

    Examples
    --------
    >>> import tempfile, mercer
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = mercer.SVC(C=10.0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mercer.save(model, f"{folder}/iris.mercer")
    ...     again = mercer.load(f"{folder}/iris.mercer")
    >>> (again.decision_function(X) == model.decision_function(X)).all()
    np.True_
    """
    from mercer import __version__

    writer = Writer()
    try:
        manifest = {
            "mercer": __version__,
            "scikit-learn": sklearn.__version__,
            "model": writer.write(model, "model"),
            "facts": writer.write(facts, "facts"),
            "objects": writer.objects,
            "same": writer.same,
        }
        check_manifest(manifest)
        write(path, manifest, writer.arrays)
    except RecursionError:
        raise ValueError(
            "the model has objects within objects without end, and cannot be saved; keep them beside each other."
        ) from None
    except TooLarge as error:
        raise ValueError(
            f"the model has too many small parts to be saved: {error}. Keep its points in arrays rather than in lists "
            "of objects, and its kernels small."
        ) from None


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that `save` wrote; its predictions are the same to the last bit.

    No code is run that is not this library's: a file can only make objects of the classes that mercer knows, or that
    were registered. Whatever is not a sound model file is refused in one sentence.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    DamagedFile
        The file is none of mercer's, or not as it was written. (A ValueError.)
    NotRegistered
        It names a class that is not registered in this process. (A ValueError.)
    NewerFile
        It was written by a newer version, in a format that this one does not know. (A ValueError.)

    Examples
    --------
    >>> import tempfile, mercer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mercer.save(mercer.RBF(2.0) + mercer.Linear(), f"{folder}/kernel.mercer")
    ...     mercer.load(f"{folder}/kernel.mercer")
    RBF(scale=2.0) + Linear()
    """
    return _loaded(path, "model")


def facts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the facts that were saved with a model.

    Parameters
    ----------
    path
        The file.
    """
    saved = _loaded(path, "facts")
    return saved if isinstance(saved, dict) else {}


def _loaded(path: str | os.PathLike[str], what: str) -> Any:
    manifest, arrays = read(path)
    try:
        arrays |= {name: arrays[other] for name, other in manifest["same"].items()}
        versions = {k: v for k, v in manifest.items() if k in ("mercer", "scikit-learn") and isinstance(v, str)}
        return Reader(manifest["objects"], Stored(arrays), versions).read(manifest[what])
    except NotRegistered as error:
        raise NotRegistered(f"{os.fspath(path)!r} cannot be loaded: {error}") from None
    except Exception as error:  # a file from anywhere: whatever it provokes ends in one sentence
        said = " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
        raise DamagedFile(f"{os.fspath(path)!r} is damaged, or was changed or written by other code: {said}.") from None
