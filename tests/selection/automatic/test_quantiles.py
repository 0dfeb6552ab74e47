"""Conformal quantiles: that they hold as they say, equally wide for all rows or adapted to each."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import norm

from mercer import RBF, AutoRegressor, Linear, Sigmoid, load, save
from mercer.points import Points
from mercer.selection.automatic.quantiles import ResidualScale, conformal_quantiles

LEVELS = np.array([0.05, 0.5, 0.95])
SIZES = {"varies": lambda X: np.exp(0.8 * X[:, 0]), "is one": lambda X: np.ones(len(X))}


def test_conformal_quantiles_cover_at_least_what_they_say():
    """The rank k of n + 1 exchangeable numbers is uniform: P(new <= k-th of n) = k / (n + 1)."""
    residuals = np.arange(1.0, 20.0)
    for q in (0.55, 0.8, 0.93):
        assert np.searchsorted(residuals, conformal_quantiles(residuals, np.array([q]))[0], "right") / 20 >= q
    for q in (0.07, 0.2, 0.45):
        assert np.searchsorted(residuals, conformal_quantiles(residuals, np.array([q]))[0], "right") / 20 <= q


def test_conformal_quantiles_count_residuals():
    rng = np.random.default_rng(0)
    residuals, counts = np.sort(rng.normal(size=50)), rng.integers(1, 5, 50)
    q = np.linspace(0.01, 0.99, 37)
    expected = conformal_quantiles(np.repeat(residuals, counts), q)
    np.testing.assert_array_equal(conformal_quantiles(residuals, q, counts.astype(float)), expected)


# -- the scale of residuals -------------------------------------------------------------------------------


def scale_of(r, X, folds=None, counts=None, kernel=None, budget=None):
    """The scale of residuals at rows X, in whichever order they are."""
    order = np.argsort(r, kind="stable")
    folds = np.arange(len(r)) % 5 if folds is None else folds
    counts = None if counts is None else counts[order]
    return ResidualScale.of(r[order], counts, folds[order], Points(X).take(order), kernel or RBF(2.0), budget)


@pytest.fixture(scope="module", params=SIZES)
def covered(request):
    """The exact coverage of 300 rows, adaptive and constant, for 30 draws of 400 normal residuals."""
    size, found = SIZES[request.param], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(400, 3)), rng.normal(size=(300, 3))
        r = size(X) * rng.normal(size=400)
        adaptive, constant = scale_of(r, X).quantiles(new, LEVELS), conformal_quantiles(np.sort(r), LEVELS)
        found.append([norm.cdf(q / size(new)[:, None]) for q in (np.broadcast_to(adaptive, (300, 3)), constant[None])])
    return request.param, np.array([one for one, _ in found]), np.array([two for _, two in found])


def test_adaptive_quantiles_hold_as_they_say(covered):
    np.testing.assert_allclose(covered[1].mean(axis=(0, 1)), LEVELS, atol=0.01)


def test_adaptive_quantiles_hold_for_hard_and_easy_rows(covered):
    kind, adaptive, constant = covered
    missed, before = (np.abs(one - LEVELS)[..., [0, 2]].mean() for one in (adaptive, constant))
    if kind == "varies":
        assert missed < 0.5 * before
    else:  # no noise of its own
        same = (adaptive == constant).all(axis=(1, 2))
        assert same.mean() > 0.9
        assert missed < 1.1 * before


@pytest.mark.parametrize("n", [300, 1500])
def test_the_scale_of_what_it_has_not_seen_makes_the_scores(n):
    """A score is the residual in units of a scale from other folds: fits to these, by another program, say the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    r = SIZES["varies"](X) * rng.normal(size=n)
    order = np.argsort(r)
    r, X, folds = r[order], X[order], rng.integers(0, 3, n)
    scale = ResidualScale.of(r, None, folds, Points(X), RBF(1.0))
    assert scale.root is not None
    kernel, alpha = scale.root.kernel_, scale.root.alpha
    roots = np.sqrt(np.abs(r)) / np.sqrt(np.abs(r)).mean()
    some = np.arange(n) if n <= 1000 else np.linspace(0, n - 1, 1000).round().astype(int)
    left = np.empty(n)
    for k in range(3):
        rows = some[folds[some] != k]
        m = len(rows)
        bordered = np.block([[kernel(X[rows]) + alpha * np.eye(m), np.ones((m, 1))], [np.ones((1, m)), 0.0]])
        solved = np.linalg.solve(bordered, np.append(roots[rows], 0.0))
        left[folds == k] = (kernel(X, X[rows]) @ solved[:-1] + solved[-1])[folds == k]
    expected = np.sort(r / np.clip(left, scale.low, scale.high) ** 2)
    np.testing.assert_allclose(scale.scores, expected, rtol=1e-4, atol=1e-6)


