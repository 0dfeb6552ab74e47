"""Ridge problems against scikit-learn, scipy and the definition of their gap."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve
from sklearn.kernel_ridge import KernelRidge

from cases import each
from mercer import RBF, Gram, Laplacian, Linear, Polynomial
from mercer.solvers import Control
from mercer.solvers.systems import cholesky
from mercer.solvers.systems.ridge import RidgeProblem, solve_ridge

RNG = np.random.default_rng(1)
N = 200
X = RNG.standard_normal((N, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2] + 5.0]) + 0.1 * RNG.standard_normal((N, 2))
W = RNG.uniform(0.2, 3.0, N)
KERNEL = RBF(scale=1.0)
K = Gram(KERNEL, X).dense()


def bordered(K, Y, alpha, w, intercept):
    """Return coefficients and offset by one dense solve."""
    n = len(K)
    M = K + np.diag(alpha / w)
    if not intercept:
        return solve(M, Y), 0.0
    unit = M.max()
    M = np.block([[M / unit, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    found = solve(M, np.append(Y, 0.0))
    return found[:-1] / unit, found[-1]


def objective(K, y, alpha, w, a, b):
    return 0.5 * np.sum(w * (y - K @ a - b) ** 2) + 0.5 * alpha * a @ K @ a


@pytest.mark.parametrize("method", ["cholesky", "cg"])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, np.array([1e-2, 30.0])], ids=str)
@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_agrees_with_scikit_learn(method, alpha, weights):
    s = solve_ridge(RidgeProblem(Gram(KERNEL, X), Y, alpha, weights), Control(), method, residual=1e-9)
    theirs = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5).fit(X, Y, weights)
    assert np.allclose(s.coefficients, theirs.dual_coef_, atol=1e-6 * np.abs(theirs.dual_coef_).max())
    assert np.allclose(s.values, theirs.predict(X), atol=1e-7)
    assert s.certificate.converged
    assert s.certificate.stopped == "converged"
    assert s.residual.max() <= 1e-9


@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 25),
    power=st.integers(-5, 12),
    size=st.sampled_from([1e-200, 1e-3, 1.0, 1e200]),
    intercept=st.booleans(),
    weighted=st.booleans(),
    method=st.sampled_from(["cholesky", "cg"]),
    seed=st.integers(0, 1000),
)
def test_agrees_with_the_bordered_system(n, power, size, intercept, weighted, method, seed):
    rng = np.random.default_rng(seed)
    gram = Gram(Laplacian(scale=1.0), rng.standard_normal((n, 2)))
    y, alpha = rng.standard_normal(n), 10.0**power
    w = rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    problem = RidgeProblem(gram, size * y, alpha, w if weighted else None, intercept)
    s = solve_ridge(problem, Control(), method, residual=1e-10)
    a, b = bordered(gram.dense(), y, alpha, w, intercept)
    assert np.allclose(s.coefficients / size, a, atol=1e-7 * max(np.abs(a).max(), 1 / (1 + alpha)))
    assert np.isclose(s.offsets[0] / size, b, atol=1e-7)
    assert np.allclose(s.values / size, gram.dense() @ a + b, atol=1e-6)
    assert s.certificate.converged


@pytest.mark.parametrize("intercept", [False, True])
def test_the_certificate_brackets_the_optimum(intercept):
    y, alpha = Y[:, 1], 0.3
    a, b = bordered(K, y, alpha, W, intercept)
    best = objective(K, y, alpha, W, a, b)
    for goal in (1e-1, 1e-2, 1e-9):
        problem = RidgeProblem(Gram(KERNEL, X), y, alpha, W, intercept)
        s = solve_ridge(problem, Control(tol=1.0), "cg", residual=goal, rank=2)
        c = s.certificate
        assert c.dual - 1e-12 * best <= best <= c.primal + 1e-12 * best
        assert np.isclose(c.primal, objective(K, y, alpha, W, s.coefficients, s.offsets[0]))
        rest = y - s.values - alpha * s.coefficients / W
        assert np.isclose(c.kkt, np.abs(rest).max(), rtol=1e-3, atol=1e-12)
        if intercept:
            assert abs(s.coefficients.sum()) < 1e-10 * np.abs(s.coefficients).sum()
    assert c.relative_gap < 1e-12


def test_both_gap_and_residual_must_hold():
    problem = RidgeProblem(Gram(KERNEL, X), Y[:, 0], 1e-5)
    loose = solve_ridge(problem, Control(tol=1e-2), "cg", residual=1e-1, rank=5)
    assert loose.certificate.relative_gap <= 1e-2
    tight = solve_ridge(problem, Control(tol=1e-10), "cg", residual=1e-1, rank=5)
    assert tight.certificate.relative_gap <= 1e-10
    assert tight.residual < loose.residual


def test_weights_are_repetitions():
    times = RNG.integers(1, 4, N)
    once = solve_ridge(RidgeProblem(Gram(KERNEL, X), Y, 0.1, times, True), Control())
    often = solve_ridge(
        RidgeProblem(Gram(KERNEL, np.repeat(X, times, axis=0)), np.repeat(Y, times, axis=0), 0.1, None, True), Control()
    )
    assert np.allclose(np.repeat(once.values, times, axis=0), often.values, atol=1e-8)
    assert np.allclose(once.offsets, often.offsets)


def test_adding_a_constant_changes_the_offset_alone():
    near = solve_ridge(RidgeProblem(Gram(KERNEL, X), Y, 0.1, None, True), Control())
    far = solve_ridge(RidgeProblem(Gram(KERNEL, X), Y + 1e6, 0.1, None, True), Control())
    assert np.allclose(near.coefficients, far.coefficients, atol=1e-6)
    assert np.allclose(near.offsets + 1e6, far.offsets)


@pytest.mark.parametrize("method", ["cholesky", "cg"])
@pytest.mark.parametrize("value", [0.0, 7.0, -1e200, 1e-300])
def test_constant_targets(method, value):
    s = solve_ridge(RidgeProblem(Gram(KERNEL, X), np.full(N, value), 0.1, W, True), Control(), method)
    assert np.abs(s.coefficients).max() <= 1e-12 * abs(value)
    assert np.isclose(s.offsets[0], value)
    assert s.certificate.converged


@each("alpha", [0.0, 1e-12, 1e-6, 1.0, 1e12])
@each("intercept", [False, True])
@each("points", ["one", "equal", "line", "plenty"])
def test_ill_conditioned(alpha, intercept, points):
    chosen = {"one": X[:1], "equal": np.vstack([X[:20], X[:20]]), "line": X[:40, :1], "plenty": X}[points]
    kernel = Linear() if points == "line" else RBF(scale=2.0)
    n = len(chosen)
    y = np.sin(chosen[:, 0])
    for target in (y, y + np.arange(n) % 7):
        s = solve_ridge(RidgeProblem(Gram(kernel, chosen), target, alpha, None, intercept), Control())
        for part in (s.coefficients, s.offsets, s.values, s.residual):
            assert np.isfinite(part).all()
        assert s.certificate.stopped == "converged" or s.diagnosis or s.residual.max() < 1e-3
        if alpha >= 1e-6:
            a, b = bordered(Gram(kernel, chosen).dense(), target, alpha, np.ones(n), intercept)
            assert np.allclose(s.values, Gram(kernel, chosen).dense() @ a + b, atol=1e-4)


def test_equal_points_at_alpha_zero_interpolate_or_say_why_not():
    chosen = np.vstack([X[:20], X[:20]])
    gram = Gram(RBF(scale=0.7), chosen)
    y = np.sin(chosen[:, 0])
    s = solve_ridge(RidgeProblem(gram, y, 0.0), Control())
    assert np.allclose(s.values, y, atol=1e-8)
    assert np.allclose(s.coefficients[:20], s.coefficients[20:], atol=1e-8)  # of least norm
    assert s.certificate.stopped == "converged"
    assert "least norm" in s.diagnosis
    torn = y + np.repeat([0.0, 1.0], 20)
    s = solve_ridge(RidgeProblem(gram, torn, 0.0), Control())
    assert np.allclose(s.values, y + 0.5, atol=1e-8)
    assert "points 0 and 20 are equal" in s.diagnosis
    assert s.certificate.relative_gap < 1e-6
    weighted = solve_ridge(RidgeProblem(gram, torn, 0.0, np.repeat([1.0, 3.0], 20)), Control())
    assert np.allclose(weighted.values, y + 0.75, atol=1e-8)
    assert weighted.certificate.relative_gap < 1e-6


def far_from_the_origin(noise):
    """Return points, targets, and what exact arithmetic makes of them: f at any points, and the objective's minimum."""
    t = np.random.default_rng(0).uniform(34, 41, 120)
    y = 10 - (t - 37) ** 2 + noise * np.random.default_rng(1).normal(size=120)

    def exact(alpha, intercept, new):
        exactly = [[Fraction(1), Fraction(x), Fraction(x) ** 2] for x in t]
        scale = [1, 2, 1]  # <Phi(x), Phi(z)> = 1 + 2 xz + x²z²
        M = [[sum(r[i] * r[j] for r in exactly) for j in range(3)] for i in range(3)]
        for i in range(3):
            M[i][i] += 0 if intercept and i == 0 else Fraction(alpha) / scale[i]
        v = [sum(r[i] * Fraction(z) for r, z in zip(exactly, y, strict=True)) for i in range(3)]
        w = solved(M, v)
        f = [sum(c * x for c, x in zip(w, r, strict=True)) for r in exactly]
        norm = sum(c * c / s for c, s in list(zip(w, scale, strict=True))[intercept:])
        least = (sum((a - Fraction(b)) ** 2 for a, b in zip(f, y, strict=True)) + Fraction(alpha) * norm) / 2
        return np.array([float(w[0] + w[1] * Fraction(x) + w[2] * Fraction(x) ** 2) for x in new]), float(least)

    return t, y, exact


