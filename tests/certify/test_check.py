"""The independent check against Clarabel's optima and each model's objective as a textbook writes it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import referee
from cases import each
from mercer.certify import check_svm
from mercer.kernels import RBF, FromFunction, Linear

MODELS = ("svc", "no_offset", "svr", "one_class", "nu_svc", "nu_svr")


def draw(model, seed, n=24):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    K = RBF(scale=1.2)(X)
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    target = X[:, 0] + 0.3 * rng.normal(size=n)
    weight = rng.uniform(0.5, 2.0, size=n)
    nu = 0.8 * min((y > 0).mean(), (y < 0).mean())
    problem = {
        "svc": lambda: referee.svc(K, y, 1.5 * weight),
        "no_offset": lambda: referee.no_offset(K, y, 2.0 * weight),
        "svr": lambda: referee.svr(K, target, 1.2, 0.1),
        "one_class": lambda: referee.one_class(K, 0.3),
        "nu_svc": lambda: referee.nu_svc(K, y, nu),
        "nu_svr": lambda: referee.nu_svr(K, target, 1.0, 0.4),
    }[model]()
    return X, y, target, problem


def textbook(model, problem, y, target, b, offset, half_width):
    """The primal as the model's own page writes it."""
    K, n = problem.K, len(problem.K)
    f = K @ b + offset
    norm = 0.5 * b @ K @ b
    C = problem.upper + problem.lower
    if model in ("svc", "no_offset"):
        return norm + C @ np.maximum(0, 1 - y * f)
    if model == "svr":
        return norm + problem.upper @ np.maximum(0, np.abs(f - target) - problem.width)
    if model == "one_class":
        return norm + np.maximum(0, -f).sum() - -offset * problem.total
    if model == "nu_svc":
        nu = 2 * problem.total[0] / n
        return norm - nu * n * half_width + np.maximum(0, half_width - y * f).sum()
    C, epsilon = problem.upper[0], -half_width
    over, under = np.maximum(0, f - target - epsilon), np.maximum(0, target - f - epsilon)
    return norm + 2 * problem.total[0] * epsilon + C * (over + under).sum()


def feasible(problem, rng):
    """Any point of the box with the prescribed sums, far from the optimum."""
    n = len(problem.K)
    if problem.offset == "none":
        return problem.upper * rng.uniform(size=n), problem.lower * rng.uniform(size=n)

    def fill(high, total):
        low, top = 0.0, 1e12
        raw = high * rng.uniform(0.01, 1, size=n)
        for _ in range(200):
            middle = np.sqrt(max(low, 1e-12) * top)
            low, top = (low, middle) if np.minimum(raw * middle, high).sum() > total else (middle, top)
        return np.minimum(raw * top, high)

    if problem.offset == "split":
        return fill(problem.upper, problem.total[0]), fill(problem.lower, problem.total[1])
    if not problem.lower.any():
        return fill(problem.upper, problem.total), 0 * problem.lower
    half = 0.3 * min(problem.upper.sum(), problem.lower.sum())
    return fill(problem.upper, half), fill(problem.lower, half)


@each("model", MODELS)
@each("seed", range(4))
def test_clarabels_optimum_has_no_gap(model, seed):
    X, y, target, problem = draw(model, seed)
    best = referee.solve(problem)
    found = check_svm(RBF(scale=1.2), X, **problem.arguments(), **best.arguments(), tol=1e-7)
    scale = max(1.0, abs(found.primal))
    assert abs(found.gap) <= 1e-8 * scale
    assert found.converged or abs(found.primal) < 1e-6
    assert found.dual == pytest.approx(best.dual, rel=1e-7, abs=1e-8)
    b = best.plus - best.minus
    assert found.primal == pytest.approx(
        textbook(model, problem, y, target, b, best.offset, best.half_width), rel=1e-10, abs=1e-10
    )


