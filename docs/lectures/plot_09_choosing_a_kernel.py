r"""
9. Choosing a kernel
====================

A kernel is a guess about which points are alike. The Gaussian kernel alone is a whole family of guesses, from "only if
they are neighbours" to "all of them, more or less". The training data cannot choose among guesses. Data that are held
out can.
"""

# %%
# Small scales
# ------------
# Towards scale 0 the Gaussian kernel knows each training point and nothing else. The Gram matrix becomes the identity,
# every point a support vector, and all training points are right. Near the training points the machine answers with the
# class of the nearest one; far from them all kernel values are 0, and it answers with its offset.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from mercer import (
    RBF,
    SVC,
    KernelRidge,
    KernelSearchCV,
    Laplacian,
    Linear,
    Polynomial,
    learn_kernel,
    plots,
)
from mercer.plots.style import (
    BLUE,
    INK,
    MUTED,
    RED,
    house,
)

X, y = make_moons(120, noise=0.3, random_state=1)
new, truth = make_moons(3000, noise=0.3, random_state=2)
narrow = SVC(C=1.0, kernel=RBF(scale=0.02)).fit(X, y)
neighbour = KNeighborsClassifier(1).fit(X, y)
near = neighbour.kneighbors(new)[0][:, 0] < 0.03
alike = np.mean(narrow.predict(new[near]) == neighbour.predict(new[near]))
print(f"{near.sum()} new points near by: {alike:.0%} get the class of the nearest point")
assert len(narrow.support_) == 120
assert narrow.score(X, y) == 1.0
assert alike > 0.97
assert np.abs(RBF(scale=0.02)(X) - np.eye(120)).mean() < 1e-3
far = narrow.decision_function([[9.0, 9.0], [-9.0, 9.0]])
assert np.allclose(far, narrow.intercept_)

# %%
# Large scales
# ------------
# Towards infinity :math:`k(x, z) = 1 - \|x - z\|^2 / 2 s^2 + \dots` hardly tells points apart, and what it tells is
# linear: with :math:`C s^2` for C, the machine becomes the linear one with C.
line = SVC(C=1.0, kernel=Linear(), tol=1e-6).fit(X, y)
for scale in (10.0, 100.0, 1000.0):
    wide = SVC(C=scale**2, kernel=RBF(scale=scale), tol=1e-6).fit(X, y)
    apart = np.abs(wide.decision_function(new) - line.decision_function(new)).max()
    print(f"scale {scale:g}: no farther than {apart:.4f} from the linear machine")
assert apart < 0.01

gaussians = [RBF(scale=scale) for scale in (0.05, 0.3, 1.0, 30.0)]
by_scale = plots.boundaries(SVC(C=10.0), X, y, kernel=gaussians)
by_scale.set_figheight(3.0)
for ax, kernel in zip(by_scale.axes, gaussians, strict=True):
    rate = SVC(C=10.0, kernel=kernel).fit(X, y).score(new, truth)
    ax.set_title(f"{ax.get_title(loc='left')},\n{rate:.0%} of new points", loc="left", fontsize=10)

# %%
# What training data cannot say
# -----------------------------
# Right on the training points grows as the scale shrinks, up to all of them. Cross-validation holds out a part at a
# time, fits to the rest and counts on the part held out. It sees what new points will see.
scales = np.logspace(-1.7, 1.5, 17)
training = [SVC(C=1.0, kernel=RBF(scale=s)).fit(X, y).score(X, y) for s in scales]
search = KernelSearchCV(
    SVC(C=1.0), [RBF(scale=s) for s in scales], {"C": [1.0]}, cv=5, exhaustive=True
).fit(X, y)
held_out = search.cv_results_["mean_test_score"]
future = [SVC(C=1.0, kernel=RBF(scale=s)).fit(X, y).score(new, truth) for s in scales]
chosen = scales[held_out.argmax()]
print(f"training chooses scale {scales[np.argmax(training)]:.2g}, folds choose {chosen:.2g}")
assert np.argmax(training) == 0
assert training[0] == 1.0
assert future[0] < 0.7  # what learning by heart is worth
assert future[int(held_out.argmax())] > max(future) - 0.03

# %%
# Several alternatives
# --------------------
# ``KernelSearchCV`` takes kernels of any kind and grids of any parameter. It is scikit-learn's ``GridSearchCV``, cell
# by cell, but computes each kernel matrix once for all folds and all C.
kernels = [
    Linear(),
    Polynomial(2),
    Polynomial(3),
    Laplacian(1.0),
    RBF(0.1),
    RBF(0.3),
    RBF(1.0),
    RBF(3.0),
]
prices = [0.1, 1.0, 10.0, 100.0]
search = KernelSearchCV(SVC(tol=1e-5), kernels, {"C": prices}, cv=5, exhaustive=True).fit(X, y)
table = np.empty((len(kernels), len(prices)))
for kernel, C, score in zip(
    *(search.cv_results_[c] for c in ("param_kernel", "param_C", "mean_test_score")), strict=True
):
    table[kernels.index(kernel), prices.index(C)] = score
