"""The interior-point method against Clarabel: the optimum, inside its box, on every kind of problem."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import cho_factor

import referee
from cases import each
from mercer.solvers.dual import barrier as module
from mercer.solvers.dual.barrier import barrier

GROUPS = {"none": 0, "free": 1, "split": 2}
EACH = ["svc", "none", "svr", "one_class", "nu_svc", "nu_svr"]


def fill(bound, total):
    """Coefficients up to the bound, first points first, that sum to the total."""
    before = np.concatenate([[0.0], np.cumsum(bound)[:-1]])
    return np.clip(total - before, 0.0, bound)


def matrix(rng, n, kind, scale):
    A = rng.normal(size=(n, {"full": n + 2, "thin": 2, "flat": 1}[kind]))
    if kind == "flat":  # constant, and equal points
        A = np.ones((n, 1)) * (1 + (np.arange(n) % 2)[:, None])
    return A @ A.T * scale


def make(kind, K, rng, C=1.0, nu=0.4, epsilon=0.1):
    """A problem of the referee; nu in units of what is feasible."""
    n = len(K)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[0], y[-1] = 1.0, -1.0
    real = y + rng.normal(size=n)
    return {
        "svc": lambda: referee.svc(K, y, C * (0.5 + rng.random(n))),
        "none": lambda: referee.no_offset(K, y, C),
        "svr": lambda: referee.svr(K, real, C, epsilon),
        "one_class": lambda: referee.one_class(K, nu),
        "nu_svc": lambda: referee.nu_svc(K, y, nu * 2 * min((y > 0).sum(), (y < 0).sum()) / n),
        "nu_svr": lambda: referee.nu_svr(K, real, C, nu),
    }[kind]()


def start(problem):
    n = len(problem.K)
    if problem.offset == "split":
        return fill(problem.upper, problem.total[0]), fill(problem.lower, problem.total[1])
    return fill(problem.upper, problem.total or 0.0), np.zeros(n)


def run(problem, tol=1e-9):
    """What the method returns, without a warning, and feasible."""
    plus, minus = start(problem)
    upper, lower = np.asarray(problem.upper, float), np.asarray(problem.lower, float)
    fixed = (problem.K, problem.linear, np.full(len(plus), problem.width), upper, lower)
    kept = [np.array(a) for a in (*fixed, plus, minus)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = barrier(*fixed, plus, minus, GROUPS[problem.offset], tol)
    for before, after in zip(kept, (*fixed, plus, minus), strict=True):
        np.testing.assert_array_equal(before, after)  # nothing of the caller's has changed
    if found is None:
        return None
    size = max(found[0].sum() + found[1].sum(), plus.sum() + minus.sum())
    for part, bound in zip(found, (upper, lower), strict=True):
        assert np.isfinite(part).all()
        assert (part >= 0).all()
        assert (part <= bound).all()
    if problem.offset == "free":
        assert (found[0] - found[1]).sum() == pytest.approx((plus - minus).sum(), abs=1e-9 * size)
    if problem.offset == "split":
        assert found[0].sum() == pytest.approx(plus.sum(), abs=1e-9 * size)
        assert found[1].sum() == pytest.approx(minus.sum(), abs=1e-9 * size)
    return found


def dual(problem, found):
    b = found[0] - found[1]
    return -(0.5 * b @ problem.K @ b + problem.linear @ b + problem.width * (found[0] + found[1]).sum())


def assert_optimal(problem, found, rel=1e-6):
    """As good as Clarabel, up to its own rounding where the optimum is nothing beside the terms it is a sum of."""
    theirs = referee.solve(problem)
    weight = found[0].sum() + found[1].sum()
    size = max(abs(theirs.dual), 1e-6 * np.abs(problem.K).max() * weight**2, 1e-3)
    assert dual(problem, found) >= theirs.dual - rel * size or not theirs.solved


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 30))
    K = matrix(rng, n, draw(st.sampled_from(["full", "thin", "flat"])), draw(st.sampled_from([1e-6, 1.0, 1e6])))
    C, nu = draw(st.sampled_from([1e-3, 1.0, 1e3])), draw(st.sampled_from([0.05, 0.5, 1.0]))
    return make(draw(st.sampled_from(EACH)), K, rng, C, nu, draw(st.sampled_from([0.0, 0.1, 3.0])))


@settings(max_examples=150)
@given(problems())
def test_the_optimum_is_clarabel_s(problem):
    found = run(problem)
    assert found is not None
    assert_optimal(problem, found)


@pytest.mark.long
@settings(max_examples=3000)
@given(problems())
def test_three_thousand_optima_are_clarabel_s(problem):
    found = run(problem)
    assert found is not None
    assert_optimal(problem, found)


@pytest.mark.parametrize("kind", EACH)
def test_a_hundred_points(kind):
    rng = np.random.default_rng(0)
    problem = make(kind, matrix(rng, 100, "full", 0.1), rng)
    assert_optimal(problem, run(problem, 1e-11), 1e-8)


@pytest.mark.parametrize("kind", EACH)
def test_the_start_and_the_order_do_not_matter(kind):
    rng = np.random.default_rng(1)
    problem = make(kind, matrix(rng, 30, "full", 1.0), rng)
    order = rng.permutation(30)
    moved = referee.Dual(
        problem.K[np.ix_(order, order)],
        problem.linear[order],
        problem.upper[order],
        problem.lower[order],
        problem.width,
        problem.offset,
        problem.total,
    )
    one, two = run(problem, 1e-12), run(moved, 1e-12)
    assert two[0] - two[1] == pytest.approx((one[0] - one[1])[order], abs=1e-5)


@pytest.mark.parametrize("offset", ["free", "none"])
@pytest.mark.parametrize("mixed", [False, True])
def test_without_upper_bounds_it_finds_the_hard_margin(offset, mixed):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 3))
    y = np.sign(X[:, 0])
    X[:, 0] += 0.5 * y
    bound = np.where(rng.random(40) < 0.5, 0.3, np.inf) if mixed else np.full(40, np.inf)
    problem = referee.Dual(X @ X.T, -y, np.where(y > 0, bound, 0.0), np.where(y < 0, bound, 0.0), offset=offset)
    found = run(problem, 1e-10)
    assert_optimal(problem, found)
    if not mixed:
        w = (found[0] - found[1]) @ X
        assert dual(problem, found) == pytest.approx(0.5 * w @ w, rel=1e-6)


@pytest.mark.parametrize("kind", ["nu_svc", "nu_svr", "one_class"])
def test_where_the_sums_leave_one_point_only(kind):
    """nu at its maximum: every coefficient of a class at its bound, so that the box has no interior to walk in."""
    rng = np.random.default_rng(3)
    problem = make(kind, matrix(rng, 24, "full", 1.0), rng, nu=1.0)
    found = run(problem)
    assert found is not None
    assert_optimal(problem, found)
    if kind == "one_class":
        np.testing.assert_allclose(found[0], 1.0)


def test_the_difference_of_the_halves_is_all_that_counts_for_one_group():
    rng = np.random.default_rng(4)
    problem = make("svr", matrix(rng, 30, "full", 1.0), rng, epsilon=0.0)
    plus, minus = run(problem)
    assert (np.minimum(plus, minus) == 0).all()


def test_coefficients_at_their_bounds_are_there_exactly():
    rng = np.random.default_rng(5)
    problem = make("svc", matrix(rng, 60, "thin", 1.0), rng)
    plus, minus = run(problem, 1e-11)
    part, bound = plus + minus, problem.upper + problem.lower
    near = np.minimum(part, bound - part) < 1e-6 * bound
    assert near.sum() > 40
    assert (np.minimum(part, bound - part)[near] == 0).all()


# -- hard inputs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EACH)
def test_a_matrix_of_zeros_has_nothing_to_factorise(kind):
    assert run(make(kind, np.zeros((5, 5)), np.random.default_rng(6))) is None


@each("kind", EACH)
@each("seed", range(5))
def test_an_indefinite_matrix_is_given_up_or_ends_feasible(kind, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(20, 20))
    run(make(kind, A + A.T, rng, C=[1.0, 100.0][seed % 2]))


@pytest.mark.parametrize("kind", EACH)
def test_a_negative_matrix_is_given_up(kind):
    rng = np.random.default_rng(7)
    assert run(make(kind, -matrix(rng, 10, "full", 1e3), rng, C=10.0)) is None


@each("kind", EACH)
@each("scale", [1e-300, 1e-30, 1e30, 1e150, 1e300])
@each("C", [1e-8, 1e8])
def test_extreme_scales_end_feasible_and_quietly(kind, scale, C):
    rng = np.random.default_rng(8)
    run(make(kind, matrix(rng, 12, "full", scale), rng, C=C))


def test_unbounded_coefficients_of_a_matrix_near_underflow():
    X = np.array([[1e-160], [-1e-160]])
    y = np.array([1.0, -1.0])
    bound = np.where(y > 0, np.inf, 0.0), np.where(y < 0, np.inf, 0.0)
    run(referee.Dual(X @ X.T, -y, *bound))


def test_a_single_precision_matrix_is_taken_as_it_is():
    rng = np.random.default_rng(9)
    problem = make("svc", matrix(rng, 20, "full", 1.0).astype(np.float32), rng)
    found = run(problem)
    problem.K = problem.K.astype(np.float64)
    assert_optimal(problem, found)


def test_points_that_may_not_move_are_left_out():
    """Weights of 0: both bounds of a point are 0."""
    rng = np.random.default_rng(10)
    problem = make("svc", matrix(rng, 20, "full", 1.0), rng)
    problem.upper[5:9] = problem.lower[5:9] = 0.0
    found = run(problem)
    assert not (found[0] + found[1])[5:9].any()
    assert_optimal(problem, found)
    problem.upper[:] = problem.lower[:] = 0.0
    assert not np.any(run(problem))


def test_it_ends_where_nothing_but_rounding_is_left(monkeypatch):
    """The residual of a huge C stays above the tolerance: five more steps, not eighty."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    taken = []
    path = module.path

    def counted(*args):
        for step in path(*args):
            taken.append(step)
            yield step

    monkeypatch.setattr(module, "path", counted)
    problem = referee.svc((X @ X.T + 1) ** 3, y, 1e7)
    assert_optimal(problem, run(problem, tol=1e-10), rel=1e-5)
    assert len(taken) < 40


