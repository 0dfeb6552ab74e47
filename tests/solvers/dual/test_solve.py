"""The dual solver against Clarabel, on every kind of problem and both ways of solving it."""

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mercer.solvers.dual.decomposition as decomposition
import mercer.solvers.dual.problem as problem_module
import referee
from mercer import RBF, FromFunction, Gram, Laplacian, Linear, Polynomial, Sigmoid
from mercer.certify import check_svm
from mercer.solvers import Control, Infeasible, SVMDual, plan, solve

KERNELS = [RBF(), RBF(0.2), Linear(), Polynomial(3, 1.0, 0.3), Laplacian(2.0)]


@pytest.fixture
def small_sets(monkeypatch):
    """Decompose even tiny problems, into working sets of a few points."""
    monkeypatch.setattr(problem_module, "WHOLE", 0)
    monkeypatch.setattr(decomposition, "_SMALLEST", 6)
    monkeypatch.setattr(problem_module, "LARGEST", 12)


def as_svm(problem, kernel, X):
    """The referee's problem as ours, from a feasible start."""
    n = len(problem.K)
    plus, minus = np.zeros(n), np.zeros(n)
    if problem.offset == "split":
        plus, minus = fill(problem.upper, problem.total[0]), fill(problem.lower, problem.total[1])
    elif problem.total:
        plus = fill(problem.upper, problem.total)
    return SVMDual(
        Gram(kernel, X),
        problem.linear,
        problem.upper,
        problem.lower,
        problem.width,
        problem.offset,
        plus,
        minus,
    )


def fill(bound, total):
    """Coefficients up to the bound, first points first, that sum to the total."""
    before = np.concatenate([[0.0], np.cumsum(bound)[:-1]])
    return np.clip(total - before, 0.0, bound)


