"""Errors at points left out, from one eigendecomposition and by fitting again without them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import RBF, Gram, Laplacian, Linear, Polynomial, Precomputed
from mercer.solvers import Control
from mercer.solvers.systems import spectrum
from mercer.solvers.systems.ridge import RidgeProblem, solve_ridge
from mercer.solvers.systems.spectrum import Spectrum, Tridiagonal

ALPHAS = [1e-3, 0.1, 10.0]


def refitted(K, Y, w, alpha, intercept, fold):
    """Return y - f at the points of a fold, of a fit to all others."""
    n = len(K)
    rest = np.setdiff1d(np.arange(n), fold)
    M, B = K[np.ix_(rest, rest)] + np.diag(alpha / w[rest]), Y[rest]
    if intercept:
        M = np.block([[M, np.ones((len(rest), 1))], [np.ones((1, len(rest))), np.zeros((1, 1))]])
        B = np.vstack([B, np.zeros((1, Y.shape[1]))])
    A = np.linalg.solve(M, B)
    return Y[fold] - K[np.ix_(fold, rest)] @ A[: len(rest)] - (A[-1] if intercept else 0.0)


def whole(parts):
    return np.concatenate([errors for _, errors in parts], axis=1)


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(4, 30),
    m=st.integers(1, 3),
    weighted=st.booleans(),
    intercept=st.booleans(),
    kernel=st.sampled_from([RBF(scale=1.0), Laplacian(scale=2.0), Linear()]),
    seed=st.integers(0, 1000),
)
def test_agrees_with_refits(n, m, weighted, intercept, kernel, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, 2)), rng.standard_normal((n, m))
    w = rng.uniform(0.3, 3.0, n) if weighted else np.ones(n)
    gram = Gram(kernel, X)
    K = gram.dense()
    s = Spectrum(gram, min(ALPHAS), w if weighted else None, intercept)
    one = np.array([[refitted(K, Y, w, a, intercept, np.array([i]))[0] for i in range(n)] for a in ALPHAS])
    assert np.allclose(whole(s.leave_one_out(Y, ALPHAS)), one, rtol=1e-7, atol=1e-8)
    folds = [np.arange(0, n, 3), np.arange(1, n, 3), np.arange(2, n, 3)]
    for fold, errors in s.leave_fold_out(Y, ALPHAS, folds):
        again = np.array([refitted(K, Y, w, a, intercept, fold) for a in ALPHAS])
        assert np.allclose(errors, again, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_few_eigenvectors_where_they_suffice(intercept, weighted, monkeypatch):
    monkeypatch.setattr(spectrum, "_LOW_RANK_POINTS", 100)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 1))
    Y = np.hstack([np.sin(5 * X), X**2]) + 0.1 * rng.standard_normal((300, 2))
    w = rng.uniform(0.3, 3.0, 300) if weighted else np.ones(300)
    gram = Gram(RBF(scale=0.5), X)
    s = Spectrum(gram, 1e-3, w if weighted else None, intercept)
    assert not s.complete
    assert len(s.eigen[0]) < 60
    errors = whole(s.leave_one_out(Y, ALPHAS))
    for i in (0, 17, 299):
        again = np.array([refitted(gram.dense(), Y, w, a, intercept, np.array([i]))[0] for a in ALPHAS])
        assert np.allclose(errors[:, i], again, rtol=1e-6, atol=1e-8)
    fold = np.arange(0, 300, 5)
    _, errors = next(s.leave_fold_out(Y, ALPHAS, [fold]))
    again = np.array([refitted(gram.dense(), Y, w, a, intercept, fold) for a in ALPHAS])
    assert np.allclose(errors, again, rtol=1e-6, atol=1e-7)


def test_all_eigenvectors_where_they_do_not(monkeypatch):
    monkeypatch.setattr(spectrum, "_LOW_RANK_POINTS", 100)
    X = np.random.default_rng(0).standard_normal((300, 5))
    assert Spectrum(Gram(Laplacian(scale=1.0), X), 1e-3).complete


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_the_solver(intercept, weighted):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((80, 2)), rng.standard_normal((80, 2))
    w = rng.uniform(0.3, 3.0, 80) if weighted else None
    gram = Gram(RBF(scale=1.0), X)
    a, b = Spectrum(gram, 0.0, w, intercept).solve(Y, 0.1)
    solution = solve_ridge(RidgeProblem(gram, Y, 0.1, w, intercept), Control())
    assert np.allclose(a, solution.coefficients, atol=1e-9)
    assert np.allclose(b, solution.offsets, atol=1e-9)


def test_alpha_zero_and_equal_points_give_finite_errors():
    X = np.repeat(np.linspace(0, 1, 20), 2)[:, None]
    s = Spectrum(Gram(RBF(scale=0.1), X), 0.0)
    errors = whole(s.leave_one_out(np.sin(9 * X), [0.0, 1e-12]))
    assert np.isfinite(errors).all()
    assert np.abs(errors).max() < 1e-3  # each point is seen through its twin


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_alphas_that_rounding_would_hide_have_errors_of_their_own(intercept, weighted):
    rng = np.random.default_rng(0)
    t = rng.uniform(34, 41, 60)
    Y = (10 - (t - 37) ** 2 + 0.1 * rng.normal(size=60))[:, None]
    w = rng.uniform(0.3, 3.0, 60) if weighted else np.ones(60)
    alphas = [1e-9, 1e-6, 1e-4]
    s = Spectrum(Gram(Polynomial(2), t[:, None]), min(alphas), w if weighted else None, intercept)
    Phi = np.column_stack([np.ones(60), np.sqrt(2) * t, t**2])

    def refit(alpha, fold):
        rest = np.setdiff1d(np.arange(60), fold)
        mean = np.average(Phi[rest], axis=0, weights=w[rest]) if intercept else 0.0
        level = np.average(Y[rest, 0], weights=w[rest]) if intercept else 0.0
        A = np.vstack([np.sqrt(w[rest])[:, None] * (Phi[rest] - mean), np.sqrt(alpha) * np.eye(3)])
        b = np.vstack([np.sqrt(w[rest])[:, None] * (Y[rest] - level), np.zeros((3, 1))])
        return Y[fold] - level - (Phi[fold] - mean) @ np.linalg.lstsq(A, b)[0]

    one = np.array([[refit(alpha, np.array([i]))[0] for i in range(60)] for alpha in alphas])
    assert np.allclose(whole(s.leave_one_out(Y, alphas)), one, atol=1e-6)
    fold = np.arange(0, 60, 4)
    _, errors = next(s.leave_fold_out(Y, alphas, [fold]))
    assert np.allclose(errors, [refit(alpha, fold) for alpha in alphas], atol=1e-6)


def test_sentences():
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(ValueError, match="weights must be positive and finite; the least is 0"):
        Spectrum(Gram(RBF(), X), weights=np.arange(20.0))
    with pytest.raises(np.linalg.LinAlgError, match=r"eigenvalue of -2.*not positive semidefinite"):
        whole(
            Spectrum(Gram(Precomputed(np.array([[1.0, 3.0], [3.0, 1.0]])), np.arange(2))).leave_one_out(np.ones(2), [1])
        )
    with pytest.raises(MemoryError, match="decomposition of the 20 x 20 matrix would need"):
        whole(Spectrum(Gram(RBF(), X, budget="5 kB")).leave_one_out(np.ones(20), [1.0]))


# -- The tridiagonal form against the inverses it stands for -----------------------------------------------


def matrix(n, rank, seed):
    R = np.random.default_rng(seed).standard_normal((n, rank))
    return R @ R.T


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 40), share=st.floats(0.0, 1.0), seed=st.integers(0, 99), m=st.integers(1, 3))
def test_solutions_and_diagonals_of_the_inverses(n, share, seed, m):
    M = matrix(n, max(1, round(share * n)), seed)
    B = np.random.default_rng(seed).standard_normal((n, m))
    alphas = np.array([1e-3, 0.1, 10.0])
    parts, inner = Tridiagonal(M.copy()).path(B, alphas)
    rows, A, diagonal = next(iter(parts))
    assert rows == slice(0, n)
    for j, alpha in enumerate(alphas):
        C = np.linalg.inv(M + alpha * np.eye(n))
        room = 1e-10 * (np.linalg.norm(M) / alpha + 1) / alpha
        assert np.abs(A[:, j] - C @ B).max() <= room * np.abs(B).max()
        assert np.abs(diagonal[:, j] - C.diagonal()).max() <= room
        assert np.abs(inner[j] - B.T @ C @ B[:, -1]).max() <= room * n * np.abs(B).max() ** 2


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300, 1100])
def test_q_is_orthogonal_and_turns_the_matrix_into_t(n):
    M = matrix(n, n, 0)
    form = Tridiagonal(M.copy())
    T = np.diag(form.middle) + np.diag(form.beside, 1) + np.diag(form.beside, -1)
    assert np.abs(form.Q @ form.Q.T - np.eye(n)).max() < 1e-12
    assert np.abs(form.Q @ T @ form.Q.T - M).max() < 1e-12 * np.linalg.norm(M)
    values = np.linalg.eigvalsh(M)
    assert np.allclose([form.least, form.largest], values[[0, -1]], atol=1e-10 * values[-1])


def test_a_diagonal_matrix_needs_no_reflection():
    form = Tridiagonal(np.diag([3.0, 1.0, 2.0]))
    assert np.array_equal(form.Q, np.eye(3))