@each("kind", EACH)
@each("shape", ["full", "thin", "flat"])
@each("scale", [1e-30, 1e-3, 1.0, 1e3, 1e30])
def test_early_steps_in_single_precision_lead_to_the_same_optimum(monkeypatch, kind, shape, scale):
    """Large matrices are factorised in float32 while its rounding allows; here it is asked of small ones."""
    monkeypatch.setattr(module, "_ONE_THREAD", 0)
    rng = np.random.default_rng(11)
    problem = make(kind, matrix(rng, 24, shape, scale), rng, C=1.0 / scale, epsilon=0.1)
    if 1e-10 < scale < 1e10:
        assert_optimal(problem, run(problem))
    else:
        run(problem)


@pytest.mark.parametrize("columns", [1, 3, 4])
@pytest.mark.parametrize(("dtype", "rounding"), [(np.float64, 1e-12), (np.float32, 1e-4)])
@pytest.mark.parametrize("lower", [True, False])
def test_an_inverse_times_columns_is_what_equations_give(columns, dtype, rounding, lower):
    rng = np.random.default_rng(12)
    A = matrix(rng, 30, "full", 0.1) + np.eye(30)
    right = rng.normal(size=(30, columns))
    got = module.inverse_times(cho_factor(A.astype(dtype), lower=lower), right)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, np.linalg.solve(A, right), atol=rounding)
