"""Kernels learned by gradients: refits without each sample, scikit-learn's likelihood and a grid are the referees."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor as TheirProcess
from sklearn.gaussian_process import kernels as theirs
from sklearn.linear_model import LogisticRegression

from mercer import (
    RBF,
    SVC,
    SVR,
    Constant,
    Delta,
    GaussianProcessRegressor,
    KernelPCA,
    KernelRidge,
    KernelSearchCV,
    Linear,
    Matern,
    Polynomial,
)
from mercer.gram import parameters, with_parameters
from mercer.points import Points
from mercer.selection import learn_kernel
from mercer.selection.learning.learner import spread_scales
from mercer.solvers.gp.likelihood import Profile


def draw(n, features=6, seed=0):
    """Two features that matter, differently, and some that do not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    return X, np.sin(3 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


X, y = draw(80)


def brute(model, X, y):
    """Return the mean squared error where each sample is predicted by a fit to the others."""
    total = 0.0
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        found = model.fit(X[rest], y[rest]).predict(X[i : i + 1])
        total += np.mean((found - y[i]) ** 2)
    return total / len(X)


# -- leaving one out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True], ids=["plain", "intercept"])
def test_the_error_is_that_of_refits_and_no_neighbour_is_better(intercept):
    few, targets = X[:40], y[:40] + 3.0 * intercept
    start = KernelRidge(fit_intercept=intercept, residual=1e-10)
    learned = learn_kernel(start, 1.0 * RBF(2.0) + 0.1 * Linear(), few, targets)
    model = KernelRidge(learned.parameters["alpha"], kernel=learned.kernel, fit_intercept=intercept, residual=1e-10)
    assert learned.value == pytest.approx(brute(model, few, targets), rel=1e-5)
    assert learned.value == pytest.approx(np.mean(learned.estimator.loo_residuals() ** 2), rel=1e-6)
    assert learned.estimator.alpha == learned.parameters["alpha"]
    assert learned.estimator.kernel_ == learned.kernel
    first = KernelRidge(1, kernel=1.0 * RBF(2.0) + 0.1 * Linear(), fit_intercept=intercept, residual=1e-10)
    assert learned.start == pytest.approx(brute(first, few, targets), rel=1e-5)
    theta = np.array([p.value for p in parameters(learned.kernel)])
    for i in range(len(theta)):
        for step in (0.9, 1.1):
            moved = theta.copy()
            moved[i] *= step
            other = model.set_params(kernel=with_parameters(learned.kernel, moved)).fit(few, targets)
            assert np.mean(other.loo_residuals() ** 2) >= learned.value * (1 - 1e-4)


def test_scales_for_each_feature_find_those_that_matter():
    learned = learn_kernel(KernelRidge(), "RBF", X, y, "loo", ard=True)
    scales = np.array(learned.kernel.scale)
    assert scales[0] < 1.5 < scales[1] < 40
    assert scales[2:].min() > 3 * scales[1]
    assert "features hardly count" in learned.account
    assert "scale[0]" in learned.account
    assert learned.value < 0.3 * learned.start
    assert learned.history[-1][1] >= learned.value * (1 - 1e-9)
    assert {rows for rows, _, _ in learned.history} == {80}


def test_gradients_beat_the_grid_where_features_are_irrelevant():
    train, test = draw(100, 8, seed=1), draw(400, 8, seed=2)
    grid = KernelSearchCV(KernelRidge(), [RBF]).fit(*train)
    worst = 0.5 * np.mean((grid.predict(test[0]) - test[1]) ** 2)
    for objective in ("loo", "likelihood"):
        learned = learn_kernel(KernelRidge(), RBF(), *train, objective, ard=True)
        assert np.mean((learned.estimator.predict(test[0]) - test[1]) ** 2) < worst


def test_classes_are_learned_too():
    labels = np.where(X[:, 0] ** 2 + 0.2 * X[:, 1] > 0.6, "far", "near")
    learned = learn_kernel(SVC(C=10.0), RBF(), X, labels, "loo", ard=True)
    assert isinstance(learned.estimator, SVC)
    assert learned.estimator.C == 10.0
    assert "SVC has its own parameters as given" in learned.account
    codes = np.where(labels == "near", 1.0, -1.0)
    ridge = KernelRidge(learned.parameters["alpha"], kernel=learned.kernel, fit_intercept=True, residual=1e-10)
    assert learned.value == pytest.approx(brute(ridge, X, codes), rel=1e-4)
    new, _ = draw(500, seed=5)
    truth = np.where(new[:, 0] ** 2 + 0.2 * new[:, 1] > 0.6, "far", "near")
    plain = SVC(C=10.0).fit(X, labels)
    assert learned.estimator.score(new, truth) > plain.score(new, truth) + 0.05
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    assert np.array(learn_kernel(SVC(), RBF(), X, three, ard=True).kernel.scale).argmin() == 0


def test_several_targets_count_together():
    both = np.c_[y, X[:, 2] ** 2]
    learned = learn_kernel(KernelRidge(residual=1e-10), RBF(), X, both)
    assert learned.value == pytest.approx(np.mean(learned.estimator.loo_residuals() ** 2), rel=1e-6)


def test_the_unit_of_the_targets_does_not_matter():
    first = learn_kernel(KernelRidge(), RBF(), X, y)
    second = learn_kernel(KernelRidge(), RBF(), X, 1e140 * y)
    assert second.kernel.scale == pytest.approx(first.kernel.scale, rel=1e-6)
    assert second.value == pytest.approx(1e280 * first.value, rel=1e-6)
    by = [learn_kernel(KernelRidge(), RBF(), X, c * y, "likelihood") for c in (1.0, 1e140)]
    assert by[0].kernel.scale == pytest.approx(by[1].kernel.scale, rel=1e-6)
    assert by[0].value - by[1].value == pytest.approx(80 * np.log(1e140))


def test_tables_and_other_kernels():
    table = pd.DataFrame({"age": X[:, 0], "town": np.where(X[:, 1] > 0, "Bern", "Rome"), "income": X[:, 2]})
    kernel = 1.0 * RBF(1.0).on(["age", "income"]) * (Constant(0.5) + Delta().on("town"))
    learned = learn_kernel(KernelRidge(), kernel, table, y, ard=True)
    assert learned.value > learned.start
    assert len(learned.kernel.left.base.base.scale) == 2
    assert np.isfinite(learned.estimator.predict(table)).all()
    assert learn_kernel(SVR(), Matern(2.5), X, y).value > 0
    assert learn_kernel(KernelRidge(), Polynomial(2), X, y).value > 0


# -- a Gaussian process -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ard", [False, True], ids=["one scale", "each"])
def test_the_likelihood_is_that_of_scikit_learn_and_stationary(ard):
    learned = learn_kernel(GaussianProcessRegressor(), 1.0 * RBF(2.0), X, y, ard=ard)
    assert learned.objective == "likelihood"
    p, k = learned.parameters, learned.kernel
    scale = np.array(k.base.scale)
    their = theirs.ConstantKernel(k.factor) * theirs.RBF(scale) + theirs.WhiteKernel(p["noise"])
    process = TheirProcess(their, alpha=0.0, optimizer=None).fit(X, y)
    value, slopes = process.log_marginal_likelihood(process.kernel_.theta, eval_gradient=True)
    assert learned.value == pytest.approx(value, rel=1e-8)
    assert np.abs(slopes).max() < 0.05
    assert learned.estimator.noise_ == pytest.approx(p["noise"])
    assert learned.estimator.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-8)
    assert np.isfinite(learned.estimator.predict(X[:3], return_std=True)[1]).all()


