"""Machines with a learned metric: their last fit is certified, and they keep scikit-learn's habits."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import checks
import mercer
from mercer import FeatureLearningClassifier, FeatureLearningRegressor, KernelRidge

RNG = np.random.default_rng(0)


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    return X, np.sin(2 * X["b"]) + 0.5 * X["e"] ** 2


@pytest.mark.parametrize("kind", [FeatureLearningRegressor, FeatureLearningClassifier])
def test_scikit_learn_finds_no_fault(kind):
    price = {"C": 10.0} if kind is FeatureLearningClassifier else {}  # one family and one price, for a hundred fits
    checks.assert_no_fault(kind(families="RBF", joint=1, **price))


def test_the_last_fit_is_ridge_regression_with_the_kernel_that_was_learned():
    X, y = table()
    model = FeatureLearningRegressor().fit(X, y)
    same = KernelRidge(model.estimator_.alpha, kernel=model.kernel_, fit_intercept=True).fit(X.to_numpy(), y)
    np.testing.assert_allclose(model.predict(X), same.predict(X.to_numpy()), atol=1e-6)
    assert model.kernel_.proof().status == "proven"
    assert model.certificate_.converged
    assert model.certificate_.verify(X, y).converged
    assert model.function_(X.to_numpy()[:3]) == pytest.approx(model.predict(X)[:3])


def test_what_was_learned_is_named():
    X, y = table(300)
    model = FeatureLearningRegressor().fit(X, y)
    assert set(X.columns[np.argsort(model.feature_importances_)[-2:]]) == {"b", "e"}
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    (share, parts), *_ = model.directions()
    assert 0.3 < share <= 1.0
    assert max(parts, key=parts.get) in ("b", "e")
    assert set(model.rounds_["family"]) == set(mercer.estimators.features.feature_learning.FAMILY_NAMES)
    assert model.rounds_["error"].min() < 0.5
    assert np.trace(model.metric_) == pytest.approx(1.0)
    np.testing.assert_allclose(np.diag(model.metric_), model.feature_importances_)


def test_a_learned_metric_beats_one_that_treats_all_columns_alike():
    X, y = table(300)
    more, target = table(400, seed=1)
    learned = FeatureLearningRegressor().fit(X, y).score(more, target)
    alike = mercer.KernelRidgeCV(kernel="rbf").fit(X, y).score(more, target)
    assert learned > alike + 0.05


def test_several_targets_share_a_metric():
    X, y = table()
    both = np.c_[y, -2.0 * y]
    model = FeatureLearningRegressor().fit(X, both)
    assert model.predict(X).shape == (150, 2)
    np.testing.assert_allclose(model.predict(X)[:, 1], -2.0 * model.predict(X)[:, 0], atol=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_classes_of_names(loss):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = FeatureLearningClassifier(loss=loss).fit(X[::2], names[::2])
    assert model.score(X[1::2], names[1::2]) > 0.9
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.certificate_.verify(X[::2], names[::2]).converged
    assert hasattr(model, "predict_proba") == (loss == "logistic")
    if loss == "logistic":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_a_class_of_two_rows_has_none_to_compare_prices_on():
    X, _ = table(4)
    model = FeatureLearningClassifier(families="RBF", joint=1).fit(X, [0, 0, 1, 1])
    assert model.C_ == 1.0
    assert model.certificate_.converged


def test_rows_of_weight_0_have_no_part():
    X, y = table(80)
    weights = np.where(np.arange(80) < 60, 1.0, 0.0)
    some = FeatureLearningRegressor().fit(X, y, weights)
    alone = FeatureLearningRegressor().fit(X[:60], y[:60])
    np.testing.assert_allclose(some.predict(X), alone.predict(X), atol=1e-8)


def test_the_same_data_give_the_same_model():
    X, y = table(90)
    first, second = (FeatureLearningRegressor().fit(X, y).predict(X) for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (
            FeatureLearningRegressor(families="RBG"),
            "families='RBG' of FeatureLearningRegressor must be None or some of",
        ),
        (FeatureLearningRegressor(families=[]), "must be None or some of"),
        (FeatureLearningRegressor(joint=0), "joint=0 of FeatureLearningRegressor must be a whole number >= 1"),
        (FeatureLearningRegressor(time_limit=0), "time_limit=0 of FeatureLearningRegressor must be None or a number"),
        (
            FeatureLearningClassifier(loss="absolute"),
            "loss='absolute' of FeatureLearningClassifier must be 'logistic', 'hinge' or",
        ),
        (FeatureLearningClassifier(C=-1), "C=-1 of FeatureLearningClassifier must be 'auto' or a number > 0"),
    ],
    ids=["name", "none", "joint", "time", "loss", "price"],
)
def test_what_is_refused(model, says):
    X, y = table(20)
    with pytest.raises(ValueError, match=says):
        model.fit(X, y > 0)


def test_one_family_can_be_asked_for():
    X, y = table(60)
    model = FeatureLearningRegressor(families="Laplacian", joint=1).fit(X, y)
    assert model.chosen_ == ["Laplacian"]
    assert set(model.rounds_["family"]) == {"Laplacian"}
