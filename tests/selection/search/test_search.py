"""KernelSearchCV against scikit-learn's GridSearchCV on the same estimators: same scores, same layout, same choice."""

import time
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge as LinearRidge
from sklearn.metrics import make_scorer, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from cases import each
from checks import assert_no_fault
from mercer import RBF, SVC, SVR, KernelRidge, KernelSearchCV, Laplacian, LinearSVC, Matern, NuSVC, NuSVR, Polynomial
from mercer.kernels import FromFunction
from mercer.selection import default_grid, scales
from mercer.selection.search.machines import Machines
from mercer.selection.search.racing import nested
from mercer.solvers import Control
from mercer.solvers.dual.smo import WholeMatrixSMO

TIMES = {"mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"}
KERNELS = [RBF(1.0), RBF(4.0), Laplacian(5.0)]


def cancer(n=200):
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:n], y[:n]


def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), np.array(["a", "b", "c"])[y]


def diabetes(n=200):
    X, y = load_diabetes(return_X_y=True)
    return scale(X)[:n], scale(y)[:n]


def same(estimator, grid, X, y, tolerance=1e-9, fit=None, **options):
    """Both searches; asserts that their tables agree."""
    ours = KernelSearchCV(estimator, None, grid, exhaustive=True, **options).fit(X, y, **(fit or {}))
    theirs = GridSearchCV(estimator, grid, **options).fit(X, y, **(fit or {}))
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    for key, column in theirs.cv_results_.items():
        if key == "params":
            assert ours.cv_results_[key] == column
        elif key.startswith("param_"):
            assert ours.cv_results_[key].dtype == column.dtype
            assert (ours.cv_results_[key] == column).all()
        elif key not in TIMES and not key.startswith("rank"):
            np.testing.assert_allclose(ours.cv_results_[key], column, atol=tolerance, rtol=tolerance, err_msg=key)
    return ours, theirs


SMALL = {"kernel": KERNELS, "C": [0.01, 1.0, 30.0, 1e4]}
CASES = {
    "SVC": (SVC(), SMALL, cancer, 0.011),
    "SVC, three classes": (SVC(), SMALL, iris, 0.015),
    "SVC, balanced": (SVC(class_weight="balanced"), SMALL, cancer, 0.011),
    "SVC by gamma": (SVC(), {"gamma": ["scale", "auto", 0.1], "C": [1.0, 10.0]}, cancer, 0.011),
    "SVC by kernel__scale": (SVC(kernel=RBF(1.0)), {"kernel__scale": [1.0, 3.0], "C": [1.0, 10.0]}, cancer, 0.011),
    "SVC of names": (
        SVC(),
        [{"kernel": ["linear"], "C": [0.1, 1.0]}, {"kernel": ["poly"], "degree": [2, 3]}],
        cancer,
        0.011,
    ),
    "SVC, hard and soft": (SVC(kernel=RBF(1.0)), {"C": [1.0, np.inf]}, cancer, 0.011),
    "SVC of a function": (
        SVC(kernel=FromFunction(lambda x, z: float(np.exp(-np.abs(np.subtract(x, z)).sum() / 9)))),
        {"C": [0.1, 1.0]},
        lambda: cancer(60),
        0.011,
    ),
    "NuSVC": (NuSVC(), {"kernel": KERNELS, "nu": [0.1, 0.3]}, iris, 0.015),
    "SVR": (SVR(), {"kernel": KERNELS, "C": [0.01, 1.0, 100.0], "epsilon": [0.05, 0.3]}, diabetes, 3e-3),
    "NuSVR": (NuSVR(), {"kernel": KERNELS, "C": [0.1, 1.0], "nu": [0.3, 0.6]}, diabetes, 3e-3),
    "KernelRidge": (KernelRidge(), {"kernel": KERNELS, "alpha": np.logspace(-8, 3, 9)}, diabetes, 1e-6),
    "KernelRidge with intercept": (
        KernelRidge(fit_intercept=True),
        {"kernel": [*KERNELS, "linear", RBF("auto")], "alpha": np.logspace(-4, 3, 5)},
        diabetes,
        1e-6,
    ),
    "another estimator": (LinearRidge(), {"alpha": [0.1, 1.0]}, diabetes, 1e-12),
    "a pipeline": (make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0]}, cancer, 1e-12),
    "a pipeline of other steps": (
        make_pipeline(StandardScaler(), LinearRidge()),
        {"ridge__alpha": [1.0]},
        diabetes,
        1e-12,
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@each("name", CASES)
def test_scores_are_those_of_grid_search(name):
    estimator, grid, data, tolerance = CASES[name]
    ours, theirs = same(estimator, grid, *data(), tolerance, cv=3, return_train_score=True)
    at = theirs.best_index_  # the same choice, or one that ties with it
    assert ours.best_score_ == pytest.approx(theirs.cv_results_["mean_test_score"][at], abs=tolerance)
    assert theirs.cv_results_["mean_test_score"][ours.best_index_] == pytest.approx(theirs.best_score_, abs=tolerance)
    X, _ = data()
    assert len(ours.predict(X[:5])) == 5


def test_solver_tolerance_is_the_only_difference():
    """With a tight tol the scores are equal, whatever rests on a sign."""
    ours, theirs = same(SVC(tol=1e-7), SMALL, *cancer(), 1e-12, cv=4, scoring="roc_auc")
    assert ours.best_params_ == theirs.best_params_
    ours, theirs = same(SVR(tol=1e-9), {"kernel": KERNELS, "C": [0.1, 10.0]}, *diabetes(), 1e-5, cv=4)
    assert ours.best_params_ == theirs.best_params_


def test_peers_agree_too():
    X, y = cancer()
    grid = {"gamma": [0.01, 0.1], "C": [0.1, 1.0, 10.0]}
    ours = KernelSearchCV(SVC(tol=1e-5), None, grid, exhaustive=True).fit(X, y)
    theirs = GridSearchCV(svm.SVC(tol=1e-5), grid).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.006)


