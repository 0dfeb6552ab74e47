"""Dense factors, and the sentences for matrices that have none."""

import numpy as np
import pytest

from cases import each
from mercer import RBF, Gram, Linear, Precomputed
from mercer.gram.matrix import KernelMatrix
from mercer.solvers.systems.cholesky import (
    cholesky,
    diagnose,
    equal_rows,
    factorise,
    inverse_of_factor,
    inverse_of_product,
    rounding,
    truncated,
)

X = np.random.default_rng(0).standard_normal((60, 2))


@pytest.fixture(autouse=True, params=[0, 5000], ids=["by blocks", "at once"])
def at_once(request, monkeypatch):
    monkeypatch.setattr("mercer.solvers.systems.cholesky._LAPACK_POINTS", request.param)


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-4), (np.float64, 1e-10)])
def test_solves_in_place(dtype, error):
    gram = Gram(RBF(scale=1.0), X)
    shift, buffer = np.linspace(0.1, 1.0, 60), np.empty((60, 60), dtype)
    factor = factorise(KernelMatrix(gram), shift, buffer)
    assert np.shares_memory(factor.values, buffer)
    B = X * np.array([1e100, 1e-100])
    M = gram.dense() + np.diag(shift)
    assert np.allclose(M @ factor.solve(B) / np.abs(B).max(axis=0), B / np.abs(B).max(axis=0), atol=error)


def test_a_singular_matrix_has_no_factor():
    matrix, none = KernelMatrix(Gram(Linear(), X)), np.zeros(60)
    with pytest.raises(np.linalg.LinAlgError, match="no Cholesky factor in float64"):
        factorise(matrix, none, np.empty((60, 60)))


def test_condition():
    values = np.diag(np.linspace(1.0, 1e6, 60))
    factor = factorise(KernelMatrix(Gram(Precomputed(values), np.arange(60))), np.zeros(60), np.empty((60, 60)))
    assert np.isclose(factor.condition(), 1e-6)


def test_truncates_what_is_rounding():
    matrix = KernelMatrix(Gram(Linear(), X))
    vectors, values = truncated(matrix, np.zeros(60), np.empty((60, 60)))
    assert len(values) == 2
    assert np.allclose((vectors * values) @ vectors.T, X @ X.T)
    assert rounding(matrix) < 1e-12 * values.max()


def test_diagnoses():
    none = np.zeros(60)
    assert "less than full rank" in diagnose(KernelMatrix(Gram(Linear(), X)), none)
    twice = np.vstack([X[:30], X[:30]])
    text = diagnose(KernelMatrix(Gram(RBF(scale=0.1), twice)), none)
    assert "less than full rank on these points, of which 0 and 30 are equal" in text
    assert "Raise alpha to" in text
    M = np.eye(60)
    M[0, 1] = M[1, 0] = 4.0
    text = diagnose(KernelMatrix(Gram(Precomputed(M), np.arange(60))), none)
    assert "an eigenvalue of about -3 " in text
    assert "mercer.repair" in text
    with pytest.raises(np.linalg.LinAlgError, match="about -3"):
        truncated(KernelMatrix(Gram(Precomputed(M), np.arange(60))), none, np.empty((60, 60)))


def test_equal_rows():
    assert np.array_equal(equal_rows(KernelMatrix(Gram(RBF(), X))), np.arange(60))
    assert np.array_equal(equal_rows(KernelMatrix(Gram(RBF(), np.vstack([X, X[5:6]])))), [*range(60), 5])


@each(("dtype", "error"), [(np.float32, 1e-4), (np.float64, 1e-11)])
@each("n", [1, 511, 512, 1300])
def test_the_factor_by_blocks_is_that_of_lapack(n, dtype, error):
    points = np.random.default_rng(1).standard_normal((n, 2))
    M = RBF(scale=1.0)(points) + np.eye(n)
    found = M.astype(dtype)
    assert cholesky(found)
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(M), atol=error)


def test_a_matrix_that_is_not_positive_has_no_factor_by_blocks():
    M = np.eye(1300)
    M[1200, 1200] = -1.0
    assert not cholesky(M)


@pytest.mark.parametrize("n", [1, 512, 1300])
def test_inverses_by_blocks_are_inverses(n):
    points = np.random.default_rng(1).standard_normal((n, 2))
    M = RBF(scale=1.0)(points) + np.eye(n)
    of_factor, of_product = np.linalg.cholesky(M), np.linalg.cholesky(M)
    inverse_of_factor(of_factor)
    inverse_of_product(of_product)
    np.testing.assert_allclose(np.tril(of_factor) @ np.linalg.cholesky(M), np.eye(n), atol=1e-11)
    np.testing.assert_allclose(np.tril(of_product), np.tril(np.linalg.inv(M)), atol=1e-11)