def solved(M, v):
    """Return the solution of a system of fractions, by elimination."""
    rows = [[*r, x] for r, x in zip(M, v, strict=True)]
    for i in range(len(rows)):
        for j in range(len(rows)):
            if j != i:
                c = rows[j][i] / rows[i][i]
                rows[j] = [a - c * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [r[-1] / r[i] for i, r in enumerate(rows)]


@each("method", ["cholesky", "cg"])
@each("noise", [0.0, 0.1])
@each("intercept", [False, True])
@each("alpha", [1e-12, 1e-9, 1e-6, 1e-3])
def test_the_alpha_that_was_asked_for_is_that_of_the_solution(alpha, intercept, noise, method):
    t, y, exact = far_from_the_origin(noise)
    gram = Gram(Polynomial(2), t[:, None])
    s = solve_ridge(RidgeProblem(gram, y, alpha, None, intercept), Control(tol=1e-6), method)
    new = np.linspace(33, 42, 20)
    f, least = exact(alpha, int(intercept), np.concatenate([t, new]))
    assert np.allclose(s.values, f[:120], atol=1e-3)
    predicted = Polynomial(2)(np.concatenate([t, new])[:, None], t[:, None]) @ s.coefficients + s.offsets[0]
    assert np.allclose(predicted, f, atol=1e-3)
    c = s.certificate
    assert c.converged
    assert abs(c.primal - least) <= 1e-6 * least + 4 * c.rounding
    rest = y - Polynomial(2)(t[:, None]) @ s.coefficients - s.offsets[0] - alpha * s.coefficients
    scale = np.linalg.norm(y - y.mean()) if intercept else np.linalg.norm(y)
    assert s.residual[0] == pytest.approx(np.linalg.norm(rest) / scale, rel=1e-2, abs=1e-5)


@pytest.mark.parametrize("alpha", [1e-14, 1e-12, 1e-10])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_wide_kernel_and_a_tiny_alpha_are_solved_or_said_not_to_be(alpha, intercept):
    x = np.linspace(-1, 1, 150)[:, None]
    y = np.sin(3 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=150)
    gram = Gram(RBF(scale=2.0), x)
    s = solve_ridge(RidgeProblem(gram, y, alpha, None, intercept), Control(tol=1e-6))
    K = gram.dense()
    rest = y - K @ s.coefficients - s.offsets[0] - alpha * s.coefficients
    scale = np.linalg.norm(y - y.mean()) if intercept else np.linalg.norm(y)
    # Rounding errors, in two orders of summation.
    assert 0.3 * s.residual[0] < np.linalg.norm(rest) / scale < 3 * s.residual[0] + 1e-5
    primal = 0.5 * np.sum((y - s.values) ** 2) + 0.5 * alpha * s.coefficients @ K @ s.coefficients
    assert s.certificate.primal == pytest.approx(primal, rel=1e-3 if s.certificate.converged else 0.05)
    assert np.sum((y - s.values) ** 2) < 0.02 * np.sum((y - y.mean()) ** 2) + 150 * 0.011
    if not s.certificate.converged:
        assert "Raise alpha to" in s.diagnosis


def test_the_cause_of_missed_targets_is_named():
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(30, 1)), 2, axis=0)
    noisy = rng.normal(size=60)
    s = solve_ridge(RidgeProblem(Gram(Linear(), x), noisy, 0.0), Control())
    assert "the kernel has rank 1 on 30 different points" in s.diagnosis
    assert "are equal" not in s.diagnosis
    torn = 2 * x[:, 0]
    torn[7] += 1.0
    s = solve_ridge(RidgeProblem(Gram(RBF(scale=0.01), x), torn, 0.0), Control())
    assert "points 6 and 7 are equal" in s.diagnosis