@pytest.mark.parametrize(
    "scoring",
    ["accuracy", "roc_auc", make_scorer(roc_auc_score, response_method="decision_function")],
    ids=["accuracy", "roc_auc", "made"],
)
def test_scorers(scoring):
    same(SVC(), SMALL, *cancer(), 0.011, cv=3, scoring=scoring)


def test_many_metrics():
    X, y = cancer()
    ours, _ = same(SVC(), SMALL, X, y, 0.011, cv=3, scoring=["accuracy", "roc_auc"], refit="roc_auc")
    assert set(ours.scorer_) == {"accuracy", "roc_auc"}
    assert ours.multimetric_
    assert ours.score(X, y) > 0.9
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        KernelSearchCV(SVC(), None, SMALL, scoring=["accuracy", "roc_auc"]).fit(X, y)


def test_a_function_of_model_and_data_is_called_with_a_fitted_model():
    X, y = cancer()

    def fewest(model, X, y):
        assert X.ndim == 2
        return -float(len(model.support_))

    ours, _ = same(SVC(), {"kernel": KERNELS, "C": [1.0]}, X, y, 1e-12, cv=3, scoring=fewest)
    assert "by itself" in ours.plan_


@pytest.mark.parametrize("estimator", [SVC(), KernelRidge()], ids=["SVC", "KernelRidge"])
@pytest.mark.parametrize(
    "cv",
    [KFold(3, shuffle=True, random_state=1), ShuffleSplit(3, test_size=0.2, train_size=0.4, random_state=0), 4],
    ids=["shuffled", "parts", "number"],
)
def test_splitters(estimator, cv):
    name = "C" if isinstance(estimator, SVC) else "alpha"
    same(estimator, {"kernel": KERNELS, name: [0.1, 1.0]}, *cancer(), 0.011, cv=cv)


def test_groups():
    X, y = cancer()
    groups = np.arange(len(y)) // 7
    same(SVC(), SMALL, X, y, 0.011, cv=GroupKFold(3), fit={"groups": groups})


@pytest.mark.parametrize("estimator", [SVC(), SVR(), KernelRidge()], ids=lambda e: type(e).__name__)
def test_sample_weights(estimator):
    X, y = (cancer if isinstance(estimator, SVC) else diabetes)()
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    weights[::9] = 0.0
    grid = {"kernel": KERNELS, ("alpha" if isinstance(estimator, KernelRidge) else "C"): [0.1, 2.0]}
    tolerance = 0.011 if isinstance(estimator, SVC) else 3e-3
    same(estimator, grid, X, y, tolerance, cv=3, fit={"sample_weight": weights})


@pytest.mark.parametrize(
    "estimator", [SVC(kernel="precomputed"), KernelRidge(kernel="precomputed")], ids=["SVC", "ridge"]
)
def test_precomputed(estimator):
    X, y = cancer()
    name = "C" if isinstance(estimator, SVC) else "alpha"
    ours, _ = same(estimator, {name: [0.1, 1.0, 10.0]}, RBF(3.0)(X), y, 0.011, cv=3)
    assert ours.predict(RBF(3.0)(X[:4], X)).shape == (4,)


