"""Disks that are full, read-only or gone, and fits that share a checkpoint: all end as without, and say so once."""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from children import Child
from mercer import SVC, KernelMachine, KernelRidge
from mercer.estimators.regression import base as representer
from mercer.estimators.svm import machine as base
from mercer.solvers import Control
from mercer.solvers.run import Checkpoint

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on this system")

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
REAL = X[:, 0] + 0.5 * np.sin(3 * X[:, 1]) + 0.1 * RNG.normal(size=N)
LABELS = np.where(REAL > 0, 1, -1)
MODELS = {
    "machine": (SVC(C=10.0, budget="500 kB"), LABELS),
    "three machines": (SVC(C=10.0), np.digitize(REAL, [-0.5, 0.5])),
    "hard margin": (SVC(C=np.inf, kernel="linear"), np.where(X[:, 0] > 0, 1, -1)),
    "ridge": (KernelRidge(alpha=1e-3, kernel="rbf", solver="cg"), REAL),
    "engine": (KernelMachine(loss="huber"), REAL),
}
each_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(autouse=True)
def _written_at_every_step(monkeypatch):
    for module in (base, representer):
        monkeypatch.setattr(module, "Control", partial(Control, every=0.0))


@pytest.fixture
def folder():
    """A folder into which everybody may look: pytest's own are for their owner."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        inner = Path(name, "checkpoints")
        inner.mkdir()
        first = Checkpoint(Control(checkpoint=inner / "first"))  # modules loaded by its use may not be another user's
        first.write(a=0.0)
        first.restore(a=())
        first.remove()
        yield inner


def fit(name, path, prepare=lambda: None):
    """Return whether the fit has converged, whether that is so, and its values."""
    prepare()
    model, y = MODELS[name]
    model.set_params(checkpoint=path).fit(X, y)
    claim = model.certificate_
    return claim.converged, claim.verify(X, y).converged, model.predict(X)


def ends_as_without(name, path, prepare=lambda: None):
    """Fit in a child, compare with a fit without checkpoint, and return the warnings."""
    without = fit(name, None)
    (converged, confirmed, values), said = Child(fit, name, path, prepare).answer()
    assert converged
    assert confirmed
    np.testing.assert_allclose(values, without[2], atol=1e-2)
    return said


def nobody():
    """Become a user who may not write everywhere; the tests may be run by one who may."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


@each_model
def test_a_full_disk_is_one_warning(folder, name):
    """A limit on the size of files fails as a full disk does, within a file."""
    said = ends_as_without(name, folder / "fit.npz", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)))
    assert len(said) == 1
    assert "cannot be written ([Errno 27] File too large" in said[0]
    assert said[0].endswith("; the fit goes on without it.")
    assert not os.listdir(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a file system of Linux")
def test_a_file_system_without_room_is_one_warning(folder):
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        said = ends_as_without("machine", folder / "fit.npz")
        assert len(said) == 1
        assert "No space left on device" in said[0]
        assert not os.listdir(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@each_model
def test_a_folder_that_must_not_be_written_is_one_warning_at_the_start(folder, name):
    os.chmod(folder, 0o555)
    said = ends_as_without(name, folder / "fit.npz", nobody)
    assert len(said) == 1
    assert f"cannot be written (no permission to write in {str(folder)!r})" in said[0]


def test_a_checkpoint_that_must_not_be_removed_is_resumed_all_the_same(folder):
    model = SVC(C=10.0, budget="500 kB", checkpoint=folder / "fit.npz", max_iter=100)
    with pytest.warns(UserWarning, match="max_iter=100 reached"):
        model.fit(X, LABELS)
    os.chmod(folder / "fit.npz", 0o644)
    os.chmod(folder, 0o555)
    assert len(ends_as_without("machine", folder / "fit.npz", nobody)) == 1
    assert os.listdir(folder) == ["fit.npz"]


@each_model
def test_a_folder_that_is_not_there_is_an_error_before_the_fit(folder, name):
    model, y = MODELS[name]
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nowhere' for the checkpoint 'fit\.npz'"):
        model.set_params(checkpoint=folder / "nowhere" / "fit.npz").fit(X, y)


@each_model
def test_a_folder_that_goes_away_is_one_warning(folder, name):
    write = Checkpoint.write

    def write_and_lose(self, **arrays):
        write(self, **arrays)
        shutil.rmtree(folder, ignore_errors=True)

    def prepare():
        Checkpoint.write = write_and_lose

    said = ends_as_without(name, folder / "fit.npz", prepare)
    assert len(said) <= 1  # where it was written more than once
    assert all("there is no folder" in text for text in said)
    assert name != "machine" or said


@pytest.mark.parametrize("times", [2, pytest.param(50, marks=pytest.mark.long)])
def test_two_processes_with_one_checkpoint_both_end_well(folder, times):
    failures = []
    for number in range(times):
        name = list(MODELS)[number % len(MODELS)]
        for child in [Child(fit, name, folder / "fit.npz") for _ in range(3)]:
            try:
                (converged, confirmed, _), said = child.answer()
                assert converged
                assert confirmed
                assert not said
            except AssertionError as problem:
                failures.append(str(problem))
        if os.listdir(folder):
            failures.append(f"{os.listdir(folder)} are left")
    print(f"\n{times} times three fits with one checkpoint: {len(failures)} failures")  # noqa: T201
    assert not failures
