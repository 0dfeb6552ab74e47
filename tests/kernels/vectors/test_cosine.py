import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity

from mercer.kernels import Cosine, Linear
from samples import vectors


def test_agrees_with_scikit_learn():
    X, Z = vectors(), vectors(7, seed=1)
    np.testing.assert_allclose(Cosine()(X, Z), cosine_similarity(X, Z), rtol=1e-13, atol=1e-15)


def test_is_the_normalized_linear_kernel():
    X = vectors()
    np.testing.assert_allclose(Cosine()(X), Linear().normalized()(X), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(Cosine()(X)[2], 0.0)  # a row of zeros has no direction


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_points", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_length_does_not_matter_however_small_or_large(dtype, as_points):
    rows = np.zeros((9, 600))
    rows[:, :3] = vectors(9)
    rows[2] = rows[6]
    top = np.log10(np.finfo(dtype).max) - 4
    lengths = 10.0 ** np.linspace(-top, top, 9)
    K = Cosine()(as_points((rows * lengths[:, None]).astype(dtype)))
    np.testing.assert_allclose(K, Cosine()(rows), atol=50 * np.finfo(dtype).eps)
