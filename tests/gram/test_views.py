"""The matrix of the same kernel on other points and in another precision, and whether float32 is enough."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from mercer import RBF, FromFunction, Gram, Laplacian, Linear, Polynomial
from mercer.points import Points

N = 90
X = np.random.default_rng(0).normal(size=(N, 4))
Z = np.random.default_rng(1).normal(size=(40, 4))
KERNELS = [RBF(1.5), Linear(), Polynomial(2), Laplacian(1.0), RBF(1.0).on([0, 2]) + 0.5 * Linear()]


def dot(a, b):
    return float(a @ b) + 1.0


# -- other points -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, FromFunction(dot)], ids=str)
@pytest.mark.parametrize("data", [X, sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))], ids=["dense", "sparse"])
def test_parts_are_cut_from_the_whole(kernel, data):
    if isinstance(kernel, FromFunction) and sparse.issparse(data):
        pytest.skip("Python functions take rows of arrays")
    gram, K = Gram(kernel, data, budget="1 GB"), Gram(kernel, data).dense()
    some, others = np.array([3, 0, 77]), slice(5, 60)
    assert np.allclose(gram.take(some).dense(), K[np.ix_(some, some)], rtol=1e-12)
    assert gram.take(some).symmetric
    assert gram.take(some).given_budget == "1 GB"
    assert np.allclose(gram.take(some, others).dense(), K[some, others], rtol=1e-12)
    assert np.allclose(gram.take(slice(None), some).dense(), K[:, some], rtol=1e-12)
    assert np.allclose(gram.take(others).against(gram.left).dense(), K[others], rtol=1e-12)


def test_parts_of_two_sets():
    gram = Gram(RBF(1.0), X, Z)
    assert np.array_equal(gram.take(slice(4, 9)).dense(), gram.dense()[4:9])
    assert np.array_equal(gram.T.dense(), gram.dense().T)
    assert np.array_equal(Gram(RBF(1.0), X).against(gram.right).dense(), gram.dense())


def test_a_kernel_waits_for_no_other_points():
    """Parameters taken from the data stay what they were on the first points."""
    gram = Gram(RBF("median"), X)
    assert gram.on(Points(10 * Z)).kernel == gram.kernel != Gram(RBF("median"), 10 * Z).kernel


def test_any_function_of_pairs_has_a_matrix():
    squares = Gram.of_formula(lambda pair: pair.sqdist(1.0), Points(X), Points(Z))
    assert np.allclose(squares.fill(), ((X[:, None] - Z) ** 2).sum(axis=2))
    assert np.allclose(squares.block([1, 2], [3]), squares.fill()[1:3, 3:4])


# -- precision --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_precisions(kernel):
    gram, K = Gram(kernel, X), Gram(kernel, X).dense()
    rough, size = gram.single(), np.abs(K).max()
    assert rough.dtype == np.float32
    assert np.abs(rough.dense() - K).max() < 1e-5 * size
    assert gram.double() is gram
    assert rough.double().dtype == np.float64
    assert rough.single() is rough
    assert rough.single(forgiving=True).forgiving
    assert rough.single(forgiving=True).take(slice(0, 5)).forgiving
    for out, error in ((np.empty((N, N)), 1e-12), (np.empty((N, N), np.float32), 1e-5)):
        assert gram.fill(out) is out
        assert np.abs(out - K).max() < error * size
    v = np.random.default_rng(2).normal(size=(N, 2))
    for precision, error in ((None, 1e-12), ("float64", 1e-12), ("float32", 1e-4)):
        product = gram.product(v, precision)
        assert product.dtype == np.float64
        assert np.abs(product - K @ v).max() < error * size * np.abs(v).sum()


def test_points_that_are_no_vectors_have_one_precision():
    gram = Gram(FromFunction(lambda a, b: float(a == b)), ["a", "b"])
    assert gram.single() is gram.double() is gram


# -- whether float32 is enough ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_ordinary_points_may_be_compared_in_float32(kernel):
    assert Gram(kernel, X).single_is_enough


@pytest.mark.parametrize("shift", [1e5, 1e7])
def test_points_far_from_the_origin_may_not(shift):
    """float32 keeps seven digits: what distinguishes these points is in the last ones."""
    gram = Gram(RBF(1.0), X + shift)
    rough, exact = Gram(RBF(1.0), gram.left.single()).dense(), gram.dense()
    assert np.abs(rough - exact).max() > 1e-5
    assert not gram.single_is_enough


def test_values_that_float32_cannot_hold_may_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Gram(Linear(), X * 1e39).single_is_enough


def test_values_that_are_all_nearly_alike_may_not():
    """A wide RBF is 1 everywhere; its differences are what a classifier sees."""
    assert not Gram(RBF(1e4), X).single_is_enough


def test_float32_points_are_what_they_are():
    assert Gram(RBF(1.0), (X + 1e5).astype(np.float32)).single_is_enough
    assert Gram(FromFunction(dot), X.astype(np.float32)).single_is_enough


def test_python_kernels_stay_as_they_are():
    assert not Gram(FromFunction(dot), X).single_is_enough
    assert not Gram(FromFunction(lambda a, b: float(a == b)), ["a", "b"]).single_is_enough
