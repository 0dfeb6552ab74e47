"""SMO on one block against Clarabel, the choice of working sets and the offsets against a plain search."""

import numpy as np
import pytest

import referee
from cases import each
from core.jobs import FLOATS
from mercer import _core

KINDS = ["svc", "svr", "one_class", "nu_svc", "nu_svr", "none"]
SIZES = [2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65]


def fill(bound, total):
    """Coefficients up to the bound, first points first, that sum to the total."""
    before = np.concatenate([[0.0], np.cumsum(bound)[:-1]])
    return np.clip(total - before, 0.0, bound)


def make(kind, n, seed=0, dtype=np.float64, ridge=0.1):
    """A problem of the referee on a random kernel matrix, and a feasible start."""
    rng = np.random.default_rng([seed, n])
    A = rng.standard_normal((n, max(2, n // 2)))
    K = (A @ A.T / n + ridge * np.eye(n)).astype(dtype).astype(np.float64)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y[0], y[-1] = 1.0, -1.0
    noisy = y + rng.normal(size=n)
    C = np.exp(rng.normal(size=n))
    problem = {
        "svc": lambda: referee.svc(K, y, C),
        "svr": lambda: referee.svr(K, noisy, 2.0, 0.3),
        "one_class": lambda: referee.one_class(K, 0.4),
        "nu_svc": lambda: referee.nu_svc(K, y, 1.2 * min((y > 0).sum(), (y < 0).sum()) / n),
        "nu_svr": lambda: referee.nu_svr(K, noisy, 2.0, 0.4),
        "none": lambda: referee.no_offset(K, y, C),
    }[kind]()
    plus = minus = np.zeros(n)
    if problem.offset == "split":
        plus, minus = fill(problem.upper, problem.total[0]), fill(problem.lower, problem.total[1])
    elif problem.total:
        plus = fill(problem.upper, problem.total)
    return problem, plus.copy(), minus.copy()


class Run:
    """The arrays that the core works on; without an offset, a free point that no other feels stands last."""

    def __init__(self, kind, n, seed=0, dtype=np.float64, ridge=0.1):
        self.problem, self.plus, self.minus = make(kind, n, seed, dtype, ridge)
        p = self.problem
        self.K, self.linear = p.K.astype(dtype), p.linear.astype(np.float64)
        self.upper, self.lower = p.upper.astype(np.float64), p.lower.astype(np.float64)
        self.width = np.full(n, p.width)
        if p.offset == "none":
            self.K = np.pad(self.K, (0, 1))
            self.plus, self.minus, self.linear, self.width = (
                np.append(a, 0.0) for a in (self.plus, self.minus, self.linear, self.width)
            )
            self.upper, self.lower = np.append(self.upper, np.inf), np.append(self.lower, np.inf)
        self.groups = 2 if p.offset == "split" else 1
        self.gradient = self.expected_gradient()

    def scramble(self, rng):
        """Some coefficients at each bound and some between, and any gradient: what selection and offsets may meet."""
        n = len(self.plus)
        for part, bound in ((self.plus, self.upper), (self.minus, self.lower)):
            part[:] = np.where(np.isinf(bound), 3.0, bound) * rng.choice([0.0, 0.3, 1.0], n)
        if self.groups == 1:
            self.minus[self.plus > 0] = 0.0
        self.gradient = rng.normal(size=n)
        return self

    def expected_gradient(self):
        return self.K.astype(np.float64) @ (self.plus - self.minus) + self.linear

    @property
    def arrays(self):
        return self.gradient, self.plus, self.minus, self.upper, self.lower, self.width

    def smo(self, tol=1e-10, steps=10**6, exact=True):
        return _core.smo(self.K, *self.arrays, self.groups, tol, steps, exact)

    def dual(self):
        b = self.plus - self.minus
        smooth = 0.5 * b @ self.K.astype(np.float64) @ b + self.linear @ b
        return -(smooth + self.width @ (self.plus + self.minus))

    def sums(self):
        return (self.plus - self.minus).sum() if self.groups == 1 else (self.plus.sum(), self.minus.sum())

    def slopes(self):
        """By group: how the objective changes as each b grows, and as it shrinks."""
        F, w, p, m, inf = self.gradient, self.width, self.plus, self.minus, np.inf
        grow_plus, shrink_plus = np.where(p < self.upper, F + w, inf), np.where(p > 0, F + w, -inf)
        shrink_minus, grow_minus = np.where(m > 0, F - w, inf), np.where(m < self.lower, F - w, -inf)
        if self.groups == 2:
            return [(grow_plus, shrink_plus), (shrink_minus, grow_minus)]
        return [(np.where(m > 0, shrink_minus, grow_plus), np.where(p > 0, shrink_plus, grow_minus))]

    def violation(self):
        return max(0.0, *(down.max() - up.min() for up, down in self.slopes()))


# -- smo --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_clarabel_s(kind, dtype):
    for n in SIZES:
        run = Run(kind, n, dtype=dtype)
        sums = run.sums()
        start = run.dual()
        _, violation = run.smo(tol=1e-10 if dtype == np.float64 else 1e-5)
        known = referee.solve(run.problem).dual
        size = max(abs(known), 1e-3)
        assert run.dual() >= start
        assert run.dual() == pytest.approx(known, abs=(1e-8 if dtype == np.float64 else 1e-4) * size)
        assert violation <= (1e-10 if dtype == np.float64 else 1e-5)
        assert run.sums() == pytest.approx(sums, abs=1e-12 * n)
        for part, bound in ((run.plus, run.upper), (run.minus, run.lower)):
            assert (part >= 0).all()
            assert (part <= bound).all()
        np.testing.assert_allclose(run.gradient, run.expected_gradient(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_violation_it_reports_is_that_of_the_gradient(kind):
    for n in (5, 20, 40):
        for steps in (0, 3, 10**6):
            run = Run(kind, n, seed=1)
            _, violation = run.smo(tol=1e-3, steps=steps)
            assert violation == pytest.approx(run.violation(), abs=1e-12)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_step_makes_the_objective_worse(kind, dtype):
    run = Run(kind, 25, seed=2, dtype=dtype)
    values = [run.dual()]
    for _ in range(60):
        done, _ = run.smo(tol=1e-4, steps=1)
        assert done <= 1
        values.append(run.dual())
        if not done:
            break
    assert len(values) > 3
    assert (np.diff(values) >= (-1e-12 if dtype == np.float64 else -1e-6) * abs(values[-1])).all()


def test_steps_are_counted_and_limited():
    whole = Run("svc", 60)
    needed, _ = whole.smo(tol=1e-6)
    assert needed > 20
    part = Run("svc", 60)
    assert part.smo(tol=1e-6, steps=7)[0] == 7
    assert part.violation() > 1e-6
    assert np.count_nonzero(part.plus + part.minus) <= 14
    none = Run("svc", 60)
    assert none.smo(tol=1e-6, steps=0) == (0, none.violation())
    assert not none.plus.any()


def test_without_exact_the_gradient_is_the_caller_s_business():
    run = Run("svc", 40)
    before = run.gradient.copy()
    done, _ = run.smo(tol=1e-8, exact=False)
    assert done > 0
    np.testing.assert_array_equal(run.gradient, before)
    run.gradient[:] = run.expected_gradient()
    assert run.violation() <= 1e-7


def test_directions_without_curvature_go_to_the_bound():
    """Four equal points: nothing separates the classes, and all coefficients grow until one side has no room."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    upper, lower = np.where(y > 0, [1.0, 2.0, 0, 0], 0.0), np.where(y < 0, 5.0, 0.0)
    gradient, plus, minus = -y, np.zeros(4), np.zeros(4)
    for dtype in FLOATS:
        plus[:] = minus[:] = 0.0
        gradient[:] = -y
        _core.smo(np.ones((4, 4), dtype), gradient, plus, minus, upper, lower, np.zeros(4), 1, 1e-6, 1000, True)
        np.testing.assert_array_equal(plus, upper)
        assert minus.sum() == pytest.approx(3.0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_matrix_of_zeros(dtype):
    run = Run("svc", 20, dtype=dtype)
    run.K[:] = 0
    run.smo(tol=1e-6)
    assert np.isfinite(run.plus).all()
    assert run.violation() <= 1e-6


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_scale_of_the_kernel_only_scales_the_coefficients(scale, dtype):
    one, other = Run("svc", 30, dtype=dtype), Run("svc", 30, dtype=dtype)
    other.K = (one.K * scale).astype(dtype)
    other.upper, other.lower = one.upper / scale, one.lower / scale
    for run in (one, other):
        run.smo(tol=1e-5)
    assert other.dual() * scale == pytest.approx(one.dual(), rel=1e-4)


def test_an_indefinite_matrix_ends():
    rng = np.random.default_rng(3)
    run = Run("svc", 30)
    A = rng.normal(size=(30, 30))
    run.K = A + A.T
    done, _ = run.smo(tol=1e-6, steps=5000)
    assert done <= 5000
    assert np.isfinite(run.gradient).all()
    assert (run.plus <= run.upper).all()
    assert (run.minus <= run.lower).all()


def test_one_point_and_none():
    one = np.ones(1)
    assert _core.smo(np.ones((1, 1)), -one, 0 * one, 0 * one, one, 0 * one, 0 * one, 1, 1e-6, 10, True) == (0, 0)
    no = np.zeros(0)
    assert _core.smo(np.zeros((0, 0)), no, no, no, no, no, no, 1, 1e-6, 10, True) == (0, 0)


# -- the course of the steps, for the history -----------------------------------------------------------------


def relative_gap_of(run):
    """The smallest gap at the best multipliers; without an offset they are 0."""
    arrays = run.arrays
    if np.isinf(run.upper[-1]):
        r, q = run.gradient[:-1] + run.width[:-1], -run.gradient[:-1] + run.width[:-1]
        p, m, up, low = (a[:-1] for a in arrays[1:5])
        return float(np.where(r >= 0, p * r, (p - up) * r).sum() + np.where(q >= 0, m * q, (m - low) * q).sum())
    return _core.offsets(*arrays, run.groups)[2]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_course_is_where_fewer_steps_end(kind, dtype):
    run = Run(kind, 40, dtype=dtype)
    looks = np.zeros((1, 10, 6))
    looks[0, 0] = (0, 0, run.dual(), 0, 0, 5.0)
    steps, _ = _core.smo(run.K, *run.arrays, run.groups, 1e-4, 10**6, True, looks)
    rows = looks[0, 1:][looks[0, 1:, 0] > 0]
    assert rows[:, 0].tolist() == [4**k for k in range(len(rows))]
    assert len(rows) == min(9, (int(steps).bit_length() + 1) // 2)
    assert (np.diff(rows[:, 5], prepend=5.0) >= 0).all()
    for at, primal, dual, gap, support, _ in rows:
        early = Run(kind, 40, dtype=dtype)
        early.smo(tol=1e-4, steps=int(at))
        room = 1e-9 if dtype == np.float64 else 1e-4
        assert dual == pytest.approx(early.dual(), rel=room, abs=room)
        assert support == np.count_nonzero((early.plus - early.minus)[:40])
        best = relative_gap_of(early)
        assert best - room <= primal - dual <= 1.05 * best + 1e-2 * abs(dual) + room
        assert gap == pytest.approx((primal - dual) / max(abs(primal), abs(dual)), abs=1e-12)


def test_a_course_goes_on_where_it_begins():
    run, looks = Run("svc", 40), np.zeros((1, 10, 6))
    run.smo(tol=1e-6, steps=5)
    looks[0, 0] = (5, 0, run.dual(), 0, 0, 0)
    _core.smo(run.K, *run.arrays, run.groups, 1e-6, 80, True, looks)
    assert looks[0, 1:3, 0].tolist() == [16, 64]
    with pytest.raises(ValueError, match="looks has the wrong shape"):
        _core.smo(run.K, *run.arrays, run.groups, 1e-6, 20, True, np.zeros((2, 10, 6)))


# -- many problems in one call ------------------------------------------------------------------------------


def batch(runs, K, rows, tol=1e-8, steps=10**5):
    """Solve problems on some rows of one matrix; returns the joined arrays and one row of outcomes for each."""
    start = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    arrays = [np.concatenate(a) for a in zip(*(r.arrays for r in runs), strict=True)]
    linear = np.concatenate([r.linear for r in runs])
    out = np.empty((len(runs), 8))
    row = np.concatenate(rows).astype(np.int32)
    _core.smo_batch(K, start, row, *arrays, runs[0].groups, linear, tol, steps, out)
    return start, arrays, out


def many(kind, dtype, count=6):
    """Problems on subsets of the points of one matrix."""
    rng = np.random.default_rng(8)
    K = Run("svc", 40, dtype=dtype).K
    runs, rows = [], []
    for k in range(count):
        n = int(rng.integers(2, 30))
        run, chosen = Run(kind, n, seed=k, dtype=dtype), rng.permutation(40)[:n]
        run.problem.K = K[np.ix_(chosen, chosen)].astype(np.float64)
        run.K = np.ascontiguousarray(K[np.ix_(chosen, chosen)])
        runs.append(run)
        rows.append(chosen)
    return K, runs, rows


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_batch_solves_each_problem_as_if_it_were_alone(kind, dtype):
    K, runs, rows = many(kind, dtype)
    tol = 1e-8 if dtype == np.float64 else 1e-4
    start, arrays, out = batch(runs, K, rows, tol)
    for k, run in enumerate(runs):
        at = slice(start[k], start[k + 1])
        primal, dual, rounding, kkt, plus, minus, steps, good = out[k]
        run.gradient, run.plus, run.minus = (a[at] for a in arrays[:3])
        known = referee.solve(run.problem).dual
        size = max(abs(known), 1e-3)
        assert dual == pytest.approx(run.dual(), abs=1e-9 * size)
        assert primal - dual == pytest.approx(gap(run, plus, minus), abs=1e-9 * size)
        assert good == (primal - dual - rounding <= tol * max(abs(primal), abs(dual)))
        assert kkt >= 0
        assert steps >= 0
        if good:
            assert dual == pytest.approx(known, abs=2 * tol * size)
        np.testing.assert_allclose(run.gradient, run.expected_gradient(), atol=1e-9)
    assert out[:, 7].sum() >= len(runs) - (dtype == np.float32)


def test_a_batch_that_may_not_step_says_so():
    K, runs, rows = many("svc", np.float64)
    _, arrays, out = batch(runs, K, rows, steps=0)
    assert not arrays[1].any()
    assert (out[:, 6] == 0).all()
    assert not out[:, 7].any()


def test_a_batch_of_wrong_shape_is_refused():
    K, runs, rows = many("svc", np.float64, 2)
    with pytest.raises(ValueError, match="K has the wrong shape"):
        batch(runs, K[:, :-1].copy(), rows)
    with pytest.raises(ValueError, match="out of range"):
        batch(runs, K, [rows[0], rows[1] + 40])
    with pytest.raises(ValueError, match="do not fill the vectors"):
        batch(runs, K, [rows[0], rows[1][:-1]])


# -- select -----------------------------------------------------------------------------------------------


def select(run, hot=None, old=(), fresh=8, size=100):
    hot = np.arange(len(run.plus)) if hot is None else hot
    out = np.full(size, -7, np.int32)
    count, violation = _core.select(
        *run.arrays, run.groups, np.asarray(hot, np.int32), np.asarray(old, np.int32), fresh, out
    )
    assert (out[count:] == -7).all()
    return list(out[:count]), violation


@pytest.mark.parametrize("kind", KINDS)
def test_the_most_violating_points_are_chosen_first(kind):
    rng = np.random.default_rng(4)
    for n in (10, 60, 200):
        run = Run(kind, n).scramble(rng)
        for fresh in (4, 8, 20):
            chosen, violation = select(run, fresh=fresh)
            assert violation == pytest.approx(run.violation())
            assert len(set(chosen)) == len(chosen) <= fresh
            share = fresh // (2 * run.groups)
            expected = []
            for up, down in run.slopes():
                if not down.max() > up.min():
                    continue
                growing = [i for i in np.argsort(up)[: 2 * share] if up[i] < down.max() and i not in expected]
                expected += growing[:share]
                assert int(np.argmin(up)) in chosen
                assert int(np.argmax(down)) in chosen
                shrinking = [i for i in np.argsort(-down)[: 2 * share] if down[i] > up.min() and i not in expected]
                expected += shrinking[:share]
            assert chosen == expected


def test_points_of_the_last_set_follow_the_free_ones_first():
    run = Run("svc", 50).scramble(np.random.default_rng(5))
    free = ((run.plus > 0) & (run.plus < run.upper)) | ((run.minus > 0) & (run.minus < run.lower))
    old = np.random.default_rng(6).permutation(50)[:30]
    new, _ = select(run, fresh=6)
    both, _ = select(run, old=old, fresh=6, size=100)
    rest = [i for i in old if i not in new]
    assert both == new + [i for i in rest if free[i]] + [i for i in rest if not free[i]]
    assert select(run, old=old, fresh=6, size=13)[0] == both[:13]
    assert select(run, old=old, fresh=6, size=3)[0] == both[:3]


def test_only_hot_points_are_chosen_and_measured():
    run = Run("svc", 80).scramble(np.random.default_rng(7))
    hot = np.arange(0, 80, 3)
    chosen, violation = select(run, hot=hot, fresh=10)
    assert set(chosen) <= set(hot)
    (slopes,) = run.slopes()
    assert violation == slopes[1][hot].max() - slopes[0][hot].min()
    assert select(run, hot=[], fresh=10) == ([], 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_chosen_at_the_optimum(kind):
    run = Run(kind, 30)
    run.smo(tol=1e-9)
    assert select(run)[1] == pytest.approx(run.violation(), abs=1e-15)
    assert run.violation() <= 1e-9
    run.gradient[:] = 1.0
    run.width[:] = 0.0  # no slope differs from another
    assert select(run) == ([], 0.0)


# -- offsets ----------------------------------------------------------------------------------------------


def gap(run, plus, minus):
    """The duality gap at given multipliers."""
    total = 0.0
    for part, bound, slope in (
        (run.plus, run.upper, run.gradient + run.width + plus),
        (run.minus, run.lower, run.width - run.gradient + minus),
    ):
        short = np.where(part < bound, bound - part, 0.0)
        total += (part * np.maximum(slope, 0.0)).sum() + sum(s * -r for s, r in zip(short, slope) if s > 0 and r < 0)
    return total


@each("kind", KINDS[:-1])
@each("seed", range(4))
def test_the_offsets_have_the_smallest_gap_of_all(kind, seed):
    """The gap is convex and piecewise linear: its minimum is at a kink, and every kink is tried."""
    rng = np.random.default_rng(seed)
    for n in (2, 3, 10, 40):
        run = Run(kind, n, seed).scramble(rng)
        plus, minus, found = _core.offsets(*run.arrays, run.groups)
        assert found == pytest.approx(gap(run, plus, minus), rel=1e-12, abs=1e-12)
        kinks = np.concatenate([-run.gradient - run.width, -run.gradient + run.width])
        if run.groups == 1:
            assert plus == -minus
            best = min(gap(run, b, -b) for b in kinks)
        else:
            best = min(gap(run, b, minus) for b in kinks) + min(gap(run, plus, -b) for b in kinks) - found
        assert found == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert found >= 0


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_at_the_optimum_the_gap_closes(kind):
    run = Run(kind, 40, seed=5)
    run.smo(tol=1e-10)
    assert _core.offsets(*run.arrays, run.groups)[2] <= 1e-7


def test_offsets_with_unbounded_coefficients():
    """Points without a bound must be on the right side; where no offset does that the gap is infinite."""
    plus, minus = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    upper, lower = np.array([np.inf, 0.0]), np.array([0.0, np.inf])
    for gradient, finite in (([0.2, 0.1], True), ([-0.2, 0.1], False)):
        gap = _core.offsets(np.array(gradient), plus, minus, upper, lower, np.zeros(2), 1)[2]
        assert not np.isnan(gap)
        assert (gap < np.inf) == finite


# -- arguments --------------------------------------------------------------------------------------------


def test_wrong_arguments_are_refused():
    run = Run("svc", 6)
    for k in range(6):
        arrays = list(run.arrays)
        arrays[k] = np.zeros(5)
        with pytest.raises(ValueError, match="differ in length"):
            _core.offsets(*arrays, 1)
        arrays[k] = np.zeros(6, np.float32)
        with pytest.raises(TypeError):
            _core.offsets(*arrays, 1)
        arrays[k] = np.zeros(12)[::2]
        with pytest.raises(TypeError):
            _core.offsets(*arrays, 1)
    for groups in (0, 3):
        with pytest.raises(ValueError, match="one group of variables or two"):
            _core.offsets(*run.arrays, groups)
    for K in (np.ones((6, 5)), np.ones((5, 5)), np.ones(36)):
        with pytest.raises(ValueError, match="K has the wrong shape"):
            _core.smo(K, *run.arrays, 1, 1e-3, 10, True)
    with pytest.raises(TypeError):
        _core.smo(np.ones((6, 6), int), *run.arrays, 1, 1e-3, 10, True)
    for point in (-1, 6):
        for hot, old in (([point], []), ([], [point])):
            with pytest.raises(ValueError, match="out of range"):
                select(run, hot=hot, old=old)


def test_what_is_written_must_be_writable_and_nothing_else():
    run = Run("svc", 6)
    for k, array in enumerate(run.arrays):
        array.flags.writeable = False
        if k < 3:
            with pytest.raises(TypeError):
                run.smo()
            array.flags.writeable = True
    run.K.flags.writeable = False
    assert run.smo()[0] > 0
