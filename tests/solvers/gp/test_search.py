"""The search for parameters: SciPy's L-BFGS-B on all rows from many starts is the referee."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.kernels import RBF, Linear
from mercer.points import Points
from mercer.solvers.control import Control
from mercer.solvers.gp.likelihood import Evidence
from mercer.solvers.gp.search import tune
from mercer.solvers.gp.space import space_of


def made(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)
    return X, y[:, None]


def best_of_scipy(X, Y, space, starts):
    evidence = Evidence(Points(X), Y)

    def f(theta):
        kernel, noise = space.at(theta)
        value = evidence.factor(kernel, noise).likelihood
        return -value, -space.slopes(theta, *evidence.gradient(kernel))

    rng = np.random.default_rng(1)
    low, high = space.limits.T
    runs = [space.start, *(rng.uniform(np.maximum(low, -4), np.minimum(high, 4)) for _ in range(starts))]
    return max(-minimize(f, r, jac=True, bounds=space.limits, method="L-BFGS-B").fun for r in runs)


def test_small_data():
    X, Y = made(80)
    space = space_of(1.0 * RBF(scale=[1.0] * 3) + 0.1 * Linear(), 0.5, Points(X), Y)
    found = tune(Points(X), Y, space, Control(), restarts=2)
    assert found.likelihood >= best_of_scipy(X, Y, space, 3) - 5e-3
    assert found.rows == len(X)
    assert len(found.history) == found.evaluations[1]


def test_many_rows_are_needed_only_at_the_end():
    X, Y = made(600)
    space = space_of(1.0 * RBF(scale=[1.0] * 3), 0.5, Points(X), Y)
    found = tune(Points(X), Y, space, Control(), restarts=1)
    assert found.likelihood >= best_of_scipy(X, Y, space, 0) - 5e-3
    assert found.starts == (2, 300)
    assert found.evaluations[0] < found.evaluations[1] / 2
    rows = [row for row, _, _ in found.history]
    assert rows == sorted(rows)
    assert rows[-1] == 600


def test_noise_of_each_point_follows_its_rows():
    X, Y = made(500)
    noise = np.where(X[:, 0] > 0, 1.0, 0.01)
    Y = Y + np.sqrt(noise)[:, None] * np.random.default_rng(2).normal(size=Y.shape)
    space = space_of(1.0 * RBF(scale=1.0), noise, Points(X), Y)
    found = tune(Points(X), Y, space, Control())
    assert found.likelihood >= best_of_scipy(X, Y, space, 0) - 5e-3


def test_it_repeats():
    X, Y = made(60)
    space = space_of(1.0 * RBF(scale=1.0), 0.5, Points(X), Y)
    one, two = (tune(Points(X), Y, space, Control(), restarts=3, rng=np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one.theta, two.theta)


def test_parameters_without_a_kernel_are_avoided():
    """1 / (1 - k) needs k < 1: the search stays where it is."""
    X, Y = made(50)
    space = space_of((0.5 * RBF(scale=1.0)).geometric(), 0.5, Points(X), Y, {"factor": (0.01, 5.0)})
    found = tune(Points(X), Y, space, Control(), restarts=3)
    kernel, _ = space.at(found.theta)
    assert kernel.base.factor < 1
    assert np.isfinite(found.likelihood)


def test_a_start_that_is_refused_says_why():
    X, Y = made(50)
    space = space_of((2.0 * RBF(scale=1.0)).geometric(), 0.5, Points(X), Y)
    with pytest.raises(ValueError, match="converges only where"):
        tune(Points(X), Y, space, Control())


def test_time_and_interruption():
    X, Y = made(50)
    space = space_of(1.0 * RBF(scale=1.0), 0.5, Points(X), Y)
    assert "time_limit" in tune(Points(X), Y, space, Control(time_limit=1e-9)).stopped
    cancelled = Control()
    cancelled.cancel()
    found = tune(Points(X), Y, space, cancelled)
    assert found.stopped == "interrupted"
    np.testing.assert_array_equal(found.theta, space.start)


def test_an_interruption_leaves_the_best_parameters_so_far():
    X, Y = made(50)
    space = space_of(1.0 * RBF(scale=1.0), 0.5, Points(X), Y)
    seen = []

    class Interrupted(Evidence):
        def factor(self, kernel, noise, careful=True):
            if len(seen) == 4:
                raise KeyboardInterrupt
            found = super().factor(kernel, noise, careful)
            seen.append(found.likelihood)
            return found

    found = tune(Points(X), Y, space, Control(), evidence=Interrupted)
    assert found.stopped == "interrupted"
    assert found.likelihood == max(seen) > seen[0]


def test_an_interruption_before_anything_was_found_leaves_the_start():
    X, Y = made(50)
    space = space_of(1.0 * RBF(scale=1.0), 0.5, Points(X), Y)

    class Interrupted(Evidence):
        def factor(self, kernel, noise, careful=True):
            raise KeyboardInterrupt

    found = tune(Points(X), Y, space, Control(), evidence=Interrupted)
    assert found.stopped == "interrupted"
    np.testing.assert_array_equal(found.theta, space.start)