def test_densities_are_better_than_those_of_the_likelihood():
    by = {o: learn_kernel(GaussianProcessRegressor(), 1.0 * RBF(2.0), X, y, o) for o in ("likelihood", "density")}
    means = {o: found.estimator.loo_log_density().mean() for o, found in by.items()}
    assert by["density"].value == pytest.approx(means["density"], rel=1e-6)
    assert means["density"] >= means["likelihood"] - 1e-6


def test_known_noise_is_kept():
    noise = np.linspace(0.005, 0.02, len(X))
    learned = learn_kernel(GaussianProcessRegressor(noise=noise), 1.0 * RBF(2.0), X, y)
    assert list(learned.parameters) == ["factor", "base__scale"]
    np.testing.assert_array_equal(learned.estimator.noise_, noise)
    some = learn_kernel(GaussianProcessRegressor(noise=noise), 1.0 * RBF(2.0), X, y, rows=40)
    assert "40 rows drawn at random" in some.account


@pytest.mark.parametrize("kernel", [1.5 * RBF([0.8, 2.0]) + 0.3 * Linear(), RBF(1.0)], ids=str)
def test_the_best_amplitude_is_the_best(kernel):
    points, Y = X[:30, :2], np.c_[y[:30], X[:30, 2]]
    profile = Profile(Points(points), Y)
    found = profile.factor(kernel, 0.2).likelihood
    M = kernel(points) + 0.2 * np.eye(30)
    best = np.sum(Y * np.linalg.solve(M, Y)) / Y.size
    law = multivariate_normal(cov=best * M)
    assert found == pytest.approx(law.logpdf(Y[:, 0]) + law.logpdf(Y[:, 1]), rel=1e-10)
    profile.factor(kernel, 0.2)
    slopes, noise = profile.gradient(kernel)
    theta, h = np.array([p.value for p in parameters(kernel)]), 1e-5

    def at(change, more=0.0):
        return profile.factor(with_parameters(kernel, theta + change), 0.2 + more).likelihood

    wanted = [(at(step) - at(-step)) / (2 * h) for step in h * np.eye(len(theta))]
    np.testing.assert_allclose(slopes, wanted, rtol=1e-5, atol=1e-6)
    assert noise.sum() == pytest.approx((at(0, h) - at(0, -h)) / (2 * h), rel=1e-5)


