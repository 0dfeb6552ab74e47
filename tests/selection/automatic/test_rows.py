"""Weights and groups of rows, and sparse rows, in auto, AutoClassifier and AutoRegressor."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut

from mercer import RBF, SVC, AutoClassifier, AutoRegressor, KernelRidge, auto, load, save
from mercer.report import Story
from mercer.selection.automatic import search as auto_search
from mercer.selection.automatic.rows import Rows
from mercer.selection.automatic.search import folds

FEW = [RBF(1.0), RBF(3.0), "0.1 * Linear()"]


def table(n=90, seed=0):
    """Numbers with missing cells and categories, three classes, and a target with a long tail."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v", "w"], n)})
    score = X["a"] + (X["c"] == "u") * X["b"] + 0.4 * rng.normal(size=n)
    X.loc[rng.uniform(size=n) < 0.1, "b"] = np.nan
    return X, np.digitize(score, [-0.6, 0.6]), np.exp(2 * score.to_numpy()), rng.integers(0, 4, n)


def exact(patch):
    """Fit to a gap that is small enough to compare what different problems with one solution give."""
    for cls, price, machine in (
        (AutoClassifier, "C", SVC(decision_function_shape="ovo", tol=1e-10)),
        (AutoRegressor, "alpha", KernelRidge(fit_intercept=True, residual=1e-12)),
    ):
        found = machine, price, np.array([3.0, 0.3])
        patch.setattr(cls, "_machine", lambda self, rows, ridge, found=found: found)


def assert_same(one, two, X, **tolerance):
    """Two models have seen the same scores, and say the same of every row."""
    np.testing.assert_allclose(one.results_["mean_test_score"], two.results_["mean_test_score"], **tolerance)
    assert one.kernel_ == two.kernel_
    assert one.best_index_ == two.best_index_
    if isinstance(one, AutoClassifier):
        np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), **tolerance)
    else:
        assert one.target_scale_ == two.target_scale_
        np.testing.assert_allclose(one.predict_quantiles(X), two.predict_quantiles(X), **tolerance)


# -- weights ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AutoClassifier, AutoRegressor])
def test_a_weight_of_0_leaves_the_row_out(kind):
    X, labels, numbers, _ = table()
    y = labels if kind is AutoClassifier else numbers
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 90) * (np.arange(90) % 5 > 0)
    there = np.flatnonzero(weights)
    weighted = kind(cv=3).fit(X, y, sample_weight=weights)
    shorter = kind(cv=3).fit(X.iloc[there], y[there], sample_weight=weights[there])
    assert_same(weighted, shorter, X, rtol=0, atol=0)
    np.testing.assert_array_equal(weighted.held_out_["rows"], there[shorter.held_out_["rows"]])
    assert weighted.certificate_.verify(X, y, sample_weight=weights).converged
    assert "18 rows of weight 0 are left out" in str(weighted.account_)
    pairs = list(KFold(3).split(X))
    cut = kind(kernels=FEW, cv=pairs).fit(X, y, sample_weight=weights)
    for k, (_, test) in enumerate(pairs):
        assert np.isin(cut.held_out_["rows"], test).sum() == (weights[test] > 0).sum(), k


@pytest.mark.parametrize("kind", [AutoClassifier, AutoRegressor])
def test_integer_weights_are_repetitions(kind, monkeypatch):
    exact(monkeypatch)
    X, labels, numbers, weights = table()
    y = labels if kind is AutoClassifier else numbers
    again, part = np.repeat(np.arange(90), weights), np.arange(90) % 3
    cuts = [[(np.flatnonzero(of != k), np.flatnonzero(of == k)) for k in range(3)] for of in (part, part[again])]
    weighted = kind(kernels=[RBF(1.0), RBF(4.0)], cv=cuts[0]).fit(X, y, sample_weight=weights)
    repeated = kind(kernels=[RBF(1.0), RBF(4.0)], cv=cuts[1]).fit(X.iloc[again], y[again])
    assert_same(weighted, repeated, X, rtol=1e-5, atol=1e-6)
    plain = kind(kernels=[RBF(1.0), RBF(4.0)], cv=cuts[0]).fit(X, y)
    assert not np.allclose(plain.results_["mean_test_score"], repeated.results_["mean_test_score"], rtol=1e-3)
    if kind is AutoRegressor:
        assert weighted.target_scale_ == "log"


