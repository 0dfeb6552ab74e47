"""The same points in another guise have the same values: sparse, narrow, foreign, read-only, in any order."""

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse, stats

from cases import each
from mercer import Gram
from mercer.kernels import (
    RBF,
    ArcCosine,
    Cauchy,
    ChiSquared,
    Constant,
    Cosine,
    Delta,
    FromFeatures,
    Intersection,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
    SpectralMixture,
    Stationary,
    Wendland,
)
from mercer.points import Points
from samples import SAMPLES, Sample, histograms, of_vectors, vectors

OF_VECTORS = [sample for sample in SAMPLES if of_vectors(sample)]
WIDTH = 300
NON_NEGATIVE = [ChiSquared(0.5), Intersection()]
ON_SPARSE = [
    Linear(),
    Polynomial(2, c2="auto"),
    RBF("auto"),
    RBF("median"),
    RBF(np.linspace(0.5, 3, WIDTH)),
    Laplacian("auto"),
    Laplacian(np.linspace(0.5, 3, WIDTH)),
    Matern(0.5, 2.0),
    Matern(1.5, np.linspace(0.5, 3, WIDTH)),
    Matern(0.8, 2.0),
    RationalQuadratic(0.7, 2.0),
    Cauchy("median"),
    Wendland(1, 3.0),
    Cosine(),
    ArcCosine(0),
    ArcCosine(1),
    ArcCosine(2),
    Sigmoid(),
    Delta(),
    Constant(2.0),
    Periodic(3.0, 4.0),
    SpectralMixture([1.0], [0.01], [2.0]),
    Stationary.from_spectral(stats.norm()),
    FromFeatures(lambda X: X * 2.0),
    *NON_NEGATIVE,
    RBF(1.0) * Linear() + 1.0,
    (0.5 * RBF(2.0)).geometric(),
    Polynomial(2).normalized(),
    Linear().on([0, 5, 7]) + RBF(1.0).on(slice(0, 100)),
    RBF(1.0).compose(lambda X: X / 2.0),
    Linear().rescaled(lambda X: np.asarray(X.sum(axis=1)).ravel()),
]


def thin(n: int, seed: int, signed: bool) -> np.ndarray:
    """Mostly zeros, so that the sparse form is really used; one row of zeros, two equal rows."""
    X = sparse.random_array((n, WIDTH), density=0.012, rng=seed).toarray()
    X[0, ::50] = 1.0
    X[3] = 0.0
    X[4] = X[0]
    if signed:
        X *= np.random.default_rng(seed).choice([-1.0, 1.0], size=WIDTH)
    return X


FORMS = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "coo_matrix": sparse.coo_matrix,
}


@each("k", ON_SPARSE, ids=repr)
def test_sparse_points_are_points(k):
    X, Z = (thin(n, seed, signed=k not in NON_NEGATIVE) for n, seed in ((16, 0), (9, 1)))
    assert sparse.issparse(Points(sparse.csr_array(X)).vectors)  # not so dense that it would be unpacked
    fitted = k.resolve(X)
    wanted, other = fitted(X), fitted(X, Z)
    close = {"rtol": 1e-11, "atol": 1e-12 * np.abs(wanted).max()}
    np.testing.assert_allclose(k(sparse.csr_array(X)), wanted, **close)
    for form in FORMS.values():
        np.testing.assert_allclose(fitted(form(X), form(Z)), other, **close)
    np.testing.assert_allclose(fitted.diag(sparse.csr_array(X)), fitted.diag(X), **close)
    v = np.linspace(-1, 1, 9)
    product = Gram(fitted, sparse.csr_array(X), sparse.csr_array(Z)).matvec(v)
    np.testing.assert_allclose(product, other @ v, rtol=1e-10, atol=1e-11 * np.abs(wanted).max())
    single = fitted(sparse.csr_array(X).astype(np.float32))
    np.testing.assert_allclose(single, fitted(X.astype(np.float32)), rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("k", [RBF(1.0), Linear(), Laplacian(1.0), Cosine(), Intersection(), Delta()], ids=repr)
def test_one_set_may_be_sparse_and_the_other_not(k):
    X, Z = thin(16, 0, signed=False), thin(9, 1, signed=False)
    wanted = k(X, Z)
    np.testing.assert_allclose(k(sparse.csr_array(X), Z), wanted, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(k(X, sparse.coo_array(Z)), wanted, rtol=1e-12, atol=1e-13)


def test_entries_given_twice_are_summed_and_the_matrix_is_left_alone():
    twice = sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 200))
    once = sparse.csr_array(([3.0, 4.0], ([0, 1], [1, 0])), shape=(2, 200))
    np.testing.assert_array_equal(RBF(5.0)(twice), RBF(5.0)(once))
    assert twice.nnz == 3
    whole = sparse.csr_array(np.eye(3, 200, dtype=int))
    np.testing.assert_array_equal(Linear()(whole), np.eye(3))
    assert whole.dtype.kind == "i"


