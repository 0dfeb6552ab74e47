"""Checkpoints: what is written is read again, half a file never is, and those of others or made up are refused."""

import io
import os
import struct
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import RBF, Gram, KernelMachine, KernelRidge, Linear
from mercer.losses import Norm
from mercer.machine.files import placed
from mercer.solvers import Control, SVMDual, solve
from mercer.solvers.dual.problem import State
from mercer.solvers.run import Checkpoint

PROBLEM = [np.arange(3.0), np.array([True])]
N = 6
Y = np.where(np.arange(N) < 3, 1.0, -1.0)


def machine(y=Y, C=1.0, offset="free", width=0.0):
    gram = Gram(Linear(), np.arange(2.0 * len(y)).reshape(len(y), 2))
    return SVMDual(gram, -y, C * (y > 0), C * (y < 0), width, offset)


def one_class(nu):
    one = np.ones(N)
    return SVMDual(Gram(Linear(), np.eye(N)), 0 * one, one, 0 * one, plus=nu * one)


def nu_classes(nu):
    up, low = (Y > 0) * 1.0, (Y < 0) * 1.0
    return SVMDual(Gram(Linear(), np.eye(N)), 0 * Y, up, low, offset="split", plus=nu * up, minus=nu * low)


def left_by(problem, path, **values):
    """Write what a killed run on a problem would leave, with some of its values replaced."""
    s = State(problem)
    Checkpoint(Control(checkpoint=path), (s.linear, s.upper, s.lower, s.width)).write(
        **{"plus": s.plus, "minus": s.minus} | values
    )


# -- the file ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_text", [False, True])
def test_a_round_trip_is_exact(tmp_path, as_text):
    path = tmp_path / "fit.state"  # the name is the caller's: no suffix is added
    control = Control(checkpoint=str(path) if as_text else path, every=1000.0)
    checkpoint = Checkpoint(control, PROBLEM)
    assert checkpoint.restore(A=(2, 3), b=()) is None
    checkpoint.write_now_and_then(A=np.zeros((2, 3)), b=0.0)  # not yet
    assert not path.exists()
    A = np.asfortranarray(np.arange(6.0).reshape(2, 3)) / np.pi
    checkpoint.write(A=A, b=1 / 3)
    assert [p.name for p in tmp_path.iterdir()] == ["fit.state"]
    read = Checkpoint(control, PROBLEM).restore(A=(2, 3), b=())
    np.testing.assert_array_equal(read["A"], A)
    assert read["b"] == 1 / 3
    checkpoint.remove()
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


def test_files_are_written_now_and_then(tmp_path):
    path = tmp_path / "fit.npz"
    Checkpoint(Control(checkpoint=path, every=3600.0)).write_now_and_then(a=1.0)
    assert not path.exists()
    Checkpoint(Control(checkpoint=path, every=0.0)).write_now_and_then(a=1.0)
    assert path.exists()


def test_without_a_name_nothing_happens():
    checkpoint = Checkpoint(Control(every=0.0), PROBLEM)
    checkpoint.write(a=1.0)
    checkpoint.write_now_and_then(a=1.0)
    checkpoint.remove()
    assert checkpoint.restore(a=()) is None