def test_scores_are_weighted():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    weights = np.random.default_rng(0).exponential(size=100)
    model = AutoClassifier(kernels=[RBF(2.0)], cv=4).fit(X, y, sample_weight=weights)
    assert model.scoring_ == "accuracy"
    Z, C = model.encoder_.transform(X), model.estimator_.C
    seed = int(np.random.RandomState(0).randint(2**31))
    found = []
    for train, test in folds(4, X, y, True, seed):
        part = SVC(C=C, kernel=RBF(2.0)).fit(Z[train], y[train], sample_weight=weights[train])
        found.append(accuracy_score(y[test], part.predict(Z[test]), sample_weight=weights[test]))
    assert model.best_score_ == pytest.approx(np.mean(found))


def test_the_unit_of_weights_changes_nothing():
    X, labels, numbers, _ = table()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 90)
    for kind, y in ((AutoClassifier, labels), (AutoRegressor, numbers)):
        plain, tiny = (kind(kernels=FEW, cv=3).fit(X, y, sample_weight=unit * weights) for unit in (1.0, 1e-4))
        assert_same(plain, tiny, X, rtol=0.02, atol=0.01)


def test_quantiles_are_those_of_the_weighted_rows():
    """Where rows of one kind count ten times, a quantile is right on average over rows so drawn."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (4000, 1)).astype(float)
    y = (0.2 + 2.0 * X[:, 0]) * rng.normal(size=4000)
    weights = np.where(X[:, 0] > 0, 1.0, 10.0)
    model = AutoRegressor(kernels=[RBF(3.0)]).fit(X[:800], y[:800], sample_weight=weights[:800])
    below = y[800:, None] <= model.predict_quantiles(X[800:], [0.05, 0.95])
    np.testing.assert_allclose(np.average(below, axis=0, weights=weights[800:]), [0.05, 0.95], atol=0.025)
    assert (np.abs(below.mean(axis=0) - [0.05, 0.95]) > 0.1).all()


def test_weighted_models_are_kept_in_files(tmp_path):
    X, _, numbers, weights = table()
    model = AutoRegressor(kernels=FEW, cv=3).fit(X, numbers, sample_weight=weights)
    save(model, tmp_path / "weighted.mercer")
    again = load(tmp_path / "weighted.mercer")
    np.testing.assert_array_equal(again.predict_quantiles(X), model.predict_quantiles(X))
    assert again.certificate_.verify(X, numbers, sample_weight=weights).converged


def test_wrong_weights_are_refused():
    X, labels, _, _ = table()
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is -1"):
        AutoClassifier().fit(X, labels, sample_weight=np.where(np.arange(90) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match="one for each sample"):
        AutoClassifier().fit(X, labels, sample_weight=np.ones(7))


# -- groups -----------------------------------------------------------------------------------------------


def litters(groups=24, size=5, seed=0):
    """Rows of a group are nearly copies; what a group's target is, no other group tells."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(groups), size)
    X = rng.normal(size=(groups, 3))[of] + 0.01 * rng.normal(size=(groups * size, 3))
    order = rng.permutation(len(of))
    return X[order], rng.permutation(np.arange(groups) % 2)[of][order], np.array([f"g{i}" for i in of])[order]


def test_rows_of_a_group_are_not_both_learned_from_and_held_out():
    X, y, groups = litters()
    apart = AutoClassifier(kernels=FEW).fit(X, y)
    together = AutoClassifier(kernels=FEW).fit(X, y, groups=groups)
    assert apart.best_score_ > 0.95  # by its copies each row is known
    assert together.honest_score_ < 0.75
    assert "in 5 folds of whole groups" in str(together.account_)
    noise = AutoRegressor(kernels=FEW).fit(X, y + 0.0, groups=groups)
    assert noise.best_score_ < 0.3 < 0.9 < AutoRegressor(kernels=FEW).fit(X, y + 0.0).best_score_


