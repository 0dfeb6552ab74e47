"""Sums of kernel functions: every way to evaluate them gives the same numbers, and projections obey their laws."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from mercer import RKHSFunction, RKHSVector
from mercer.estimators import SVC
from mercer.kernels import RBF, Delta, FromFunction, Laplacian, Linear, Polynomial, SetKernel, Sigmoid
from mercer.rkhs.functions.sums import Expansion
from samples import bags, shared_letters, vectors, words


def made(sizes, d=40, functions=3, seed=0):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(sum(sizes), d)) + 5.0
    return S, [rng.normal(size=(n, functions)) for n in sizes], rng.normal(size=(50, d)) + 5.0


def expected(kernel, S, blocks, X):
    K, out, start = kernel(X, S), [], 0
    for block in blocks:
        out.append(K[:, start : start + len(block)] @ block)
        start += len(block)
    return np.stack(out, axis=1)


@pytest.mark.parametrize("sizes", [[70], [60, 80, 50], [3, 1, 4, 2], [50, 0, 90]], ids=str)
@pytest.mark.parametrize("kernel", [RBF(5.0), RBF(0.3), Laplacian(20.0), Linear(), RBF([5.0] * 40)], ids=str)
@pytest.mark.parametrize("single", [False, True])
def test_sums_are_products_with_the_kernel_matrix(sizes, kernel, single):
    S, blocks, X = made(sizes)
    seen = Expansion(kernel, S, blocks, single).sums(X)
    right = expected(kernel, S, blocks, X)
    np.testing.assert_allclose(
        seen, right, atol=(3e-6 if single else 1e-12) * max(1.0, np.abs(kernel(X, S)).max()) * 10
    )
    np.testing.assert_allclose(Expansion(kernel, S, blocks).sums_of_rows(kernel(X, S)), right, atol=1e-9)


def test_one_point_far_from_the_others_spoils_nothing():
    S, blocks, X = made([80])
    far = X.copy()
    far[0] = 1e4
    np.testing.assert_allclose(
        Expansion(RBF(5.0), S, blocks, single=True).sums(far), expected(RBF(5.0), S, blocks, far), atol=1e-4
    )


def test_what_float32_cannot_hold_stays_float64():
    S, blocks, X = made([80])
    X[3] = 1e30
    np.testing.assert_allclose(
        Expansion(RBF(5.0), S, blocks, single=True).sums(X), expected(RBF(5.0), S, blocks, X), atol=1e-4
    )


def test_prepared_points_are_not_pickled():
    S, blocks, X = made([80])
    e = Expansion(RBF(5.0), S, blocks, single=True)
    size = len(pickle.dumps(e))
    before = e.sums(X)
    assert len(pickle.dumps(e)) == size
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(e)).sums(X), before)


def test_a_fit_in_float32_predicts_in_float32_and_close_to_float64():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 30))
    y = (np.sin(X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=1500) > 0).astype(int)
    narrow = SVC(dtype="float32").fit(X, y)
    assert narrow._expansion.single
    wide = expected(narrow.kernel_, narrow.support_vectors_, narrow._expansion.blocks, X)[:, 0, 0] + narrow.intercept_
    np.testing.assert_allclose(narrow.decision_function(X), wide, atol=1e-4)


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    kernel = draw(st.sampled_from([RBF(1.0), Linear(), Polynomial(2), RBF(0.3) + Linear()]))
    Z, X = (rng.normal(size=(draw(st.integers(1, 8)), 2)).round(1) for _ in range(2))
    return RKHSFunction(kernel, Z, rng.normal(size=len(Z)), offset=draw(st.sampled_from([0.0, 2.5]))), X


@st.composite
def vector_problems(draw):
    f, X = draw(problems())
    rng = np.random.default_rng(len(X))
    A = np.column_stack([f.coefficients, np.zeros(len(f)), 1e9 * rng.normal(size=len(f))])
    A = scipy.sparse.csc_array(A) if draw(st.booleans()) else A
    return RKHSVector(f.kernel, f.points, A, [f.offset, 1.0, 0.0]), X


@given(vector_problems())
def test_a_vector_is_projected_as_its_functions_are(problem):
    F, X = problem
    G, error, relative = F.project(X)
    assert len(G) == len(error) == len(relative) == 3
    for f, g, gone, share in zip(F, G, error, relative, strict=True):
        alone = f.project(X)
        size = f.norm()
        assert g.distance(alone.function) <= 1e-6 * size
        assert gone == pytest.approx(alone.error, rel=1e-6, abs=1e-6 * size)
        assert share == pytest.approx(gone / size if size else 0.0)
        assert g.offset == f.offset


@given(vector_problems())
def test_laws_of_the_projection_of_a_vector(problem):
    F, X = problem
    G, error, _ = F.project(X)
    sizes = F.norms()
    at = RKHSVector(F.kernel, X, np.eye(len(X)))  # the functions that span the space
    orthogonal = np.abs((F - G) @ at)
    assert (orthogonal <= 1e-7 * np.outer(sizes, at.norms()) + 1e-12).all()
    values = F(X)
    assert (np.abs(G(X) - values).max(axis=0) <= 1e-6 * (1 + np.abs(values).max(axis=0))).all()
    again = G.project(X)
    assert (again.error <= 1e-6 * sizes).all()
    np.testing.assert_allclose(sizes**2, G.norms() ** 2 + error**2, rtol=1e-6, atol=1e-10)


@given(problems())
def test_what_is_left_is_orthogonal_and_pythagoras_holds(problem):
    f, X = problem
    g, error, relative = f.project(X)
    size = f.norm()
    for x in X:
        at = RKHSFunction(f.kernel, x[None], [1.0])
        assert abs((f - g) @ at) <= 1e-7 * size * at.norm() + 1e-12
    np.testing.assert_allclose(g(X), f(X), atol=1e-6 * (1 + np.abs(f(X)).max()))
    assert f.norm() ** 2 == pytest.approx(g.norm() ** 2 + error**2, rel=1e-6, abs=1e-10)
    assert g.norm() <= size * (1 + 1e-9) + 1e-12
    assert g.offset == f.offset
    assert relative == pytest.approx(error / size if size else 0.0)


def test_a_function_in_the_span_is_its_own_projection():
    Z = vectors(9)
    f = RKHSFunction(RBF(1.0), Z, np.arange(9.0))
    g, error, relative = f.project(np.concatenate([Z[::-1], vectors(5, seed=2)]))
    assert error <= 1e-6 * f.norm()
    assert relative <= 1e-6
    again = g.project(g.points)
    assert again.error <= 1e-6 * g.norm()


def test_twice_the_same_point_counts_once():
    f = RKHSFunction(RBF(1.0), [[0.0], [1.0]], [1.0, 2.0])
    X = np.array([[0.5], [0.5], [2.0], [0.5]])
    g = f.project(X).function
    assert len(g) == 2
    np.testing.assert_allclose(g(X), f(X), rtol=1e-13)


def test_singular_matrices_do_no_harm():
    X = np.linspace(0, 1, 60)[:, None]  # the matrix of so many points has rank 12 to rounding
    f = RKHSFunction(RBF(1.0), [[0.3], [2.0]], [1.0, -1.0])
    g, error, _ = f.project(X)
    np.testing.assert_allclose(g(X), f(X), atol=1e-7)
    assert g.norm() <= f.norm() * (1 + 1e-7)
    assert error < 0.2 * f.norm()


def test_of_other_objects():
    f = RKHSFunction(FromFunction(shared_letters), ["ab", "bc"], [1.0, 1.0])
    g = f.project(words()).function
    np.testing.assert_allclose(g(words()), f(words()), atol=1e-9)
    h = RKHSFunction(SetKernel(RBF(1.0)), bags(4), np.ones(4))
    np.testing.assert_allclose(h.project(bags(9, seed=3)).function(bags(9, seed=3)), h(bags(9, seed=3)), atol=1e-7)


def test_the_function_0_and_functions_that_are_0_at_the_points():
    f = RKHSFunction(RBF(1.0), np.zeros((0, 1)), [], offset=1.0)
    g, error, relative = f.project([[1.0], [2.0]])
    assert (error, relative, g.norm(), g([[1.0]])[0]) == (0.0, 0.0, 0.0, 1.0)
    G, errors, shares = RKHSVector(RBF(1.0), np.zeros((0, 1)), np.zeros((0, 2)), [1.0, 2.0]).project([[1.0], [2.0]])
    assert not errors.any()
    assert not shares.any()
    assert G([[1.0]]).tolist() == [[1.0, 2.0]]
    f = RKHSFunction(Delta(), ["a"], [3.0])
    assert f.project(["b", "c"]).error == f.norm()


def test_float32_and_points_objects():
    X = vectors(6).astype(np.float32)
    f = RKHSFunction(RBF(1.0), X, np.ones(6))
    np.testing.assert_allclose(f.project(X[:3]).function(X[:3].astype(float)), f(X[:3].astype(float)), rtol=1e-9)


def test_refusals():
    f = RKHSFunction(RBF(1.0), [[0.0]], [1.0])
    with pytest.raises(MemoryError, match=r"a projection on the span of 200 points would need .* project on fewer"):
        f.project(np.arange(200.0)[:, None], budget="100 kB")
    line = np.linspace(-2, 2, 30)[:, None]
    with pytest.raises(ValueError, match=r"has the eigenvalue -.*is not positive semidefinite"):
        RKHSFunction(Sigmoid(1.0, -1.0), line[:1], [1.0]).project(line)