def test_an_interrupted_write_leaves_the_file_before_it(tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    checkpoint = Checkpoint(Control(checkpoint=path))
    checkpoint.write(a=1.0)
    before = path.read_bytes()

    def interrupted(self, data):
        with open(self, "wb") as file:
            file.write(b"PK\x03\x04 and then")
        raise KeyboardInterrupt

    monkeypatch.setattr(type(path), "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.write(a=2.0)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]


def test_two_runs_may_write_one_file_at_the_same_moment(tmp_path, monkeypatch):
    path, replace = tmp_path / "fit.npz", os.replace
    one, other = Checkpoint(Control(checkpoint=path)), Checkpoint(Control(checkpoint=path))

    def after_the_other(draft, target):
        monkeypatch.setattr(os, "replace", replace)
        other.write(a=2.0)
        replace(draft, target)

    monkeypatch.setattr(os, "replace", after_the_other)
    one.write(a=1.0)
    assert one.restore(a=())["a"] == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]


def test_what_a_killed_writer_has_left_goes_with_the_checkpoint(tmp_path):
    checkpoint = Checkpoint(Control(checkpoint=tmp_path / "fit.npz"))
    with pytest.raises(KeyboardInterrupt), placed(tmp_path / "fit.npz") as (draft,):
        raise KeyboardInterrupt
    draft.with_name(draft.name.replace(f"-{os.getpid()}-", "-4194999-")).write_bytes(b"half")  # of no process
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


def test_a_link_is_followed_in_both_directions(tmp_path):
    (tmp_path / "there").mkdir()
    path = tmp_path / "fit.npz"
    path.symlink_to(tmp_path / "there" / "real.npz")
    checkpoint = Checkpoint(Control(checkpoint=path))
    checkpoint.write(a=1.0)
    assert path.is_symlink()
    assert checkpoint.restore(a=())["a"] == 1.0
    checkpoint.remove()
    assert not list((tmp_path / "there").iterdir())


@pytest.mark.parametrize("other", [[np.arange(3.0), np.array([False])], [np.arange(4.0), np.array([True])], []])
def test_another_problem_is_refused(tmp_path, other):
    control = Control(checkpoint=tmp_path / "fit.npz")
    Checkpoint(control, PROBLEM).write(a=np.zeros(4))
    with pytest.raises(ValueError, match=r"fit\.npz' belongs to another problem .*; remove it, or name another file"):
        Checkpoint(control, other).restore(a=(5,))


# -- files that no run has written --------------------------------------------------------------------------


def bzip2ed(arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(f"{name}.npy", member.getvalue())
    return file.getvalue()


def archived(save=np.savez, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def headed(text):
    """A member whose header says something else than its data."""
    header = text.encode().ljust(117) + b"\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("key", "a"):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8))
    return file.getvalue()


ZEROS = np.zeros(1_000_000)
DAMAGED = {
    "empty": lambda whole: b"",
    "text": lambda whole: b"no archive",
    "half": lambda whole: whole[: len(whole) // 2],
    "a flipped bit": lambda whole: whole.replace(np.ones(3).tobytes(), np.ones(3).tobytes()[:-1] + b"\x40"),
    "another archive": lambda whole: archived(weights=np.ones(3)),
    "another shape": lambda whole: archived(key=0.0, a=np.ones((3, 1))),
    "too short": lambda whole: archived(key=0.0, a=np.ones(2)),
    "float32": lambda whole: archived(key=0.0, a=np.ones(3, np.float32)),
    "objects": lambda whole: archived(key=0.0, a=np.array([1.0, None, 2.0], dtype=object)),
    "text for a key": lambda whole: archived(key="key", a=np.ones(3)),
    "many zeros": lambda whole: archived(np.savez_compressed, key=0.0, a=ZEROS),
    "many keys": lambda whole: archived(np.savez_compressed, key=ZEROS, a=np.ones(3)),
    "many zeros by bzip2": lambda whole: bzip2ed({"key": 0.0, "a": ZEROS}),
    "a large header": lambda whole: headed("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,), }"),
    "a nested header": lambda whole: headed("(" * 100),
    "a large directory": lambda whole: whole[:-10] + struct.pack("<I", 2**31) + whole[-6:],
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_what_cannot_be_read_is_refused_without_much_memory(tmp_path, kind):
    path = tmp_path / "fit.npz"
    checkpoint = Checkpoint(Control(checkpoint=path))
    checkpoint.write(a=np.ones(3))
    path.write_bytes(DAMAGED[kind](path.read_bytes()))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"fit\.npz' cannot be read \(.+\); remove it, or name another file\."):
            checkpoint.restore(a=(3,))
        assert tracemalloc.get_traced_memory()[1] < 2 * path.stat().st_size + 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_is_refused(tmp_path, value):
    checkpoint = Checkpoint(Control(checkpoint=tmp_path / "fit.npz"))
    checkpoint.write(a=np.array([1.0, value]))
    with pytest.raises(ValueError, match=r"fit\.npz' holds a value of a that is not finite; remove it"):
        checkpoint.restore(a=(2,))


# -- the values of a support vector machine -----------------------------------------------------------------


@pytest.mark.parametrize("make", [machine, lambda: machine(offset="none"), lambda: nu_classes(0.5)])
def test_a_run_goes_on_from_feasible_values(tmp_path, make):
    path, s = tmp_path / "fit.npz", State(make())
    s.plus[0] += 0.25
    s.minus[N - 1 if s.groups == 1 else N - 2] += 0.25
    if s.groups == 2:
        s.plus[1] -= 0.25
        s.minus[N - 1] -= 0.25
    left_by(make(), path, plus=s.plus, minus=s.minus)
    (stopped,) = solve([make()], Control(max_iter=0, checkpoint=path))
    np.testing.assert_array_equal(stopped.plus, s.plus[:N])
    np.testing.assert_array_equal(stopped.minus, s.minus[:N])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"plus": np.full(N, -1.0)}, r"plus\[0\] = -1 is outside \[0, 1\]"),
        ({"plus": np.append(np.zeros(N - 1), 0.5)}, r"plus\[5\] = 0\.5 is outside \[0, 0\]"),
        ({"minus": np.append(np.zeros(N - 1), 1e300)}, r"minus\[5\] = 1e\+300 is outside \[0, 1\]"),
        ({"plus": np.append(0.5, np.zeros(N - 1))}, r"the coefficients have another sum"),
    ],
)
def test_values_that_no_run_leaves_are_refused(tmp_path, values, words):
    path = tmp_path / "fit.npz"
    left_by(machine(), path, **values)
    with pytest.raises(ValueError, match=rf"fit\.npz' .*{words}.*; remove it, or name another file\."):
        solve([machine()], Control(checkpoint=path))
    assert path.exists()