@pytest.mark.parametrize("classifies", [True, False])
def test_folds_of_groups(classifies):
    X, y, groups = litters()
    found = folds(5, X, y, classifies, 0, groups)
    assert len(found) == 5
    assert np.array_equal(np.sort(np.concatenate([test for _, test in found])), np.arange(len(y)))
    for train, test in found:
        assert not set(groups[train]) & set(groups[test])
        assert len(set(y[train])) == 2
    assert len(folds(5, X, y, classifies, 0, groups > "g2")) == 2


def test_a_fold_that_has_all_groups_of_a_class_is_left():
    rng = np.random.default_rng(0)
    for _ in range(300):
        groups = rng.integers(0, 6, 30)
        y = np.where(rng.uniform(size=30) < 0.1, 1, groups % 2)
        for train, test in folds(5, y, y, True, 0, groups):
            assert len(set(y[train])) == 2
            assert not set(groups[train]) & set(groups[test])


def test_samples_of_rows_cut_no_group(monkeypatch):
    monkeypatch.setattr(auto_search, "FIRST_ROWS", 60)
    X, y, groups = litters(groups=100)
    seen, ordinary = [], auto_search.Search.look

    def look(self, *args):
        stage = ordinary(self, *args)
        seen.extend((groups[stage.rows[train]], groups[stage.rows[test]]) for train, test in stage.splits)
        return stage

    monkeypatch.setattr(auto_search.Search, "look", look)
    AutoClassifier(kernels=FEW, cv=4, search_rows=120).fit(X, y, groups=groups)
    assert [len(train) + len(test) for train, test in seen[::4]] == [60, 120, 360]
    assert not any(set(train) & set(test) for train, test in seen)


def test_a_splitter_gets_the_groups():
    X, y, groups = litters(groups=6)
    weights = np.where(groups == "g0", 0.0, 1.0)
    model = AutoRegressor(kernels=FEW, cv=LeaveOneGroupOut()).fit(X, y, sample_weight=weights, groups=groups)
    assert model.account_.facts["stages"][0]["folds"] == 5
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        AutoRegressor(kernels=FEW, cv=GroupKFold(2)).fit(X, y)
    with pytest.warns(UserWarning, match="groups parameter is ignored by KFold"):
        AutoRegressor(kernels=FEW, cv=KFold(2)).fit(X, y, groups=groups)


def test_groups_that_cannot_be_held_out_are_refused():
    X, y, groups = litters()
    with pytest.raises(ValueError, match="all rows are of one group, 'all'"):
        AutoClassifier().fit(X, y, groups=["all"] * len(y))
    with pytest.raises(ValueError, match="all rows of a class are of one group, 'one'"):
        AutoClassifier().fit(X, y, groups=np.where(y == 1, "one", groups))
    with pytest.raises(ValueError, match=r"groups\[0\] is missing"):
        AutoClassifier().fit(X, y, groups=[None, *groups[1:]])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        AutoClassifier().fit(X, y, groups=groups[1:])


# -- auto, and the rows themselves ------------------------------------------------------------------------