@pytest.mark.parametrize("model", MODELS)
@given(seed=st.integers(0, 10**6), offset=st.floats(-3, 3), half=st.floats(-1, 1))
def test_weak_duality_holds_point_by_point(model, seed, offset, half):
    X, y, target, problem = draw(model, seed % 50)
    offset = 0.0 if problem.offset == "none" else offset
    half = half if problem.offset == "split" else 0.0
    p, m = feasible(problem, np.random.default_rng(seed))
    given_ = {"plus": p, "minus": m, "offset": offset, "half_width": half}
    found = check_svm(RBF(scale=1.2), X, **problem.arguments(), **given_)
    primal = textbook(model, problem, y, target, p - m, offset, half)
    dual = -(0.5 * (p - m) @ problem.K @ (p - m) + problem.linear @ (p - m) + problem.width * (p + m).sum())
    assert found.gap == pytest.approx(primal - dual, rel=1e-7, abs=1e-7)
    F = problem.K @ (p - m) + problem.linear
    up, down = (offset - half, -offset - half) if problem.offset == "split" else (offset, -offset)
    terms = 0.0
    for a, high, r in ((p, problem.upper, F + problem.width + up), (m, problem.lower, -F + problem.width + down)):
        term = a * r + high * np.maximum(0, -r)
        assert (term >= -1e-12).all()
        terms += term.sum()
    assert found.gap == pytest.approx(terms, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_slackness_is_met_at_the_optimum_and_missed_elsewhere(model):
    X, _, _, problem = draw(model, 1)
    best = referee.solve(problem, tol=1e-13)
    for part, high in ((best.plus, problem.upper), (best.minus, problem.lower)):
        part[part < 1e-6] = 0.0
        part[part > high - 1e-6] = high[part > high - 1e-6]
    loose = problem.arguments() | {"total": _sums(problem, best)}
    found = check_svm(RBF(scale=1.2), X, **loose, **best.arguments())
    assert found.kkt < 1e-4
    p, m = feasible(problem, np.random.default_rng(0))
    far = check_svm(RBF(scale=1.2), X, **problem.arguments(), plus=p, minus=m, offset=best.offset)
    assert far.kkt > 1e-2
    assert not far.converged
    assert far.stopped == "the gap is larger than tol"


def _sums(problem, best):
    if problem.offset == "split":
        return best.plus.sum(), best.minus.sum()
    return best.plus.sum() - best.minus.sum()


@pytest.mark.parametrize("model", MODELS)
def test_a_corrupted_coefficient_is_caught(model):
    X, _, _, problem = draw(model, 2)
    best = referee.solve(problem)
    i = int(np.argmax(problem.upper > 0))
    given_ = best.arguments()
    given_["plus"] = best.plus.copy()
    given_["plus"][i] = problem.upper[i] * 1.001
    with pytest.raises(ValueError, match=rf"plus\[{i}\] = .* lies outside its box"):
        check_svm(RBF(scale=1.2), X, **problem.arguments(), **given_)
    given_["plus"][i] = -1e-6
    with pytest.raises(ValueError, match="not feasible"):
        check_svm(RBF(scale=1.2), X, **problem.arguments(), **given_)
    given_["plus"][i] = abs(best.plus[i] - 0.5 * problem.upper[i])
    if problem.offset == "none":
        assert check_svm(RBF(scale=1.2), X, **problem.arguments(), **given_).gap > 1e-3
    else:
        with pytest.raises(ValueError, match="the sum of plus"):
            check_svm(RBF(scale=1.2), X, **problem.arguments(), **given_)


def test_another_kernel_or_other_data_are_caught():
    X, _, _, problem = draw("svc", 3)
    best = referee.solve(problem)
    fine = check_svm(RBF(scale=1.2), X, **problem.arguments(), **best.arguments(), tol=1e-6)
    assert fine.converged
    assert fine.solver == "independent check"
    assert not check_svm(RBF(scale=1.1), X, **problem.arguments(), **best.arguments(), tol=1e-6).converged
    assert not check_svm(RBF(scale=1.2), X[::-1], **problem.arguments(), **best.arguments(), tol=1e-6).converged


@pytest.mark.parametrize("seed", range(3))
def test_hard_margin(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 2))
    y = np.where(X @ [1.0, -2.0] > 0.3, 1.0, -1.0)
    X += 0.3 * y[:, None] * [1.0, -2.0]
    problem = referee.svc(X @ X.T, y, np.inf)
    best = referee.solve(problem)
    found = check_svm(Linear(), X, **problem.arguments(), **best.arguments())
    assert 0 <= found.gap + 1e-9 <= 1e-6 * found.primal + 2e-9
    w = X.T @ (best.plus - best.minus)
    margin = (y * (X @ w + best.offset)).min()
    assert found.primal == pytest.approx(0.5 * w @ w / margin**2)
    worse = best.arguments() | {"plus": 0.9 * best.plus, "minus": 0.9 * best.minus}
    assert check_svm(Linear(), X, **problem.arguments(), **worse).gap > 1e-3 * found.primal
    wrong = best.arguments() | {"offset": best.offset + 100.0}
    assert check_svm(Linear(), X, **problem.arguments(), **wrong).primal == np.inf


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("model", ["svc", "svr"])
def test_rounding_bounds_what_exact_arithmetic_would_change(model, size):
    X, y, target, problem = draw(model, 5)
    X = np.round(X, 3) * size
    p, m = feasible(problem, np.random.default_rng(0))
    found = check_svm(Linear(), X, **problem.arguments(), plus=p, minus=m, offset=0.3)
    exact = np.array([[Fraction(v) for v in row] for row in X.tolist()])
    b = np.array([Fraction(v) for v in (p - m).tolist()])
    w = exact.T @ b
    f = exact @ w + Fraction(0.3)
    if model == "svc":
        loss = sum(Fraction(c) * max(0, 1 - Fraction(t) * v) for c, t, v in zip(problem.upper + problem.lower, y, f))
        dual = sum(abs(v) for v in b) - w @ w / 2
    else:
        epsilon = Fraction(problem.width)
        loss = sum(Fraction(c) * max(0, abs(Fraction(t) - v) - epsilon) for c, t, v in zip(problem.upper, target, f))
        dual = -w @ w / 2 + b @ np.array([Fraction(t) for t in target]) - epsilon * Fraction((p + m).sum())
    gap = float(w @ w / 2 + loss - dual)
    # The sum of b is 0 up to rounding, and enters times the offset.
    assert abs(found.gap - gap) <= found.rounding + 1e-13 * (abs(found.primal) + abs(found.dual))
    assert found.rounding < 1e-9 * found.primal


