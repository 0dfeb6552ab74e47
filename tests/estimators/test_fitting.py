"""While a fit runs: limits, interruptions, progress, callbacks, warm starts, checkpoints, parameters."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn.kernel_ridge
import sklearn.linear_model
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from checks import assert_no_fault
from mercer.estimators import SVC, SVR, KernelLogisticRegression, KernelRidge, NuSVC, NuSVR, OneClassSVM
from mercer.estimators.shared import parameters
from mercer.estimators.svm import machine as base
from mercer.kernels import Precomputed

X, Y = make_moons(200, noise=0.3, random_state=0)
MODELS = [SVC(), NuSVC(), SVR(), NuSVR(), OneClassSVM()]

# -- scikit-learn's own checks ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_scikit_learn_finds_no_fault(model):
    assert_no_fault(model)


# -- limits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_limit_returns_the_best_so_far_with_a_warning(model):
    model = clone(model).set_params(max_iter=3, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_iter=3 reached") as caught:
        model.fit(X, Y)
    assert caught[0].filename == __file__
    claim = model.certificate_
    assert not claim.converged
    assert claim.stopped == "max_iter=3 reached"
    assert model.fit_status_ == 1 > clone(model).set_params(max_iter=-1, tol=1e-3).fit(X, Y).fit_status_
    assert np.max(model.n_iter_) <= 3
    assert claim.verify(X, Y).primal == pytest.approx(claim.primal, rel=1e-6)
    assert np.isfinite(model.predict(X)).all()


def test_time_runs_out():
    with pytest.warns(ConvergenceWarning, match="time_limit=1e-09 s reached"):
        SVC(time_limit=1e-9, tol=1e-12, C=1e5).fit(X, Y)


def test_an_interruption_leaves_a_model(monkeypatch):
    def interrupting(problems, control):
        return solve(problems, replace(control, report=lambda progress: (_ for _ in ()).throw(KeyboardInterrupt)))

    solve = base.solve
    monkeypatch.setattr(base, "solve", interrupting)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SVC(C=100.0, tol=1e-10).fit(X, Y)
    assert model.certificate_.stopped == "interrupted"
    assert model.predict(X).shape == Y.shape


# -- progress ---------------------------------------------------------------------------------------------


def test_a_bar_shows_gap_support_vectors_and_time(capsys):
    SVC(verbose=1, C=50.0).fit(X, Y)
    shown = capsys.readouterr().out
    assert "SVC" in shown
    assert "support vectors" in shown
    assert "gap" in shown
    assert "0:00:0" in shown
    SVC().fit(X, Y)
    assert not capsys.readouterr().out


class Recorder:
    """A callback that writes down what it is told and may ask to stop."""

    def __init__(self, stop=False):
        self.stop, self.events = stop, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("end", context.task_name, (metadata or {}).get("progress")))
        return self.stop


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_callbacks_hear_of_every_look_at_the_gap(model):
    pytest.importorskip("sklearn.callback")
    callback = Recorder()
    clone(model).set_callbacks(callback).fit(X, Y)
    events = callback.events
    assert events[0] == "setup"
    assert events[-1] == "teardown"
    assert events[1] == ("begin", "fit")
    assert events[-2][:2] == ("end", "fit")
    told = [e[2] for e in events if e[0] == "end" and e[1] == "iterations"]
    assert told
    assert told[-1].gap <= 1e-3
    assert told[-1].support > 0


def test_a_callback_can_stop_a_fit():
    pytest.importorskip("sklearn.callback")
    with pytest.warns(ConvergenceWarning, match="stopped by the callback"):
        SVC(tol=1e-12, C=1e4).set_callbacks(Recorder(stop=True)).fit(X, Y)


def test_a_search_shows_its_progress():
    callback = pytest.importorskip("sklearn.callback")
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2).set_callbacks(callback.ProgressBar(max_propagation_depth=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "does not support callbacks"
        search.fit(X, Y)
    assert search.best_score_ > 0.8


# -- going on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_a_warm_start_begins_where_the_last_fit_ended(model):
    warm = clone(model).set_params(warm_start=True, tol=1e-7).fit(X, Y)
    first, value = np.sum(warm.n_iter_), warm.certificate_.dual
    warm.fit(X, Y)
    assert np.sum(warm.n_iter_) < 0.2 * first + 2
    assert warm.certificate_.dual == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (SVC(), {"C": 0.3}),
        (SVC(), {"C": 5.0, "kernel": "linear"}),
        (NuSVC(nu=0.6), {"nu": 0.3}),
        (NuSVC(nu=0.3), {"nu": 0.6}),
        (SVR(), {"C": 0.3, "epsilon": 0.3}),
        (NuSVR(C=2.0), {"C": 0.5, "nu": 0.7}),
        (OneClassSVM(nu=0.2), {"nu": 0.7}),
    ],
    ids=str,
)
def test_a_warm_start_under_other_parameters_ends_where_a_cold_one_does(model, change):
    warm = clone(model).set_params(warm_start=True, tol=1e-8).fit(X, Y).set_params(**change).fit(X, Y)
    cold = clone(model).set_params(tol=1e-8, **change).fit(X, Y)
    assert warm.certificate_.converged
    assert warm.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-6)
    assert warm.certificate_.verify(X, Y).relative_gap < 1e-7


def test_a_warm_start_on_other_data_is_a_cold_one():
    model = SVC(warm_start=True).fit(X, Y)
    model.fit(X[:50], Y[:50])
    assert model.certificate_.converged
    model.fit(*load_iris(return_X_y=True))
    assert model.certificate_.converged


IRIS = [part[7:] for part in load_iris(return_X_y=True)]


@pytest.mark.parametrize("data", [(X, Y), IRIS], ids=["two classes", "three classes"])
def test_a_stopped_fit_resumes_from_its_checkpoint(tmp_path, data):
    path = tmp_path / "fit.npz"
    with pytest.warns(ConvergenceWarning):
        SVC(C=50.0, tol=1e-9, max_iter=20, checkpoint=path).fit(*data)
    assert list(tmp_path.iterdir())
    model = SVC(C=50.0, tol=1e-9, checkpoint=path).fit(*data)
    whole = SVC(C=50.0, tol=1e-9).fit(*data)
    assert not list(tmp_path.iterdir())
    assert model.certificate_.dual == pytest.approx(whole.certificate_.dual, rel=1e-8)


def test_a_budget_that_is_too_small_is_named():
    with pytest.raises(ValueError, match="budget 'plenty' is not a size"):
        SVC(budget="plenty").fit(X, Y)
    model = SVC(budget="60 kB").fit(X, Y)
    assert model.certificate_.converged
    np.testing.assert_allclose(model.decision_function(X), SVC().fit(X, Y).decision_function(X), atol=0.1)


# -- parameters -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (SVC(C=0), "C=0 of SVC must be a number > 0, or inf"),
        (SVC(C=-1.0), "C=-1.0 of SVC"),
        (SVC(C="1"), "C='1' of SVC"),
        (SVC(kernel="gauss"), "kernel='gauss' of SVC must be a kernel object.*'rbf'"),
        (SVC(kernel=3), "kernel=3 of SVC"),
        (SVC(gamma="median"), "gamma='median' of SVC must be a number > 0, 'scale' or 'auto'"),
        (SVC(gamma=0.0), "gamma=0.0"),
        (SVC(kernel="poly", degree=0), "degree=0 of SVC"),
        (SVC(kernel="poly", coef0=-1.0), "coef0=-1.0 makes .* indefinite"),
        (SVC(tol=0.0), "tol=0.0 of SVC must be a relative duality gap"),
        (SVC(max_iter=-2), "max_iter=-2"),
        (SVC(time_limit=0), "time_limit=0 of SVC"),
        (SVC(class_weight="even"), "class_weight='even'"),
        (SVC(decision_function_shape="all"), "decision_function_shape='all'"),
        (SVC(dtype="half"), "dtype='half'"),
        (SVC(budget=-5), "budget must be a positive"),
        (SVC(verbose=-1), "verbose=-1"),
        (NuSVC(nu=0.0), "nu=0.0 of NuSVC must be a number with 0 < nu <= 1"),
        (NuSVR(nu=1.5), "nu=1.5 of NuSVR"),
        (KernelLogisticRegression(penalty="l1"), "penalty='l1' of KernelLogisticRegression must be 'l2'"),
        (KernelLogisticRegression(l1_ratio=0.5), "l1_ratio=0.5 of KernelLogisticRegression must be 0"),
        (OneClassSVM(nu=np.nan), "nu=nan of OneClassSVM"),
        (SVR(epsilon=-0.1), "epsilon=-0.1 of SVR"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_parameter_outside_its_domain_is_named_with_its_value(model, match):
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y)


COUNTERPARTS = [
    *((model, getattr(sklearn.svm, type(model).__name__)) for model in MODELS),
    (KernelLogisticRegression(), sklearn.linear_model.LogisticRegression),
    (KernelRidge(), sklearn.kernel_ridge.KernelRidge),
]


@pytest.mark.parametrize(("model", "theirs"), COUNTERPARTS, ids=lambda v: getattr(v, "__name__", ""))
def test_every_parameter_of_scikit_learn_is_taken(model, theirs):
    assert set(theirs().get_params()) <= set(model.get_params())
    clone(model).set_params(verbose=False).fit(X, Y)
    said = {**parameters.UNNECESSARY, **getattr(model, "_unnecessary", {})}
    default = {name: value for name, value in theirs().get_params().items() if name in said}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # at scikit-learn's default there is nothing to say
        clone(model).set_params(**default).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "said"),
    [(model, said) for model in MODELS for said in ({"shrinking": False}, {"cache_size": 500})]
    + [
        (KernelLogisticRegression(), {"dual": True}),
        (KernelLogisticRegression(), {"intercept_scaling": 2.0}),
        (KernelLogisticRegression(), {"n_jobs": 2}),
        (KernelLogisticRegression(), {"random_state": 0}),
    ],
    ids=str,
)
def test_what_nothing_depends_on_is_taken_with_a_word(model, said):
    (name,) = said
    with pytest.warns(UserWarning, match=f"{name}=.* changes nothing in {type(model).__name__}: ") as caught:
        found = clone(model).set_params(**said).fit(X, Y)
    assert len([w for w in caught if "changes nothing" in str(w.message)]) == 1
    assert np.array_equal(found.predict(X), clone(model).fit(X, Y).predict(X))


def test_indices_into_a_matrix_need_no_columns():
    model = SVC(kernel=Precomputed(np.eye(6))).fit(np.arange(6), [0, 1] * 3)
    assert model.predict([0, 1]).tolist() == [0, 1]
