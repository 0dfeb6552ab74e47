"""Saving and loading models."""

from __future__ import annotations

import os
from typing import Any

import sklearn

from mercer.io.container import DamagedFile, read, write
from mercer.io.limits import Stored, TooLarge, check_manifest
from mercer.io.read import Reader
from mercer.io.registry import NotRegistered
from mercer.io.write import Writer


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
    found = _loaded(path, "facts")
    return found if isinstance(found, dict) else {}


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