def test_hard_tube():
    X = np.linspace(0, 1, 12)[:, None]
    y = np.sin(3 * X[:, 0])
    problem = referee.svr(RBF(0.5)(X), y, np.inf, 0.1)
    best = referee.solve(problem)
    arguments = problem.arguments() | {"width": 0.1 + 1e-7}  # Clarabel's f leaves the tube by its own tolerance
    inside = check_svm(RBF(0.5), X, **arguments, **best.arguments())
    assert abs(inside.gap) <= 1e-4 * inside.primal
    assert inside.dual == pytest.approx(best.dual, rel=1e-4)
    arguments["width"] = 0.05
    assert check_svm(RBF(0.5), X, **arguments, **best.arguments()).primal == np.inf


def test_objects_are_points_too():
    words = ["ab", "abc", "bcd", "xyz", "xy", "zxy"]
    y = np.array([1.0, 1, 1, -1, -1, -1])
    k = FromFunction(shared)
    problem = referee.svc(k(words), y, 1.0)
    assert check_svm(k, words, **problem.arguments(), **referee.solve(problem).arguments(), tol=1e-6).converged


def shared(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"plus": [0.0, np.nan]}, r"plus\[1\] is nan; coefficients must be finite"),
        ({"plus": [[0.0]]}, "plus has shape"),
        ({"minus": [0.0]}, "plus has 2 entries and minus has 1"),
        ({"linear": [1.0, 2.0, 3.0]}, "linear has shape"),
        ({"linear": np.nan}, "linear contains NaN"),
        ({"offset_kind": "both"}, "'free', 'split' or 'none'"),
        ({"offset_kind": "split"}, "pair of sums"),
        ({"total": (1.0, 1.0)}, "one number"),
        ({"total": 1.0}, "prescribes 1"),
    ],
)
def test_what_is_not_a_problem_gets_a_sentence(change, message):
    fine = {"plus": [0.0, 0.0], "minus": [0.0, 0.0], "linear": 0.0, "upper": 1.0, "lower": 1.0}
    assert check_svm(Linear(), [[0.0], [1.0]], **fine).gap == 0
    with pytest.raises(ValueError, match=message):
        check_svm(Linear(), [[0.0], [1.0]], **fine | change)