@pytest.mark.parametrize("intercept", [False, True])
def test_an_interruption_before_the_first_step_leaves_zeros(monkeypatch, intercept):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(cholesky, "cholesky", interrupted)
    s = solve_ridge(RidgeProblem(Gram(KERNEL, X), Y, 0.1, intercept=intercept), Control(), "cholesky")
    assert s.certificate.stopped == "interrupted"
    assert not s.coefficients.any()
    np.testing.assert_allclose(s.values, np.broadcast_to(intercept * Y.mean(axis=0), Y.shape), atol=1e-12)


def test_progress_limits_and_interrupts():
    problem = RidgeProblem(Gram(Laplacian(scale=0.3), X), Y, 1e-3)
    seen = []
    s = solve_ridge(problem, Control(report=seen.append), "cg", rank=2)
    assert [p.iteration for p in seen] == sorted(p.iteration for p in seen)
    assert len(seen) == len(s.history) > 3
    assert seen[-1].gap < seen[0].gap
    s = solve_ridge(problem, Control(report=lambda p: p.iteration >= 3), "cg", rank=2)
    assert s.certificate.stopped == "stopped by the callback"
    s = solve_ridge(problem, Control(max_iter=2), "cg", rank=2)
    assert s.certificate.stopped == "max_iter=2 reached"
    assert s.certificate.iterations == 2

    def interrupt(progress):
        if progress.iteration == 4:
            raise KeyboardInterrupt

    s = solve_ridge(problem, Control(report=interrupt), "cg", rank=2)
    assert s.certificate.stopped == "interrupted"
    assert np.isfinite(s.certificate.primal)
    assert s.residual.max() < 1.0
    assert solve_ridge(problem, Control(time_limit=0.0), "cg", rank=2).certificate.stopped.startswith("time_limit")