print(search.best_params_)
print(f"right: {search.best_score_:.1%} held out, {search.score(new, truth):.1%} of new points")
assert search.best_score_ == table.max()
assert search.score(new, truth) > SVC(kernel=Linear()).fit(X, y).score(new, truth) + 0.03

cells = GridSearchCV(SVC(tol=1e-5), {"kernel": kernels[-2:], "C": prices}, cv=5).fit(X, y)
assert np.allclose(cells.cv_results_["mean_test_score"].reshape(4, 2).T, table[-2:])

# %%
# The best score of many is a little lucky: it was chosen for being high. Fresh points have the last word, and they must
# not have been asked before.
#
# No kernel is best for everything. Classes that are told apart by a line are better left to a line.
rng = np.random.default_rng(0)
plain, plain_new = rng.normal(size=(60, 10)), rng.normal(size=(3000, 10))
w = rng.normal(size=10)
labels, labels_new = (np.sign(Z @ w + 0.5 * rng.normal(size=len(Z))) for Z in (plain, plain_new))
pick = KernelSearchCV(
    SVC(), [Linear(), RBF(0.5), RBF(1.0)], {"C": [0.1, 1.0]}, cv=5, exhaustive=True
).fit(plain, labels)
assert pick.best_params_["kernel"] == Linear()
assert (
    pick.score(plain_new, labels_new)
    > SVC(kernel=RBF(1.0)).fit(plain, labels).score(plain_new, labels_new) + 0.05
)

# %%
# Many parameters at once
# -----------------------
# A grid over one scale for each feature would be endless. But what is asked of a kernel has a gradient in all of its
# parameters: here how probable it makes the targets; with "loo", the error on samples left out. ``learn_kernel``
# follows the gradient. Of these seven features the last two are noise: their scales grow until they count no more.
F, target = make_friedman1(150, n_features=7, noise=0.5, random_state=0)
F_new, target_new = make_friedman1(1000, n_features=7, noise=0.0, random_state=1)
learned = learn_kernel(KernelRidge(fit_intercept=True), RBF(), F, target, ard=True)
one_scale = KernelSearchCV(
    KernelRidge(fit_intercept=True), [RBF], {"alpha": np.logspace(-4, 1, 6)}
).fit(F, target)
errors = [
    np.sqrt(np.mean((model.predict(F_new) - target_new) ** 2))
    for model in (one_scale, learned.estimator)
]
print(f"error with one scale {errors[0]:.2f}, with a scale for each feature {errors[1]:.2f}")
print("scales", np.round(learned.kernel.scale, 1))
assert errors[1] < 0.6 * errors[0]
assert min(learned.kernel.scale[5:]) > 3 * max(learned.kernel.scale[:5])

# %%
# Left: whoever asks the training data takes the smallest scale. Right: the alternatives on points held out. The best is
# framed; those within one standard error of it are dotted, and may be as good.
with house():
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 4.4), layout="constrained", width_ratios=(1.1, 1)
    )
    left.semilogx(scales, training, color=MUTED, lw=1.5, label="training points")
    left.semilogx(scales, held_out, "o-", color=BLUE, ms=4, label="held out, 5 folds")
    left.semilogx(scales, future, color=INK, lw=1.2, ls=(0, (4, 3)), label="3,000 new points")
    left.axvline(chosen, color=BLUE, lw=0.8)
    left.plot(scales[0], training[0], "o", color=RED, ms=8)
    left.text(0.025, 1.015, "learned by heart", color=RED)
    left.set(xlabel="scale of the Gaussian kernel", ylabel="right", ylim=(0.47, 1.05))
    left.set_title("Only points that are held out can choose")
    left.legend(loc="lower center")
    plots.search(search, ax=right)
    right.set_title("Right on points held out")

# %%
# In the lab
# ----------
# .. lab:: kernel=RBF%28scale%3D0.06%29&loss=hinge&C=10&task=classes&view=map
#    &points=SSn1AYGgiBakr9AomViBTSmYAwTdFBfWnlAxucXBQahaAuUYcBkSh4AZ9jrBOtgvAtaZkBkPfUAusc1BakpVAu9esBRdpDAw4f6BUS
#    lcAZ1g9BONiDAdMXfBXXpTAZrZUBUFnrAiYUrBTNlzAuKhTBQgeTAhUWmBfSrvAqfX4BPfhVAbuetBnfe6AaOXZBkIkWAsEUtBVZqaAbqazBTw
#    nHAiZZJBN0ejAkWUZBjwn1AjPXEBdWq3AaxgrBlUfPAxZdFBgrqAAbPfYBkHdlAkgTpBOdhzAegXVBlMdeAwdijBlEh5AYnmUBlNgPApdWfBVo
#    osAuYcKBj4mvAm-
#    VtBXfqSAwycmBUdqZAvAgiBPygFAkRTxBessNAt6YSBQcdJAjJV9BiOjfAxPgcBiip0AlwTRBRTlHAe_XcBQ8pHAZif_BXOp0AZfd-
#    BYupOAz3fJBkWddAZFeRBP0lgAo4WnBlVfOAeSWjBaUrgAhrWHBkMimAugYiB
#
#    Learned by heart: at this scale each point is alone. The map knows better ones; walk there.

# %%
# This page shows M14 and M15.
