"""Polynomials of an inner product, and the sigmoid."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, sigmoid_kernel

from mercer.kernels import RBF, Linear, Polynomial, Sigmoid
from samples import vectors


@pytest.mark.parametrize("degree", [1, 2, 3, 7])
@pytest.mark.parametrize(("c1", "c2"), [(1.0, 1.0), (0.0, 0.5), (2.5, 0.1)])
def test_agrees_with_scikit_learn(degree, c1, c2):
    X, Z = vectors(), vectors(7, seed=1)
    wanted = polynomial_kernel(X, Z, degree=degree, gamma=c2, coef0=c1)
    np.testing.assert_allclose(Polynomial(degree, c1, c2)(X, Z), wanted, rtol=1e-11, atol=1e-11)


def test_auto_is_scikit_learns_scale():
    X = vectors()
    k = Polynomial(2, c2="auto").resolve(X)
    assert k.c2 == pytest.approx(1 / (X.shape[1] * X.var()), rel=1e-14)
    assert Polynomial(2, c2="auto").resolve(np.ones((4, 3))).c2 == 1.0


def test_is_the_power_of_a_sum_in_the_algebra():
    X = vectors()
    np.testing.assert_allclose(Polynomial(3, c1=2.0, c2=0.5)(X), ((0.5 * Linear() + 2.0) ** 3)(X), rtol=1e-13)


def test_quadratic_of_the_lectures():
    X = vectors()
    dot = X @ X.T
    np.testing.assert_allclose((Linear() + Linear() ** 2)(X), dot + dot**2, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("c1", "exact"), [(0.0, True), (0.7, False)])
def test_feature_map_has_the_kernel_as_inner_product(c1, exact):
    X, k = vectors(), Polynomial(3, c1=c1, c2=1.3)
    phi = k.feature_map()
    F = phi.fit_transform(X)
    assert phi.exact == exact
    np.testing.assert_allclose(F @ F.T, k(X), rtol=1e-12, atol=1e-12 * k.diag(X).max())


@pytest.mark.parametrize("degree", [0, -1, 2.5, float("nan"), "3", None])
def test_degree_must_be_a_whole_number(degree):
    with pytest.raises(ValueError, match=r"degree of Polynomial must be a whole number >= 1; it is"):
        Polynomial(degree)


def test_constants_must_keep_it_positive():
    with pytest.raises(ValueError, match=r"c1 of Polynomial must be >= 0 and finite; it is -1"):
        Polynomial(2, c1=-1)
    with pytest.raises(ValueError, match=r"c2 of Polynomial must be > 0 and finite; it is 0"):
        Polynomial(2, c2=0)
    assert Polynomial(degree=3.0) == Polynomial(3)


@pytest.mark.parametrize(("gamma", "c"), [(0.1, 0.0), (1.0, -0.5), (0.5, 2.0)])
def test_agrees_with_scikit_learn_of_sigmoid(gamma, c):
    X, Z = vectors(), vectors(7, seed=1)
    np.testing.assert_allclose(Sigmoid(gamma, c)(X, Z), sigmoid_kernel(X, Z, gamma=gamma, coef0=c), rtol=1e-12)


def test_auto_is_scikit_learns_scale_of_sigmoid():
    X = vectors()
    assert Sigmoid().resolve(X).gamma == pytest.approx(1 / (3 * X.var()), rel=1e-14)


def test_is_refuted_and_says_so():
    proof = Sigmoid(gamma=1.0).proof()
    assert (proof.status, proof.proven) == ("refuted", False)
    assert proof.gaps() == [proof]
    assert (RBF(1.0) + Sigmoid(gamma=1.0)).proof().status == "unproven"


def test_has_the_counterexample_that_the_proof_speaks_of():
    X = np.linspace(-3, 3, 30)[:, None]
    assert np.linalg.eigvalsh(Sigmoid(gamma=1.0)(X))[0] < -0.1
    assert np.linalg.eigvalsh(Sigmoid(gamma=1.0, c=-1.0)(X))[0] < -1


def test_slope_must_be_positive():
    with pytest.raises(ValueError, match=r"gamma of Sigmoid must be > 0 and finite; it is -1"):
        Sigmoid(-1)
    with pytest.raises(ValueError, match=r"c of Sigmoid must be .*finite; it is inf"):
        Sigmoid(1.0, c=float("inf"))