def test_rows_that_were_held_out_together_do_not_tell_of_one_another():
    """Rows of a group have residuals of one size, which nothing tells of a new group."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 8)
    X = rng.normal(size=(60, 2))[group] + 0.01 * rng.normal(size=(480, 2))
    r = rng.exponential(size=60)[group] * rng.choice([-1, 1], 480)
    assert scale_of(r, X, folds=group % 5).root is None
    assert scale_of(r, X, folds=group).root is None
    assert scale_of(r, X, folds=rng.integers(0, 5, 480)).root is not None


@pytest.mark.parametrize("kernel", [RBF(1.0), Linear()])
def test_no_row_has_a_width_of_0_or_one_beyond_those_that_were_seen(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    r = np.where(X[:, 0] > 0, 3.0 * X[:, 0] ** 2, 0.0) * rng.normal(size=400)  # half of them are exactly 0
    scale = scale_of(r, X, kernel=kernel)
    low, high = scale.quantiles(np.array([[-1e6], [-9.0], [-1.0], [0.5], [9.0], [1e6]]), np.array([0.05, 0.95])).T
    assert (high > low).all()
    assert np.isfinite(high - low).all()
    assert (high - low).max() < 20 * np.abs(r).max()
    assert (high - low)[3] > 3 * (high - low)[2]


def test_quantiles_never_cross():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    scale = scale_of(SIZES["varies"](X) * rng.standard_t(2, 200), X)
    assert scale.root is not None
    found = scale.quantiles(rng.normal(scale=3.0, size=(100, 2)), np.linspace(0.001, 0.999, 400))
    assert (np.diff(found, axis=1) >= 0).all()


def test_counts_are_about_repetitions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    r, counts, folds = SIZES["varies"](X) * rng.normal(size=400), rng.integers(1, 4, 400), np.arange(400) % 5
    again, new = np.repeat(np.arange(400), counts), rng.normal(size=(50, 2))
    counted = scale_of(r, X, folds, counts.astype(float)).quantiles(new, LEVELS[[0, 2]])
    np.testing.assert_allclose(counted, scale_of(r[again], X[again], folds[again]).quantiles(new, LEVELS[[0, 2]]), 0.1)
    assert not np.allclose(counted, scale_of(r, X, folds).quantiles(new, LEVELS[[0, 2]]), 0.1)


def test_a_score_counts_for_the_rows_that_its_residual_counts_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    r, marks = SIZES["varies"](X) * rng.normal(size=200), 1e-6 * np.arange(200)
    scale = scale_of(r, X, counts=1.0 + marks)
    assert scale.root is not None
    rows = np.rint((scale.counts - 1.0) * 1e6).astype(int)  # each mark names its row
    sizes = r[rows] / scale.scores
    assert np.corrcoef(np.log(sizes), X[rows, 0])[0, 1] > 0.8


def test_where_nothing_can_be_learned_all_widths_are_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    r = SIZES["varies"](X) * rng.normal(size=300)
    assert scale_of(r, X).root is not None
    assert scale_of(r[:30], X[:30]).root is None
    assert scale_of(np.zeros(300), X).root is None
    assert scale_of(r, np.ones((300, 2))).root is None
    assert scale_of(r, X, budget=20_000).root is None  # 28 rows
    assert scale_of(r, X, budget=500_000).root is not None
    assert scale_of(r, X, folds=np.zeros(300, dtype=int)).root is not None  # a search that was ended after one fold
    assert scale_of(r, sparse.csr_array(X)).root is not None
    found = scale_of(r, X, kernel=Sigmoid(1.0, -1.0)).quantiles(X, LEVELS)  # which is no kernel
    assert np.isfinite(found).all()


# -- the model --------------------------------------------------------------------------------------------


def noisy(n=300, seed=0):
    """Numbers with noise whose size depends on a column that the mean does not depend on; and the true law."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(X[:, 0]) + 0.3 * np.exp(X[:, 1]) * rng.normal(size=n)


