"""TaylorFeatures: never further from the Gaussian kernel than the stated bound, which is attained."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures

from checks import assert_no_fault
from mercer.features import Monomials, TaylorFeatures


@pytest.mark.parametrize("model", [TaylorFeatures(), TaylorFeatures(scale=3.0, degree=2)])
def test_scikit_learn_contract(model):
    assert_no_fault(model)


def gaussian(X, Z, scale):
    delta = (X[:, None] - Z[None]) / scale
    return np.exp(-0.5 * np.sum(delta**2, axis=-1))


def worst(phi, X, Z):
    return np.abs(phi.transform(X) @ phi.transform(Z).T - gaussian(X, Z, phi.scale)).max()


@given(
    d=st.integers(1, 4), degree=st.integers(0, 10), seed=st.integers(0, 2**31),
    scale=st.floats(0.2, 5), spread=st.floats(1e-3, 5), other=st.floats(1e-3, 20),
)  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_error_is_below_its_bound(d, degree, seed, scale, spread, other):
    rng = np.random.default_rng(seed)
    X, Z = spread * rng.normal(size=(15, d)), other * rng.normal(size=(12, d))
    Z[:3] = X[:3] * rng.uniform(0.5, 2, size=(3, 1))  # parallel points are the hard ones
    phi = TaylorFeatures(scale, degree).fit(X)
    rounding = 50 * np.finfo(float).eps
    assert worst(phi, X, X) <= phi.error_bound(X) + rounding
    assert worst(phi, X, Z) <= phi.error_bound(X, Z) + rounding
    assert phi.error_bound(X, Z) == pytest.approx(phi.error_bound(Z, X), rel=1e-12)
    assert phi.error_bound(X, Z) <= 1


@given(degree=st.integers(0, 12), a=st.floats(0.5, 5), b=st.floats(0.5, 12))
@settings(deadline=None, max_examples=60)
def test_the_bound_is_the_supremum_over_the_two_balls(degree, a, b):
    phi = TaylorFeatures(degree=degree).fit([[a]])
    x, z = np.linspace(0, a, 100)[:, None], np.linspace(0, b, 2001)[:, None]
    bound = phi.error_bound([[a]], [[b]])
    assert worst(phi, x, z) <= bound + 1e-14
    assert worst(phi, x, z) == pytest.approx(bound, rel=1e-3, abs=1e-14)


@given(d=st.integers(1, 5), seed=st.integers(0, 2**31), scale=st.floats(0.3, 3))
@settings(deadline=None, max_examples=40)
def test_without_z_the_bound_is_attained(d, seed, scale):
    X = np.random.default_rng(seed).normal(size=(8, d))
    phi = TaylorFeatures(scale, 3).fit(X)
    assert worst(phi, X, X) == pytest.approx(phi.error_bound(X), rel=1e-6, abs=1e-14)


@given(seed=st.integers(0, 2**31), spread=st.floats(1e-4, 6), tol=st.floats(1e-12, 0.5))
@settings(deadline=None, max_examples=80)
def test_degree_for_is_the_smallest(seed, spread, tol):
    X = spread * np.random.default_rng(seed).normal(size=(5, 2))
    degree = TaylorFeatures.degree_for(X, 1.3, tol)
    assert TaylorFeatures(1.3, degree).error_bound(X) <= tol
    assert degree == 0 or TaylorFeatures(1.3, degree - 1).error_bound(X) > tol


def test_extreme_radii_neither_overflow_nor_turn_into_nan():
    for radius in (0.0, 1e-300, 1e-170, 1e-8, 1e8, 1e200):
        for other in (0.0, 1e-300, 1.0, 1e200):
            bound = TaylorFeatures(degree=3).error_bound([[radius]], [[other]])
            assert 0.0 <= bound <= 1.0
    for dtype in (np.float32, np.float64):
        X = np.array([[0.0], [1e-30], [20.0], [39.0], [1e30]], dtype=dtype)
        F = TaylorFeatures(degree=1900).fit_transform(X)
        assert F.dtype == dtype
        assert np.isfinite(F).all()
        # x = 20 and 39 are well inside the reach of degree 1900, although exp(-39^2 / 2) is zero.
        np.testing.assert_allclose(
            np.sum(F[:4].astype(float) ** 2, axis=1), 1.0, rtol=1e-4 if dtype == np.float32 else 1e-10
        )


def test_one_dimensional_series_of_the_lectures():
    # exp(-(x - z)^2) = exp(-x^2) exp(-z^2) sum 2^k x^k z^k / k!, the case 2 s^2 = 1.
    x, k, factorial = 0.7, np.arange(4), np.array([1, 1, 2, 6])
    F = TaylorFeatures(scale=np.sqrt(0.5), degree=3).fit_transform([[x]])
    np.testing.assert_allclose(F[0], np.exp(-(x**2)) * np.sqrt(2.0**k / factorial) * x**k, rtol=1e-12)


def test_columns_are_the_monomials():
    X = np.random.default_rng(0).normal(size=(4, 3))
    phi = TaylorFeatures(degree=3).fit(X)
    assert phi.n_features_out_ == Monomials.count(3, 3) == phi.transform(X).shape[1]
    names = PolynomialFeatures(3).fit(X).get_feature_names_out()
    assert phi.get_feature_names_out().tolist() == [f"gauss {name}" for name in names]


def test_one_scale_per_feature():
    X = np.random.default_rng(0).normal(size=(6, 2))
    phi = TaylorFeatures([0.9, 4.0], 12).fit(X)
    assert worst(phi, X, X) <= phi.error_bound(X) + 1e-14
    np.testing.assert_allclose(phi.transform(X), TaylorFeatures(1.0, 12).fit_transform(X / [0.9, 4.0]), atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array])
def test_sparse_equals_dense(form, dtype):
    X = sparse.random_array((20, 6), density=0.3, rng=np.random.default_rng(0)).toarray().astype(dtype)
    X[0] = 0
    phi = TaylorFeatures(0.8, 4).fit(X)
    F = phi.transform(form(X))
    assert sparse.issparse(F)
    assert F.dtype == dtype
    np.testing.assert_allclose(F.toarray(), phi.transform(X), rtol=1e-5, atol=1e-7)
    assert phi.error_bound(form(X)) == pytest.approx(phi.error_bound(X), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda X: TaylorFeatures(degree=-1).fit(X), "degree must be a nonnegative integer, not -1"),
        (lambda X: TaylorFeatures(degree=1.5).error_bound(X), "degree must be.*1.5; degree_for"),
        (lambda X: TaylorFeatures(scale=0.0).fit(X), "scale must be positive and finite, not 0.0"),
        (lambda X: TaylorFeatures(scale=[1.0, 2.0, 3.0]).fit(X), "one per coordinate, here 2"),
        (lambda X: TaylorFeatures.degree_for(X, 1.0, 0.0), "tol must lie between 0 and 1.*0.0"),
        (
            lambda X: TaylorFeatures.degree_for(1e9 * X, 1.0, 0.1),
            "beyond the reach of a Taylor map.*RandomFourier",
        ),
    ],
)
def test_bad_input_is_answered_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(np.ones((3, 2)))


def test_a_map_that_does_not_fit_is_refused():
    with pytest.raises(MemoryError, match=r"Taylor map of 60 features to degree 10.*Use the kernel instead"):
        TaylorFeatures(degree=10).fit_transform(np.ones((5, 60)))