@pytest.mark.parametrize(
    "other",
    [machine(-Y), machine(C=2.0), machine(width=0.1), machine(np.append(Y, 1.0)), machine(offset="none")],
    ids=["labels", "bounds", "width", "number", "offset"],
)
def test_another_machine_is_refused(tmp_path, other):
    path = tmp_path / "fit.npz"
    left_by(machine(), path)
    with pytest.raises(ValueError, match=r"fit\.npz' belongs to another problem"):
        solve([other], Control(checkpoint=path))


@pytest.mark.parametrize("make", [one_class, nu_classes])
def test_another_nu_is_refused(tmp_path, make):
    """nu is in the sums of the coefficients alone, which every step keeps: a resumed run would never leave them."""
    path = tmp_path / "fit.npz"
    left_by(make(0.5 + 1e-13), path)
    solve([make(0.5)], Control(checkpoint=path))  # rounding is no difference
    left_by(make(0.5), path)
    with pytest.raises(ValueError, match=r"belongs to another problem \(.* another nu\)"):
        solve([make(0.25)], Control(checkpoint=path))


# -- every model ------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
REAL = X[:, 0] + 0.5 * np.sin(3 * X[:, 1])
LABELS = np.where(REAL + 0.3 * RNG.normal(size=50) > 0, 1, -1)
CLASSES = np.digitize(REAL, [-0.5, 0.5])
APART = np.where(X[:, 0] > 0, 1, -1)
MODELS = {
    "SVC": (mercer.SVC(C=10.0), LABELS),
    "SVC without offset": (mercer.SVC(C=10.0, fit_intercept=False), LABELS),
    "SVC of a large C": (mercer.SVC(C=1e8, tol=1e-3), LABELS),
    "SVC of three classes": (mercer.SVC(C=10.0), CLASSES),
    "hard margin": (mercer.SVC(C=np.inf, kernel="linear"), APART),
    "NuSVC": (mercer.NuSVC(nu=0.3), LABELS),
    "OneClassSVM": (mercer.OneClassSVM(nu=0.3), None),
    "SVR": (mercer.SVR(), REAL),
    "NuSVR": (mercer.NuSVR(), REAL),
    "KernelRidge": (KernelRidge(alpha=1e-3, kernel="rbf", solver="cg"), REAL),
    "logistic": (mercer.KernelLogisticRegression(), LABELS),
    "multinomial": (mercer.KernelLogisticRegression(), CLASSES),
    "robust": (mercer.KernelRobustRegressor(), REAL),
    "quantile": (mercer.KernelQuantileRegressor(0.3), REAL),
    "huber": (KernelMachine(loss="huber"), REAL),
    "norm": (KernelMachine(loss="huber", penalty=Norm(0.5)), REAL),
    "norm and hinge": (KernelMachine(loss="hinge", penalty=Norm(0.5)), LABELS),
}


