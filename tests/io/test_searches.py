"""Searches and expansions come back with all that they found."""

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import KFold

import mercer
from mercer import RBF, KernelSearchCV, Linear, Matern
from mercer.estimators import SVC, SVR, KernelRidge
from mercer.io import container
from mercer.rkhs import Box, MercerExpansion
from models import CLASSES, X, Y, fitted
from samples import words


def again(model, tmp_path):
    mercer.save(model, tmp_path / "model.mercer")
    return mercer.load(tmp_path / "model.mercer")


@pytest.mark.parametrize("name", ["search of SVC", "search of KernelRidge by two scores"])
def test_the_results_of_a_search(name, tmp_path):
    case, search = fitted(name)
    found = again(search, tmp_path)
    assert list(found.cv_results_) == list(search.cv_results_)
    for key, column in search.cv_results_.items():
        other = found.cv_results_[key]
        assert type(other) is type(column)
        if isinstance(column, np.ma.MaskedArray):
            assert other.tolist() == column.tolist()
        elif isinstance(column, np.ndarray):
            assert np.array_equal(other, column, equal_nan=True)
        else:
            assert other == column
    assert found.best_params_ == search.best_params_
    assert found.best_score_ == search.best_score_
    assert found.plan_ == search.plan_
    assert found.score(case.X, case.y) == search.score(case.X, case.y)
    assert found.best_estimator_.certificate_ == search.best_estimator_.certificate_


def test_parts_that_are_shared_are_written_once(tmp_path):
    search = KernelSearchCV(SVC(), [RBF([1.0, 2.0, 3.0])], {"C": [1.0, 2.0, 3.0]}, cv=2).fit(X, CLASSES)
    found = again(search, tmp_path)
    kernels = found.cv_results_["param_kernel"]
    assert kernels[0] is kernels[1] is found.cv_results_["params"][2]["kernel"]
    assert found.scorer_._estimator is found.estimator


@pytest.mark.parametrize(
    "search",
    [
        KernelSearchCV(SVC(), [RBF, Matern], cv=[(np.arange(0, 42, 2), np.arange(1, 42, 2))], scoring="f1_macro"),
        KernelSearchCV(KernelRidge(), cv=KFold(4, shuffle=True, random_state=3), refit=False, exhaustive=True),
        KernelSearchCV(SVR(), "rbf", {"C": np.logspace(-1, 1, 3), "epsilon": [0.1]}),
    ],
    ids=range(3),
)
def test_a_search_that_is_not_fitted_finds_the_same_later(search, tmp_path):
    found = again(search, tmp_path)
    target = CLASSES if isinstance(search.estimator, SVC) else Y
    a, b = (s.fit(X, target).cv_results_ for s in (search, found))
    assert [str(p) for p in a["params"]] == [str(p) for p in b["params"]]
    score = "mean_test_score"
    assert np.array_equal(a[score], b[score], equal_nan=True)


def test_folds_that_are_used_up_are_told(tmp_path):
    search = KernelSearchCV(SVC(), cv=((a, b) for a, b in [(np.arange(30), np.arange(30, 42))]))
    with pytest.raises(TypeError, match=r"cv is a generator, which is used up once it is read; pass a list instead"):
        mercer.save(search, tmp_path / "s.mercer")


LAWS = [
    (RBF(1.0), stats.norm(0, 1), None),
    (Matern(1.5, 0.5), Box(0, 1), None),
    (RBF(1.0) + Linear(), [stats.uniform(-1, 2), stats.norm()], None),
    (RBF(1.0), stats.multivariate_normal([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]), None),
    (Linear() + 1.0, stats.poisson(3.0), None),
    (RBF(1.5), X, None),
    (RBF(1.5), X.astype(np.float32), np.arange(len(X)) % 3),
    (mercer.Delta() + 0.5, words(12), None),
]


@pytest.mark.parametrize(("kernel", "measure", "weights"), LAWS, ids=range(len(LAWS)))
def test_an_expansion(kernel, measure, weights, tmp_path, monkeypatch):
    expansion = MercerExpansion(kernel, measure, 4, weights=weights)
    mercer.save(expansion, tmp_path / "e.mercer")
    monkeypatch.setattr("mercer.rkhs.mercer.expansion.spectrum", None)  # nothing is computed again
    found = mercer.load(tmp_path / "e.mercer")
    assert type(found) is MercerExpansion
    assert repr(found) == repr(expansion)
    points = words(7, seed=1) if isinstance(measure, list) and isinstance(measure[0], str) else expansion.points
    assert np.array_equal(found.transform(points), expansion.transform(points))
    assert np.array_equal(found.eigenvalues, expansion.eigenvalues)
    assert np.array_equal(found.errors, expansion.errors)
    assert found.truncation_error() == expansion.truncation_error()
    assert found.orthonormality_error == expansion.orthonormality_error
    f = expansion.eigenfunctions[1]
    assert np.array_equal(found.coefficients(f), expansion.coefficients(f))
    assert np.array_equal(found.projection(f)(points), expansion.projection(f)(points))
    mercer.save(found, tmp_path / "again.mercer")
    (first, arrays), (second, others) = (container.read(tmp_path / f"{name}.mercer") for name in ("e", "again"))
    assert first == second
    assert arrays.keys() == others.keys()
    assert all(np.array_equal(arrays[key], others[key]) for key in arrays)


def test_what_was_learned_about_a_kernel(tmp_path):
    learned = mercer.learn_kernel(KernelRidge(), RBF(1.0), X, Y)
    found = again(learned, tmp_path)
    assert (found.kernel, found.value, found.account) == (learned.kernel, learned.value, learned.account)
    assert np.array_equal(found.estimator.predict(X), learned.estimator.predict(X))


def test_a_kernel_of_features_of_an_expansion(tmp_path):
    k = mercer.FromFeatures(MercerExpansion(RBF(0.5), Box(-4, 4), 6).feature_map())
    model = SVC(kernel=k).fit(X[:, :1], CLASSES)
    assert np.array_equal(again(model, tmp_path).decision_function(X[:, :1]), model.decision_function(X[:, :1]))
