"""Files appear whole or not at all, together, and what killed writers leave is removed by the next."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mercer.machine import files
from mercer.machine.files import placed

DRAFTS = ".mercer-*.tmp"


def write_two(folder, error=None):
    with placed(folder / "a", folder / "b") as (a, b):
        a.write_text("1")
        b.write_text("2")
        assert not (folder / "b").exists()
        if error is not None:
            raise error


def test_files_get_their_names_together(tmp_path):
    write_two(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_everything_as_it_was(tmp_path, error):
    (tmp_path / "a").write_text("old")
    with pytest.raises(error):
        write_two(tmp_path, error)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_ctrl_c_waits_until_all_have_their_names(tmp_path, monkeypatch):
    replace = os.replace

    def interrupted(source, target):
        replace(source, target)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_two(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_permissions_of_a_file_that_is_replaced_are_kept(tmp_path):
    (tmp_path / "a").touch(mode=0o600)
    with placed(tmp_path / "a", tmp_path / "b"):
        pass
    (tmp_path / "plain").touch()
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "b", "plain")]
    assert modes[0] == 0o600
    assert modes[1] == modes[2]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "a")
    with placed(tmp_path / "link") as (draft,):
        draft.write_text("1")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "a").read_text() == "1"


def test_devices_and_pipes_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="device or a pipe"), placed(tmp_path / "pipe"):
        pass


def test_the_draft_of_a_killed_writer_is_removed_by_the_next(tmp_path):
    place = str(tmp_path / "a")
    code = f"from mercer.machine.files import placed\nwith placed({place!r}):\n print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        with placed(tmp_path / "b"):  # while the other one is at work
            assert len(list(tmp_path.glob(DRAFTS))) == 2
        assert len(list(tmp_path.glob(DRAFTS))) == 1
        writer.kill()
    with placed(tmp_path / "b"):
        assert len(list(tmp_path.glob(DRAFTS))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_drafts_of_other_machines_are_removed_when_they_are_old(tmp_path):
    old, new = (tmp_path / f".mercer-{'0' * 8}-1-{'0' * 11}{i}.tmp" for i in range(2))
    for path in (old, new):
        path.touch()
    os.utime(old, (time.time() - 2 * files._ABANDONED_SECONDS,) * 2)
    with placed(tmp_path / "b"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, "b"]


def test_a_file_that_goes_away_between_two_looks_is_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda path: True)  # it was there a moment ago
    with placed(tmp_path / "a") as (draft,):
        draft.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
