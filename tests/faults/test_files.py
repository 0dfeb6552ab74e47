"""Files that a disk, a network or somebody on purpose has changed: refused in a sentence, or as good as any other."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import RBF, Linear
from mercer.io import DamagedFile, container, limits

linux = pytest.mark.skipif(sys.platform != "linux", reason="limits memory by way of /proc")


def run(program, *arguments):
    """Return what a program of this folder prints, as JSON."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(program)), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def mutated(folder, count, seed):
    told = run("mutations.py", folder, count, seed)
    ends = told["ends"]
    loaded = sum(n for end, n in ends.items() if end.endswith("loaded"))
    failed, crashes = ends["failed"], len(told["strange"])
    print(f"\n{count} mutated files: {loaded:,} load, {failed:,} fail at predict, {crashes:,} crashes")  # noqa: T201
    assert told["failed"] == {}
    assert told["strange"] == []
    assert told["events"] == []
    assert sum(n for end, n in ends.items() if end.endswith(("loaded", "refused"))) == count
    for how in ("bytes", "manifest", "arrays"):
        assert ends[f"{how}: refused"] > count // 20
    assert ends["manifest: loaded"] > 0  # some edits leave a model: another number, another name
    assert ends.get("bytes: loaded", 0) == 0


@linux
def test_150_mutated_files_are_refused_or_answer(tmp_path):
    mutated(tmp_path, 150, 1)


@linux
@pytest.mark.long
def test_10000_mutated_files_are_refused_or_answer(tmp_path):
    mutated(tmp_path, 10_000, 2)


@linux
def test_crafted_files_end_and_take_four_times_their_size(tmp_path):
    told = run("crafted.py", tmp_path)
    largest = max(told, key=lambda name: told[name][1] - 4 * told[name][2])
    print(  # noqa: T201 (for pytest -s)
        f"\n{len(told)} crafted files: {sum(end != 'used' for end, *_ in told.values())} refused; "
        f"largest {largest}, {told[largest][1]:.0f} MB for {told[largest][2]:.1f}"
    )
    assert len(told) >= 50
    for name, (end, memory, size) in told.items():
        assert end == "used" or end.startswith("refused"), (name, end)
        assert memory < 4 * size + 50, name


# -- what can be saved loads again ------------------------------------------------------------------------


def test_parts_that_kernels_share_stay_shared(tmp_path):
    part = RBF(np.arange(1.0, 71.0))
    mercer.save(part * part + part, tmp_path / "k.mercer")
    found = mercer.load(tmp_path / "k.mercer")
    assert found.right is found.left.left is found.left.right
    assert found == part * part + part
    assert len(container.read(tmp_path / "k.mercer")[1]) == 1


def test_the_deepest_kernel_that_is_saved_is_loaded_and_used(tmp_path):
    kernel = RBF(1.0)
    for i in range(limits.KERNELS - 1):
        kernel = kernel + RBF(1.0 + i)
    mercer.save(kernel, tmp_path / "k.mercer")
    found = mercer.load(tmp_path / "k.mercer")
    assert found == kernel
    assert hash(found) == hash(kernel)
    assert found.proof().proven
    assert found(np.eye(2)).shape == (2, 2)
    with pytest.raises(ValueError, match="201 kernels within each other, and a model file holds at most 200"):
        mercer.save(kernel + Linear(), tmp_path / "k.mercer")


def test_a_kernel_that_doubles_itself_is_refused_when_it_is_saved(tmp_path):
    kernel = RBF(1.0)
    for _ in range(50):
        kernel = kernel * kernel
    with pytest.raises(ValueError, match=r"a kernel whose proof takes .* values, each counted as often as it occurs"):
        mercer.save(kernel, tmp_path / "k.mercer")


def test_lists_without_end_are_refused_when_they_are_saved(tmp_path):
    deep = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(ValueError, match="objects within objects without end"):
        mercer.save(mercer.RBF(), tmp_path / "k.mercer", facts={"deep": deep})


def test_long_lists_of_nothing_are_short_in_a_file(tmp_path):
    mercer.save([[None] * 5000, [()] * 5000], tmp_path / "k.mercer")
    assert (tmp_path / "k.mercer").stat().st_size < 1000
    assert mercer.load(tmp_path / "k.mercer") == [[None] * 5000, [()] * 5000]


def test_a_damaged_digest_is_noticed_before_the_manifest_is_read(tmp_path, monkeypatch):
    mercer.save(mercer.RBF(), tmp_path / "k.mercer")
    whole = (tmp_path / "k.mercer").read_bytes()
    (tmp_path / "k.mercer").write_bytes(whole.replace(b"RBF", b"RBG"))
    monkeypatch.setattr(container, "_parsed", lambda *_: pytest.fail("the manifest was parsed"))
    with pytest.raises(DamagedFile, match="its contents do not match their digest"):
        mercer.load(tmp_path / "k.mercer")