def test_several_targets():
    X, y = diabetes()
    Y = np.column_stack([y, X[:, 2] ** 2])
    same(KernelRidge(), {"kernel": KERNELS, "alpha": [1e-3, 1.0]}, X, Y, 1e-6, cv=3)
    each = KernelSearchCV(KernelRidge(), None, {"alpha": [1.0, np.array([0.1, 1.0])]}, cv=3).fit(X, Y)
    assert "by itself" in each.plan_


@pytest.mark.parametrize("halving", [False, True], ids=["all", "halving"])
@pytest.mark.parametrize("table", [False, True], ids=["array", "table"])
def test_classes_in_a_column(halving, table):
    X, y = iris()
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    search = KernelSearchCV(SVC(), [RBF(1.0), RBF(3.0)], {"C": [1.0, 10.0]}, halving=halving, exhaustive=not halving)
    flat = clone(search).fit(X, y).cv_results_["mean_test_score"]
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        search.fit(X, pd.DataFrame({"kind": y}) if table else y[:, None])
    assert len(caught) == 1
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], flat)
    assert search.score(X, y) > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("estimator", [SVR(), KernelRidge()], ids=lambda e: type(e).__name__)
def test_numbers_in_a_column(estimator):
    """A model of several targets keeps the column, as in scikit-learn; others do not."""
    X, y = diabetes()
    name = "C" if isinstance(estimator, SVR) else "alpha"
    search, _ = same(estimator, {"kernel": KERNELS, name: [0.1, 1.0]}, X, y[:, None], 3e-3)
    assert search.predict(X).shape == clone(estimator).fit(X, y[:, None]).predict(X).shape


def test_tables_and_float32():
    X, y = cancer()
    named = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    ours, _ = same(SVC(), SMALL, named, pd.Series(y), 0.011, cv=3)
    assert list(ours.feature_names_in_) == list(named.columns)
    same(SVC(), SMALL, X.astype(np.float32), y, 0.011, cv=3)


def test_the_matrix_need_not_fit():
    X, y = cancer()
    grid = {"kernel": KERNELS, "C": [0.1, 1.0, 10.0]}
    small = KernelSearchCV(SVC(), None, grid, exhaustive=True, budget="1 MB").fit(X, y)
    large = KernelSearchCV(SVC(), None, grid, exhaustive=True, budget="1 GB").fit(X, y)
    assert "held" not in small.plan_
    assert "held" in large.plan_
    np.testing.assert_allclose(small.cv_results_["mean_test_score"], large.cv_results_["mean_test_score"], atol=0.006)
    X, y = diabetes()
    grid = {"kernel": KERNELS, "alpha": [1e-6, 1.0]}
    small = KernelSearchCV(KernelRidge(), None, grid, budget="1 MB").fit(X, y)
    large = KernelSearchCV(KernelRidge(), None, grid, budget="1 GB").fit(X, y)
    np.testing.assert_allclose(small.cv_results_["mean_test_score"], large.cv_results_["mean_test_score"], atol=1e-6)