@pytest.mark.parametrize("intercept", [False, True])
def test_checkpoint_resumes(tmp_path, intercept):
    file = tmp_path / "run.npz"
    problem = RidgeProblem(Gram(Laplacian(scale=0.3), X), Y, 1e-3, W, intercept)
    whole = solve_ridge(problem, Control(), "cg", rank=2, residual=1e-8)
    half = solve_ridge(problem, Control(max_iter=10, checkpoint=file, every=0.0), "cg", rank=2, residual=1e-8)
    assert half.certificate.stopped == "max_iter=10 reached"
    assert file.exists()
    with pytest.raises(ValueError, match="belongs to another problem"):
        solve_ridge(RidgeProblem(problem.gram, 2 * Y + X[:, :1], 1e-3, W, intercept), Control(checkpoint=file))
    other = RidgeProblem(Gram(Laplacian(scale=0.4), X), Y, 1e-3, W, intercept)
    with pytest.raises(ValueError, match="belongs to another problem"):
        solve_ridge(other, Control(checkpoint=file))
    rest = solve_ridge(problem, Control(checkpoint=file), "cg", rank=2, residual=1e-8)
    assert rest.certificate.iterations < whole.certificate.iterations
    assert np.allclose(rest.coefficients, whole.coefficients, atol=1e-5 * np.abs(whole.coefficients).max())
    assert not file.exists()
    file.write_text("nonsense")
    with pytest.raises(ValueError, match="cannot be read"):
        solve_ridge(problem, Control(checkpoint=file))


def test_a_start_is_used():
    problem = RidgeProblem(Gram(KERNEL, X), Y, 0.1)
    first = solve_ridge(problem, Control(), "cg", rank=2)
    problem.start = first.coefficients
    assert solve_ridge(problem, Control(), "cg", rank=2).certificate.iterations < first.certificate.iterations


def test_sentences():
    gram = Gram(KERNEL, X)
    for changes, words in (
        ({"Y": Y[:5]}, "Y must hold 200 finite rows"),
        ({"Y": Y * np.inf}, "finite rows"),
        ({"alpha": -1.0}, "alpha must be finite and at least 0; it is -1.0"),
        ({"weights": W - 1.0}, "weights must be positive and finite"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            with pytest.raises(ValueError, match=words):
                solve_ridge(RidgeProblem(**{"gram": gram, "Y": Y, **changes}), Control())
