"""Pruned and projected functions: as close as they say, on as few centres as they can, or as near as a span allows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_moons

import samples
from mercer.estimators import SVC, KernelRidge
from mercer.kernels import (
    RBF,
    Constant,
    Delta,
    FromFunction,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    SetKernel,
    Sigmoid,
)
from mercer.rkhs import RKHSFunction, RKHSVector
from samples import bags, shared_letters, table, vectors, words

SPACES = [
    *samples.SPACES[:3],
    (FromFunction(shared_letters).normalized() + 0.1 * Delta(), words),
    (RBF(10.0).on("age") * (Delta().on("town") + 0.5), table),
]


def member(space, seed, n=30, offset=0.5):
    kernel, points = space
    return RKHSFunction(kernel, points(n, seed=seed), np.random.default_rng(seed).normal(size=n), offset)


def distance(f, g):
    """The norm of f - g from its definition, by NumPy."""
    h = f - g
    return np.sqrt(max(h.coefficients @ h.kernel(h.points) @ h.coefficients, 0.0))


@settings(max_examples=60)
@given(st.sampled_from(SPACES), st.integers(0, 2**20), st.sampled_from([0.5, 1e-1, 1e-2, 1e-4]))
def test_the_error_is_the_distance_and_within_what_was_asked(space, seed, tol):
    f = member(space, seed)
    g, error, relative = f.prune(tol)
    unit = f.norm()
    assert relative <= tol
    assert error == pytest.approx(relative * unit)
    assert error == pytest.approx(f.distance(g), abs=1e-6 * unit)
    assert error == pytest.approx(distance(f, g), abs=1e-5 * unit)
    assert len(g) <= len(f)
    assert g.offset == f.offset
    X = space[1](12, seed=seed + 1)  # |f - g| <= error sqrt(k(x, x)) everywhere
    assert (np.abs(f(X) - g(X)) <= error * np.sqrt(f.kernel.diag(X)) * (1 + 1e-6) + 1e-9 * unit).all()


@settings(max_examples=20)
@given(st.sampled_from(SPACES), st.integers(0, 2**20), st.integers(1, 8))
def test_the_result_is_the_projection_on_its_centres(space, seed, most):
    f = member(space, seed)
    g, error, _ = f.prune(0.0, max_centres=most)
    assert len(g) <= most
    K = f.kernel(g.points)
    assert f(g.points) - f.offset == pytest.approx(K @ g.coefficients, abs=1e-6 * f.norm() * np.sqrt(K.max()))
    # so that the three are sides of a right triangle
    assert f.norm() ** 2 == pytest.approx(g.norm() ** 2 + error**2, rel=1e-5)


@pytest.mark.parametrize("kernel", [RBF(0.8), Matern(1.5, 1.0), Polynomial(3)], ids=["rbf", "matern", "polynomial"])
def test_more_centres_are_better_and_chosen_ones_better_than_drawn_ones(kernel):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    f = RKHSFunction(kernel, X, rng.normal(size=60))
    K, y = f.kernel(X), f(X)
    errors = [f.prune(0.0, max_centres=m).error for m in range(1, 12)]
    assert (np.diff(errors) <= 1e-6 * f.norm()).all()
    drawn = [rng.choice(60, 8, replace=False) for _ in range(40)]
    by_chance = [f.norm() ** 2 - y[s] @ np.linalg.solve(K[np.ix_(s, s)], y[s]) for s in drawn]
    assert errors[7] ** 2 < np.quantile(by_chance, 0.1)


def test_zeros_and_equal_centres_go_without_an_error():
    X = np.array([[0.0], [1.0], [0.0], [2.0], [3.0]])
    f = RKHSFunction(RBF(1.0), X, [1.0, 0.0, 2.0, 4.0, -5.0])
    g, error, relative = f.prune(0.0)
    assert (error, relative) == (0.0, 0.0)
    assert g.points.ravel().tolist() == [0.0, 2.0, 3.0]
    assert g.coefficients.tolist() == [3.0, 4.0, -5.0]
    twice = RKHSFunction(FromFunction(shared_letters), ["ab", "bc", "ab"], [1.0, 2.0, -1.0]).prune(0.0).function
    assert twice.points == ["bc"]
    assert f.prune(0.0, max_centres=3).error == 0.0  # it has three


def test_nothing_is_left_of_nothing():
    X = vectors(6)
    for f in (
        RKHSFunction(RBF(1.0), np.zeros((0, 2)), [], 2.0),
        RKHSFunction(RBF(1.0), X, np.zeros(6), 2.0),
        RKHSFunction(RBF(1.0), np.ones((2, 2)), [1.0, -1.0], 2.0),
        RKHSFunction(Constant(0.0), X, np.ones(6), 2.0),
    ):
        g, error, relative = f.prune(1e-3)
        assert (len(g), error, relative) == (0, 0.0, 0.0)
        assert (g(np.ones((2, 2))) if f.kernel == RBF(1.0) and f.points.shape[1] == 2 else g(X)).tolist()[0] == 2.0


def test_containers_are_kept():
    X = vectors(20)
    a = np.random.default_rng(0).normal(size=20)
    for points, kind in (
        (X, np.ndarray),
        (sparse.csr_array(X), sparse.csr_array),
        (pd.DataFrame(X), pd.DataFrame),
        (X.tolist(), list),
        (X.astype(np.float32), np.ndarray),
    ):
        f = RKHSFunction(RBF(2.0), points, a)
        g, error, relative = f.prune(1e-2)
        assert isinstance(g.points, kind)
        assert len(g) < 20
        assert relative <= 1e-2
        assert error == pytest.approx(f.distance(g), rel=1e-6)
    assert RKHSFunction(RBF(2.0), X.astype(np.float32), a).prune(1e-2).function.points.dtype == np.float32


def test_large_cancelling_coefficients_keep_their_digits():
    X = np.random.default_rng(0).uniform(-3, 3, (400, 1))
    f = KernelRidge(1e-9, kernel=RBF(1.0)).fit(X, np.sin(X[:, 0])).function_
    assert np.abs(f.coefficients).sum() > 1e3 * f.norm()
    g, _, relative = f.prune(1e-2)
    assert len(g) < 40
    assert relative <= 1e-2
    assert np.abs(f(X) - g(X)).max() < 1e-3


def test_tiny_and_hugely_different_diagonals():
    X = np.array([[1e-150], [1e150], [1.0], [2.0]])
    f = RKHSFunction(Linear(), X, [1.0, 0.0, 1.0, 1.0])
    g, _, relative = f.prune(1e-8)
    assert len(g) == 1
    assert relative <= 1e-7
    assert g([[1.0]]) == pytest.approx([3.0])


def test_similarities_in_single_precision():
    X = np.random.default_rng(0).normal(size=(80, 2))
    f = RKHSFunction(
        Precomputed(RBF(1.5)(X).astype(np.float32)), np.arange(80), np.random.default_rng(1).normal(size=80)
    )
    g, error, relative = f.prune(1e-2)
    assert len(g) < 60
    assert relative <= 1e-2
    assert error == pytest.approx(f.distance(g), rel=1e-2)


def test_vectors_share_their_centres():
    X, y = make_moons(150, noise=0.3, random_state=0)
    f = SVC(kernel=RBF(0.5), C=10.0).fit(X, y).function_
    one = f.prune(1e-2)
    assert len(one.function) < 0.8 * len(f)
    labels = np.digitize(X[:, 0], [-0.3, 0.6, 1.2])
    F = SVC(kernel=RBF(0.5), C=10.0).fit(X, labels).function_
    G, error, relative = F.prune(1e-2)
    assert len(G) == len(F) == 6
    assert (relative <= 1e-2).all()
    assert error == pytest.approx(F.distances(G), rel=1e-3, abs=1e-6)
    assert relative == pytest.approx(error / F.norms())
    zero = RKHSVector(RBF(1.0), X, np.zeros((150, 2))).prune()
    assert zero.relative.tolist() == [0.0, 0.0]


def test_many_centres_within_a_budget():
    rng = np.random.default_rng(0)
    f = RKHSFunction(Matern(2.5, 2.0), rng.normal(size=(4000, 3)), rng.normal(size=4000))
    g, error, relative = f.prune(0.1, budget="20 MB")
    assert relative <= 0.1
    assert len(g) < 600
    assert error == pytest.approx(f.distance(g), rel=1e-6)
    with pytest.raises(MemoryError, match=r"a basis for \d+ of 4000 centres would need .* Raise tol, set max_centres"):
        f.prune(1e-6, budget="1 MB")


def test_errors_are_sentences():
    f = member(SPACES[0], 0)
    for tol in (-1.0, np.nan, np.inf, "small", True):
        with pytest.raises(ValueError, match="must be a finite number >= 0"):
            f.prune(tol)
    for most in (0, 2.5, True):
        with pytest.raises(ValueError, match="must be a whole number >= 1"):
            f.prune(max_centres=most)
    K, X = Sigmoid(gamma=1.0, c=-1.0), np.array([[0.1], [1.0]])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        RKHSFunction(K, X, np.linalg.eigh(K(X))[1][:, 0]).prune()
    wild = FromFunction(lambda a, b: 1.0 if a == b else 3.0)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        RKHSFunction(wild, ["a", "b", "c"], [1.0, 1.0, 1.0]).prune(1e-8)


# -- projections on the span of given points --------------------------------------------------------------


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
    A = sparse.csc_array(A) if draw(st.booleans()) else A
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
