"""Hard tubes: Clarabel's optimum just above the narrowest width that a linear program finds, a refusal just below."""

import numpy as np
import pytest
from scipy.optimize import linprog

import referee
from mercer import Gram, Polynomial
from mercer.certify import check_svm
from mercer.solvers import Control, Infeasible, SVMDual, solve


def tube(X, y, kernel, epsilon, offset):
    unbounded = np.full(len(y), np.inf)
    return SVMDual(Gram(kernel, X), -y, unbounded, unbounded, width=epsilon, offset=offset)


def narrowest(A, y):
    """The smallest t with |y - A v| <= t."""
    one = np.ones((len(y), 1))
    rows = np.block([[A, -one], [-A, -one]])
    return linprog(np.append(np.zeros(A.shape[1]), 1.0), rows, np.concatenate([y, -y]), bounds=(None, None)).fun


@pytest.mark.parametrize("offset", ["free", "none"])
@pytest.mark.parametrize("seed", range(5))
def test_a_linear_program_knows_the_narrowest_tube(seed, offset):
    rng = np.random.default_rng(seed)
    X, kernel = rng.normal(size=(60, 2)), Polynomial(2)
    y = rng.normal(size=60)
    features = kernel.feature_map().fit_transform(X)  # the constant among them
    least = narrowest(features, y)
    (found,) = solve([tube(X, y, kernel, 1.02 * least, offset)], Control(tol=1e-6))
    assert np.abs(y - found.values).max() <= 1.02 * least * (1 + 1e-9)
    problem = referee.svr(kernel(X), y, np.inf, 1.02 * least)
    problem.offset = offset
    assert found.certificate.dual == pytest.approx(referee.solve(problem).dual, rel=1e-4)
    claim = found.certificate
    again = check_svm(
        kernel, X, plus=found.plus, minus=found.minus, offset=found.offset, tol=1e-6, **problem.arguments()
    )
    assert claim.converged
    assert again.converged
    with pytest.raises(Infeasible, match="the narrowest tube has epsilon") as caught:
        solve([tube(X, y, kernel, 0.98 * least, offset)])
    b = caught.value.coefficients
    assert b @ y == pytest.approx(least)
    assert np.abs(b @ features).max() <= 1e-9


def test_a_function_that_leaves_the_tube_is_not_certified():
    """A tube of the check: what is within rounding of its edge is inside, what is further out is not."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 0.0])
    (found,) = solve([tube(X, y, Polynomial(2), 0.1, "free")], Control(tol=1e-6))
    terms = {"linear": -y, "upper": np.inf, "lower": np.inf, "plus": found.plus, "minus": found.minus}
    inside = check_svm(Polynomial(2), X, width=0.1, offset=found.offset, **terms)
    beyond = check_svm(Polynomial(2), X, width=0.1 - 1e-6, offset=found.offset, **terms)
    assert inside.converged
    assert beyond.primal > inside.primal * (1 + 1e-9)
