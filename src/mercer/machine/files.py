"""Files that appear whole or not at all, whatever ends the program that writes them."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

_DRAFT = re.compile(r"\.mercer-([0-9a-f]{8})-([0-9]{1,10})-[0-9a-f]{12}\.tmp")
_ABANDONED_SECONDS = 86_400.0  # age at which a draft counts as left behind where its process cannot be asked for


@contextmanager
def placed(*paths: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """Yield a draft beside each path; the drafts get the paths' names together when the block ends well.

    If it does not (no space, Ctrl-C), files of these names stay as they were and the drafts are removed. A link is
    followed: what it points to is replaced. Drafts that killed processes have left in the same folders are removed.

    Parameters
    ----------
    *paths
        The files; those that are there are replaced and keep their permissions.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with placed(f"{folder}/a.txt") as (draft,):
    ...         _ = draft.write_text("whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    targets = [_target(path) for path in paths]
    for folder in {target.parent for target in targets}:
        sweep(folder)
    drafts = [target.with_name(f".mercer-{_here()}-{os.getpid()}-{secrets.token_hex(6)}.tmp") for target in targets]
    try:
        modes = [_create(draft, target) for draft, target in zip(drafts, targets, strict=True)]
        yield drafts
        for draft, mode in zip(drafts, modes, strict=True):
            os.chmod(draft, mode)  # who wrote it may have put a file of its own there
            _to_disk(draft, os.O_RDWR)
        with _uninterrupted():
            for draft, target in zip(drafts, targets, strict=True):
                os.replace(draft, target)
    except BaseException:
        for draft in drafts:
            with suppress(OSError):
                draft.unlink()
        raise
    if os.name == "posix":
        for folder in {target.parent for target in targets}:
            _to_disk(folder, os.O_RDONLY)  # the names, too, are to survive a power cut


def _target(path: str | os.PathLike[str]) -> Path:
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)!r} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r} to write {target.name!r} into; make it.")
    with suppress(FileNotFoundError):  # asked once: another process may remove it at any moment
        if not stat.S_ISREG(target.stat().st_mode):
            raise OSError(f"{os.fspath(path)!r} is a device or a pipe, and would be replaced by a file; name a file.")
    return target


def _create(draft: Path, target: Path) -> int:
    """Make the empty draft and return the permissions it is to have: the target's, or what the umask leaves."""
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return stat.S_IMODE(draft.stat().st_mode)


def _to_disk(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[tuple[int, FrameType | None]] = []
    before: Any = signal.signal(signal.SIGINT, lambda number, frame: asked.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked and callable(before):
        before(*asked[0])


# -- what killed writers have left ------------------------------------------------------------------------


@cache
def _here() -> str:
    """Return eight digits that processes share which see each other's numbers: this machine, since it was started."""
    parts = [os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def sweep(folder: Path) -> None:
    """Remove the drafts of processes that are no more."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = _DRAFT.fullmatch(entry.name)
            if name is None:
                continue
            with suppress(OSError):
                if (
                    _gone(name[1], int(name[2]))
                    or time.time() - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED_SECONDS
                ):
                    os.unlink(entry.path)


def _gone(where: str, process: int) -> bool:
    if where != _here() or sys.platform == "win32":  # there, the question would end the process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
