"""Equations with the kernel matrix, against scipy and against themselves by another method."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve

from cases import each
from mercer import RBF, FromFunction, Gram, Laplacian, Linear, Polynomial, Precomputed
from mercer.solvers import Control
from mercer.solvers.systems import cholesky
from mercer.solvers.systems import system as module
from mercer.solvers.systems.cholesky import Singular
from mercer.solvers.systems.preconditioners import choice
from mercer.solvers.systems.system import Systems

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 4))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], RNG.standard_normal(400)])


def residual(K, shift, Y, A):
    shift = np.asarray(shift, dtype=float)
    shift = shift[:, None] if shift.ndim == 1 else shift
    columns = Y.reshape(len(Y), -1)
    rest = columns - K @ A.reshape(columns.shape) - shift * A.reshape(columns.shape)
    return np.linalg.norm(rest, axis=0) / np.linalg.norm(columns, axis=0)


@each("method", ["cholesky", "cg"])
@each("kernel", [RBF(scale=1.5), Laplacian(scale=2.0), Polynomial(degree=3), Linear()])
@each("dtype", [np.float64, np.float32])
def test_agrees_with_scipy(kernel, method, dtype):
    points = X.astype(dtype)
    K = Gram(kernel, points.astype(np.float64)).dense()
    systems = Systems(Gram(kernel, points), Control(), method=method)
    shift = 0.1 * np.diag(K).mean()
    answer = systems.solve(shift, Y, tol=1e-9)
    assert answer.stopped == "converged"
    assert residual(K, shift, Y, answer.A).max() < 1e-8
    expected = solve(K + shift * np.eye(len(K)), Y, assume_a="pos")
    assert np.abs(answer.A - expected).max() < 1e-6 * np.abs(expected).max()
    assert np.allclose(answer.product, K @ answer.A, atol=1e-7 * np.abs(K @ answer.A).max())


@pytest.mark.parametrize("method", ["cholesky", "cg"])
@pytest.mark.parametrize(
    "shift",
    [0.5, RNG.uniform(0.1, 2, 400), np.array([[0.1, 0.1, 3.0]]), RNG.uniform(0.1, 2, (400, 3))],
    ids=["number", "per point", "per column", "both"],
)
def test_shifts_of_every_shape(method, shift):
    gram = Gram(RBF(scale=1.5), X)
    answer = Systems(gram, Control(), method=method).solve(shift, Y)
    assert residual(gram.dense(), shift, Y, answer.A).max() < 2e-10
    assert answer.residual.shape == (3,)
    assert answer.residual.max() <= 1e-10


@pytest.mark.parametrize("method", ["cholesky", "cg"])
def test_some_rows_and_one_factor_for_many(method):
    gram = Gram(RBF(scale=1.5), X)
    systems = Systems(gram, Control(), method=method)
    rows = RNG.permutation(400)[:150]
    K = gram.dense()[np.ix_(rows, rows)]
    for y, chosen, matrix in ((Y[rows, 0], rows, K), (Y[rows, 1], rows, K), (Y[:, 0], None, gram.dense())):
        answer = systems.solve(0.3, y, rows=chosen)
        assert answer.A.shape == y.shape
        assert residual(matrix, 0.3, y, answer.A).max() < 1e-9


@pytest.mark.parametrize("method", ["cholesky", "cg"])
def test_kernels_that_only_python_computes(method):
    words = ["".join(RNG.choice(list("abc"), size=6)) for _ in range(60)]
    gram = Gram(FromFunction(lambda a, b: float(sum(x == y for x, y in zip(a, b)))), words)
    y = RNG.standard_normal(60)
    answer = Systems(gram, Control(), method=method).solve(1.0, y)
    assert residual(gram.dense(), 1.0, y, answer.A).max() < 1e-9


def test_held_in_float32_within_a_small_budget():
    M = Gram(RBF(scale=1.5), X).dense()
    gram = Gram(Precomputed(M), np.arange(400), budget=6 * 400 * 400)
    systems = Systems(gram, Control())
    assert systems.method == "cg"
    assert systems.matrix.held.dtype == np.float32
    assert "held in float32" in systems.plan
    answer = systems.solve(0.1, Y)
    assert residual(M, 0.1, Y, answer.A).max() < 1e-9


def test_a_large_factor_in_float32_is_corrected(monkeypatch):
    monkeypatch.setattr(cholesky, "SINGLE", 100)
    gram = Gram(RBF(scale=1.5), X)
    systems = Systems(gram, Control())
    answer = systems.solve(0.01, Y)
    assert answer.precision == "float32"
    assert residual(gram.dense(), 0.01, Y, answer.A).max() < 1e-10
    tiny = systems.solve(1e-6, Y[:, 0], tol=1e-7)  # beside which float32 is too coarse
    assert tiny.precision == "float64"
    assert residual(gram.dense(), 1e-6, Y[:, 0], tiny.A).max() < 1e-6


@pytest.mark.parametrize("single", [True, False])
def test_product(single):
    gram = Gram(RBF(scale=1.5), X.astype(np.float32) if single else X)
    K = Gram(RBF(scale=1.5), X.astype(np.float32).astype(float) if single else X).dense()
    systems = Systems(gram, Control())
    big = Y * np.array([1e100, 1.0, 1e-100])
    for V in (big, big[:, 0]):
        assert np.allclose(systems.product(V, precise=True), K @ V, rtol=1e-9, atol=0)
        assert np.abs(systems.product(V) / (np.abs(K) @ np.abs(V)) - K @ V / (np.abs(K) @ np.abs(V))).max() < 1e-5


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 3),
    power=st.integers(-10, 12),
    size=st.sampled_from([1e-200, 1.0, 1e200]),
    method=st.sampled_from(["cholesky", "cg", "auto"]),
    seed=st.integers(0, 99),
)
def test_never_nan(n, d, power, size, method, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(-3, 3, (n, d)).astype(float)  # many equal ones
    y = size * rng.standard_normal(n)
    gram = Gram(RBF(scale=2.0), points)
    answer = Systems(gram, Control(), method=method).solve(10.0**power, y)
    assert np.isfinite(answer.A).all()
    assert np.isfinite(answer.residual).all()
    if power >= -6:
        assert residual(gram.dense(), 10.0**power, y / size, answer.A / size).max() < 1e-6


def test_equal_points_and_no_shift():
    points = np.vstack([X[:30], X[:10]])
    gram = Gram(RBF(scale=0.5), points)
    f = np.sin(points[:, 0])
    answer = Systems(gram, Control()).solve(0.0, f)
    K = gram.dense()
    assert np.allclose(answer.A, np.linalg.pinv(K, hermitian=True) @ f, atol=1e-8)
    assert answer.residual.max() < 1e-10
    torn = f.copy()
    torn[0] += 1.0
    answer = Systems(gram, Control()).solve(0.0, torn)
    assert np.allclose(K @ answer.A, K @ np.linalg.pinv(K, hermitian=True) @ torn)


def test_kernels_of_low_rank_and_no_shift():
    answer = Systems(Gram(Linear(), X), Control()).solve(0.0, X @ np.ones(4))
    assert answer.residual.max() < 1e-10
    answer = Systems(Gram(Linear(), X), Control()).solve(0.0, Y[:, 0])
    assert np.allclose(answer.product, X @ np.linalg.lstsq(X, Y[:, 0])[0])
    with pytest.raises(Singular):
        Systems(Gram(Linear(), X), Control()).solve(0.0, Y[:, 0], strict=True)


@pytest.mark.parametrize("method", ["cholesky", "cg"])
def test_a_similarity_that_is_no_kernel(method):
    M = np.array([[1.0, 3.0], [3.0, 1.0]])
    systems = Systems(Gram(Precomputed(M), np.arange(2)), Control(), method=method)
    with pytest.raises(np.linalg.LinAlgError, match=r"eigenvalue of about -1.*Raise alpha by more than 1"):
        systems.solve(1.0, np.array([1.0, -1.0]))
    assert np.allclose(systems.solve(3.0, np.ones(2)).A, 1 / 7)


def test_limits_return_the_best_so_far():
    gram = Gram(Laplacian(scale=0.3), X)
    early = Systems(gram, Control(time_limit=0.0), method="cg").solve(1e-4, Y)
    assert early.stopped == "time_limit=0 s reached"
    assert np.allclose(early.residual, residual(gram.dense(), 1e-4, Y, early.A))

    def interrupt(*_):
        raise KeyboardInterrupt

    control = Control()
    answer = Systems(gram, control, method="cg", rank=2).solve(1e-4, Y, watch=interrupt)
    assert answer.stopped == "interrupted"
    assert control.cancelled
    assert np.allclose(answer.residual, residual(gram.dense(), 1e-4, Y, answer.A))


def test_a_slow_run_ends_with_a_factor(monkeypatch):
    monkeypatch.setattr(module, "_FACTOR_POINTS", 10)
    monkeypatch.setattr(choice, "_FACTOR_PATIENCE", 0.0)
    systems = Systems(Gram(Laplacian(scale=0.3), np.repeat(X, 2, axis=0)), Control(), rank=2)
    assert systems.method == "cg"
    answer = systems.solve(1e-7, np.repeat(Y, 2, axis=0), tol=1e-8)
    assert answer.stopped == "converged"
    assert systems.factors.last is not None


def test_start_saves_products():
    systems = Systems(Gram(RBF(scale=1.0), X), Control(), method="cg", rank=20)
    first = systems.solve(0.01, Y, tol=1e-8)
    again = systems.solve(0.01, Y, tol=1e-7, start=first.A)
    assert again.iterations == 1 < first.iterations


def test_plans_say_why():
    assert "few points" in Systems(Gram(RBF(), X), Control()).plan
    assert "exceeds the budget" in Systems(Gram(RBF(), X, budget="100 kB"), Control()).plan
    assert "as asked" in Systems(Gram(RBF(), X), Control(), method="cg").plan


def test_sentences():
    gram = Gram(RBF(), X)
    with pytest.raises(ValueError, match="method must be one of 'auto', 'cholesky', 'cg'; it is 'lu'"):
        Systems(gram, Control(), method="lu")
    with pytest.raises(ValueError, match="shift must be finite and at least 0; it is -1"):
        Systems(gram, Control()).solve(-1.0, Y)
    with pytest.raises(ValueError, match="right-hand side contains NaN"):
        Systems(gram, Control()).solve(1.0, Y * np.nan)
    with pytest.raises(FloatingPointError, match="exceeds the range of float64"):
        Systems(gram, Control()).solve(1e-10, Y * 1e305)
    with pytest.raises(TypeError, match="square matrix of one set"):
        Systems(Gram(RBF(), X, X[:3].copy()), Control())
    with pytest.raises(MemoryError, match="choose method='cg'"):
        Systems(Gram(RBF(), X, budget="100 kB"), Control(), method="cholesky").solve(1.0, Y)
