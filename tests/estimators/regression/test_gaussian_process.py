"""Gaussian process regression: scikit-learn, kernel ridge and fits without a sample are the referees."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.gaussian_process.kernels as sk
from scipy import sparse
from scipy.linalg import LinAlgWarning
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor as Referee

from cases import each
from checks import assert_no_fault
from mercer import GaussianProcessRegressor, KernelRidge
from mercer.estimators.regression import process
from mercer.kernels import RBF, Constant, FromFunction, Linear, Matern, Periodic, Precomputed, RationalQuadratic
from mercer.rkhs import RKHSFunction
from mercer.solvers.gp import posterior as gp_posterior

rng = np.random.default_rng(0)
X, T = rng.normal(size=(60, 2)), rng.normal(size=(15, 2))
y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=60)
both = np.c_[y, 50 + 10 * np.cos(X[:, 1])]

PAIRS = {
    "scaled": (2.0 * RBF(scale=0.7), sk.ConstantKernel(2.0) * sk.RBF(0.7)),
    "per feature": (1.5 * RBF(scale=[0.7, 2.0]), sk.ConstantKernel(1.5) * sk.RBF([0.7, 2.0])),
    "sum": (
        1.0 * Matern(nu=2.5, scale=1.2) + 0.3 * Linear() + Constant(0.2),
        sk.ConstantKernel(1.0) * sk.Matern(1.2, nu=2.5)
        + sk.ConstantKernel(0.3) * sk.DotProduct(1e-9, "fixed")
        + sk.ConstantKernel(0.2),
    ),
    "product": (
        0.8 * (RationalQuadratic(alpha=0.5, scale=1.5 * 0.5**0.5) * Matern(nu=1.5, scale=[2.0, 3.0])),
        sk.ConstantKernel(0.8)
        * sk.RationalQuadratic(length_scale=1.5 * 0.5**0.5, alpha=0.5)
        * sk.Matern([2.0, 3.0], nu=1.5),
    ),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
@pytest.mark.parametrize("normalize", [False, True], ids=["as given", "normalised"])
def test_predictions_are_those_of_scikit_learn(pair, normalize):
    ours, theirs = pair
    np.testing.assert_allclose(ours(X), theirs(X), atol=1e-9)
    for target in (y, both):
        model = GaussianProcessRegressor(ours, noise=0.05, optimizer=None, normalize_y=normalize).fit(X, target)
        referee = Referee(theirs, alpha=0.05, optimizer=None, normalize_y=normalize).fit(X, target)
        for asked in ({"return_std": True}, {"return_cov": True}):
            for found, expected in zip(model.predict(T, **asked), referee.predict(T, **asked), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(model.predict(T), referee.predict(T), rtol=1e-7)
        assert model.log_marginal_likelihood_value_ == pytest.approx(referee.log_marginal_likelihood_value_, rel=1e-8)
        assert model.kernel_ == ours
        assert model.certificate_.converged
        assert model.certificate_.verify(X, target).converged


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_likelihood_and_gradient_are_those_of_scikit_learn(pair):
    ours, theirs = pair
    theirs = theirs + sk.WhiteKernel(0.05)
    model = GaussianProcessRegressor(ours, noise=0.05, optimizer=None).fit(X, y)
    referee = Referee(theirs, alpha=0.0, optimizer=None).fit(X, y)
    value, slopes = referee.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    assert model.log_marginal_likelihood() == pytest.approx(value)
    again, gradient = model.log_marginal_likelihood(model.theta_, eval_gradient=True)
    assert again == pytest.approx(value)
    np.testing.assert_allclose(np.sort(gradient), np.sort(slopes), rtol=1e-6, atol=1e-6)  # in another order
    moved = model.theta_ + 0.3
    expected = Referee(theirs.clone_with_theta(theirs.theta + 0.3), alpha=0.0, optimizer=None).fit(X, y)
    assert model.log_marginal_likelihood(moved) == pytest.approx(expected.log_marginal_likelihood_value_)
    with pytest.raises(ValueError, match=r"theta has shape \(1,\); there are \d free parameters: .*noise"):
        model.log_marginal_likelihood([0.0])


def test_the_search_is_no_worse_than_scikit_learn():
    model = GaussianProcessRegressor(1.0 * RBF(scale=[1.0, 1.0]), n_restarts_optimizer=2).fit(X, y)
    kernel = sk.ConstantKernel(1.0) * sk.RBF([1.0, 1.0]) + sk.WhiteKernel(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        referee = Referee(kernel, n_restarts_optimizer=2, random_state=0).fit(X, y)
    assert model.log_marginal_likelihood_value_ >= referee.log_marginal_likelihood_value_ - 5e-3
    assert len(model.history_) == model.n_iter_
    assert model.history_["likelihood"].max() >= model.log_marginal_likelihood_value_ - 1e-9
    np.testing.assert_allclose(np.exp(model.theta_), list(model.parameters_.values()))
    assert list(model.parameters_) == model.theta_names_
    assert "4 parameters by the likelihood of all 60 rows, from 3 starts" in model.plan_


def test_the_mean_is_kernel_ridge():
    for noise in (0.05, rng.uniform(0.01, 0.3, 60)):
        model = GaussianProcessRegressor(2.0 * Matern(nu=1.5, scale=0.7), noise=noise, optimizer=None).fit(X, y)
        weights = None if np.ndim(noise) == 0 else 0.05 / noise
        ridge = KernelRidge(0.05, kernel=2.0 * Matern(nu=1.5, scale=0.7), residual=1e-10).fit(X, y, weights)
        np.testing.assert_allclose(model.predict(T), ridge.predict(T), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(model.dual_coef_, ridge.dual_coef_, rtol=1e-6, atol=1e-8)


def test_the_mean_is_a_function():
    model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), normalize_y=True).fit(X, y)
    assert isinstance(model.function_, RKHSFunction)
    np.testing.assert_allclose(model.function_(T), model.predict(T))
    several = GaussianProcessRegressor(2.0 * RBF(scale=0.7), normalize_y=True).fit(X, both)
    np.testing.assert_allclose(several.function_(T), several.predict(T))


# -- with noise and without -----------------------------------------------------------------------------


def test_noise_is_added_for_targets_only():
    model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.05, optimizer=None, normalize_y=True).fit(X, y)
    mean, quiet = model.predict(T, return_std=True, of="function")
    same, noisy = model.predict(T, return_std=True, of="target")
    np.testing.assert_array_equal(mean, same)
    np.testing.assert_allclose(noisy**2 - quiet**2, 0.05 * y.var())
    _, cov = model.predict(T, return_cov=True)
    _, more = model.predict(T, return_cov=True, of="target")
    np.testing.assert_allclose(more - cov, 0.05 * y.var() * np.eye(len(T)), atol=1e-12)
    np.testing.assert_allclose(model.predict(T, return_std=True)[1], quiet)
    with pytest.raises(ValueError, match="of='y' must be 'function'"):
        model.predict(T, return_std=True, of="y")
    with pytest.raises(RuntimeError, match="At most one"):
        model.predict(T, return_std=True, return_cov=True)


def test_log_density():
    for target in (y, both):
        model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), normalize_y=True).fit(X, target)
        new = np.cos(T[:, 0]) if target.ndim == 1 else np.c_[np.cos(T[:, 0]), 50 + T[:, 1]]
        mean, std = model.predict(T, return_std=True, of="target")
        np.testing.assert_allclose(model.log_density(T, new), norm(mean, std).logpdf(new))
        with pytest.raises(ValueError, match="they must agree"):
            model.log_density(T, new[:3])


def test_noise_of_each_sample():
    noise = np.where(X[:, 0] > 0, 1.0, 0.01)
    model = GaussianProcessRegressor(1.0 * RBF(scale=1.0), noise=noise).fit(X, y)
    referee = Referee(sk.ConstantKernel(1.0) * sk.RBF(1.0), alpha=noise).fit(X, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(referee.log_marginal_likelihood_value_, abs=5e-3)
    np.testing.assert_allclose(model.predict(T, return_std=True)[1], referee.predict(T, return_std=True)[1], rtol=1e-2)
    assert model.certificate_.verify(X, y).converged
    with pytest.raises(ValueError, match="that of new points is not known"):
        model.predict(T, return_std=True, of="target")
    with pytest.raises(ValueError, match="noise has 60 entries and there are 59 samples"):
        clone(model).fit(X[1:], y[1:])


# -- scikit-learn's parameters ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", [y, both], ids=["one", "two"])
@pytest.mark.parametrize("alpha", [0.05, np.linspace(0.01, 0.5, 60)], ids=["number", "each"])
def test_alpha_is_scikit_learn_s(alpha, target):
    ours, theirs = PAIRS["scaled"]
    referee = Referee(theirs, alpha=alpha, optimizer=None, normalize_y=True).fit(X, target)
    for solver in ("cholesky", "cg"):
        model = GaussianProcessRegressor(ours, alpha=alpha, optimizer=None, normalize_y=True, solver=solver)
        model.fit(X, target)
        for found, expected in zip(model.predict(T, return_std=True), referee.predict(T, return_std=True), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4 if solver == "cg" else 1e-6)
    model.set_params(solver="cholesky").fit(X, target)
    for name in ("X_train_", "y_train_", "alpha_", "L_"):
        np.testing.assert_allclose(getattr(model, name), getattr(referee, name), rtol=1e-7, atol=1e-9)
    assert model.certificate_.verify(X, target).converged
    searched = Referee(theirs, alpha=alpha).fit(X, y)
    model = GaussianProcessRegressor(ours, alpha=alpha, tuning_rows=60).fit(X, y)
    assert model.theta_names_ == ["factor", "base__scale"]  # alpha is kept
    slopes = model.log_marginal_likelihood(model.theta_, eval_gradient=True)[1]
    assert np.abs(slopes).max() < 1e-3  # of few rows; both end at the top
    assert model.log_marginal_likelihood_value_ >= searched.log_marginal_likelihood_value_ - 1e-3
    np.testing.assert_allclose(model.theta_, searched.kernel_.theta, atol=1e-3)
    value, slopes = searched.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    again, gradient = model.log_marginal_likelihood(theirs.theta, eval_gradient=True)
    assert again == pytest.approx(value)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6)


def test_alpha_stands_beside_the_noise():
    alpha = np.linspace(0.001, 0.005, 60)
    theirs = PAIRS["scaled"][1] + sk.WhiteKernel(0.05)
    referee = Referee(theirs, alpha=alpha).fit(X, y)
    model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.05, alpha=alpha).fit(X, y)
    assert model.log_marginal_likelihood_value_ == pytest.approx(referee.log_marginal_likelihood_value_, abs=1e-2)
    np.testing.assert_allclose(model.noise_, alpha + model.parameters_["noise"])
    few = clone(model).set_params(tuning_rows=30).fit(X, y)
    assert len(few.noise_) == 60


def test_alpha_and_the_noise_are_one_thing_to_the_mean():
    noise = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.05, optimizer=None).fit(X, y)
    alpha = GaussianProcessRegressor(2.0 * RBF(scale=0.7), alpha=[0.05], optimizer=None).fit(X, y)
    np.testing.assert_array_equal(noise.predict(T), alpha.predict(T))
    np.testing.assert_array_equal(
        noise.predict(T, return_std=True, of="target")[1], alpha.predict(T, return_std=True, of="target")[1]
    )
    fresh = GaussianProcessRegressor(2.0 * RBF(scale=0.7), alpha=0.05)
    np.testing.assert_allclose(fresh.predict(T, return_std=True, of="target")[1], np.sqrt(2.05))


def test_no_kernel_is_scikit_learn_s():
    model, referee = GaussianProcessRegressor(None, alpha=0.01), Referee(alpha=0.01)
    for found, expected in zip(model.predict(T, return_cov=True), referee.predict(T, return_cov=True), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    model.set_params(optimizer=None).fit(X, y)
    assert model.kernel_ == 1.0 * RBF(1.0)
    np.testing.assert_allclose(model.predict(T), Referee(alpha=0.01, optimizer=None).fit(X, y).predict(T), rtol=1e-7)
    assert model.set_params(optimizer="fmin_l_bfgs_b").fit(X, y).kernel_ != 1.0 * RBF(1.0)


@pytest.mark.parametrize("n_targets", [None, 1, 3])
def test_before_a_fit_the_process_is_the_answer(n_targets):
    model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), n_targets=n_targets)
    referee = Referee(PAIRS["scaled"][1], n_targets=n_targets)
    for asked in ({"return_std": True}, {"return_cov": True}):
        for found, expected in zip(model.predict(T, **asked), referee.predict(T, **asked), strict=True):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, atol=1e-12)
    assert model.predict(T).shape == referee.predict(T).shape
    assert model.sample_y(T, 4).shape == referee.sample_y(T, 4).shape
    with pytest.raises(NotFittedError):
        GaussianProcessRegressor("precomputed").predict(np.eye(3))


@pytest.mark.parametrize("normalize", [False, True], ids=["as given", "normalised"])
def test_one_column_is_flat(normalize):
    flat = GaussianProcessRegressor(2.0 * RBF(scale=0.7), alpha=0.05, optimizer=None, normalize_y=normalize).fit(X, y)
    column = clone(flat).fit(X, y[:, None])
    referee = Referee(PAIRS["scaled"][1], alpha=0.05, optimizer=None, normalize_y=normalize).fit(X, y[:, None])
    for asked in ({"return_std": True}, {"return_cov": True}):
        for f, c, r in zip(*(m.predict(T, **asked) for m in (flat, column, referee)), strict=True):
            assert f.shape == c.shape == r.shape
            np.testing.assert_array_equal(f, c)
    assert column.sample_y(T, 4).shape == referee.sample_y(T, 4).shape
    np.testing.assert_array_equal(column.loo_log_density(), flat.loo_log_density())
    np.testing.assert_array_equal(column.log_density(X, y[:, None]), flat.log_density(X, y))
    assert column.certificate_.verify(X, y[:, None]).converged


def test_the_first_of_several_columns_is_drawn_as_if_it_were_alone():
    several = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.1, optimizer=None).fit(X, both)
    alone = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.1, optimizer=None).fit(X, y)
    np.testing.assert_allclose(several.sample_y(T, 5)[:, 0], alone.sample_y(T, 5))


def test_an_optimizer_of_one_s_own():
    calls = []

    def optimizer(objective, theta, bounds):
        calls.append(theta)
        value, slopes = objective(theta)
        assert value == objective(theta, eval_gradient=False)
        for i in range(len(theta)):
            step = 1e-5 * np.eye(len(theta))[i]
            numeric = (objective(theta + step, False) - objective(theta - step, False)) / 2e-5
            assert slopes[i] == pytest.approx(numeric, rel=1e-4, abs=1e-4)
        assert (bounds[:, 0] < theta).all()
        assert (theta < bounds[:, 1]).all()
        found = minimize(objective, theta, jac=True, bounds=bounds, method="L-BFGS-B")
        return found.x, found.fun

    kernel = 2.0 * RBF(scale=0.7)
    own = GaussianProcessRegressor(kernel, optimizer=optimizer, n_restarts_optimizer=2, noise=0.05).fit(X, y)
    best = GaussianProcessRegressor(kernel, noise=0.05).fit(X, y)
    assert len(calls) == 3
    assert own.log_marginal_likelihood_value_ == pytest.approx(best.log_marginal_likelihood_value_, abs=1e-3)
    assert own.theta_bounds_.shape == (3, 2)
    assert (own.theta_bounds_[:, 0] <= own.theta_).all()
    stay = GaussianProcessRegressor(kernel, optimizer=lambda f, theta, bounds: (theta, 0.0), noise=0.05).fit(X, y)
    np.testing.assert_allclose(stay.theta_, np.log([2.0, 0.7, 0.05]))


def test_what_changes_nothing_is_said():
    with pytest.warns(UserWarning, match="copy_X_train=False changes nothing in GaussianProcessRegressor"):
        model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), alpha=0.1, copy_X_train=False).fit(X, y)
    with pytest.warns(UserWarning, match="clone_kernel=False changes nothing"):
        assert model.log_marginal_likelihood(model.theta_, clone_kernel=False) == model.log_marginal_likelihood()
    with pytest.raises(AttributeError, match="conjugate gradients have made no factor"):
        _ = GaussianProcessRegressor(alpha=0.1, optimizer=None, solver="cg").fit(X, y).L_


# -- draws ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["function", "target"])
@pytest.mark.parametrize("prior", [False, True], ids=["posterior", "prior"])
def test_draws_have_the_moments_they_should(of, prior):
    model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.2, optimizer=None, normalize_y=True).fit(X, y)
    draws = model.sample_y(T[:4], 20_000, random_state=1, of=of, prior=prior)
    mean, cov = model.predict(T[:4], return_cov=True, of=of)
    if prior:
        noise = 0.2 if of == "target" else 0.0
        mean, cov = np.full(4, y.mean()), (2.0 * RBF(scale=0.7)(T[:4]) + noise * np.eye(4)) * y.var()
    assert draws.shape == (4, 20_000)
    error = np.sqrt(cov.diagonal() / 20_000)
    assert (np.abs(draws.mean(axis=1) - mean) < 5 * error).all()
    assert (np.abs(np.cov(draws) - cov) < 5 * np.sqrt(2) * np.outer(error, error) * 20_000**0.5).all()
    np.testing.assert_array_equal(draws, model.sample_y(T[:4], 20_000, random_state=1, of=of, prior=prior))


def test_draws_of_several_columns_and_without_a_fit():
    model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.2, normalize_y=True, optimizer=None).fit(X, both)
    draws = model.sample_y(T, 500)
    assert draws.shape == (len(T), 2, 500)
    np.testing.assert_allclose(draws.mean(axis=2), model.predict(T), atol=1.0)
    ratio = draws[:, 1].std(axis=1) / draws[:, 0].std(axis=1)
    np.testing.assert_allclose(ratio, both[:, 1].std() / y.std(), rtol=0.3)  # each column in its own units
    fresh = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.2)
    assert fresh.sample_y(T, 3, prior=True).shape == (len(T), 3)
    assert np.isfinite(fresh.sample_y(T, 3, prior=True, of="target")).all()
    np.testing.assert_array_equal(fresh.sample_y(T), fresh.sample_y(T, prior=True))
    with pytest.raises(ValueError, match="needs its variance, and before a fit noise='auto' is none"):
        GaussianProcessRegressor(2.0 * RBF(scale=0.7)).sample_y(T, prior=True, of="target")
    with pytest.raises(ValueError, match="no draws from a precomputed matrix"):
        GaussianProcessRegressor("precomputed").sample_y(T, prior=True)


# -- leaving one out ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [y, both], ids=["one", "two"])
def test_leaving_one_out_is_a_refit(target):
    kernel = 2.0 * RBF(scale=0.7)
    model = GaussianProcessRegressor(kernel, noise=0.05, optimizer=None).fit(X, target)
    mean, std = model.loo_predict()
    density = model.loo_log_density()
    assert density.shape == target.shape
    for i in (0, 7, 59):
        without = np.arange(60) != i
        refit = GaussianProcessRegressor(kernel, noise=0.05, optimizer=None).fit(X[without], target[without])
        expected = refit.predict(X[i : i + 1], return_std=True, of="target")
        np.testing.assert_allclose(mean[i], expected[0][0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(std[i], expected[1][0], rtol=1e-6)
        np.testing.assert_allclose(density[i], refit.log_density(X[i : i + 1], target[i : i + 1])[0], rtol=1e-6)


def test_leaving_one_out_of_normalised_targets():
    model = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.05, optimizer=None, normalize_y=True).fit(X, both)
    plain = GaussianProcessRegressor(2.0 * RBF(scale=0.7), noise=0.05, optimizer=None)
    plain.fit(X, (both - both.mean(axis=0)) / both.std(axis=0))
    np.testing.assert_allclose(model.loo_log_density(), plain.loo_log_density() - np.log(both.std(axis=0)))
    mean, std = model.loo_predict()
    np.testing.assert_allclose(norm(mean, std).logpdf(both), model.loo_log_density())


# -- parameters -----------------------------------------------------------------------------------------


def test_a_bound_that_is_reached_is_named():
    with pytest.warns(ConvergenceWarning, match=r"base__scale\[1\] is at its upper bound 0.9.*Widen `bounds`") as seen:
        GaussianProcessRegressor(
            1.0 * RBF(scale=[0.5, 0.5]), bounds={"base__scale[1]": (0.1, 0.9), "noise": (1e-4, 1.0)}
        ).fit(X, y)
    assert seen[0].filename == __file__


def test_what_is_fixed_stays():
    model = GaussianProcessRegressor(1.0 * RBF(scale=0.5), noise=0.03, fixed=["noise", "factor"]).fit(X, y)
    assert model.noise_ == 0.03
    assert model.kernel_.factor == 1.0
    assert model.kernel_.base.scale != 0.5
    assert model.theta_names_ == ["base__scale"]
    assert "held: factor (as asked), noise (as asked)" in model.plan_
    nothing = GaussianProcessRegressor(RBF(scale=0.5), noise=0.03, fixed=["noise", "scale"]).fit(X, y)
    assert "parameters as given" in nothing.plan_
    assert nothing.log_marginal_likelihood(eval_gradient=True)[1].shape == (0,)


def test_zero_does_not_move_and_that_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(Matern(nu=0.5, scale=1.0) + Constant(0.0), noise=0.0).fit(X, y)
    assert model.noise_ == 0
    assert model.kernel_.right.value == 0
    assert "right__value (it is 0, and a logarithmic scale has no zero)" in model.plan_
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)  # without noise f passes through the targets
    assert model.predict(X, return_std=True)[1].max() < 1e-4


def test_named_kernels_start_from_the_data():
    for name, kind in (("rbf", RBF), ("matern", Matern), ("linear", Linear)):
        model = GaussianProcessRegressor(name, optimizer=None).fit(X, 100 * y)
        assert isinstance(model.kernel_.base, kind)
        assert model.kernel_.diag(X).mean() == pytest.approx(np.mean((100 * y) ** 2))
        assert model.noise_ == pytest.approx(0.1 * np.mean((100 * y) ** 2))


def test_units_do_not_matter_to_normalised_targets():
    one = GaussianProcessRegressor(normalize_y=True).fit(X, y)
    for unit, shift in ((1e-170, 0.0), (1e5, 1e7), (1e160, 0.0)):
        other = GaussianProcessRegressor(normalize_y=True).fit(X, unit * y + shift)
        (mean, std), (there, wide) = one.predict(T, return_std=True), other.predict(T, return_std=True)
        np.testing.assert_allclose((there - shift) / unit, mean, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(wide / unit, std, rtol=1e-3)
        assert other.certificate_.converged
        assert other.certificate_.verify(X, unit * y + shift).converged
        assert np.isfinite(other.sample_y(T, 2)).all()
    with pytest.raises(FloatingPointError, match="leave the range of float64"):
        other.predict(T, return_cov=True)


def test_limits():
    for limit in ({"max_iter": 1}, {"time_limit": 1e-9}):
        with pytest.warns(ConvergenceWarning, match="ended early"):
            model = GaussianProcessRegressor(1.0 * RBF(scale=0.5), **limit).fit(X, y)
        assert np.isfinite(model.predict(T)).all()
    with pytest.warns(ConvergenceWarning, match="ended early"):
        model = GaussianProcessRegressor(1.0 * RBF(scale=0.5), max_iter=1, solver="cg").fit(X, y)
    assert model.certificate_.converged  # the limit is that of the search


# -- without the matrix ---------------------------------------------------------------------------------


def test_conjugate_gradients_are_the_factor():
    kernel = 2.0 * Matern(nu=1.5, scale=0.7)
    for noise, target in ((0.05, y), (rng.uniform(0.02, 0.2, 60), both)):
        dense = GaussianProcessRegressor(kernel, noise=noise, optimizer=None, normalize_y=True).fit(X, target)
        large = clone(dense).set_params(solver="cg", residual=1e-9).fit(X, target)
        np.testing.assert_allclose(large.predict(T), dense.predict(T), rtol=1e-5)
        np.testing.assert_allclose(
            large.predict(T, return_std=True)[1], dense.predict(T, return_std=True)[1], rtol=1e-5
        )
        np.testing.assert_allclose(
            large.predict(T, return_cov=True)[1], dense.predict(T, return_cov=True)[1], atol=1e-5 * target.var()
        )
        assert large.certificate_.converged
        assert large.certificate_.verify(X, target).converged
        np.testing.assert_allclose(large.loo_log_density(), dense.loo_log_density(), rtol=1e-4, atol=1e-4)
        assert large.log_marginal_likelihood_value_ is None
        assert large.log_marginal_likelihood() == pytest.approx(dense.log_marginal_likelihood_value_)


def test_beyond_the_budget():
    model = GaussianProcessRegressor(1.0 * RBF(scale=0.7), budget=8 * 60 * 30).fit(X, y)
    assert "conjugate gradients" in model.plan_
    assert f"the likelihood of {int((8 * 60 * 30 / 16) ** 0.5)} of 60 rows" in model.plan_
    assert model.score(X, y) > 0.9
    with pytest.raises(MemoryError, match="choose solver='cg', or raise the budget"):
        GaussianProcessRegressor(solver="cholesky", budget=8 * 60 * 30).fit(X, y)
    with pytest.raises(MemoryError, match="raise the budget"):
        model.log_marginal_likelihood()


def test_covariances_beyond_the_budget():
    model = GaussianProcessRegressor(1.0 * RBF(scale=0.7), noise=0.1, optimizer=None, budget="10 MB").fit(X, y)
    many = np.zeros((1_500, 2))
    with pytest.raises(MemoryError, match=r"the covariances of 1500 points would need .* ask for fewer at a time"):
        model.predict(many, return_cov=True)
    assert model.predict(many, return_std=True)[1].shape == (1_500,)


def test_tuning_rows():
    model = GaussianProcessRegressor(1.0 * RBF(scale=0.7), tuning_rows=40).fit(X, y)
    assert "2 of 60 rows" not in model.plan_
    assert "40 of 60 rows" in model.plan_
    assert set(model.history_["rows"]) == {40}
    assert model.log_marginal_likelihood_value_ == pytest.approx(
        multivariate_normal(cov=model.kernel_(X) + model.noise_ * np.eye(60)).logpdf(y)
    )
    noisy = GaussianProcessRegressor(1.0 * RBF(scale=0.7), tuning_rows=40, noise=np.full(60, 0.1)).fit(X, y)
    assert set(noisy.history_["rows"]) == {40}


# -- hostile data ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("points", "kernel"),
    [
        (np.vstack([X, X]), 1.0 * RBF(scale=1.0)),
        (np.vstack([X, X]), 1.0 * RBF(scale=1e9)),
        (np.ones((120, 2)), 1.0 * RBF(scale=1.0)),
        (np.vstack([X, X]), 1e-12 * Linear()),
    ],
    ids=["duplicates", "huge scale", "constant", "rank two"],
)
def test_singular_matrices_get_a_jitter_that_is_stated(points, kernel):
    target = np.r_[y, y]
    for solver in ("cholesky", "cg"):
        with pytest.warns(LinAlgWarning, match=r"singular to rounding.* was added to the noise variance"):
            model = GaussianProcessRegressor(kernel, noise=0.0, optimizer=None, solver=solver).fit(points, target)
        assert 0 < model.jitter_ < 1e-8 * kernel.diag(points).max()
        mean, std = model.predict(T, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        assert np.isfinite(model.sample_y(T, 2)).all()


@each(
    ("points", "target"),
    [
        (X, np.zeros(60)),
        (X, np.ones(60)),
        (X[:1], y[:1]),
        (np.zeros((60, 2)), y),
        (1e90 * X, y),
        (1e-90 * X, y),
        (X, 1e100 * y),
        (X, 1e-100 * y),
        (X.astype(np.float32), y.astype(np.float32)),
        (np.hstack([X, np.zeros((60, 1))]), y),
    ],
    ids=[
        "zero",
        "constant",
        "one row",
        "equal rows",
        "large X",
        "small X",
        "large y",
        "small y",
        "float32",
        "empty feature",
    ],
)
@each("normalize", [False, True], ids=["as given", "normalised"])
def test_unusual_data_give_numbers(points, target, normalize):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(normalize_y=normalize).fit(points, target)
    mean, std = model.predict(points, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.isfinite(model.log_marginal_likelihood_value_)
    assert model.certificate_.converged


def test_targets_whose_squares_overflow():
    for unit in (1e200, 1e-200):
        with pytest.raises(
            ValueError, match=r"leaves the range of float64; scale the targets, or set normalize_y=True"
        ):
            GaussianProcessRegressor().fit(X, unit * y)


@each(
    ("parameters", "said"),
    [
        ({"noise": -1.0}, "noise=-1.0 of GaussianProcessRegressor must be 'auto', a finite number >= 0"),
        ({"noise": "much"}, "noise='much'"),
        ({"noise": np.r_[0.0, np.ones(59)]}, "or one number > 0 for each sample"),
        ({"kernel": "gauss"}, "kernel='gauss' of GaussianProcessRegressor must be None, a kernel object"),
        ({"alpha": -1.0}, "alpha=-1.0 of GaussianProcessRegressor must be None, a finite number >= 0"),
        ({"alpha": np.ones(7)}, "alpha must be a scalar or an array with same number of entries as y: it has 7"),
        ({"n_targets": 2}, "The number of targets seen in `y` is different from the parameter `n_targets`. Got 1 != 2"),
        ({"n_targets": 0}, "n_targets=0 of GaussianProcessRegressor must be a whole number >= 1, or None"),
        ({"optimizer": lambda f, theta, bounds: (theta[:1], 0.0)}, r"the optimizer returned .* for each of the 3"),
        ({"optimizer": lambda f, theta, bounds: None}, "the optimizer returned None; it must return"),
        ({"optimizer": "adam"}, "optimizer='adam' of GaussianProcessRegressor must be 'bfgs', 'fmin_l_bfgs_b', a"),
        ({"n_restarts_optimizer": 1.5}, "a whole number >= 0"),
        ({"bounds": [(0, 1)]}, "a dictionary from names"),
        ({"fixed": "noise"}, "a list of names"),
        ({"tuning_rows": 0}, "a whole number >= 1, or None"),
        ({"solver": "lu"}, "'auto', 'cholesky' or 'cg'"),
        ({"residual": 0.0}, "0 < residual < 1"),
        ({"bounds": {"width": (0.1, 1.0)}}, "bounds names 'width', which is no parameter of this model"),
        ({"fixed": ["width"]}, "fixed names 'width'"),
    ],
    ids=lambda v: "" if isinstance(v, str) else "-".join(v),
)
def test_parameters_that_cannot_be_are_named(parameters, said):
    with pytest.raises(ValueError, match=said):
        GaussianProcessRegressor(**parameters).fit(X, y)


def test_a_density_without_width_is_refused():
    model = GaussianProcessRegressor(Linear(), noise=0.0, optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    with pytest.raises(ValueError, match="the deviation of target 0 is 0"):
        model.log_density(np.zeros((1, 2)), [0.0])


# -- inputs ---------------------------------------------------------------------------------------------


def test_inputs_of_every_kind_agree():
    kernel = 1.0 * RBF(scale=0.7)
    zeros = np.where(np.abs(X) > 0.5, X, 0.0)
    plain = GaussianProcessRegressor(kernel, noise=0.1, optimizer=None).fit(zeros, y)
    mean, std = plain.predict(T, return_std=True)
    table = pd.DataFrame(zeros, columns=["a", "b"])
    model = GaussianProcessRegressor(kernel, noise=0.1, optimizer=None).fit(table, y)
    np.testing.assert_allclose(model.predict(pd.DataFrame(T, columns=["a", "b"]), return_std=True)[1], std)
    model = GaussianProcessRegressor(kernel, noise=0.1, optimizer=None).fit(sparse.csr_array(zeros), y)
    np.testing.assert_allclose(model.predict(sparse.csr_array(T), return_std=True)[1], std)
    everyone = kernel(np.vstack([zeros, T]))
    model = GaussianProcessRegressor(Precomputed(everyone), noise=0.1, optimizer=None).fit(np.arange(60), y)
    np.testing.assert_allclose(model.predict(np.arange(60, 75), return_std=True)[1], std)
    model = GaussianProcessRegressor("precomputed", noise=0.1, optimizer=None).fit(everyone[:60, :60], y)
    np.testing.assert_allclose(model.predict(everyone[60:, :60]), mean)
    assert model.loo_log_density() == pytest.approx(plain.loo_log_density())
    for ask in (lambda: model.predict(everyone[60:, :60], return_std=True), lambda: model.sample_y(everyone[60:, :60])):
        with pytest.raises(ValueError, match="similarities of new points to themselves are not known"):
            ask()
    function = GaussianProcessRegressor(lambda A, B: kernel(A, B), noise=0.1, optimizer=None).fit(zeros, y)
    np.testing.assert_allclose(function.predict(T, return_std=True)[1], std)


def test_words():
    words = ["kernel", "colonel", "kern", "mercer", "merchant", "mercy", "tile", "tiles", "while"]
    kernel = 1.0 * FromFunction(lambda a, b: len(set(a) & set(b)) / np.sqrt(len(set(a)) * len(set(b))))
    lengths = np.array([float(len(w)) for w in words])
    model = GaussianProcessRegressor(kernel, noise=0.1, normalize_y=True).fit(words, lengths)
    mean, std = model.predict(["kernels", "zzz"], return_std=True)
    assert np.isfinite(mean).all()
    assert std[1] > std[0]


def test_a_period_is_found():
    t = np.linspace(0, 6, 60)[:, None]
    y = np.sin(2 * np.pi * t[:, 0] / 1.5) + 0.05 * np.random.default_rng(3).normal(size=60)
    model = GaussianProcessRegressor(1.0 * Periodic(period=1.7, scale=1.0)).fit(t, y)
    assert model.kernel_.base.period == pytest.approx(1.5, rel=1e-2)


def test_a_long_search_leaves_variances_ready(monkeypatch):
    monkeypatch.setattr(gp_posterior, "_TRIANGLE_POINTS", 100)
    points = np.linspace(0, 6, 150)[:, None]
    target = np.sin(points[:, 0]) + 0.1 * rng.normal(size=150)
    kernel = 1.0 * RBF(scale=0.3)
    searched = GaussianProcessRegressor(kernel, noise=0.5).fit(points, target)
    assert (searched.history_["rows"] == 150).sum() >= process._PAID
    assert searched._posterior._low.rank < 40
    given = GaussianProcessRegressor(searched.kernel_, noise=searched.noise_, optimizer=None).fit(points, target)
    assert not given._posterior._sought
    stored = pickle.loads(pickle.dumps(searched))
    for new in (points[:3] + 0.01, points + 0.01):
        std = searched.predict(new, return_std=True)[1]
        assert np.array_equal(stored.predict(new, return_std=True)[1], std)
        np.testing.assert_allclose(given.predict(new, return_std=True)[1], std, rtol=3e-6)


def test_a_stored_model_predicts_the_same():
    for solver in ("cholesky", "cg"):
        model = GaussianProcessRegressor(1.0 * RBF(scale=0.7), solver=solver, noise=0.1, optimizer=None).fit(X, y)
        stored = pickle.dumps(model)
        assert len(stored) < 8 * 60 * 60  # without the factor
        again = pickle.loads(stored)
        for a, b in zip(model.predict(T, return_std=True), again.predict(T, return_std=True), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    jittered = GaussianProcessRegressor(1.0 * RBF(scale=1.0), noise=0.0, optimizer=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jittered.fit(np.vstack([X, X]), np.r_[y, y])
    again = pickle.loads(pickle.dumps(jittered))
    np.testing.assert_allclose(jittered.predict(T, return_std=True)[1], again.predict(T, return_std=True)[1], rtol=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        GaussianProcessRegressor(),
        GaussianProcessRegressor("linear", noise=0.1, optimizer=None, normalize_y=True),
        GaussianProcessRegressor(noise=0.1, optimizer=None, solver="cg"),
    ],
    ids=["default", "linear", "cg"],
)
def test_scikit_learn_finds_no_fault(model):
    assert_no_fault(model)