# -- dense forms ------------------------------------------------------------------------------------------


def guises(X: np.ndarray, tmp_path) -> dict[str, object]:
    read_only = X.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    wide = np.repeat(X, 2, axis=1)
    return {
        "read-only": read_only,
        "memory-mapped": np.load(tmp_path / "X.npy", mmap_mode="r"),
        "Fortran order": np.asfortranarray(X),
        "every other column": wide[:, ::2],
        "reversed twice": X[::-1].copy()[::-1],
        "other byte order": X.astype(">f8"),
        "numbers as objects": X.astype(object),
        "list": X.tolist(),
        "tuples": [tuple(row) for row in X.tolist()],
        "list of arrays": list(X),
        "pandas": pd.DataFrame(X),
        "polars": polars.DataFrame({str(j): X[:, j] for j in range(X.shape[1])}),
        "points": Points(X),
        "subclass": X.view(type("Mine", (np.ndarray,), {})),
        "unmasked": np.ma.masked_array(X, mask=False),
    }


@pytest.mark.parametrize("sample", OF_VECTORS, ids=str)
def test_guises_of_a_matrix(sample: Sample, tmp_path):
    X = sample.points()
    k, before = sample.kernel.resolve(X), X.copy()
    wanted, diagonal = k(X), k.diag(X)
    needs_arrays = any(name in repr(k) for name in ("squares", "weight"))  # functions of samples.py
    for name, points in guises(X, tmp_path).items():
        if needs_arrays and name in ("list", "tuples", "list of arrays", "pandas", "polars", "numbers as objects"):
            continue
        np.testing.assert_allclose(k(points), wanted, rtol=1e-12, atol=1e-14, err_msg=name)
        np.testing.assert_allclose(k.diag(points), diagonal, rtol=1e-12, atol=1e-14, err_msg=name)
    np.testing.assert_array_equal(X, before)


@each("dtype", [np.int8, np.int64, np.uint16, bool, np.float16, np.longdouble])
@each("k", [RBF(1.5) + Linear(), Laplacian(2.0), ArcCosine(1), Intersection(), Delta()], ids=repr)
def test_types_of_numbers(k, dtype):
    X = histograms().round().astype(dtype)
    K = k(X)
    wide = np.float32 if dtype is np.float16 else np.float64
    assert K.dtype == wide
    np.testing.assert_array_equal(K, k(X.astype(wide)))


@each("sample", OF_VECTORS, ids=str)
def test_single_precision_stays_single(sample):
    X = sample.points().astype(np.float32)
    k = sample.kernel.resolve(X)
    assert k(X).dtype == np.float32
    assert k.diag(X).dtype == np.float32
    assert k(X, X.astype(np.float64)).dtype == np.float64


@each("sample", OF_VECTORS, ids=str)
def test_tensors_of_torch(sample):
    torch = pytest.importorskip("torch")
    X, Z = sample.points(), sample.points(7, seed=1)
    k = sample.kernel.resolve(X)
    left, right = torch.as_tensor(X), torch.as_tensor(Z)
    if "Spectral(" in repr(k):
        with pytest.raises(TypeError, match=r"evaluates on NumPy arrays; pass X as one rather than a Tensor"):
            k(left)
        return
    for got, wanted in ((k(left), k(X)), (k(left, right), k(X, Z)), (k.diag(left), k.diag(X))):
        assert isinstance(got, torch.Tensor)
        assert got.dtype == torch.float64
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9, atol=1e-12 * scale)
    if str(sample) != "FromFeatures(transformer)":  # it returns what it likes
        assert k(left.to(torch.float32)).dtype == torch.float32


def test_tensors_and_arrays_do_not_mix():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"one set of points is a Tensor, the other a ndarray; pass both as"):
        RBF(1.0)(torch.ones(3, 2), np.ones((3, 2)))


def test_the_order_of_points_and_of_features_does_not_matter():
    X = vectors()
    rows, columns = np.random.default_rng(0).permutation(24), [2, 0, 1]
    for k in (RBF(1.0), Laplacian(1.0), Linear(), Cosine(), Matern(0.8, 1.0)):
        np.testing.assert_allclose(k(X[rows]), k(X)[np.ix_(rows, rows)], rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(k(X[:, columns]), k(X), rtol=1e-12, atol=1e-13)
