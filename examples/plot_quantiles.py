"""
From ridge to quantiles: one theorem, many losses
=================================================

Three hundred measurements whose noise grows, a few of them wrong. What ridge regression says about them, how its
strength is chosen, and what changes when nothing but the loss does (M11 to M14).
"""

# %%
# M11. Ridge, by features or by samples
# -------------------------------------
# w = (X'X + a)^-1 X'y is a system in the features, w = X'(XX' + a)^-1 y one in the samples. With 20 powers of x and 300
# samples the first is smaller; with 2,000 random waves the second.
import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, KernelMachine, KernelQuantileRegressor, KernelRidge, KernelRidgeCV, KernelRobustRegressor, Ridge
from mercer.losses import Pinball
from mercer.plots.style import BLUE, INK, MUTED, RED, house

rng = np.random.default_rng(4)
x = np.sort(rng.uniform(0, 8, 300))
truth = np.sin(x) + 0.3 * x
noise = 0.08 + 0.09 * x
y = truth + noise * rng.normal(size=300)
X, wrong = x[:, None], np.arange(35, 300, 40)
y[wrong] -= rng.uniform(6, 8, 7)

powers = (X / 8) ** np.arange(1, 21)
waves = np.cos(X * rng.normal(size=2000) + rng.uniform(0, 2 * np.pi, 2000))
for name, features in (("20 powers", powers), ("2,000 waves", waves)):
    by_w, by_a = Ridge(0.1, solver="primal").fit(features, y), Ridge(0.1, solver="dual").fit(features, y)
    apart = np.abs(by_w.predict(features) - by_a.predict(features)).max()
    print(f"M11 {name}: the two differ by {apart:.0e}; auto takes the {Ridge(0.1).fit(features, y).solver_}")

# %%
# M12. The same with a kernel
# ---------------------------
# (K + a) coefficients = y, to a stated residual, and what each sample would have been predicted from the others.
kernel = RBF(scale=1.0)
ridge = KernelRidge(0.3, kernel=kernel, fit_intercept=True).fit(X, y)
print(f"M12 relative residual {ridge.residual_:.0e}; {ridge.plan_}")
left_out = np.sqrt(np.mean(ridge.loo_residuals() ** 2))
print(f"M12 root mean squared error {np.sqrt(np.mean((y - ridge.predict(X)) ** 2)):.3f}, left out {left_out:.3f}")

# %%
# M14. The strength, chosen by leaving out
# ----------------------------------------
# Fifty alphas from one eigendecomposition, each judged by the samples it has not seen.
alphas = np.logspace(-4, 3, 50)
search = KernelRidgeCV(alphas, kernel=kernel, fit_intercept=True).fit(X, y)
print(f"M14 of 50 alphas from 1e-4 to 1e3 the best is {search.alpha_:.3g}, error {np.sqrt(-search.best_score_):.3f}")

# %%
# M13. Another loss, another question
# -----------------------------------
# The squared loss asks for the mean, which the wrong measurements (crosses) pull down. Huber's
# loss hardly notices them. The pinball loss asks for quantiles, which are wide where the noise is.
robust = KernelRobustRegressor(C=10.0, kernel=kernel).fit(X, y)
quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
bands = KernelQuantileRegressor(quantiles, C=3.0, kernel=kernel, non_crossing=True).fit(X, y)
below = (y[:, None] <= bands.predict(X) + 1e-6).mean(axis=0)
for q, share in zip(quantiles, below, strict=True):
    print(f"M13 {share:.1%} of the samples lie on or below the {q:.0%} function")
median = KernelMachine(kernel, Pinball(0.5), 1 / 3).fit(X, y)
print(f"M13 the median is one line of the engine: {np.abs(median.predict(X) - bands.predict(X)[:, 2]).max():.0e} apart")
for name, model in (("squares", search), ("Huber", robust)):
    print(f"M13 {name}: largest error of the function {np.abs(model.predict(X) - truth).max():.2f}")

grid = np.linspace(0, 8, 400)
low, lower, middle, upper, high = bands.predict(grid[:, None]).T
good = np.delete(np.arange(300), wrong)
with house():
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), sharey=True, layout="constrained")
    for ax in (left, right):
        ax.plot(x[good], y[good], "o", color=MUTED, ms=3.2, mew=0, alpha=0.75)
        ax.plot(x[wrong], y[wrong], "x", color=INK, ms=5.5, mew=1.4)
        ax.set(xlabel="x", ylim=(-7.5, 7))
    left.plot(grid, np.sin(grid) + 0.3 * grid, color=INK, lw=1, ls=(0, (4, 3)), label="the truth")
    left.plot(grid, search.predict(grid[:, None]), color=RED, lw=1.8, label="squared loss, alpha by leaving one out")
    left.plot(grid, robust.predict(grid[:, None]), color=BLUE, lw=1.8, label="Huber's loss, scale estimated")
    left.set_title("The mean, and what outliers do to it")
    left.legend(loc="upper left")
    right.fill_between(grid, low, high, color=BLUE, alpha=0.14, lw=0, label="5% to 95%")
    right.fill_between(grid, lower, upper, color=BLUE, alpha=0.28, lw=0, label="25% to 75%")
    right.plot(grid, middle, color=BLUE, lw=1.8, label="median")
    right.set_title("Five quantiles of the same data")
    right.legend(loc="upper left")
