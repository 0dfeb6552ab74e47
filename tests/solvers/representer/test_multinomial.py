"""All classes together: the minimum, the symmetry, and two classes as one logistic function."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conic
from mercer.certify.representer import check_representer
from mercer.gram import Gram
from mercer.kernels import RBF, Linear
from mercer.losses import Logistic, Multinomial, Norm, SquaredNorm
from mercer.solvers.control import Control
from mercer.solvers.representer.engine import Representer, solve


def fit(X, y, strength, intercept=True, weights=None, tol=1e-8, kernel=None, **limits):
    problem = Representer(Gram(kernel or RBF(1.0), X), y, Multinomial(), SquaredNorm(strength), weights, intercept)
    return solve(problem, Control(tol=tol, **limits))


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(3, 30),
    strength=st.sampled_from([1e-4, 1e-2, 1.0, 1e3]),
    intercept=st.booleans(),
    kernel=st.sampled_from([RBF(0.5), Linear()]),
)
def test_coefficients_sum_to_0_over_the_classes_and_over_the_points(seed, n, strength, intercept, kernel):
    X, y = conic.draw(Multinomial(), seed, n)
    y[:3] = 0, 1, 2
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    found = fit(X, y, strength, intercept, weights, kernel=kernel)
    assert found.certificate.stopped == "converged"
    size = np.abs(found.coefficients).max()
    assert np.abs(found.coefficients.sum(axis=1)).max() <= 1e-8 * size
    if intercept:
        assert np.abs(found.coefficients.sum(axis=0)).max() <= 1e-5 * n * size
        assert found.offset.sum() == pytest.approx(0.0, abs=1e-9)
    checked = check_representer(
        kernel, X, y, coefficients=found.coefficients, offset=found.offset, loss=Multinomial(),
        penalty=SquaredNorm(strength), weights=weights, intercept=intercept, tol=1e-7,
    )  # fmt: skip
    assert checked.converged


@pytest.mark.parametrize("intercept", [True, False])
def test_two_classes_are_logistic_regression_of_half_the_strength(intercept):
    X, labels = conic.draw(Logistic(), 0, 40)
    both = fit(X, (labels > 0).astype(float), 0.2, intercept)
    problem = Representer(Gram(RBF(1.0), X), labels, Logistic(), SquaredNorm(0.1), None, intercept)
    one = solve(problem, Control(tol=1e-9))
    np.testing.assert_allclose(both.values[:, 1] - both.values[:, 0], one.values, atol=1e-3)
    assert both.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-7)


def test_names_of_classes_do_not_matter():
    X, y = conic.draw(Multinomial(), 1, 40)
    one, other = fit(X, y, 0.1), fit(X, (y + 1) % 3, 0.1)
    np.testing.assert_allclose(one.values, other.values[:, [1, 2, 0]], atol=1e-3)


def test_more_points_than_the_preconditioner_holds():
    X, y = conic.draw(Multinomial(), 2, 700)
    found = fit(X, y, 0.5, tol=1e-6)
    assert found.certificate.stopped == "converged"
    assert found.certificate.iterations <= 15


def test_a_class_alone_and_a_class_without_points():
    X, y = conic.draw(Multinomial(), 0, 12)
    alone = fit(X, np.zeros(12), 1.0, tol=1e-3)
    assert np.isfinite(alone.values).all()
    assert (alone.values[:, 0] > alone.values[:, 1]).all()
    gap = fit(X, np.where(y == 1, 2.0, y), 1.0, tol=1e-6)
    assert gap.coefficients.shape == (12, 3)
    assert (gap.values.argmax(axis=1) != 1).all()


def test_the_plain_norm_binds_all_classes_together():
    X, y = conic.draw(Multinomial(), 0, 20)
    problem = Representer(Gram(RBF(1.0), X), y, Multinomial(), Norm(1.0))
    found = solve(problem, Control(tol=1e-6))
    K = np.asarray(Gram(RBF(1.0), X).dense())
    best, _, solved = conic.minimum(K, y, Multinomial(), Norm(1.0), np.ones(20), True)
    assert solved
    assert found.certificate.primal == pytest.approx(best, rel=1e-5)