def model_of(X, y, **fit):
    pairs = [(np.flatnonzero(np.arange(len(y)) % 5 != k), np.flatnonzero(np.arange(len(y)) % 5 == k)) for k in range(5)]
    return AutoRegressor(kernels=[RBF(2.0)], cv=pairs).fit(X, y, **fit)


@pytest.fixture(scope="module")
def model():
    return model_of(*noisy())


def test_adaptive_quantiles_of_a_model_hold_as_they_say():
    found = []
    for seed in range(10):
        machine, (X, _) = model_of(*noisy(500, seed)), noisy(500, seed + 100)
        centre, size = np.sin(X[:, :1]), 0.3 * np.exp(X[:, 1:])
        ways = (machine.predict_quantiles(X, LEVELS, adaptive=way) for way in (True, False))
        found.append([norm.cdf((q - centre) / size)[:, [0, 2]] for q in ways])
    adaptive, constant = np.swapaxes(found, 0, 1)
    np.testing.assert_allclose(adaptive.mean(axis=(0, 1)), LEVELS[[0, 2]], atol=0.01)
    missed, before = (np.abs(one - LEVELS[[0, 2]]).mean() for one in (adaptive, constant))
    assert missed < 0.6 * before


def test_the_scale_does_not_depend_on_the_order_of_rows(model):
    X, y = noisy()
    order = np.random.default_rng(1).permutation(300)
    place = np.argsort(order)
    pairs = [(place[train], place[test]) for train, test in model.cv]
    other = AutoRegressor(kernels=[RBF(2.0)], cv=pairs).fit(X[order], y[order])
    found = other.predict_quantiles(X, LEVELS, adaptive=True)
    np.testing.assert_allclose(found, model.predict_quantiles(X, LEVELS, adaptive=True), rtol=1e-4, atol=1e-4)


def test_widths_are_in_the_unit_of_the_target(model):
    X, y = noisy()
    found = model_of(X, 1e6 * y + 1e7).predict_quantiles(X, LEVELS, adaptive=True)
    np.testing.assert_allclose((found - 1e7) / 1e6, model.predict_quantiles(X, LEVELS, True), rtol=1e-4, atol=1e-4)


def test_quantiles_that_are_not_adaptive_are_as_wide_for_every_row(model):
    X, _ = noisy()
    before = model.predict_quantiles(X, LEVELS)
    adaptive = model.predict_quantiles(X, LEVELS, adaptive=True)
    np.testing.assert_array_equal(model.predict_quantiles(X, LEVELS, adaptive=False), before)
    np.testing.assert_allclose(before - model.predict(X)[:, None], np.tile(before[0] - model.predict(X[:1]), (300, 1)))
    assert np.ptp(adaptive[:, 2] - adaptive[:, 0]) > 1.0


def test_a_fit_forgets_the_scale_of_the_last(model):
    X, y = noisy()
    machine = model_of(X, y)
    machine.predict_quantiles(X, adaptive=True)
    machine.fit(X[:, ::-1], y)
    fresh = model_of(X[:, ::-1], y)
    np.testing.assert_array_equal(
        machine.predict_quantiles(X, adaptive=True), fresh.predict_quantiles(X, adaptive=True)
    )


