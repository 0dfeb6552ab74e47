"""The constant and the linear kernel."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel

from mercer.kernels import Constant, Linear
from samples import vectors, words


@pytest.mark.parametrize("points", [vectors(5), words(5), [3, 1, 2, 2, 1], [(1,), (1, 2), "a", None, {}]])
def test_any_points_have_the_same_similarity(points):
    np.testing.assert_array_equal(Constant(2.5)(points), np.full((5, 5), 2.5))
    np.testing.assert_array_equal(Constant(2.5).diag(points), np.full(5, 2.5))


def test_numbers_in_a_sum_are_constants():
    assert Linear() + 2 == Linear() + Constant(2.0)
    assert 2 + Linear() == Constant(2.0) + Linear()
    assert Constant(2.0)(vectors().astype(np.float32)).dtype == np.float32


def test_negative_constants_are_refused():
    with pytest.raises(ValueError, match=r"value of Constant must be >= 0 and finite; it is -1"):
        Constant(-1)
    with pytest.raises(ValueError, match=r"value of Constant must be >= 0 and finite; it is -3"):
        Linear() + (-3)
    with pytest.raises(TypeError, match=r"value of Constant must be a number >= 0, not 'a'"):
        Constant("a")


def test_is_the_inner_product():
    X, Z = vectors(), vectors(7, seed=1)
    np.testing.assert_allclose(Linear()(X, Z), linear_kernel(X, Z), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(Linear().diag(X), (X**2).sum(axis=1), rtol=1e-14)


def test_feature_map_is_the_identity():
    X = vectors()
    np.testing.assert_array_equal(Linear().feature_map().fit_transform(X), X)