def made_up(values):
    """Values in the place of others: wild, not finite, swapped, all nothing."""
    yield from (np.zeros_like(values), -values, values[::-1] if values.ndim else values * 1e9)
    for size in (1e-9, 1.0, 1e3, 1e13, 1e100, 1e300):
        yield size * RNG.normal(size=values.shape)
        yield size * RNG.uniform(size=values.shape)
    for value in (np.nan, np.inf, -1.0):
        one = values.copy()
        one.reshape(-1)[0] = value
        yield one


@pytest.mark.parametrize("name", MODELS)
def test_no_fit_claims_what_is_not_so_after_a_checkpoint_that_was_made_up(tmp_path, name):
    model, y = MODELS[name]
    path = tmp_path / "fit.npz"
    model.set_params(checkpoint=path)
    if not isinstance(model, KernelRidge):
        model.set_params(tol=max(model.tol, 1e-3) if "large" in name else 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(max_iter=3 if model.__module__.endswith(("svc", "svr", "oneclass")) else 1).fit(X, y)
    model.set_params(max_iter=-1)
    (file,) = sorted(tmp_path.iterdir())[:1]
    with np.load(file) as written:
        arrays = dict(written)
    ended = {"refused": 0, "confirmed": 0}
    for member in set(arrays) - {"key"}:
        for values in made_up(arrays[member]):
            for old in tmp_path.iterdir():
                old.unlink()
            with open(file, "wb") as handle:
                np.savez(handle, **arrays | {member: values})
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="the checkpoint .* is no better than zeros")
                try:
                    model.fit(X, y)
                except ValueError as refusal:
                    if not str(refusal).startswith("checkpoint"):
                        raise
                    ended["refused"] += 1
                    continue
            assert model.certificate_.converged
            assert model.certificate_.verify(X, y).converged
            ended["confirmed"] += 1
    assert ended["refused"] >= 2 * (len(arrays) - 1)


def test_a_checkpoint_worse_than_zeros_is_ignored_with_a_warning(tmp_path):
    path = tmp_path / "fit.npz"
    model = KernelMachine(loss="huber", tol=1e-6, checkpoint=path)
    with pytest.warns(ConvergenceWarning):
        KernelMachine(loss="huber", tol=1e-6, checkpoint=path, max_iter=1).fit(X, REAL)
    with np.load(path) as written:
        arrays = dict(written)
    with open(path, "wb") as file:
        np.savez(file, **arrays | {"b": np.float64(1e6)})
    with pytest.warns(UserWarning, match="is no better than zeros; the fit begins anew"):
        model.fit(X, REAL)
    assert model.certificate_.verify(X, REAL).converged


