"""The data of the thought experiment are what its recipe says."""

import numpy as np

from mercer import Monomials
from mercer.cli import lecture


def test_the_kernel_is_the_inner_product_of_the_monomials():
    X = np.random.default_rng(0).standard_normal((5, 3))
    features = Monomials(lecture.DEGREE, exact=True).fit_transform(X)
    assert np.allclose(features @ features.T, lecture.KERNEL(X))
    assert lecture.MONOMIALS == 314_457_495


def test_examples_follow_the_recipe():
    made = lecture.examples(4_000, 1_000)
    assert np.allclose(np.linalg.norm(made.X, axis=1), 1.0)
    assert abs(made.y.mean()) < 0.1
    assert abs(made.y.var() - 1.0 - lecture.NOISE**2) < 0.1
    variances = made.X.var(axis=0)
    assert 2.0 < variances[0] / variances[4] < 10.0  # 5 before the points are scaled to length 1
    again, other = lecture.examples(4_000, 1_000), lecture.examples(4_000, 1_000, seed=1)
    assert np.array_equal(made.y, again.y)
    assert not np.array_equal(made.y, other.y)
    labels, test_labels = made.labels
    assert set(labels) == set(test_labels) == {-1, 1}


def test_both_machines_learn_and_prove_it():
    made = lecture.examples(600, 500)
    model = lecture.ridge().fit(made.X, made.y)
    assert np.mean((model.predict(made.X_test) - made.y_test) ** 2) < 0.9 * made.y_test.var()
    machine = lecture.squared_hinge().fit(made.X, made.labels[0])
    assert machine.score(made.X_test, made.labels[1]) > 0.6
    assert model.certificate_.verify(made.X, made.y).converged
    assert machine.certificate_.verify(made.X, made.labels[0]).converged


def test_the_price_of_the_explicit_map_grows_with_the_examples():
    small, large = lecture.Explicit(10**9, 600.0), lecture.Explicit(10**14, 6e7)
    assert str(small) == "1e+09 numbers, 0 TB, 0.2 hours to compute"
    assert str(large) == "1e+14 numbers, 800 TB, 694 days to compute"
    assert lecture.explicit(300_000, trial=20).values == 300_000 * lecture.MONOMIALS