@st.composite
def problems(draw):
    """Any of the models, on any of the kernels, with duplicates, constant columns and weights."""
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, draw(st.integers(1, 5)))) * draw(st.sampled_from([1.0, 1e-3, 30.0]))
    if draw(st.booleans()):
        X = X[rng.integers(0, max(1, n // 2), n)]
    if draw(st.booleans()):
        X[:, 0] = 1.0
    y = np.where(rng.random(n) < draw(st.sampled_from([0.5, 0.1])), -1.0, 1.0)
    y[0], y[-1] = 1.0, -1.0
    kernel = draw(st.sampled_from(KERNELS))
    K = kernel(X)
    C = draw(st.sampled_from([1e-3, 1.0, 50.0]))
    weights = rng.random(n) + 0.1 if draw(st.booleans()) else np.ones(n)
    kind = draw(st.sampled_from(["svc", "none", "svr", "one", "nusvc", "nusvr"]))
    if kind == "svc":
        problem = referee.svc(K, y, C * weights)
    elif kind == "none":
        problem = referee.no_offset(K, y, C * weights)
    elif kind == "svr":
        problem = referee.svr(K, y + rng.normal(size=n), C, draw(st.sampled_from([0.0, 0.1, 3.0])))
    elif kind == "one":
        problem = referee.one_class(K, draw(st.sampled_from([0.1, 0.5, 1.0])))
    elif kind == "nusvc":
        smaller = min((y > 0).sum(), (y < 0).sum())
        problem = referee.nu_svc(K, y, draw(st.sampled_from([0.3, 1.0])) * 2 * smaller / n)
    else:
        problem = referee.nu_svr(K, y + rng.normal(size=n), C, draw(st.sampled_from([0.1, 0.5, 1.0])))
    return problem, kernel, X


def agrees(problem, kernel, X, tol=1e-8):
    """Whether our dual value is Clarabel's, and our certificate is the independent check's."""
    (ours,) = solve([as_svm(problem, kernel, X)], Control(tol=tol))
    theirs = referee.solve(problem)
    found = ours.certificate
    # Where the optimum is 0, or nearly, the referee's own rounding is the measure.
    weight = (ours.plus + ours.minus).sum()
    size = max(
        abs(theirs.dual) if theirs.solved else 0.0, abs(found.dual), 1e-5 * np.abs(problem.K).max() * weight**2, 1e-3
    )
    rounding = 8 * np.finfo(float).eps * np.abs(problem.K) @ (ours.plus + ours.minus)  # of each value of f
    lost = float((problem.upper + problem.lower) @ rounding)
    if found.stopped == "converged":
        assert found.relative_gap <= tol
    else:
        assert found.stopped.startswith(("at the limit of float64", "the gap has not halved"))
        assert found.gap <= 1e-6 * size + lost or not theirs.solved
    # By weak duality and the gap it is not above the optimum either.
    assert found.dual >= theirs.dual - 1e-7 * size or not theirs.solved
    checked = check_svm(
        kernel,
        X,
        plus=ours.plus,
        minus=ours.minus,
        offset=ours.offset,
        half_width=ours.half_width,
        tol=tol,
        **problem.arguments(),
    )
    assert checked.dual == pytest.approx(found.dual, rel=1e-9, abs=1e-9 * size)
    assert checked.primal == pytest.approx(found.primal, rel=1e-7, abs=1e-7 * size + lost)
    assert checked.gap <= 2e-8 * size or found.stopped != "converged"


@settings(max_examples=150, deadline=None)
@given(problems())
def test_the_whole_matrix_agrees_with_clarabel(made):
    agrees(*made)


@pytest.mark.usefixtures("small_sets")
@settings(max_examples=100, deadline=None)
@given(problems())
def test_decomposition_agrees_with_clarabel(made):
    problem, _, _ = made
    assume(np.abs(problem.K).max() * max(problem.upper.max(), problem.lower.max()) < 1e4)  # few points at a time crawl
    agrees(*made)


@pytest.mark.long
@settings(max_examples=2000, deadline=None)
@given(problems())
def test_two_thousand_problems_agree_with_clarabel(made):
    agrees(*made)


def blobs(n, d=5, seed=0, apart=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return rng.normal(size=(n, d)) + apart * y[:, None] / np.sqrt(d), y


def svc(X, y, C=1.0, kernel=None, **start):
    return SVMDual(Gram(kernel or RBF(2.0), X), -y, np.where(y > 0, C, 0.0), np.where(y < 0, C, 0.0), **start)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_both_ways_reach_the_same_solution(C, tol):
    X, y = blobs(3500)
    (large,) = solve([svc(X, y, C)], Control(tol=tol))
    assert large.certificate.solver == "decomposition"
    assert large.certificate.relative_gap <= tol
    checked = check_svm(
        RBF(2.0),
        X,
        plus=large.plus,
        minus=large.minus,
        offset=large.offset,
        linear=-y,
        upper=np.where(y > 0, C, 0.0),
        lower=np.where(y < 0, C, 0.0),
        tol=tol,
    )
    assert checked.relative_gap <= 1.5 * tol, "float32 must not hide a gap"
    (whole,) = solve([svc(X[:2500], y[:2500], C)], Control(tol=tol))
    (parts,) = solve([svc(X[:2500], y[:2500], C)], Control(tol=tol, precision="float64"))
    assert whole.certificate.dual == pytest.approx(parts.certificate.dual, rel=2 * tol)


@pytest.mark.usefixtures("small_sets")
def test_a_start_near_the_solution_is_used():
    X, y = blobs(300)
    (first,) = solve([svc(X, y)], Control(tol=1e-8))
    (again,) = solve([svc(X, y, plus=first.plus, minus=first.minus)], Control(tol=1e-7))
    assert again.certificate.iterations == 0
    assert np.array_equal(again.plus, first.plus)


def test_an_infeasible_start_is_refused():
    X, y = blobs(20)
    with pytest.raises(ValueError, match=r"plus\[3\] = 7 is outside \[0, "):
        solve([svc(X, y, plus=7.0 * (np.arange(20) == 3))])


@pytest.mark.parametrize("n", [40, 3200])
def test_a_limit_returns_the_best_so_far_with_its_certificate(n):
    X, y = blobs(n)
    (found,) = solve([svc(X, y, 100.0)], Control(max_iter=20))
    assert found.certificate.stopped == "max_iter=20 reached"
    assert found.certificate.iterations <= 20
    assert found.certificate.dual > 0
    assert found.certificate.gap > 0
    (found,) = solve([svc(X, y, 100.0)], Control(time_limit=0.0))
    assert found.certificate.stopped == "time_limit=0 s reached"


@pytest.mark.parametrize("count", [1, 5])
def test_an_interruption_returns_what_there_is(monkeypatch, count):
    X, y = blobs(3200)
    real, calls = decomposition._core.smo, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(decomposition._core, "smo", interrupted)
    found = solve([svc(X, y, 10.0)] * count, Control())
    assert len(found) == count
    assert found[0].certificate.stopped == "interrupted"
    assert all(np.isfinite(s.certificate.dual) for s in found)


def test_another_thread_can_cancel(monkeypatch):
    X, y = blobs(3200)
    control = Control(tol=1e-12)
    real, calls = decomposition._core.smo, []

    def cancelled(*args):
        calls.append(1)
        if len(calls) == 2:
            thread = threading.Thread(target=control.cancel)
            thread.start()
            thread.join()
        return real(*args)

    monkeypatch.setattr(decomposition._core, "smo", cancelled)
    (found,) = solve([svc(X, y, 1e4, RBF(0.5))], control)
    assert found.certificate.stopped == "interrupted"
    assert len(calls) <= 3


def test_a_checkpoint_resumes_to_the_same_solution(tmp_path):
    X, y = blobs(3200)
    path = tmp_path / "fit.npz"
    (cut,) = solve([svc(X, y, 10.0)], Control(max_iter=300, checkpoint=path))
    assert cut.certificate.stopped != "converged"
    assert path.exists()
    (resumed,) = solve([svc(X, y, 10.0)], Control(checkpoint=path, tol=1e-7))
    (straight,) = solve([svc(X, y, 10.0)], Control(tol=1e-7))
    assert not path.exists()
    assert resumed.certificate.dual == pytest.approx(straight.certificate.dual, rel=2e-7)
    assert np.abs(resumed.values - straight.values).max() < 2e-2


def test_a_checkpoint_of_another_problem_is_refused(tmp_path):
    X, y = blobs(100)
    path = tmp_path / "fit.npz"
    solve([svc(X, y, 10.0)], Control(max_iter=3, checkpoint=path))
    with pytest.raises(ValueError, match="belongs to another problem"):
        solve([svc(X, -y, 10.0)], Control(checkpoint=path))
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="cannot be read"):
        solve([svc(X, y, 10.0)], Control(checkpoint=path))


@pytest.mark.parametrize("n", [60, 3200])
def test_a_hard_margin_separates_or_says_why_not(n):
    X, y = blobs(n, d=3, apart=20.0)
    hard = svc(X, y, np.inf, Linear())
    (found,) = solve([hard], Control(tol=1e-6))
    assert found.certificate.relative_gap <= 1e-6
    assert (y * found.values).min() > 1 - 1e-3
    width = 2 / np.sqrt(2 * found.certificate.dual)
    assert 0 < width < 40
    y[:3] *= -1
    with pytest.raises(Infeasible, match=r"no margin is wider than .* are no farther apart") as caught:
        solve([svc(X, y, np.inf, Linear())], Control(tol=1e-3))
    b = caught.value.coefficients
    assert abs(b.sum()) < 1e-6 * np.abs(b).sum()
    assert (b * y >= 0).all()
    # The two mixtures of points that the evidence names are as close as it says.
    assert np.linalg.norm(b @ X) / (np.abs(b).sum() / 2) < 1e-3 * np.abs(X).max()


def test_one_point_with_two_labels_is_no_hard_margin():
    X = np.array([[0.0], [1.0], [1.0]])
    with pytest.raises(
        Infeasible, match=r"a mixture of \d points of one class .* are no farther apart. Use a finite C"
    ):
        solve([svc(X, np.array([1.0, 1.0, -1.0]), np.inf)])


@pytest.mark.parametrize("n", [80, 3100])
def test_an_indefinite_kernel_ends(n):
    X, y = blobs(n)
    (found,) = solve([svc(X, y, 10.0, Sigmoid(2.0, -1.0))], Control(time_limit=20, max_iter=200_000))
    assert np.isfinite(found.values).all()


def test_objects_and_python_kernels():
    words = ["kernel", "colonel", "kernels", "margin", "margins", "martin"] * 4
    y = np.array([1.0, 1, 1, -1, -1, -1] * 4)
    same = FromFunction(lambda a, b: float(len(set(a) & set(b))))
    (found,) = solve([SVMDual(Gram(same, words), -y, np.where(y > 0, 1.0, 0.0), np.where(y < 0, 1.0, 0.0))])
    assert (y * found.values > 0).all()


def test_a_python_kernel_decomposes_too(small_sets):
    X, y = blobs(60)
    dot = FromFunction(lambda a, b: float(a @ b))
    (found,) = solve([svc(X, y, kernel=dot)], Control(tol=1e-6))
    (known,) = solve([svc(X, y, kernel=Linear())], Control(tol=1e-6))
    assert found.certificate.dual == pytest.approx(known.certificate.dual, rel=1e-5)


def test_points_that_float32_cannot_tell_apart_are_compared_in_float64():
    X, y = blobs(3100)
    (near,) = solve([svc(X, y)], Control(tol=1e-5))
    (far,) = solve([svc(X + 1e7, y)], Control(tol=1e-5))
    assert far.certificate.precision == "float64"
    assert far.certificate.dual == pytest.approx(near.certificate.dual, rel=1e-4)


def test_progress_is_told_and_can_stop():
    X, y = blobs(3200)
    seen = []
    solve([svc(X, y, 100.0)], Control(report=seen.append))
    assert seen[-1].gap <= 1e-3
    assert all(a.iteration <= b.iteration for a, b in pairwise(seen))
    (found,) = solve([svc(X, y, 100.0)], Control(report=lambda p: True))
    assert found.certificate.stopped == "stopped by the callback"


def test_the_plan_is_one_sentence_with_its_memory():
    X, y = blobs(100)
    assert plan([svc(X, y)]) == "SMO on the whole matrix in float64, 78.12 KiB: 100 points fit in one working set."
    X, y = blobs(5000)
    text = plan([svc(X, y)] * 3)
    assert text.startswith("3 problems of up to 5000 points, side by side: decomposition in float32")


def test_a_tight_budget_is_kept():
    X, y = blobs(4000)
    problem = svc(X, y)
    problem.gram = Gram(RBF(2.0), X, budget="300 kB")
    (found,) = solve([problem])
    assert found.certificate.relative_gap <= 1e-3


def test_order_of_the_points_does_not_matter():
    X, y = blobs(400)
    order = np.random.default_rng(1).permutation(400)
    (one,) = solve([svc(X, y)], Control(tol=1e-9))
    (two,) = solve([svc(X[order], y[order])], Control(tol=1e-9))
    assert two.coefficients == pytest.approx(one.coefficients[order], abs=1e-4)
    assert two.values == pytest.approx(one.values[order], abs=1e-5)


def test_nothing_to_learn():
    X, y = blobs(50)
    (flat,) = solve([SVMDual(Gram(RBF(), X), 0 * y, y * 0 + 1, y * 0 + 1)])
    assert not flat.coefficients.any()
    assert flat.certificate.relative_gap == 0


def test_a_listener_may_fit_another_model():
    X, y = blobs(700)
    (alone,) = solve([svc(X, y, 100.0)], Control(tol=1e-7, precision="float64"))
    inner = []

    def listen(progress):
        if not inner:
            inner.append(solve([svc(-2 * X, y)]))

    (heard,) = solve([svc(X, y, 100.0)], Control(tol=1e-7, precision="float64", report=listen))
    assert inner
    assert heard.certificate.dual == pytest.approx(alone.certificate.dual, rel=1e-7)
