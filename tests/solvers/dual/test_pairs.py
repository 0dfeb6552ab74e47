"""Pairs of classes on shared blocks: the same solutions as each pair by itself."""

from itertools import combinations

import numpy as np
import pytest

from mercer import RBF, SVC, Gram, Polynomial
from mercer.solvers import Control, SVMDual, solve
from mercer.solvers.dual.solve import pairs_of_classes, solve_pairs


def made(sizes, d=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(codes), d)) + 1.5 * rng.normal(size=(len(sizes), d))[codes]
    return X, codes


def problems(kernel, X, codes, C=2.0):
    gram = Gram(kernel, X)
    members = [np.flatnonzero(codes == c) for c in np.unique(codes)]
    found = []
    for a, b in combinations(members, 2):
        y = np.repeat([1.0, -1.0], [len(a), len(b)])
        bounds = np.where(y > 0, C, 0.0), np.where(y < 0, C, 0.0)
        found.append(SVMDual(gram, -y, *bounds, rows=np.concatenate([a, b]), classes=(a, b)))
    return found


@pytest.mark.parametrize("kernel", [RBF(2.0), Polynomial(3, 1.0, 0.2)], ids=str)
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_each_pair_is_solved_as_it_would_be_alone(kernel, tol):
    X, codes = made([900, 400, 37, 800])
    control = Control(tol=tol)
    together = problems(kernel, X, codes)
    assert pairs_of_classes(together, control)
    found = solve_pairs(together, control)
    assert sum(s is not None for s in found) >= len(found) / 2  # the others are left to the general way
    for problem, ours in zip(together, solve(together, control), strict=True):
        (alone,) = solve([problem.alone()], Control(tol=tol, precision="float64"))
        assert ours.certificate.relative_gap <= tol
        assert ours.certificate.dual == pytest.approx(alone.certificate.dual, rel=2 * tol)
        assert ours.values.shape == (len(problem),)


def test_a_classifier_of_many_points_verifies():
    X, codes = made([700, 900, 800, 750], seed=1)
    model = SVC(C=5.0).fit(X, codes)
    claim = model.certificate_
    assert {c.solver for c in claim.parts} == {"SMO, many small problems"}
    checked = claim.verify(X, codes)
    assert checked.relative_gap <= 1.3e-3
    assert checked.dual == pytest.approx(claim.dual, rel=1e-5)


def test_what_was_asked_for_specially_goes_another_way():
    X, codes = made([60, 60, 60])
    some = problems(RBF(), X, codes)
    assert pairs_of_classes(some, Control())
    assert not pairs_of_classes(some, Control(max_iter=10))
    assert not pairs_of_classes(some, Control(checkpoint="fit.npz"))
    assert not pairs_of_classes(some[:1], Control())
    for problem in some:
        problem.gram = Gram(RBF(), X, budget=60_000)
    assert not pairs_of_classes(some, Control())


def test_a_cancelled_run_returns_every_pair():
    X, codes = made([300, 300, 300])
    control = Control()
    control.cancel()
    found = solve(problems(RBF(), X, codes), control)
    assert len(found) == 3
    assert all(s.certificate.stopped in ("interrupted", "converged") for s in found)
