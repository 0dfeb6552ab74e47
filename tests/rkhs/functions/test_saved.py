"""Functions written as plain data and read again have the same values to the last bit."""

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mercer
from mercer.estimators import SVC, KernelRidge
from mercer.kernels import RBF, Delta, FromFunction, Laplacian, Matern, Polynomial, Precomputed
from mercer.rkhs import RKHSFunction, RKHSVector
from samples import SIMILARITIES, indices, shared_letters, table, vectors, words

SPACES = [
    (RBF(1.5), vectors),
    (RBF(scale=np.array([0.5, 1.0, 4.0])), lambda n, seed: vectors(n, seed=seed).astype(np.float32)),
    (Polynomial(2) + Laplacian(2.0), lambda n, seed: sparse.csr_array(vectors(n, seed=seed))),
    ((0.1 * Matern(1.5, "median")).exp(), lambda n, seed: vectors(n, seed=seed).tolist()),
    (Precomputed(SIMILARITIES), indices),
    (RBF(10.0).on("age") * Delta().on("town"), table),
    (0.5 * Delta() + 1.0, words),
]


def through_a_file(f):
    with tempfile.TemporaryDirectory() as folder:
        mercer.save(f, f"{folder}/f.mercer")
        return mercer.load(f"{folder}/f.mercer")


@settings(max_examples=60)
@given(st.sampled_from(SPACES), st.integers(0, 2**20), st.floats(-1e300, 1e300, allow_subnormal=True))
def test_values_are_the_same_to_the_last_bit(space, seed, offset):
    kernel, points = space
    rng = np.random.default_rng(seed)
    X, Z = points(7, seed=seed), points(9, seed=seed + 1)
    f = RKHSFunction(kernel, X, rng.normal(size=7), offset)
    g = through_a_file(f)
    assert type(g) is RKHSFunction
    assert g.kernel == f.kernel
    assert g.offset == f.offset
    assert np.array_equal(g(Z), f(Z))
    assert np.array_equal(g(X), f(X))
    assert g.distance(f) <= 1e-14 * f.norm()
    F = RKHSVector(kernel, X, rng.normal(size=(7, 3)), rng.normal(size=3))
    assert np.array_equal(through_a_file(F)(Z), F(Z))
    S = RKHSVector(kernel, X, sparse.csr_array(rng.normal(size=(7, 3)) * (rng.random((7, 3)) < 0.5)))
    assert sparse.issparse(through_a_file(S).coefficients)
    assert np.array_equal(through_a_file(S)(Z), S(Z))


def test_functions_without_centres():
    for points in (np.zeros((0, 2)), [], sparse.csr_array((0, 2))):
        f = through_a_file(RKHSFunction(RBF("auto"), points, [], 2.5))
        assert f(np.ones((2, 2))).tolist() == [2.5, 2.5]
        assert f.kernel == RBF("auto")


def test_functions_of_fitted_models():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    for f in (SVC().fit(X, y).function_, KernelRidge(kernel="rbf").fit(X, y).function_):
        assert np.array_equal(through_a_file(f)(X), f(X))


def test_tensors_are_read_as_arrays():
    torch = pytest.importorskip("torch")
    X = torch.tensor(vectors(6))
    f = RKHSFunction(RBF(1.0), X, torch.ones(6, dtype=torch.float64), 1.0)
    g = through_a_file(f)
    assert isinstance(g.points, np.ndarray)
    assert g(X.numpy()) == pytest.approx(f(X).numpy())


def test_a_function_of_python_is_refused():
    with pytest.raises(TypeError, match="a model file holds no code"):
        through_a_file(RKHSFunction(FromFunction(shared_letters), ["ab"], [1.0]))
