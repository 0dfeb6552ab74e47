"""One table for the course of every fit, and what it says of both objectives."""

import numpy as np
import pytest
from sklearn.base import is_classifier

import mercer
from mercer.estimators import SVC
from mercer.solvers.run import HISTORY, history_table
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
