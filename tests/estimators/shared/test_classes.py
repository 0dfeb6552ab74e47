"""Pairs of classes: votes and scores as scikit-learn defines them, the layout of coefficients, many classes."""

import numpy as np
import pytest
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.utils.multiclass import _ovr_decision_function

from mercer.estimators import SVC
from mercer.estimators.shared.classes import Pairs, one_vs_rest, pair_values, votes


@given(st.integers(3, 7), st.integers(0, 1000))
def test_scores_are_scikit_learns(count, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(9, count * (count - 1) // 2)).round(1)  # with zeros and ties
    np.testing.assert_allclose(
        one_vs_rest(values, count), _ovr_decision_function(values < 0, -values, count), atol=1e-12
    )


@given(st.integers(3, 7), st.integers(0, 1000))
def test_votes_are_counted_as_libsvm_does(count, seed):
    values = np.random.default_rng(seed).normal(size=(9, count * (count - 1) // 2)).round(1)
    for row, winner in zip(values, votes(values, count), strict=True):
        tally, p = [0] * count, 0
        for i in range(count):
            for j in range(i + 1, count):
                tally[i if row[p] > 0 else j] += 1
                p += 1
        assert winner == tally.index(max(tally))


@given(st.integers(2, 6), st.integers(0, 1000))
def test_the_layout_holds_every_pair(count, seed):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(count), rng.integers(0, count, 20)])
    rng.shuffle(codes)
    pairs = Pairs(codes, count)
    K = rng.normal(size=(5, len(codes)))
    coefficients = [
        rng.normal(size=len(pairs.rows(i, j))) * (rng.random(len(pairs.rows(i, j))) > 0.5) for i, j in pairs
    ]
    support, blocks = pairs.layout(coefficients)
    assert np.array_equal(codes[support], np.sort(codes[support]))
    stops = np.cumsum([len(b) for b in blocks])
    sums = np.stack([K[:, support[stop - len(b) : stop]] @ b for stop, b in zip(stops, blocks, strict=True)], axis=1)
    expected = [K[:, pairs.rows(i, j)] @ b for (i, j), b in zip(pairs, coefficients, strict=True)]
    np.testing.assert_allclose(pair_values(sums, np.zeros(len(pairs))), np.stack(expected, axis=1), atol=1e-9)


@pytest.mark.parametrize("break_ties", [False, True])
def test_ties_are_broken_as_in_scikit_learn(break_ties):
    X, y = make_blobs(150, centers=8, cluster_std=2.5, random_state=1)
    new = np.random.default_rng(0).uniform(-15, 15, (500, 2))
    ours = SVC(tol=1e-10, break_ties=break_ties, C=0.1).fit(X, y)
    theirs = sklearn.svm.SVC(tol=1e-8, break_ties=break_ties, C=0.1).fit(X, y)
    assert (ours.predict(new) == theirs.predict(new)).mean() > 0.995
    np.testing.assert_allclose(ours.decision_function(new), theirs.decision_function(new), atol=2e-3)


def test_many_classes_are_cut_into_pieces(monkeypatch):
    X, y = make_blobs(120, centers=12, random_state=0)
    model = SVC(decision_function_shape="ovo").fit(X, y)
    whole, classes = model.decision_function(X), model.predict(X)
    monkeypatch.setattr("mercer.estimators.svm.classifier._VALUES", 24 * 66 * 7)
    np.testing.assert_allclose(model.decision_function(X), whole, atol=1e-12)
    assert np.array_equal(model.predict(X), classes)
    model.decision_function_shape = "ovr"
    assert model.decision_function(X).shape == (120, 12)


def test_batches_of_pairs_give_the_same_model(monkeypatch):
    X, y = make_blobs(120, centers=12, random_state=0)
    whole = SVC().fit(X, y)
    monkeypatch.setattr("mercer.estimators.svm.machine._COPIES", 16 * 2 * 64)
    cut = SVC().fit(X, y)
    np.testing.assert_array_equal(cut.dual_coef_, whole.dual_coef_)
    assert len(cut.certificate_.parts) == 66


def test_one_sample_per_class_and_many_classes():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.arange(40)
    model = SVC(C=100.0).fit(X, y)
    assert np.array_equal(model.predict(X), y)
    assert model.dual_coef_.shape == (39, 40)
    assert model.certificate_.verify(X, y).converged


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-128, 127, 5], np.int8),
        np.array([250, 3, 7], np.uint8),
        np.array([2**63 + 5, 1, 2**63 + 6], np.uint64),
        np.array([-(2**63), 0, 2**63 - 1]),
        np.array([-3, 10**6, 4]),
        np.array([2**40, 2**40 + 1, 2**40 + 7]),
        np.array([False, True]),
        np.array(["b", "a"]),
        np.array([1.0, -1.0]),
    ],
    ids=lambda labels: f"{labels.dtype}, {labels[0]}",
)
def test_classes_are_those_of_unique(labels):
    codes = np.arange(30) % len(labels)
    y = labels[codes]
    model = SVC().fit(np.random.default_rng(0).normal(size=(30, 2)) + 9 * codes[:, None], y)
    expected = np.unique(y)
    assert model.classes_.dtype == expected.dtype
    assert (model.classes_ == expected).all()
    assert (model.predict(model.support_vectors_) == y[model.support_]).all()