@pytest.mark.parametrize("estimator", [SVC(), LinearRidge()], ids=["fast", "by itself"])
def test_several_jobs_find_the_same(estimator):
    X, y = cancer()
    grid = {"kernel": KERNELS, "C": [0.1, 1.0]} if isinstance(estimator, SVC) else {"alpha": [0.1, 1.0, 10.0]}
    one, two = (KernelSearchCV(estimator, None, grid, cv=3, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


# -- what is left early -----------------------------------------------------------------------------------


def test_hopeless_candidates_are_left_and_the_best_is_not():
    X, y = make_classification(600, 8, n_informative=6, class_sep=1.5, random_state=0)
    grid = {"kernel": [RBF(s) for s in (1e-3, 1.0, 3.0, 10.0)], "C": [1.0, 10.0]}
    quick = KernelSearchCV(SVC(), None, grid).fit(X, y)
    whole = KernelSearchCV(SVC(), None, grid, exhaustive=True).fit(X, y)
    left = np.isnan(quick.cv_results_["split4_test_score"])
    assert left.any()
    assert not left.all()
    assert not np.isnan(quick.cv_results_["split0_test_score"]).any()
    assert not np.isnan(whole.cv_results_["split4_test_score"]).any()
    assert quick.best_params_ == whole.best_params_
    assert quick.best_score_ == whole.best_score_
    assert quick.cv_results_["rank_test_score"][left].min() > quick.cv_results_["rank_test_score"][~left].max()
    pd.DataFrame(quick.cv_results_)


# -- defaults ---------------------------------------------------------------------------------------------


def test_defaults_find_a_good_model():
    X, y = load_iris(return_X_y=True)
    search = KernelSearchCV(SVC()).fit(scale(X), y)
    assert search.best_score_ >= 0.96
    assert search.best_estimator_.certificate_.converged
    X, y = diabetes()
    search = KernelSearchCV(KernelRidge(fit_intercept=True), [RBF, Matern, Polynomial(2)], cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == 21 * len(default_grid(KernelRidge())["alpha"])
    assert search.best_score_ > 0.35


def test_scales_follow_the_data():
    X = np.random.default_rng(0).normal(size=(700, 3))
    found = scales(X)
    assert len(found) == 10
    assert (np.diff(found) > 0).all()
    np.testing.assert_allclose(scales(1e6 * X), 1e6 * found, rtol=1e-6)
    assert np.isfinite(scales(np.ones((5, 2)))).all()  # no distance at all
    assert np.isfinite(scales(np.ones((1, 2)))).all()


# -- the contract -----------------------------------------------------------------------------------------


def test_clone_params_and_attributes():
    search = KernelSearchCV(SVC(), [RBF(1.0)], {"C": [1.0]}, cv=3)
    again = clone(search)
    assert again.get_params()["kernels"] == [RBF(1.0)]
    X, y = cancer()
    again.fit(X, y)
    assert again.n_splits_ == 3
    assert again.refit_time_ > 0
    assert list(again.classes_) == [0, 1]
    assert again.n_features_in_ == X.shape[1]
    assert again.decision_function(X).shape == (len(y),)
    assert not hasattr(KernelSearchCV(SVC(), None, {"C": [1.0]}, refit=False).fit(X, y), "best_estimator_")
    last = KernelSearchCV(SVC(), None, {"C": [1.0, 2.0]}, refit=lambda results: 1).fit(X, y)
    assert last.best_params_ == {"C": 2.0}


@pytest.mark.parametrize("estimator", [SVC(), SVR(), KernelRidge(), LinearSVC()], ids=lambda e: type(e).__name__)
def test_scikit_learn_finds_no_fault(estimator):
    kernels = None if isinstance(estimator, LinearSVC) else [RBF(1.0)]
    values = {name: v[::5] for name, v in default_grid(estimator).items()}
    assert_no_fault(KernelSearchCV(estimator, kernels, values, cv=2))


def test_failing_candidates():
    X, y = cancer()
    grid = {"kernel": [RBF(1.0)], "C": [-1.0, 1.0]}
    with pytest.warns(FitFailedWarning, match=r"5 of 10 fits failed(.|\n)*C=-1.0 of SVC must be a number > 0"):
        search = KernelSearchCV(SVC(), None, grid, exhaustive=True).fit(X, y)
    assert search.best_params_["C"] == 1.0
    assert np.isnan(search.cv_results_["mean_test_score"][0])
    with pytest.raises(ValueError, match=r"C=-1\.0 of SVC"):
        KernelSearchCV(SVC(), None, grid, error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match="All the 5 fits failed"):
        KernelSearchCV(SVC(), None, {"C": [-1.0]}).fit(X, y)


def test_failures_are_told_in_a_sentence_however_much_a_fit_says():
    X, y = cancer()

    def talkative(A, B):
        raise ValueError("no " * 5000)

    with pytest.raises(ValueError, match="All the 5 fits failed") as raised:
        KernelSearchCV(SVC(kernel=talkative), None, {"C": [1.0]}).fit(X, y)
    assert len(str(raised.value)) <= 600


def test_the_budget_of_a_search_holds_for_its_models():
    X, y = cancer()
    search = KernelSearchCV(make_pipeline(StandardScaler(), SVC()), None, {"svc__C": [1.0]}, budget="4 MB").fit(X, y)
    assert search.best_estimator_.get_params()["svc__budget"] == 4 * 10**6
    assert KernelSearchCV(SVC(), None, {"C": [1.0]}).fit(X, y).best_estimator_.budget is None


@pytest.mark.parametrize(
    ("estimator", "grid", "data"),
    [
        (SVC(), {"kernel": ["linear", RBF(3.0)], "C": [0.1, 1.0]}, cancer),
        (SVR(), [{"kernel": ["rbf"], "gamma": [0.01, 0.1], "epsilon": [0.1]}, {"C": [1.0, 10.0]}], diabetes),
        (KernelRidge(), ({"kernel": KERNELS, "alpha": [0.1, 1.0]},), diabetes),
        (LinearRidge(), {"alpha": [0.1, 1.0]}, diabetes),
        (make_pipeline(StandardScaler(), SVC()), {"svc__kernel": ["rbf"], "svc__C": [1.0, 10.0]}, cancer),
    ],
    ids=["SVC", "SVR", "KernelRidge", "another", "pipeline"],
)
def test_the_call_of_grid_search_does_what_it_says(estimator, grid, data):
    X, y = data(120)
    ours = KernelSearchCV(estimator, grid, exhaustive=True).fit(X, y).cv_results_
    theirs = GridSearchCV(estimator, list(grid) if isinstance(grid, tuple) else grid).fit(X, y).cv_results_
    assert list(ours) == list(theirs)
    assert ours["params"] == theirs["params"]
    np.testing.assert_allclose(ours["mean_test_score"], theirs["mean_test_score"], atol=0.02)


def test_a_class_in_a_grid_is_a_kernel_at_ten_scales():
    X, y = cancer()
    for model, name in ((SVC(), "kernel"), (make_pipeline(StandardScaler(), SVC()), "svc__kernel")):
        tried = KernelSearchCV(model, {name: [RBF, "linear"]}).fit(3 * X, y).cv_results_[f"param_{name}"]
        expected = scales(scale(X) if name == "svc__kernel" else 3 * X)
        np.testing.assert_allclose([k.scale for k in tried[:10]], expected)
        assert list(tried[10:]) == ["linear"]


def test_sentences():
    X, y = cancer()
    with pytest.raises(ValueError, match="holds kernels and grids of parameters; put the kernels into the grids"):
        KernelSearchCV(SVC(), [{"C": [1.0]}, RBF(1.0)]).fit(X, y)
    with pytest.raises(ValueError, match="is a grid of parameters, and param_grid is one, too; join them"):
        KernelSearchCV(SVC(), {"C": [1.0]}, {"gamma": [1.0]}).fit(X, y)
    with pytest.raises(TypeError, match=r"kernels=3 must be kernels such as RBF\(2\.0\), names, functions or classes"):
        KernelSearchCV(SVC(), 3).fit(X, y)
    with pytest.raises(TypeError, match=r"kernels=\[1\.0\] must be kernels such as"):
        KernelSearchCV(SVC(), [1.0]).fit(X, y)
    with pytest.raises(ValueError, match="KernelSearchCV requires y to be passed, but the target y is None; SVC"):
        KernelSearchCV(SVC()).fit(X)
    with pytest.raises(ValueError, match="both kernels and param_grid say which kernels"):
        KernelSearchCV(SVC(), [RBF(1.0)], {"kernel": [RBF(1.0)]}).fit(X, y)
    with pytest.raises(ValueError, match="kernels is empty"):
        KernelSearchCV(SVC(), []).fit(X, y)
    with pytest.raises(ValueError, match="there is no default grid for LinearRegression"):
        KernelSearchCV(LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match="LinearSVC has no parameter 'kernel'"):
        KernelSearchCV(LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="kernels contains the class Polynomial, which has no scale"):
        KernelSearchCV(SVC(), [Polynomial]).fit(X, y)
    with pytest.raises(TypeError, match="refit must return the place of a candidate"):
        KernelSearchCV(SVC(), None, {"C": [1.0]}, refit=lambda results: "first").fit(X, y)


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    X, y = cancer()
    run, calls = Machines.run, []

    def interrupted(self, task):
        if len(calls) == 4:
            raise KeyboardInterrupt
        calls.append(task)
        run(self, task)

    monkeypatch.setattr(Machines, "run", interrupted)
    grid = {"kernel": KERNELS, "C": [0.1, 1.0]}
    with pytest.warns(ConvergenceWarning, match="interrupted after 8 of 18 fits"):
        search = KernelSearchCV(SVC(), None, grid, cv=3, n_jobs=1, exhaustive=True).fit(X, y)
    assert search.interrupted_
    assert search.best_params_["kernel"] == KERNELS[0]  # the only one that has seen all folds
    assert search.predict(X).shape == y.shape


@pytest.mark.parametrize("jobs", [1, None])
def test_nothing_runs_on_after_an_error_or_an_interruption(monkeypatch, jobs):
    """Whoever asked for the search has the cores, and the threads of BLAS, to himself again."""
    X, y = cancer()
    busy, cell = [], Machines._cell

    def slow(self, kernel, which, start):
        busy.append(which)
        try:
            if len(self.cv.outcomes) > 3:
                raise KeyboardInterrupt
            time.sleep(0.02)
            return cell(self, kernel, which, start)
        finally:
            busy.remove(which)

    monkeypatch.setattr(Machines, "_cell", slow)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        KernelSearchCV(SVC(), KERNELS, {"C": [0.1, 1.0]}, cv=3, n_jobs=jobs, exhaustive=True, refit=False).fit(X, y)
    assert not busy


def test_ctrl_c_inside_a_solver_ends_the_search_and_not_that_fit_alone(monkeypatch):
    X, y = cancer()
    calls, ordinary = [], WholeMatrixSMO.advance

    def interrupted(self):
        calls.append(self)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return ordinary(self)

    monkeypatch.setattr(WholeMatrixSMO, "advance", interrupted)
    grid = {"kernel": KERNELS, "C": [0.1, 1.0]}
    with pytest.warns(ConvergenceWarning, match="interrupted after 4 of"):
        search = KernelSearchCV(SVC(), None, grid, cv=3, exhaustive=True, budget="1 MB", refit=False).fit(X, y)
    assert search.interrupted_


def test_ctrl_c_before_there_is_a_result_is_a_keyboard_interrupt():
    class Interrupted(LinearRidge):
        def fit(self, X, y):
            self.certificate_ = SimpleNamespace(stopped="interrupted")  # as the models of this library take Ctrl-C
            return super().fit(X, y)

    X, y = diabetes()
    with pytest.raises(KeyboardInterrupt):
        KernelSearchCV(Interrupted(), None, {"alpha": [0.1, 1.0]}).fit(X, y)


# -- time -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SVC(), KernelRidge(), LinearRidge()], ids=lambda e: type(e).__name__)
def test_after_the_time_limit_no_cell_is_begun(estimator):
    X, y = cancer()
    name = "C" if isinstance(estimator, SVC) else "alpha"
    grid = {name: np.logspace(-2, 2, 40)} | ({} if isinstance(estimator, LinearRidge) else {"kernel": KERNELS})
    with pytest.warns(ConvergenceWarning, match=r"reached its time limit of 1e-06 s after \d+ of \d+ fits"):
        search = KernelSearchCV(estimator, None, grid, time_limit=1e-6).fit(X, y)
    assert search.interrupted_
    seen = np.isfinite(search.cv_results_["mean_test_score"])
    assert 1 <= seen.sum() < len(seen)
    assert seen[search.best_index_]
    assert search.predict(X).shape == y.shape
    whole = KernelSearchCV(estimator, None, {name: [1.0]}, time_limit=100.0).fit(X, y)
    assert not whole.interrupted_


@pytest.mark.parametrize("limit", [0, -1.0, "soon"])
def test_a_time_limit_is_a_number_of_seconds(limit):
    with pytest.raises(ValueError, match=r"time_limit=.* must be a number of seconds > 0"):
        KernelSearchCV(SVC(), KERNELS, time_limit=limit).fit(*cancer())


def test_a_fit_that_does_not_converge_is_told():
    """Three classes on a matrix that is not positive, by the plain solver: as SVC.fit says it."""
    X, y = cancer()
    unfinished = Control.exhausted
    try:
        Control.exhausted = lambda self, steps: "max_iter=0 reached"
        with pytest.warns(ConvergenceWarning, match=r"the fit stopped early \(max_iter=0 reached\)"):
            KernelSearchCV(SVC(), [RBF(1.0)], {"C": [100.0]}, cv=3, refit=False).fit(X, y)
    finally:
        Control.exhausted = unfinished


# -- pipelines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "grid", "data", "tolerance"),
    [
        (make_pipeline(StandardScaler(), SVC()), {"svc__kernel": KERNELS, "svc__C": [0.1, 10.0]}, cancer, 0.011),
        (
            make_pipeline(PCA(5), StandardScaler(), SVC()),
            {"pca__n_components": [2, 5], "svc__kernel": KERNELS, "svc__C": [0.1, 10.0]},
            cancer,
            0.011,
        ),
        (make_pipeline(StandardScaler(), SVR()), {"svr__kernel": KERNELS, "svr__C": [0.1, 10.0]}, diabetes, 3e-3),
        (
            make_pipeline(StandardScaler(), KernelRidge()),
            {"kernelridge__kernel": KERNELS, "kernelridge__alpha": [0.1, 10.0]},
            diabetes,
            1e-6,
        ),
        (make_pipeline(Nystroem(n_components=20, random_state=0), SVC()), {"svc__C": [0.1, 10.0]}, iris, 0.015),
        (make_pipeline(SelectKBest(k=5), SVC()), {"svc__C": [0.1, 10.0]}, cancer, 0.011),
    ],
    ids=["SVC", "two steps before it", "SVR", "KernelRidge", "three classes", "by the target"],
)
def test_pipelines_are_taken_apart(estimator, grid, data, tolerance):
    ours, _ = same(estimator, grid, *data(), tolerance, cv=3)
    assert "once for each fold" in ours.plan_
    assert ours.predict(data()[0][:3]).shape == (3,)


def test_pipelines_race_and_have_defaults():
    X, y = make_classification(600, 8, n_informative=6, class_sep=1.5, random_state=0)
    search = KernelSearchCV(make_pipeline(StandardScaler(), SVC()), [RBF(1e-3), RBF(2.0)], {"svc__C": [1.0]}).fit(X, y)
    assert np.isnan(search.cv_results_["split4_test_score"][0])
    assert search.best_params_["svc__kernel"] == RBF(2.0)
    search = KernelSearchCV(make_pipeline(StandardScaler(), SVC()), cv=3).fit(1e6 * X[:150], y[:150])
    assert search.best_score_ > 0.85  # scales follow the points that the last step sees
    assert len(search.cv_results_["params"]) == 10 * len(default_grid(SVC())["C"])


def test_pipelines_that_cannot_be_taken_apart_are_fitted_whole():
    X, y = cancer()
    pipe = make_pipeline(StandardScaler(), SVC())
    step = KernelSearchCV(pipe, None, {"svc": [SVC(C=1.0), SVC(C=2.0)]}, cv=3).fit(X, y)
    assert "by itself" in step.plan_
    scored = KernelSearchCV(pipe, None, {"svc__C": [1.0]}, cv=3, return_train_score=True).fit(X, y)
    assert "by itself" in scored.plan_
    everyone = np.arange(len(y))
    again = KernelSearchCV(pipe, None, {"svc__C": [1.0]}, cv=[(everyone, everyone)] * 2).fit(X, y)
    assert again.best_score_ == pytest.approx(clone(pipe).set_params(svc__C=1.0).fit(X, y).score(X, y), abs=1e-12)
    broken = KernelSearchCV(make_pipeline(PCA(), SVC()), None, {"pca__n_components": [2, 1000]}, cv=3)
    with pytest.warns(FitFailedWarning, match="n_components"):
        broken.fit(X, y)


def test_sample_weights_of_the_last_step():
    X, y = cancer()
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    pipe = make_pipeline(StandardScaler(), SVC())
    grid = {"svc__kernel": KERNELS, "svc__C": [0.1, 1.0]}
    ours, _ = same(pipe, grid, X, y, 0.011, cv=3, fit={"svc__sample_weight": weights})
    assert "once for each fold" in ours.plan_


# -- halving ----------------------------------------------------------------------------------------------


def test_halving_ends_with_all_samples_and_few_candidates():
    X, y = make_classification(900, 8, n_informative=6, class_sep=1.5, random_state=0)
    grid = {"kernel": [RBF(s) for s in (1e-3, 0.3, 1.0, 3.0, 10.0)], "C": [0.01, 1.0, 10.0]}
    search = KernelSearchCV(SVC(), None, grid, halving=True).fit(X, y)
    whole = KernelSearchCV(SVC(), None, grid, exhaustive=True).fit(X, y)
    assert search.n_resources_ == [100, 300, 900]
    assert search.n_candidates_ == [15, 5, 2]
    table = pd.DataFrame(search.cv_results_)
    assert table["iter"].value_counts().to_dict() == {0: 10, 1: 3, 2: 2}
    assert (table["n_resources"] == np.array([100, 300, 900])[table["iter"]]).all()
    last = table["iter"] == 2
    assert table.loc[last, "rank_test_score"].max() < table.loc[~last, "rank_test_score"].min()
    assert search.best_score_ >= whole.best_score_ - 0.02
    at = search.best_index_
    assert search.best_score_ == pytest.approx(whole.cv_results_["mean_test_score"][at], abs=0.004)


@pytest.mark.parametrize("estimator", [SVR(), KernelRidge(), LinearRidge()], ids=lambda e: type(e).__name__)
def test_halving_of_any_estimator(estimator):
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), scale(y)
    name = "C" if isinstance(estimator, SVR) else "alpha"
    search = KernelSearchCV(estimator, None, {name: np.logspace(-3, 2, 9)}, halving=True, cv=3)
    search.fit(X, y, **({} if isinstance(estimator, LinearRidge) else {"sample_weight": np.linspace(0.5, 2, len(y))}))
    assert search.n_resources_ == [147, 442]
    assert search.n_candidates_ == [9, 3]
    assert search.best_score_ > 0.3


def test_halving_of_similarities_and_of_few_samples():
    X, y = cancer(500)
    search = KernelSearchCV(SVC(kernel="precomputed"), None, {"C": [1e-3, 0.1, 1.0]}, halving=True).fit(RBF(3.0)(X), y)
    assert search.n_resources_ == [166, 500]
    few = KernelSearchCV(SVC(), KERNELS, {"C": [1.0]}, halving=True).fit(*cancer(90))
    assert few.n_resources_ == [90]
    with pytest.raises(ValueError, match="halving=True compares candidates by one metric"):
        KernelSearchCV(SVC(), KERNELS, scoring=["accuracy", "roc_auc"], refit=False, halving=True).fit(X, y)


def test_a_round_that_is_interrupted_does_not_count(monkeypatch):
    X, y = make_classification(900, 8, n_informative=6, class_sep=1.5, random_state=0)
    run = Machines.run

    def interrupted(self, task):
        if len(self.data.target) == 300:
            raise KeyboardInterrupt
        run(self, task)

    monkeypatch.setattr(Machines, "run", interrupted)
    grid = {"kernel": [RBF(s) for s in (0.3, 1.0, 3.0)], "C": [0.01, 1.0, 10.0]}
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        search = KernelSearchCV(SVC(), None, grid, halving=True, n_jobs=1).fit(X, y)
    assert set(search.cv_results_["iter"]) == {0}
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()


def test_samples_of_a_round_are_among_those_of_the_next():
    y = np.array(["a"] * 70 + ["b"] * 20 + ["c"] * 10)
    order = nested(y, 100, True)
    assert sorted(order) == list(range(100))
    for size in (10, 20, 50):
        assert [(y[order[:size]] == c).sum() for c in "abc"] == [0.7 * size, 0.2 * size, 0.1 * size]
    assert sorted(nested(None, 10, False)) == list(range(10))


def test_progress_shows_the_best(capsys):
    KernelSearchCV(SVC(), None, {"kernel": KERNELS, "C": [0.1, 1.0]}, verbose=1).fit(*cancer())
    assert "best" in capsys.readouterr().out


# -- scikit-learn's own tools -----------------------------------------------------------------------------


def test_inside_pipelines_and_cross_validation():
    X, y = cancer()
    search = KernelSearchCV(SVC(), [RBF(2.0), RBF(5.0)], {"C": [1.0, 10.0]}, cv=3)
    assert cross_val_score(make_pipeline(StandardScaler(), search), X, y, cv=3).mean() > 0.9


@pytest.mark.parametrize("routing", [False, True], ids=["off", "on"])
def test_metadata_routing(routing):
    X, y = cancer()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    grid = {"kernel": KERNELS, "C": [0.1, 1.0]}
    with config_context(enable_metadata_routing=routing), warnings.catch_warnings():
        model = SVC()
        if routing:
            model = model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        same(model, grid, X, y, 0.011, cv=3, fit={"sample_weight": weights})
        plain = GridSearchCV(model, grid, cv=3).fit(X, y, sample_weight=weights)
        assert plain.best_score_ > 0.8


def test_known_values_are_what_the_scorer_sees():
    """A regressor's stand-in scores as the fitted model does."""
    X, y = diabetes()
    search = KernelSearchCV(SVR(), None, {"kernel": [RBF(4.0)], "C": [1.0]}, cv=[(np.arange(100), np.arange(100, 200))])
    search.fit(X, y)
    model = SVR(kernel=RBF(4.0), C=1.0).fit(X[:100], y[:100])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(
        r2_score(y[100:], model.predict(X[100:])), abs=1e-3
    )