def test_ridge_can_use_the_likelihood():
    learned = learn_kernel(KernelRidge(fit_intercept=True), 1.0 * RBF(2.0), X, y + 100.0, "likelihood")
    process = learn_kernel(GaussianProcessRegressor(), 1.0 * RBF(2.0), X, y - y.mean())
    assert learned.value == pytest.approx(process.value, abs=0.01)
    ratios = [found.parameters[name] / found.kernel.factor for found, name in ((learned, "alpha"), (process, "noise"))]
    assert ratios[0] == pytest.approx(ratios[1], rel=0.05)
    assert learned.kernel.base.scale == pytest.approx(process.kernel.base.scale, rel=0.05)


# -- what is asked for ------------------------------------------------------------------------------------


def test_bounds_fixed_and_restarts():
    learned = learn_kernel(KernelRidge(), RBF(2.0), X, y, bounds={"scale": (1.5, 1.6), "alpha": (0.5, 0.7)})
    assert 1.5 <= learned.kernel.scale <= 1.6
    assert 0.5 <= learned.estimator.alpha <= 0.7
    assert "bound" in learned.account
    kept = learn_kernel(KernelRidge(alpha=0.3), 1.0 * RBF(2.0), X, y, fixed=["alpha", "factor"])
    assert (kept.estimator.alpha, kept.kernel.factor) == (0.3, 1.0)
    assert "Kept: factor (as asked), alpha (as asked)" in kept.account
    several = learn_kernel(KernelRidge(), RBF(300.0), X, y, restarts=4)
    again = learn_kernel(KernelRidge(), RBF(300.0), X, y, restarts=4)
    assert several.kernel == again.kernel
    assert several.value <= learn_kernel(KernelRidge(), RBF(300.0), X, y).value * (1 + 1e-6)
    one = learn_kernel(KernelRidge(), RBF(2.0), X, y, ard=True, fixed=["scale[3]"])
    assert one.kernel.scale[3] == 2.0
    assert min(one.kernel.scale[:3]) != 2.0
    assert "Kept: scale[3] (as asked)" in one.account


def test_rows_and_budget_and_time():
    many, targets = draw(300)
    learned = learn_kernel(KernelRidge(), RBF(), many, targets, rows=80)
    assert "on 80 rows drawn at random" in learned.account
    assert learned.estimator.X_fit_.shape == (300, 6)
    small = learn_kernel(KernelRidge(), RBF(), many, targets, budget="512 kB")
    assert "113 rows" in small.account
    with pytest.raises(MemoryError, match=r"learning on 300 rows would need .* take rows=113"):
        learn_kernel(KernelRidge(), RBF(), many, targets, rows=300, budget="512 kB")
    staged = learn_kernel(KernelRidge(), RBF(), *draw(600), max_iter=3)
    assert len({rows for rows, _, _ in staged.history}) > 1
    assert staged.value == pytest.approx(np.mean(staged.estimator.loo_residuals() ** 2), rel=1e-3)
    hurried = learn_kernel(KernelRidge(), RBF(), X, y, time_limit=0.0)
    assert "ended early (time_limit=0 s reached)" in hurried.account
    assert hurried.value == pytest.approx(hurried.start)
    assert "max_iter=1 reached" in learn_kernel(KernelRidge(), RBF(), X, y, max_iter=1).account


