"""Checkpoints: what is written is read again, half a file never is, and those of other problems are refused."""

import numpy as np
import pytest

from mercer import Gram, Linear
from mercer.solvers import Control, SVMDual
from mercer.solvers.checkpoint import Checkpoint
from mercer.solvers.state import State

N = 6
Y = np.where(np.arange(N) < 3, 1.0, -1.0)


def state(y=Y, C=1.0, offset="free", width=0.0, **start):
    gram = Gram(Linear(), np.arange(2.0 * len(y)).reshape(len(y), 2))
    return State(SVMDual(gram, -y, C * (y > 0), C * (y < 0), width, offset, **start))


def one_class(nu):
    gram, one = Gram(Linear(), np.eye(N)), np.ones(N)
    return State(SVMDual(gram, 0 * one, one, 0 * one, plus=nu * one))


def nu_classes(nu):
    gram = Gram(Linear(), np.eye(N))
    up, low = (Y > 0) * 1.0, (Y < 0) * 1.0
    return State(SVMDual(gram, 0 * Y, up, low, offset="split", plus=nu * up, minus=nu * low))


def of(path, s, **control):
    return Checkpoint(Control(checkpoint=path, **control), s)


def moved(s, by=0.25):
    """A step that keeps the sum."""
    s.plus[0] += by
    s.minus[-2 if s.phantom else -1] += by
    return s


@pytest.mark.parametrize("offset", ["free", "none", "split"])
@pytest.mark.parametrize("as_text", [False, True])
def test_a_round_trip_is_exact(tmp_path, offset, as_text):
    path = tmp_path / "fit.state"  # the name is the caller's: no suffix is added
    ours, theirs = state(offset=offset), state(offset=offset)
    if offset == "split":
        ours, theirs = nu_classes(0.5), nu_classes(0.5)
        ours.plus[:2] += [0.25, -0.25]
    writer = of(str(path) if as_text else path, ours)
    if offset != "split":
        moved(ours, np.pi / 7)
    writer.write()
    assert [p.name for p in tmp_path.iterdir()] == ["fit.state"]
    of(path, theirs).restore()
    np.testing.assert_array_equal(theirs.plus, ours.plus)
    np.testing.assert_array_equal(theirs.minus, ours.minus)


def test_no_file_and_no_path_mean_a_start_from_the_beginning(tmp_path):
    for path in (None, tmp_path / "none.npz"):
        s = state()
        checkpoint = of(path, s)
        checkpoint.restore()
        assert not s.plus.any()
        checkpoint.remove()
    of(None, state()).write()
    of(None, state(), every=0.0).write_now_and_then()
    assert not list(tmp_path.iterdir())


def test_an_interrupted_write_leaves_the_file_before_it(tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    s = state()
    checkpoint = of(path, s)
    moved(s)
    checkpoint.write()
    before = path.read_bytes()

    def killed(file, **arrays):
        file.write(b"PK\x03\x04 and then the lights went out")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", killed)
    moved(s)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.write()
    monkeypatch.undo()
    assert path.read_bytes() == before
    fresh = state()
    of(path, fresh).restore()  # with the draft beside it
    assert fresh.plus[0] == 0.25
    of(path, fresh).write()
    assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]


def test_a_draft_alone_is_no_checkpoint(tmp_path):
    (tmp_path / "fit.npz.part").write_bytes(b"half of")
    s = state()
    of(tmp_path / "fit.npz", s).restore()
    assert not s.plus.any()


@pytest.mark.parametrize(
    "other",
    [
        lambda: state(-Y),
        lambda: state(C=2.0),
        lambda: state(width=0.1),
        lambda: state(np.append(Y, 1.0)),
        lambda: state(offset="none"),
    ],
    ids=["labels", "bounds", "width", "number", "offset"],
)
def test_another_problem_is_refused(tmp_path, other):
    path = tmp_path / "fit.npz"
    of(path, state()).write()
    s = other()
    with pytest.raises(ValueError, match=r"fit\.npz' belongs to another problem .*; remove it, or name another file"):
        of(path, s).restore()
    assert not s.coefficients.any()


@pytest.mark.parametrize("make", [one_class, nu_classes])
def test_another_nu_is_refused(tmp_path, make):
    """nu is in the sums of the coefficients alone, which every step keeps: a resumed run would never leave them."""
    path = tmp_path / "fit.npz"
    of(path, make(0.5)).write()
    of(path, make(0.5 + 1e-13)).restore()  # rounding is no difference
    with pytest.raises(ValueError, match=r"another problem \(other labels, bounds or nu\)"):
        of(path, make(0.25)).restore()


def damaged(path):
    whole = path.read_bytes()
    np.save(path.with_name("array.npy"), np.ones(3))
    np.savez(path.with_name("other.npz"), weights=np.ones(3))
    return {
        "empty": b"",
        "text": b"no archive",
        "cut": whole[: len(whole) // 2],
        "an array": path.with_name("array.npy").read_bytes(),
        "another archive": path.with_name("other.npz").read_bytes(),
    }


@pytest.mark.parametrize("kind", ["empty", "text", "cut", "an array", "another archive"])
def test_what_cannot_be_read_is_named(tmp_path, kind):
    path = tmp_path / "fit.npz"
    of(path, state()).write()
    path.write_bytes(damaged(path)[kind])
    with pytest.raises(ValueError, match=r"fit\.npz' cannot be read \(.+\); remove it to start anew"):
        of(path, state()).restore()


def test_files_are_written_now_and_then(tmp_path):
    path = tmp_path / "fit.npz"
    of(path, state(), every=3600.0).write_now_and_then()
    assert not path.exists()
    of(path, state(), every=0.0).write_now_and_then()
    assert path.exists()


def test_nothing_is_left_of_a_fit_that_is_done(tmp_path):
    path = tmp_path / "fit.npz"
    checkpoint = of(path, state())
    checkpoint.write()
    checkpoint.remove()
    checkpoint.remove()
    assert not list(tmp_path.iterdir())
