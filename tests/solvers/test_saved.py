"""Arrays left behind by a killed run."""

import numpy as np
import pytest

from mercer.solvers import Control
from mercer.solvers.saved import Saved

PROBLEM = [np.arange(3.0), np.array([True])]


def test_returns_what_was_written(tmp_path):
    control = Control(checkpoint=tmp_path / "a.npz", every=1000.0)
    saved = Saved(control, PROBLEM)
    assert saved.restore() is None
    saved.write_now_and_then(np.zeros(2))  # not yet
    assert saved.restore() is None
    saved.write(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(Saved(control, PROBLEM).restore(), np.arange(6.0).reshape(2, 3))
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
    saved.remove()
    assert saved.restore() is None


@pytest.mark.parametrize("other", [[np.arange(3.0), np.array([False])], [np.arange(4.0), np.array([True])], []])
def test_refuses_another_problem(tmp_path, other):
    control = Control(checkpoint=tmp_path / "a.npz")
    Saved(control, PROBLEM).write(np.zeros(1))
    with pytest.raises(ValueError, match="belongs to another problem"):
        Saved(control, other).restore()


def test_refuses_a_broken_file(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 half a file")
    with pytest.raises(ValueError, match="cannot be read"):
        Saved(Control(checkpoint=tmp_path / "a.npz"), PROBLEM).restore()


def test_without_a_file_does_nothing():
    saved = Saved(Control(), PROBLEM)
    saved.write(np.zeros(1))
    saved.write_now_and_then(np.zeros(1))
    saved.remove()
    assert saved.restore() is None