@pytest.mark.parametrize("model", [KernelRidge(fit_intercept=True), SVR(), KernelRidge()], ids=str)
def test_constant_targets_keep_the_kernel(model):
    constant = np.zeros(80) if model.get_params().get("fit_intercept") is False else np.full(80, 4.2)
    learned = learn_kernel(model, RBF(2.0), X, constant)
    assert learned.kernel == RBF(2.0)
    assert "targets are constant" in learned.account
    np.testing.assert_allclose(learned.estimator.predict(X[:3]), constant[:3], atol=1e-6)


@pytest.mark.filterwarnings("ignore:the fit stopped early")  # which says how far rounding lets it go
def test_ill_conditioned_data_have_an_answer():
    twice = np.vstack([X, X])
    for targets in (np.r_[y, y], np.r_[y, y + 1.0]):
        learned = learn_kernel(KernelRidge(alpha=1e-9), RBF(50.0), twice, targets)
        assert np.isfinite(learned.value)
    wide = learn_kernel(KernelRidge(), RBF(), X * np.logspace(-8, 8, 6), y, ard=True)
    assert np.isfinite(wide.kernel.scale).all()
    still = learn_kernel(KernelRidge(), RBF(1.0), np.c_[X, np.ones(80)], y, ard=True)
    assert still.value > still.start
    exact = learn_kernel(KernelRidge(alpha=1e-3), Linear(), X, X[:, 0])
    assert exact.value < 1e-10


@pytest.mark.parametrize(
    ("arguments", "kind", "sentence"),
    [
        ({"objective": "best"}, ValueError, "objective must be one of 'auto', 'loo', 'density', 'likelihood'"),
        ({"kernel": "RBG"}, ValueError, "did you mean RBF"),
        ({"kernel": 3}, TypeError, "kernel must be a kernel object"),
        ({"estimator": LogisticRegression()}, TypeError, "a classifier or regressor of mercer that has a kernel"),
        ({"estimator": KernelPCA()}, TypeError, "a classifier or regressor of mercer that has a kernel"),
        ({"estimator": KernelRidge(alpha=[1.0, 2.0])}, ValueError, "learn_kernel learns one"),
        ({"kernel": Linear(), "ard": True}, ValueError, r"ard=True, but Linear\(\) has no scale"),
        ({"bounds": {"size": (1, 2)}}, ValueError, "bounds names 'size', which is no parameter"),
        ({"bounds": {"scale": (2, 1)}}, ValueError, "0 < low <= high"),
        ({"rows": 2}, ValueError, "rows must be a whole number >= 3"),
    ],
)
def test_wrong_parameters_are_named(arguments, kind, sentence):
    given = {"estimator": KernelRidge(), "kernel": RBF(), **arguments}
    with pytest.raises(kind, match=sentence):
        learn_kernel(given.pop("estimator"), given.pop("kernel"), X, y, **given)


def test_too_little_to_learn_from():
    with pytest.raises(ValueError, match="takes more than n_samples=1"):
        learn_kernel(KernelRidge(), RBF(1.0), X[:1], y[:1])
    with pytest.raises(ValueError, match="one class only, 'a'"):
        learn_kernel(SVC(), RBF(1.0), X, np.full(80, "a"))


def test_scales_are_spread_where_they_stand():
    points = Points(np.ones((3, 4)))
    assert spread_scales(RBF([1.0, 2.0, 3.0, 4.0]), points) == RBF([1.0, 2.0, 3.0, 4.0])
    assert spread_scales(2.0 * (Matern(1.5, 3.0).on([1, 2]) + Linear()), points) == 2.0 * (
        Matern(1.5, [3.0, 3.0]).on([1, 2]) + Linear()
    )