def test_rows_of_weight_0_have_no_say(model):
    X, y = noisy()
    strange = np.vstack([np.full((3, 2), 1.5), X]), np.append(np.full(3, 1e3), y)
    pairs = [(train + 3, np.append(test + 3, [0, 1, 2])) for train, test in model.cv]
    weights = np.append(np.zeros(3), np.ones(300))
    other = AutoRegressor(kernels=[RBF(2.0)], cv=pairs).fit(*strange, sample_weight=weights)
    found = other.predict_quantiles(X, LEVELS, adaptive=True)
    np.testing.assert_allclose(found, model.predict_quantiles(X, LEVELS, adaptive=True), rtol=1e-4, atol=1e-4)


def test_logarithms_have_widths_that_are_factors():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = np.exp(3 * X[:, 0] + 0.2 * np.exp(1.5 * X[:, 1]) * rng.normal(size=400))
    machine = model_of(X, y)
    assert machine.target_scale_ == "log"
    low, high = machine.predict_quantiles([[0.0, -0.9], [0.0, 0.9]], [0.05, 0.95], adaptive=True).T
    assert (low > 0).all()
    assert np.log(high / low)[1] > 3 * np.log(high / low)[0]


def test_few_rows_and_constant_targets(model):
    X, y = noisy(20)
    for target in (y, np.full(20, 3.0)):
        machine = AutoRegressor(cv=3).fit(X, target)
        np.testing.assert_array_equal(machine.predict_quantiles(X, adaptive=True), machine.predict_quantiles(X))
    X, _ = noisy(200)
    machine = model_of(X, np.full(200, 3.0))
    np.testing.assert_allclose(machine.predict_quantiles(X, adaptive=True), 3.0, rtol=1e-6)
    hurried = AutoRegressor(time_limit=0.01).fit(*noisy(500))
    assert np.isfinite(hurried.predict_quantiles(X, adaptive=True)).all()


def test_tables_with_prose():
    rng = np.random.default_rng(0)
    loud = rng.uniform(size=200) < 0.5
    said = ["".join(rng.choice(list("abcdefgh "), 60)) + (" loud" * 3 if one else " calm" * 3) for one in loud]
    X = pd.DataFrame({"a": rng.normal(size=200), "said": said})
    machine = AutoRegressor(cv=3, search_rows=200).fit(X, np.where(loud, 3.0, 0.1) * rng.normal(size=200) + X["a"])
    found = machine.predict_quantiles(X, [0.05, 0.95], adaptive=True)
    assert (found[:, 0] < found[:, 1]).all()


def test_models_from_files_answer_the_same(model, tmp_path):
    X, y = noisy()
    fresh = model_of(X, y)
    save(fresh, tmp_path / "before.mercer")
    expected = fresh.predict_quantiles(X, LEVELS, adaptive=True)
    save(fresh, tmp_path / "after.mercer")
    for name in ("before", "after"):
        again = load(tmp_path / f"{name}.mercer")
        np.testing.assert_array_equal(again.predict_quantiles(X, LEVELS, adaptive=True), expected)
    assert np.ptp(expected[:, 2] - expected[:, 0]) > 1.0


def test_models_of_older_versions_say_what_they_lack(tmp_path):
    X, y = noisy()
    old = model_of(X, y)
    expected = old.predict_quantiles(X)
    del old.residual_rows_, old.residual_folds_
    save(old, tmp_path / "old.mercer")
    again = load(tmp_path / "old.mercer")
    np.testing.assert_array_equal(again.predict_quantiles(X), expected)
    with pytest.raises(ValueError, match=r"this model is of an older version.*; fit it again, or take quantiles that"):
        again.predict_quantiles(X, adaptive=True)


def test_what_adaptive_may_be(model):
    with pytest.raises(ValueError, match="adaptive='yes' must be True or False"):
        model.predict_quantiles(noisy()[0], adaptive="yes")
