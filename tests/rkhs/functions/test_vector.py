"""A vector of functions is the sequence of its functions: every operation agrees with theirs."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mercer.kernels import RBF, Delta, FromFunction, Laplacian, Linear, Matern, Precomputed, Sigmoid
from mercer.rkhs import RKHSFunction, RKHSVector
from samples import SIMILARITIES, indices, shared_letters, table, vectors, words

SPACES = [
    (RBF(1.5), vectors),
    (Matern(1.5, 2.0) * Linear() + 1.0, vectors),
    (FromFunction(shared_letters), words),
    (Precomputed(SIMILARITIES), indices),
    (RBF(10.0).on("age") * Delta().on("town"), table),
]
spaces = st.sampled_from(SPACES)
seeds = st.integers(0, 2**20)
storages = st.sampled_from(["dense", "sparse"])


def several(space, seed, k=3, n=8, storage="dense"):
    kernel, points = space
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, k)) * (rng.random((n, k)) < 0.6)
    stored = sparse.csr_array(A) if storage == "sparse" else A
    return RKHSVector(kernel, points(n, seed=seed), stored, rng.normal(size=k))


def rounding(F):
    A = F.coefficients.toarray() if sparse.issparse(F.coefficients) else F.coefficients
    return 1e-12 * (1 + np.abs(A).sum() ** 2 * np.abs(F.kernel.diag(F.points)).max())


@settings(max_examples=40)
@given(spaces, seeds, storages)
def test_a_vector_is_the_sequence_of_its_functions(space, seed, storage):
    F = several(space, seed, storage=storage)
    X = space[1](9, seed=seed + 1)
    assert len(F) == len(list(F)) == 3
    assert F(X).shape == (9, 3)
    assert F(X) == pytest.approx(np.stack([f(X) for f in F], axis=1), abs=rounding(F))
    x = X.iloc[2] if isinstance(X, pd.DataFrame) else X[2]
    assert F(x) == pytest.approx(F(X)[2], abs=rounding(F))
    assert F.norms() == pytest.approx([f.norm() for f in F], abs=np.sqrt(rounding(F)))
    gram = F.gram()
    assert gram == pytest.approx(np.array([[f @ g for g in F] for f in F]), abs=rounding(F))
    assert (gram == gram.T).all()
    assert np.diag(gram) == pytest.approx(F.norms() ** 2, abs=rounding(F))
    assert np.linalg.eigvalsh(gram).min() >= -10 * rounding(F)
    assert [f.offset for f in F] == F.offsets.tolist()
    assert isinstance(F[-1], RKHSFunction)
    assert F[::2](X) == pytest.approx(F(X)[:, ::2], abs=rounding(F))


@settings(max_examples=40)
@given(spaces, seeds, storages, storages, st.floats(-3, 3))
def test_arithmetic_is_that_of_the_functions(space, seed, first, second, a):
    F, G = several(space, seed, storage=first), several(space, seed + 1, n=5, storage=second)
    X = space[1](9, seed=seed + 2)
    each = np.array([1.0, -2.0, 0.5])
    loose = 100 * (rounding(F) + rounding(G))
    for found, expected in (
        (F + G, F(X) + G(X)),
        (F - a * G, F(X) - a * G(X)),
        (each * F + 1.0, F(X) * each + 1.0),
        (each - F / 2, each - F(X) / 2),
        (F + F, 2 * F(X)),
        (F - G[0], F(X) - G(X)[:, :1]),
        (G[1] - F, G(X)[:, 1:2] - F(X)),
        (np.array([[1.0, 1.0, 0.0], [0.0, a, 1.0]]) @ F, F(X) @ np.array([[1.0, 1.0, 0.0], [0.0, a, 1.0]]).T),
    ):
        assert isinstance(found, RKHSVector)
        assert found(X) == pytest.approx(expected, abs=loose)
    assert (each @ F)(X) == pytest.approx(F(X) @ each, abs=loose)
    both = F @ G
    assert both == pytest.approx(np.array([[f @ g for g in G] for f in F]), abs=loose)
    assert F @ G[1] == pytest.approx(both[:, 1], abs=loose)
    assert G[1] @ F == pytest.approx(both[:, 1], abs=loose)
    assert F.distances(G) == pytest.approx([f.distance(g) for f, g in zip(F, G, strict=True)], abs=np.sqrt(loose))
    assert F.distances(F + 5.0) == pytest.approx(np.zeros(3), abs=0)


def test_gradients_are_those_of_the_functions():
    for storage in ("dense", "sparse"):
        F = several((RBF(1.5), vectors), 0, storage=storage)
        X = vectors(5, seed=1)
        assert F.gradient(X).shape == (5, 3, 3)
        assert F.gradient(X) == pytest.approx(np.stack([f.gradient(X) for f in F], axis=1), abs=1e-9)
    empty = RKHSVector(RBF(1.0), np.zeros((0, 2)), np.zeros((0, 3)), [1.0, 2.0, 3.0])
    assert empty.gradient(np.ones((4, 2))).shape == (4, 3, 2)
    assert empty(np.ones((2, 2))).tolist() == [[1.0, 2.0, 3.0]] * 2
    assert empty.norms().tolist() == [0.0] * 3
    assert empty.gram().tolist() == np.zeros((3, 3)).tolist()


def test_functions_are_put_side_by_side():
    X, Z = vectors(6), vectors(4, seed=1)
    f, g = RKHSFunction(RBF(1.0), X, np.ones(6)), RKHSFunction(RBF(1.0), X, np.arange(6.0), 2.0)
    h = RKHSFunction(RBF(1.0), Z, np.ones(4), -1.0)
    F = RKHSVector.of([f, h, g])
    assert F.coefficients.shape == (10, 3)
    assert F(Z) == pytest.approx(np.stack([f(Z), h(Z), g(Z)], axis=1))
    assert RKHSVector.of([f, g]).points is X
    with pytest.raises(ValueError, match="different spaces"):
        RKHSVector.of([f, RKHSFunction(RBF(2.0), X, np.ones(6))])
    with pytest.raises(ValueError, match="at least one RKHSFunction"):
        RKHSVector.of([])


def test_a_sparse_function_holds_the_centres_it_uses():
    A = sparse.csc_array(np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0]]))
    F = RKHSVector(FromFunction(shared_letters), ["ab", "bc", "cd"], A)
    assert F[0].points == ["ab", "cd"]
    assert F[1].points == ["cd"]
    assert (len(F[0]), len(F[1])) == (2, 1)
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0]})
    assert RKHSVector(RBF(1.0), frame, A)[1].points["a"].tolist() == [2.0]


def test_columns_of_very_different_size():
    X, A = vectors(6), np.random.default_rng(0).normal(size=(6, 3))
    F = RKHSVector(Laplacian(1.0), X, A * [1e-300, 1.0, 1e300])
    plain = RKHSVector(Laplacian(1.0), X, A)
    assert F.norms() == pytest.approx(plain.norms() * [1e-300, 1.0, 1e300], rel=1e-12)
    assert F(X) == pytest.approx(plain(X) * [1e-300, 1.0, 1e300], rel=1e-9)
    assert (F[:1] @ F[2:])[0, 0] == pytest.approx(plain.gram()[0, 2], rel=1e-9)
    with pytest.raises(FloatingPointError, match="an inner product lies outside"):
        F.gram()


def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    X, A = torch.tensor(vectors(8)), torch.tensor(np.random.default_rng(0).normal(size=(8, 2)))
    F, plain = RKHSVector(RBF(1.0), X, A, [1.0, 2.0]), RKHSVector(RBF(1.0), X.numpy(), A.numpy(), [1.0, 2.0])
    values = F(X)
    assert isinstance(values, torch.Tensor)
    assert values.numpy() == pytest.approx(plain(X.numpy()))
    assert F.norms() == pytest.approx(plain.norms())
    assert F.gram() == pytest.approx(plain.gram())
    assert isinstance((np.array([2.0, 1.0]) * F + F[0])(X), torch.Tensor)
    assert (np.array([[1.0, 1.0]]) @ F)(X).numpy()[:, 0] == pytest.approx(plain(X.numpy()).sum(axis=1))
    assert isinstance(F[1:](X), torch.Tensor)
    assert isinstance(F.gradient(X), torch.Tensor)
    assert isinstance(F.prune(1e-2).function.coefficients, torch.Tensor)
    assert RKHSVector.of([F[0], F[1]])(X).numpy() == pytest.approx(plain(X.numpy()))


def test_pickle_and_repr():
    F = several(SPACES[0], 0)
    assert np.array_equal(pickle.loads(pickle.dumps(F))(F.points), F(F.points))
    assert repr(F) == "<3 functions sum_i a_i k(x_i, .) + b on 8 centres, k = RBF(scale=1.5)>"
    with pytest.raises(ValueError, match="read-only"):
        F.coefficients[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        F.offsets[0] = 1.0
    assert RKHSVector(RBF("median"), F.points, F.coefficients).kernel == RBF("median").resolve(F.points)


def test_errors_are_sentences():
    F, X = several(SPACES[0], 0), vectors(8)
    with pytest.raises(ValueError, match=r"shape \(8,\) and there are 8 points"):
        RKHSVector(RBF(1.0), X, np.ones(8))
    with pytest.raises(ValueError, match=r"offsets have shape \(2,\) and there are 3 functions"):
        RKHSVector(RBF(1.0), X, np.ones((8, 3)), [1.0, 2.0])
    with pytest.raises(ValueError, match="must be finite"):
        RKHSVector(RBF(1.0), X, np.full((8, 1), np.inf))
    with pytest.raises(ValueError, match="must be finite"):
        RKHSVector(RBF(1.0), X, sparse.csr_array(np.full((8, 1), np.nan)))
    with pytest.raises(TypeError, match="kernel object"):
        RKHSVector("rbf", X, np.ones((8, 1)))
    with pytest.raises(ValueError, match="3 functions and one of 2 cannot be added"):
        F + F[:2]
    with pytest.raises(ValueError, match="different spaces"):
        F @ RKHSVector(RBF(2.0), X, np.ones((8, 3)))
    with pytest.raises(ValueError, match=r"shape \(2, 2\) cannot mix 3 functions"):
        np.ones((2, 2)) @ F
    with pytest.raises(ZeroDivisionError, match="cannot be divided by 0"):
        F / [1.0, 0.0, 1.0]
    with pytest.raises(IndexError):
        F[3]
    for operation in (lambda: F + "x", lambda: F - "x", lambda: "x" - F, lambda: F * F, lambda: F / "x", lambda: F @ 2):
        with pytest.raises(TypeError):
            operation()


def test_an_indefinite_kernel_has_no_norm():
    K = Sigmoid(gamma=1.0, c=-1.0)
    X = np.array([[0.1], [1.0]])
    vectors_of = np.linalg.eigh(K(X))[1]
    for storage in (np.asarray, sparse.csc_array):
        F = RKHSVector(K, X, storage(vectors_of[:, ::-1]))
        with pytest.raises(ValueError, match="not positive semidefinite"):
            F.norms()
