"""One table for the course of every fit, and the run that writes it."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import make_moons

import mercer
from mercer.certify import Stop
from mercer.estimators import SVC
from mercer.solvers import Control
from mercer.solvers.run import HISTORY, Run, history_table
from models import CLASSES, X, Y

MACHINES = [
    mercer.SVC(),
    mercer.NuSVC(nu=0.3),
    mercer.SVR(),
    mercer.NuSVR(),
    mercer.OneClassSVM(),
    mercer.KernelMachine(loss="huber"),
    mercer.KernelMachine(loss="hinge"),
    mercer.KernelLogisticRegression(),
    mercer.KernelQuantileRegressor(),
    mercer.KernelRobustRegressor(),
    mercer.KernelMachine(loss="squared"),
    mercer.KernelRidge(kernel="rbf", solver="cg"),
    mercer.KernelRidge(kernel="rbf"),
]


@pytest.mark.parametrize("model", MACHINES, ids=str)
def test_every_machine_has_the_same_table(model):
    model.fit(X, (CLASSES > 4) * 2 - 1 if is_classifier(model) else Y)
    table, claim = model.history_, model.certificate_
    assert table.dtype == HISTORY
    assert len(table)
    last = table[-1]
    allowed = claim.tol * max(abs(claim.primal), 1e-300) + claim.rounding
    assert abs(last["primal"] - claim.primal) <= allowed
    assert abs(last["dual"] - claim.dual) <= allowed
    assert last["dual"] <= last["primal"] + allowed
    assert (np.diff(table["steps"]) >= 0).all()
    assert (np.diff(table["seconds"]) >= 0).all()


@pytest.mark.parametrize(
    "model", [mercer.SVC(), mercer.NuSVC(nu=0.3), mercer.SVR(), mercer.KernelMachine(loss="hinge"), mercer.LinearSVC()]
)
def test_the_course_begins_with_the_first_step(model):
    table = model.fit(X, (CLASSES > 4) * 2 - 1 if is_classifier(model) else Y).history_
    assert table["steps"][0] == 1
    assert (table["steps"][1:-1] <= 4 * table["steps"][:-2]).all()
    assert table["gap"][0] > 0.5 > table["gap"][-1]
    assert (table["primal"] >= table["dual"] - 1e-9 * np.abs(table["dual"])).all()
    assert (np.diff(table["dual"]) >= -1e-6 * np.abs(table["dual"][1:])).all()


def test_a_fit_by_working_sets_tells_the_first_of_them():
    X, y = make_moons(3100, noise=0.3, random_state=0)
    table = SVC().fit(X, y).history_
    assert table["steps"][0] < 0.5 * table["steps"][-1]
    assert table["gap"][0] > 0.05


def test_pairs_of_classes_have_one_each():
    model = SVC(kernel="rbf").fit(X, CLASSES)
    for table, claim, at in zip(model.history_, model.certificate_.parts, ((2, 5), (2, 9), (5, 9)), strict=True):
        assert table.dtype == HISTORY
        assert (table["primal"][-1], table["dual"][-1]) == (claim.primal, claim.dual)
        alone = SVC(kernel=model.kernel_).fit(X[np.isin(CLASSES, at)], CLASSES[np.isin(CLASSES, at)])
        assert abs(table["support"][-1] - len(alone.support_)) <= 2
        assert table["seconds"][-1] > 0


def test_rows_of_older_files():
    old = [(1, 2.0, 0.5, 3, 0.1)]
    for known, other in (("primal", "dual"), ("dual", "primal")):
        table = history_table(old, known)
        assert table[known] == 2.0
        assert np.isnan(table[other])
        assert (table["gap"], table["support"], table["seconds"]) == (0.5, 3, 0.1)


def test_the_search_of_a_process_has_the_fields_too():
    table = mercer.GaussianProcessRegressor().fit(X, Y).history_
    assert HISTORY.names == table.dtype.names[: len(HISTORY.names)]
    assert np.array_equal(table["primal"], -table["likelihood"])
    assert np.isnan(table["gap"]).all()


@pytest.mark.parametrize(
    "model",
    [
        mercer.LinearSVC(),
        mercer.LinearSVC(penalty="l1"),
        mercer.LinearSVR(),
        mercer.Pegasos(tol=1.0),
        mercer.Perceptron(),
        mercer.Ridge(),
    ],
    ids=str,
)
def test_linear_and_online_models_have_the_table_too(model):
    table = model.fit(X, (CLASSES > 4) * 2 - 1 if is_classifier(model) else Y).history_
    assert table.dtype == HISTORY
    assert len(table)
    assert (np.diff(table["steps"]) >= 0).all()
    assert np.isfinite(table["seconds"]).all()


def test_the_weights_of_kernels_have_the_table_too():
    table = mercer.KernelMixture([mercer.RBF(1.0), mercer.Linear()], method="objective").fit(X, Y).history_
    assert table.dtype == HISTORY
    assert (table["dual"] <= table["primal"] * (1 + 1e-12)).all()
    assert np.isnan(table["seconds"]).all()


# -- a run --------------------------------------------------------------------------------------------------


def test_a_note_is_a_row_and_a_report():
    heard = []
    run = Run(Control(report=heard.append))
    run.steps = 3
    run.note(2.0, 1.0, 0.5, 7)
    run.note(2.0, -np.inf, np.inf, 7, keep=False)
    (row,) = run.history
    assert row[:5] == (3, 2.0, 1.0, 0.5, 7)
    assert [(p.iteration, p.primal, p.dual, p.gap, p.support) for p in heard] == [
        (3, 2.0, 1.0, 0.5, 7),
        (3, 2.0, -np.inf, np.inf, 7),
    ]


def test_what_is_not_known_is_missing_in_the_history():
    run = Run(Control())
    run.note(2.0, -np.inf, np.inf, 7)
    assert np.isnan(run.history[0].dual)


def test_a_part_tells_nobody():
    heard = []
    part = Run(Control(report=heard.append, checkpoint=None), quiet=True, steps=5)
    part.note(2.0, 1.0, 0.5, 7, a=np.zeros(2))
    assert not heard
    assert part.history[0].steps == 5


def test_the_listener_ends_a_run():
    run = Run(Control(report=lambda progress: progress.iteration == 2))
    for _ in range(2):
        assert run.limit() is None
        run.steps += 1
        run.note(2.0, 1.0, 0.5, 7)
    assert run.limit() == Stop.CALLBACK


def test_an_interrupted_listener_cancels_the_run():
    def interrupt(progress):
        raise KeyboardInterrupt

    run = Run(Control(report=interrupt))
    run.note(2.0, 1.0, 0.5, 7)
    assert run.limit() == Stop.INTERRUPTED


def test_another_run_goes_on_from_the_checkpoint(tmp_path):
    control, identity = Control(checkpoint=tmp_path / "run.npz", every=0.0), (np.ones(2), mercer.RBF(1.0))
    first = Run(control, identity)
    assert first.checkpoint.restore(a=(2,)) is None
    first.note(2.0, 1.0, 0.5, 2, a=np.array([1.0, 2.0]))
    assert Run(control, identity).checkpoint.restore(a=(2,))["a"].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="belongs to another problem"):
        Run(control, (np.ones(2), mercer.RBF(2.0))).checkpoint.restore(a=(2,))
    first.end(False, a=np.array([3.0, 4.0]))
    assert Run(control, identity).checkpoint.restore(a=(2,))["a"].tolist() == [3.0, 4.0]
    first.end(True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("dual", "stopped", "otherwise", "said"),
    [
        (1.999, Stop.CONVERGED, None, Stop.CONVERGED),
        (1.0, Stop.CONVERGED, None, Stop.CONVERGED),
        (1.999, "max_iter=3 reached", Stop.LARGE_GAP, Stop.CONVERGED),
        (1.0, "max_iter=3 reached", Stop.LARGE_GAP, "max_iter=3 reached"),
        (1.0, Stop.CONVERGED, Stop.LARGE_GAP, Stop.LARGE_GAP),
    ],
)
def test_the_certificate_of_a_run(dual, stopped, otherwise, said):
    run = Run(Control(tol=0.01, max_iter=3), steps=3)
    claim = run.certificate(2.0, dual, 0.1, "a solver", stopped, otherwise, precision="float32")
    assert claim.stopped == said
    assert (claim.tol, claim.iterations, claim.solver, claim.precision) == (0.01, 3, "a solver", "float32")
    assert 0 <= claim.seconds <= run.control.seconds
