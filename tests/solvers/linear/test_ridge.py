"""The rows of a ridge problem as an operator, and its two systems."""

import numpy as np
import pytest
from scipy import sparse

from mercer.machine.budget import Budget
from mercer.solvers.linear.ridge import CentredRows, solve_linear_ridge

RNG = np.random.default_rng(0)
X = np.where(RNG.random((12, 7)) < 0.4, RNG.normal(size=(12, 7)), 0.0)
WEIGHTS = RNG.uniform(0.2, 2, 12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("centre", [False, True])
def test_products_are_those_of_the_centred_matrix(make, weights, centre):
    rows = CentredRows(make(X), weights, centre)
    mean = np.average(X, axis=0, weights=weights) if centre else np.zeros(7)
    plain = np.sqrt(np.ones(12) if weights is None else weights)[:, None] * (X - mean)
    W, A = RNG.normal(size=(7, 2)), RNG.normal(size=(12, 2))
    np.testing.assert_allclose(rows.mean, mean, atol=1e-7)
    np.testing.assert_allclose(rows.times(W), plain @ W, atol=1e-6)
    np.testing.assert_allclose(rows.transposed_times(A), plain.T @ A, atol=1e-6)
    np.testing.assert_allclose(rows.times(W[:, 0]), plain @ W[:, 0], atol=1e-6)
    np.testing.assert_allclose(rows.matrix(primal=True), plain.T @ plain, atol=1e-6)
    np.testing.assert_allclose(rows.matrix(primal=False), plain @ plain.T, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160])
def test_extreme_features_are_measured_in_a_unit_of_their_own(scale):
    Y = RNG.normal(size=(12, 1))
    rows = CentredRows(scale * X, None, False)
    for solver in ("primal", "dual"):
        w = solve_linear_ridge(rows, Y, np.zeros(1), solver, Budget("1 MB"))[0]
        np.testing.assert_allclose(w * scale, np.linalg.lstsq(X, Y)[0], atol=1e-8)


def test_an_alpha_beyond_all_numbers_leaves_nothing():
    rows = CentredRows(1e-200 * X, None, False)
    w = solve_linear_ridge(rows, RNG.normal(size=(12, 1)), np.ones(1), "primal", Budget("1 MB"))[0]
    assert not w.any()