def test_auto_passes_weights_and_groups_on():
    X, labels, numbers, weights = table()
    names = X["c"].to_numpy()
    for y, kind in ((labels, AutoClassifier), (numbers, AutoRegressor)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            direct = kind(kernels=FEW, cv=2).fit(X, y, sample_weight=weights, groups=names)
            passed = auto(X, y, sample_weight=weights, groups=names, kernels=FEW, cv=2)
            whole = X.assign(y=y, w=weights, g=names)
            named = auto(whole, "y", sample_weight="w", groups="g", kernels=FEW, cv=2)
        assert_same(passed, direct, X, rtol=0)
        assert_same(named, direct, X, rtol=0)
    with pytest.raises(ValueError, match="the table has no column 'weight'"):
        auto(X, labels, sample_weight="weight")


def test_auto_leaves_rows_without_target_out_of_the_weights():
    X, labels, _, weights = table()
    weights = weights + 1
    gaps = [None if i < 5 else int(label) for i, label in enumerate(labels)]
    gapped = auto(X, gaps, sample_weight=weights, groups=np.arange(90), kernels=FEW, cv=3)
    shorter = auto(X[5:], labels[5:], sample_weight=weights[5:], groups=np.arange(5, 90), kernels=FEW, cv=3)
    assert_same(gapped, shorter, X, rtol=0)


def test_pairs_of_rows_may_be_masks():
    mask = np.arange(6) < 4
    rows = Rows.of(np.zeros(6), [1, 1, 0, 1, 1, 1])
    ((train, test),) = rows.cut([(mask, ~mask)])
    assert train.tolist() == [0, 1, 2]
    assert test.tolist() == [3, 4]


# -- sparse rows ------------------------------------------------------------------------------------------


def words(n=120, seed=0):
    """Counts of words, two kinds of which speak for two classes; in the format that sums up entries of one place."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, 60), density=0.08, rng=rng, format="coo")
    return X, np.asarray(X.tocsr()[:, :30].sum(axis=1) > X.tocsr()[:, 30:].sum(axis=1)).ravel()


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix, sparse.lil_array])
def test_sparse_rows_are_taken_as_they_are(container, tmp_path):
    """The model is the machine on the columns as they are; whatever the format, and in a file too."""
    X, y = words()
    X = container(X)
    model = auto(X, y, kernels=[RBF(1.0), "Linear()"], cv=3)
    machine = SVC(C=model.estimator_.C, kernel=model.kernel_).fit(X, y)
    np.testing.assert_array_equal(model.estimator_.dual_coef_, machine.dual_coef_)
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(X.toarray()), rtol=1e-6)
    assert model.certificate_.verify(X, y).converged
    assert "columns of a sparse matrix, as they are" in str(model.account_)
    save(model, tmp_path / "words.mercer")
    np.testing.assert_array_equal(load(tmp_path / "words.mercer").predict_proba(X), model.predict_proba(X))


def test_sparse_rows_are_offered_the_kernels_of_kernel_auto():
    X, y = words()
    model, machine = AutoClassifier(cv=3).fit(X, y), SVC(kernel="auto").fit(X, y)
    assert "cosine" in set(model.results_["family"])
    assert model.account_.kernels == machine.account_.kernels
    numbers = AutoRegressor(kernels=["Linear()"], cv=3).fit(X, X @ np.arange(60.0))
    assert numbers.best_score_ > 0.99


def test_sparse_rows_with_weights_groups_and_gaps():
    X, y = words()
    weights, groups = np.where(np.arange(120) % 4, 2.0, 0.0), np.arange(120) // 3
    there = np.flatnonzero(weights)
    weighted = auto(X, y, sample_weight=weights, groups=groups, kernels=FEW, cv=3)
    shorter = auto(X.tocsr()[there], y[there], sample_weight=weights[there], groups=groups[there], kernels=FEW, cv=3)
    assert_same(weighted, shorter, X, rtol=0)
    assert weighted.certificate_.verify(X, y, sample_weight=weights).converged
    gapped = auto(X, [None if i < 6 else bool(label) for i, label in enumerate(y)], kernels=FEW, cv=3)
    assert_same(gapped, auto(X.tocsr()[6:], y[6:], kernels=FEW, cv=3), X, rtol=0)


def test_sparse_rows_are_never_made_dense():
    X, y = words()
    wide = sparse.hstack([X, sparse.coo_array((120, 2 * 10**6))], format="csr")  # dense: 1.9 GB
    narrow = AutoClassifier(cv=3).fit(X, y)
    tracemalloc.start()
    try:
        model = AutoClassifier(cv=3).fit(wide, y)
        found = model.predict_proba(wide)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 200e6
    np.testing.assert_allclose(found, narrow.predict_proba(X), rtol=1e-3)


def test_a_report_of_sparse_rows_is_refused():
    X, y = words()
    model = auto(X, y, kernels=FEW, cv=3)
    with pytest.raises(TypeError, match="a report tells of the columns of a table; X of this one is a sparse matrix"):
        Story("Words", "words", "", "", model, (X, y))
