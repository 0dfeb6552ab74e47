"""
Small scales and large ones
===========================

What a Gaussian kernel's scale does to a classifier and to a density (M15): towards zero everything is decided by the
nearest point of the sample, towards infinity the kernel hardly tells points apart, and what is left is smooth.
"""

# %%
# M15. The vote of the windows
# ----------------------------
# The simplest kernel classifier is the sign of sum y_i k(x_i, x). For a small scale s the term exp(-d^2 / 2 s^2) of the
# nearest point is larger than the sum of all others. But soon all terms are 0 in floating point, and the sign says
# nothing. The logarithms of the two classes' sums, which `KernelDensity` computes, have no such end.
import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.neighbors import KNeighborsClassifier

from mercer import RBF, SVC, KernelDensity, RKHSFunction
from mercer.plots.style import BLUE, INK, MUTED, PALE, RED, house, limits, scatter

X, y = make_moons(120, noise=0.3, random_state=1)
signs = 2.0 * y - 1.0
rng = np.random.default_rng(0)
new = rng.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, size=(4000, 2))


def vote(scale, points):
    """Return log sum over the second class of k(x_i, x), minus the same of the first."""
    sums = [KernelDensity(scale).fit(X[y == c]).score_samples(points) + math.log(np.sum(y == c)) for c in (0, 1)]
    return sums[1] - sums[0]


nearest = KNeighborsClassifier(1).fit(X, y).predict(new)
for scale in (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.001):
    agree = np.mean((vote(scale, new) > 0) == nearest)
    silent = np.mean(RKHSFunction(RBF(scale), X, signs)(new) == 0)
    print(f"M15 scale {scale:<5}: agrees with the nearest neighbour on {agree:.2%}; plain sums are 0 on {silent:.1%}")

# %%
# M15. Large scales
# -----------------
# k = 1 - d^2 / 2 s^2 + ...: the vote becomes one between the mean squared distances to the classes, which is a line.
ones, others = X[y == 1], X[y == 0]
line = 2 * new @ (ones.mean(axis=0) - others.mean(axis=0)) - (np.sum(ones**2, 1).mean() - np.sum(others**2, 1).mean())
for scale in (1.0, 10.0, 100.0):
    print(f"M15 scale {scale:<5}: agrees with the line on {np.mean((vote(scale, new) > 0) == (line > 0)):.2%}")

# %%
# M15. A machine that is trained
# ------------------------------
# The same holds for a support vector machine. With a small scale the kernel matrix is nearly the identity, every point
# is a support vector and the training data are learned by heart. Within reach of the kernel it follows the nearest
# point; farther away no kernel value is left, and it answers with its offset.
test, truth = make_moons(4000, noise=0.3, random_state=2)
neighbour = KNeighborsClassifier(1).fit(X, y)
distance = neighbour.kneighbors(test)[0][:, 0]
for scale in (0.03, 0.1, 0.5, 2.0, 20.0):
    machine = SVC(C=1.0, kernel=RBF(scale)).fit(X, y)
    near = distance < 2 * scale
    agree = np.mean(machine.predict(test[near]) == neighbour.predict(test[near]))
    print(
        f"M15 SVC, scale {scale:<4}: {len(machine.support_):3d} support vectors, right on {machine.score(X, y):.0%} of "
        f"the training and {machine.score(test, truth):.0%} of new points; like the nearest on {agree:.0%} within reach"
    )

# %%
# M15. A density
# --------------
# The same windows as an estimate of a density: spikes at the points, then two bumps, then one. Which scale is right can
# be asked of the sample: the one under which each point is most likely given the others.
t = np.concatenate([rng.normal(-2.0, 0.5, 60), rng.normal(1.0, 1.0, 60)])[:, None]
chosen = KernelDensity("loo").fit(t)
scott = KernelDensity("scott").fit(t)
print(f"M15 leaving one out chooses the scale {chosen.bandwidth_:.3f}, Scott's rule {scott.bandwidth_:.3f}")
fresh = np.concatenate([rng.normal(-2.0, 0.5, 2000), rng.normal(1.0, 1.0, 2000)])[:, None]
for scale in (0.02, chosen.bandwidth_, 2.0):
    model = KernelDensity(scale).fit(t)
    own, others = model.score(t) / len(t), model.score(fresh) / len(fresh)
    print(f"M15 scale {scale:.3f}: mean log density {own:.3f} of the sample, {others:.3f} of new points")

x1, x2 = (np.linspace(*limits(column), 260) for column in X.T)
mesh = np.column_stack([g.ravel() for g in np.meshgrid(x1, x2)])
regions = [
    ("1 nearest neighbour", KNeighborsClassifier(1).fit(X, y).predict(mesh) - 0.5),
    ("windows of scale 0.01", vote(0.01, mesh)),
    ("scale 0.3", vote(0.3, mesh)),
    ("scale 30", vote(30.0, mesh)),
]
grid = np.linspace(-5, 5, 1200)[:, None]
with house():
    fig = plt.figure(figsize=(12, 6.1), layout="constrained")
    axes = fig.subplot_mosaic([["a", "b", "c", "d"], ["e", "e", "e", "e"]], height_ratios=[1, 0.9])
    for name, (title, values) in zip("abcd", regions, strict=True):
        ax = axes[name]
        ax.contourf(x1, x2, values.reshape(260, 260), levels=[-np.inf, 0, np.inf], colors=PALE)
        ax.contour(x1, x2, values.reshape(260, 260), levels=[0], colors=INK, linewidths=1.1)
        scatter(ax, (X[:, 0], X[:, 1]), y, s=14)
        ax.set(title=title, xlabel="x1", ylabel="x2" if name == "a" else "", aspect="equal")
        ax.grid(False)
    ax = axes["e"]
    true = (
        0.5 * (np.exp(-0.5 * ((grid + 2) / 0.5) ** 2) / 0.5 + np.exp(-0.5 * (grid - 1) ** 2)) / math.sqrt(2 * math.pi)
    )
    ax.plot(grid, true, color=INK, lw=1, ls=(0, (4, 3)), label="the truth")
    looks = ((0.02, MUTED, 0.8), (chosen.bandwidth_, BLUE, 2.0), (2.0, RED, 1.6))
    for scale, colour, width in looks:
        how = f"scale {scale:.2f}" + (", by leaving one out" if scale == chosen.bandwidth_ else "")
        values = np.exp(KernelDensity(scale).fit(t).score_samples(grid))
        ax.plot(grid, values, color=colour, lw=width, label=how, zorder=2 if scale > 0.1 else 1)
    ax.plot(t, np.zeros_like(t) - 0.02, "|", color=INK, ms=7, mew=0.7)
    ax.set(ylim=(-0.05, 0.85), xlabel="t", title="The density of 120 points")
    ax.legend(loc="upper right")
