"""Pruned functions: as close as they say, on as few centres as they can."""

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
    Sigmoid,
)
from mercer.rkhs import RKHSFunction, RKHSVector
from samples import shared_letters, table, vectors, words

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
