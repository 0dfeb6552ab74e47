"""Convex functions of shares: Clarabel is the referee of the steps, closed forms of the descent."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from cases import each
from mercer.selection.learning.weights import Known, descend, nearest


def referee(B, g, x):
    """Return the minimiser of g'(z - x) + (z - x)'B(z - x) / 2 over shares z, by Clarabel."""
    n = len(x)
    A = sparse.vstack([sparse.csr_array(np.ones((1, n))), -sparse.eye_array(n, format="csr")]).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    solver = clarabel.DefaultSolver(
        sparse.csc_array(np.triu(B)), g - B @ x, A, np.append(1.0, np.zeros(n)), cones, settings
    )
    return np.array(solver.solve().x)


@each("seed", range(8))
@each("size", [1e-6, 1.0, 1e6])
def test_steps_are_those_of_a_solver(seed, size):
    rng = np.random.default_rng(seed)
    n = 2 + seed
    root = rng.normal(size=(n, n))
    B, g = root @ root.T + 0.1 * np.eye(n), rng.normal(size=n)
    x = rng.dirichlet(np.ones(n))
    z = nearest(size * B, size * g, x)
    assert z.min() >= 0
    assert z.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(z, referee(B, g, x), atol=1e-6)


def quadratic(B, c, noise=0.0):
    rng = np.random.default_rng(0)

    def function(x):
        g = B @ (x - c)
        value = 0.5 * float((x - c) @ g)
        return Known(value + noise * rng.uniform(), value, g, value + float(g.min() - g @ x))

    return function


@pytest.mark.parametrize("seed", range(5))
def test_descent_ends_at_the_minimum(seed):
    rng = np.random.default_rng(seed)
    n = 6
    root = rng.normal(size=(n, n)) * np.logspace(0, 2, n)
    B, c = root @ root.T, rng.normal(size=n)
    found = descend(quadratic(B, c), np.full(n, 1 / n), 1e-8)
    assert found.stopped == "converged"
    assert found.known.upper - found.bound <= 1e-8 * found.known.upper
    np.testing.assert_allclose(found.shares, referee(B, -B @ c, np.zeros(n)), atol=1e-4)
    assert found.known.mismatch(found.shares) < 1e-4


def test_limits_end_it_with_the_best_so_far():
    function = quadratic(np.diag([1.0, 50.0, 2.0]), np.array([0.2, 0.9, -4.0]))
    start = np.full(3, 1 / 3)
    none = descend(function, start, 1e-9, max_iter=0)
    assert none.stopped == "max_iter=0 reached"
    np.testing.assert_array_equal(none.shares, start)
    assert descend(function, start, 1e-9, watch=lambda: "enough").stopped == "enough"


def test_noise_in_the_values_ends_it_too():
    function = quadratic(np.diag([1.0, 50.0, 2.0]), np.array([0.2, 0.9, -4.0]), noise=1e-3)
    found = descend(function, np.full(3, 1 / 3), 1e-12)
    assert found.stopped.startswith("rounding")
    assert len(found.history) < 80


def test_one_share_is_all():
    found = descend(quadratic(np.eye(1), np.zeros(1)), np.ones(1), 1e-9)
    assert found.shares == pytest.approx([1.0])
