"""The laws of a reproducing kernel Hilbert space (K8), for functions as objects."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mercer.kernels import RBF, Delta, FromFunction, Laplacian, Linear, Matern, Polynomial, Precomputed, Sigmoid
from mercer.rkhs import RKHSFunction
from samples import SIMILARITIES, indices, shared_letters, table, vectors, words

SPACES = [
    (RBF(1.5), vectors),
    (Linear(), vectors),
    (Polynomial(2) + Laplacian(2.0), vectors),
    (Matern(scale=[0.5, 1.0, 4.0]), vectors),
    (FromFunction(shared_letters), words),
    (Precomputed(SIMILARITIES), indices),
    (RBF(10.0).on("age") * Delta().on("town"), table),
]
spaces = st.sampled_from(SPACES)
seeds = st.integers(0, 2**20)


def member(space, seed, n=7, offset=0.0):
    kernel, points = space
    return RKHSFunction(kernel, points(n, seed=seed), np.random.default_rng(seed).normal(size=n), offset)


def size(f):
    """What rounding is measured in: the sum of the absolute terms of <f, f>."""
    return 1e-12 * (1 + np.abs(f.coefficients).sum() ** 2 * np.abs(f.kernel.diag(f.points)).max())


@given(spaces, seeds, st.floats(-3, 3))
def test_reproducing_property(space, seed, offset):
    f = member(space, seed, offset=offset)
    X = space[1](9, seed=seed + 1)
    K = f.kernel(X, f.points)
    assert f(X) == pytest.approx(K @ f.coefficients + offset, abs=size(f))
    for i in (0, 8):
        one = X.iloc[[i]] if isinstance(X, pd.DataFrame) else X[i : i + 1]
        assert f @ RKHSFunction(f.kernel, one, [1.0]) == pytest.approx(f(X)[i] - offset, abs=size(f))


@given(spaces, seeds, seeds)
def test_cauchy_schwarz_symmetry_and_parallelogram(space, first, second):
    f, g = member(space, first), member(space, second, n=5)
    rounding = size(f) + size(g)
    assert f @ g == pytest.approx(g @ f, abs=rounding)
    assert abs(f @ g) <= f.norm() * g.norm() * (1 + 1e-9) + rounding
    both = (f + g).norm() ** 2 + (f - g).norm() ** 2
    assert both == pytest.approx(2 * f.norm() ** 2 + 2 * g.norm() ** 2, rel=1e-9, abs=10 * rounding)
    assert f.distance(g) == pytest.approx((f - g).norm())
    assert f.distance(g) <= f.norm() + g.norm() + math.sqrt(rounding)


@given(spaces, seeds)
def test_values_are_bounded_by_the_norm(space, seed):
    f = member(space, seed)
    X = space[1](12, seed=seed + 3)
    assert (np.abs(f(X)) <= f.norm() * np.sqrt(f.kernel.diag(X)) * (1 + 1e-9) + size(f)).all()


@given(spaces, seeds, st.floats(-5, 5), st.floats(-5, 5))
def test_linearity(space, seed, a, b):
    f, g, h = member(space, seed, offset=0.5), member(space, seed + 1, n=4, offset=-2.0), member(space, seed + 2)
    X = space[1](9, seed=seed + 3)
    rounding = 100 * (size(f) + size(g) + size(h))
    assert (a * f + b * g)(X) == pytest.approx(a * f(X) + b * g(X), abs=rounding)
    assert (a * f + b * g) @ h == pytest.approx(a * (f @ h) + b * (g @ h), abs=rounding)
    assert (-f)(X) == pytest.approx(-f(X))
    assert (f / 2)(X) == pytest.approx(f(X) / 2)
    assert (3.0 - f + 1)(X) == pytest.approx(4.0 - f(X), abs=rounding)
    assert len(f + g) == len(f) + len(g)


def test_the_offset_is_not_in_the_space():
    f, g = member(SPACES[0], 0, offset=5.0), member(SPACES[0], 1, offset=-2.0)
    bare = RKHSFunction(f.kernel, f.points, f.coefficients)
    assert f.norm() == bare.norm()
    assert f @ g == bare @ g
    assert f.distance(bare) == 0.0
    assert (f + g).offset == 3.0
    assert (-2 * f).offset == -10.0


def test_equal_centres_are_not_doubled():
    f = member(SPACES[0], 0)
    assert len(f + 2 * f) == len(f)
    assert (f - f).norm() == 0.0


def test_numpy_numbers_scale_functions():
    f = member(SPACES[0], 0)
    assert isinstance(np.float64(2) * f, RKHSFunction)
    assert (np.float64(2) * f).norm() == pytest.approx(2 * f.norm())


def test_no_centres_is_a_constant():
    f = RKHSFunction(RBF(1.0), np.zeros((0, 2)), [], offset=1.5)
    g = RKHSFunction(RBF(1.0), np.ones((1, 2)), [2.0])
    assert f(np.zeros((3, 2))).tolist() == [1.5] * 3
    assert (f.norm(), f @ g, len(f), len(f + g)) == (0.0, 0.0, 0, 1)
    assert (g + f)(np.ones((1, 2))).tolist() == [3.5]
    assert f


def test_sparse_centres_and_tables():
    X = vectors(8)
    f = RKHSFunction(RBF(1.0), X, np.ones(8))
    g = RKHSFunction(RBF(1.0), sparse.csr_array(X[:3]), np.ones(3))
    assert (f + g)(X) == pytest.approx(f(X) + g(X))
    assert (g + g * 2)(sparse.csr_array(X)) == pytest.approx(3 * g(X))
    polars = pytest.importorskip("polars")
    t = table(6)
    h = RKHSFunction(RBF(10.0).on("age"), polars.DataFrame(t.to_dict("list")), np.ones(6))
    k = RKHSFunction(RBF(10.0).on("age"), polars.DataFrame(t.to_dict("list")), np.ones(6))
    assert (h + k).norm() == pytest.approx(2 * h.norm())


def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    X = torch.tensor(vectors(8))
    f = RKHSFunction(RBF(1.0), X, torch.ones(8, dtype=torch.float64))
    assert isinstance(f(X), torch.Tensor)
    g = f + RKHSFunction(RBF(1.0), X[:2], torch.ones(2, dtype=torch.float64))
    assert len(g) == 10


def test_parameters_are_resolved_on_the_centres():
    X = vectors(8)
    f = RKHSFunction(RBF("median"), X, np.ones(8))
    assert f.kernel == RBF("median").resolve(X)


def test_pickle_and_repr():
    f = member(SPACES[0], 0, offset=-0.25)
    twin = pickle.loads(pickle.dumps(f))
    assert twin(f.points) == pytest.approx(f(f.points), rel=1e-12)
    assert repr(f) == "<sum of 7 terms a_i k(x_i, .) - 0.25, k = RBF(scale=1.5)>"
    with pytest.raises(ValueError, match="read-only"):
        f.coefficients[0] = 1.0


def test_errors_are_sentences():
    f = member(SPACES[0], 0)
    with pytest.raises(ValueError, match="different spaces"):
        f + RKHSFunction(RBF(9.0), f.points, f.coefficients)
    with pytest.raises(ValueError, match="different spaces"):
        f @ RKHSFunction(Linear(), f.points, f.coefficients)
    with pytest.raises(ValueError, match=r"shape \(2,\) and there are 3 points"):
        RKHSFunction(Linear(), np.ones((3, 1)), [1.0, 2.0])
    with pytest.raises(ValueError, match="must be finite"):
        RKHSFunction(Linear(), np.ones((1, 1)), [np.nan])
    with pytest.raises(TypeError, match="kernel object"):
        RKHSFunction("rbf", np.ones((1, 1)), [1.0])
    for operation in (lambda: f + "x", lambda: f - "x", lambda: f * f, lambda: f @ 2, lambda: f / "x", lambda: "x" - f):
        with pytest.raises(TypeError):
            operation()


def test_an_indefinite_kernel_has_no_norm():
    K = Sigmoid(gamma=1.0, c=-1.0)
    X = np.array([[0.1], [1.0]])
    value, vector = np.linalg.eigh(K(X))
    assert value[0] < 0
    with pytest.raises(ValueError, match="not positive semidefinite"):
        RKHSFunction(K, X, vector[:, 0]).norm()