def test_a_warm_start_far_off_makes_no_false_claim():
    """The intercepts of a softmax that is all 0 and 1 are not found, and without them there is no dual point."""
    for scale in (10.0, 100.0, 1000.0):
        for seed in range(4):
            model = mercer.KernelLogisticRegression(tol=1e-6, warm_start=True).fit(X, CLASSES)
            model._warm = [scale * np.random.default_rng(seed).normal(size=model._warm[0].shape)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, CLASSES)
            assert model.certificate_.converged == model.certificate_.verify(X, CLASSES).converged


def test_a_robust_fit_that_is_cut_in_its_first_round_ends_and_goes_on(tmp_path):
    """Each round has a threshold of its own, and so a problem of its own."""
    model = mercer.KernelRobustRegressor(tol=1e-9, checkpoint=tmp_path / "fit.npz", max_iter=1)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, REAL)
    assert [p.name for p in tmp_path.iterdir()] == ["fit.npz"]
    model.set_params(max_iter=-1).fit(X, REAL)
    assert not list(tmp_path.iterdir())
    whole = mercer.KernelRobustRegressor(tol=1e-9).fit(X, REAL)
    assert model.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-3)


@pytest.mark.parametrize("told", [2, 3])
def test_a_hard_margin_goes_on_wherever_it_was_stopped(tmp_path, told):
    """Below each bound on the coefficients it is another problem, with a file of its own; here below the second."""
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    Z = np.random.default_rng(0).normal(size=(40, 2))
    Z[:, 0] = y * (0.05 + np.abs(Z[:, 0]))
    inf = np.full(40, np.inf)
    hard = SVMDual(Gram(RBF(8.0), Z), -y, np.where(y > 0, inf, 0.0), np.where(y < 0, inf, 0.0))
    calls = []

    def stop(progress):
        calls.append(progress)
        return len(calls) == told

    (stopped,) = solve([hard], Control(1e-3, checkpoint=tmp_path / "fit.npz", report=stop))
    assert stopped.certificate.stopped == "stopped by the callback"
    assert [p.name for p in tmp_path.iterdir()] == ["fit.npz.1"]
    (resumed,) = solve([hard], Control(1e-3, checkpoint=tmp_path / "fit.npz"))
    assert not list(tmp_path.iterdir())
    (whole,) = solve([hard], Control(1e-3))
    assert resumed.certificate.converged
    assert resumed.certificate.dual == pytest.approx(whole.certificate.dual, rel=1e-3)


# -- places that cannot be written ------------------------------------------------------------------------


def test_a_folder_that_is_not_there_is_named_before_the_fit(tmp_path, monkeypatch):
    def work(*args, **kwargs):
        raise AssertionError("the fit has begun")

    monkeypatch.setattr("mercer.estimators.svm.machine.solve", work)
    with pytest.raises(FileNotFoundError, match=r"no folder '.*nowhere' for the checkpoint 'fit\.npz'; make it"):
        mercer.SVC(checkpoint=tmp_path / "nowhere" / "fit.npz").fit(X, LABELS)
    with pytest.raises(ValueError, match=r"is a folder or a device; name a file"):
        mercer.SVC(checkpoint=tmp_path).fit(X, LABELS)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_device_is_named_before_the_fit(tmp_path):
    (tmp_path / "fit.npz").symlink_to("/dev/full")
    with pytest.raises(ValueError, match=r"fit\.npz' is a folder or a device; name a file"):
        mercer.SVC(checkpoint=tmp_path / "fit.npz").fit(X, LABELS)


def test_what_cannot_be_written_or_removed_is_one_warning(tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    control = Control(checkpoint=path)
    checkpoint = Checkpoint(control)
    checkpoint.write(a=1.0)

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(path), "write_bytes", full)
    with pytest.warns(UserWarning, match=r"cannot be written \(.*No space left.*\); the fit goes on without it"):
        checkpoint.write(a=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoint.write(a=3.0)
    assert checkpoint.restore(a=())["a"] == 1.0
    monkeypatch.setattr(type(path), "unlink", lambda self, missing_ok: full(self, b""))
    with pytest.warns(UserWarning, match="cannot be removed"):
        Checkpoint(Control(checkpoint=path)).remove()
