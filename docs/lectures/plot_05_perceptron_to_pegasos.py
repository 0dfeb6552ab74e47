r"""
5. From the perceptron to Pegasos
=================================

The oldest learning machine corrects its mistakes, one at a time. Read as descent on a loss, it shows what to change: a
loss with a margin, a penalty, and steps that grow shorter. What comes out is the support vector machine, by a method of
six lines.
"""

# %%
# Losses of a margin
# ------------------
# Let classes be y = -1 and 1, and let f be a function whose sign is the decision. The margin :math:`m = y f(x)` is
# positive where the decision is right, and large where it is sure. The number of mistakes, the 0-1 loss, is flat almost
# everywhere: no descent finds its way there. These losses have slopes.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, LinearSVC, Pegasos, Perceptron, plots
from mercer.losses import Hinge, Logistic, PerceptronLoss, Squared, ZeroOne
from mercer.plots.style import BLUE, INK, MUTED, RED, house, scatter

m = np.linspace(-3, 3, 601)
zero_one = (m <= 0).astype(float)
losses = {
    "perceptron": PerceptronLoss().value(1.0, m),
    "hinge": Hinge().value(1.0, m),
    "logistic": Logistic().value(1.0, m),
    "squared": Squared().value(1.0, m),
}
assert np.allclose(losses["perceptron"], np.maximum(0, -m))
assert np.allclose(losses["hinge"], np.maximum(0, 1 - m))
assert (losses["hinge"] >= zero_one).all()  # convex, and never below the number of mistakes
assert (losses["perceptron"] >= zero_one).mean() < 0.9  # which the perceptron's loss is
assert np.allclose(losses["logistic"], np.log1p(np.exp(-m)))
assert Squared().value(1.0, 3.0) == Squared().value(
    1.0, -1.0
)  # the squared loss punishes being too right

costs = plots.losses([ZeroOne(), PerceptronLoss(), Hinge(), Logistic(), Squared()])

# %%
# The perceptron
# --------------
# Start with :math:`w = 0`. Visit the points in turn. Where :math:`y_i \langle w, x_i \rangle \le 0`, the decision is no
# good: add :math:`y_i x_i` to w. That is a step of length 1 down the slope of the loss :math:`\max(0, -m)` at this
# point.
#
# It matters that the inequality is not strict. At w = 0 all margins are 0; with :math:`<` no point would ever count as
# a mistake, and w would stay where it is.
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(100, 2))
y = np.sign(X @ [1.0, 0.6])
clear = np.flatnonzero(np.abs(X @ [1.0, 0.6]) > 0.8)[:60]  # of the line
X, y = X[clear], y[clear]


def by_hand(X, y, mistaken, passes=100):
    w = np.zeros(X.shape[1])
    for _ in range(passes):
        for x, sign in zip(X, y, strict=True):
            if mistaken(sign * (w @ x)):
                w = w + sign * x
    return w


ours = Perceptron(fit_intercept=False).fit(X, y)
assert np.allclose(ours.coef_[0], by_hand(X, y, lambda m: m <= 0))
assert (by_hand(X, y, lambda m: m < 0) == 0).all()
w = np.zeros(2)
for x, sign in zip(X[:5], y[:5], strict=True):  # the same by the slope of the loss
    w -= PerceptronLoss().derivative(sign, w @ x) * x
assert np.allclose(w, by_hand(X[:5], y[:5], lambda m: m <= 0, passes=1))

# %%
# If some hyperplane separates the classes, the perceptron finds one after finitely many mistakes. If all points are
# within R of the origin and a unit vector leaves a margin :math:`\gamma`, there are at most :math:`(R / \gamma)^2`
# (Novikoff). Which hyperplane it finds is a matter of the order of the points. It does not ask for the best.
with warnings.catch_warnings():
    warnings.simplefilter("error")  # one would say that it did not come to an end
    orders = [
        Perceptron(fit_intercept=False, shuffle=True, random_state=seed).fit(X, y)
        for seed in range(8)
    ]
widest = LinearSVC(C=1e6, fit_intercept=False, tol=1e-8).fit(X, y).coef_[0]
gamma = (y * (X @ widest)).min() / np.linalg.norm(widest)
R = np.linalg.norm(X, axis=1).max()
mistakes = [model.mistakes_ for model in orders]
print(f"mistakes {mistakes}, at most {(R / gamma) ** 2:.0f}")
assert max(mistakes) <= (R / gamma) ** 2
directions = np.array([model.coef_[0] / np.linalg.norm(model.coef_) for model in orders])
margins = (y * (X @ directions.T).T).min(axis=1)
assert all(model.score(X, y) == 1.0 and model.converged_ for model in orders)
assert margins.min() > 0
assert margins.max() < gamma
assert np.ptp(np.degrees(np.arctan2(*directions.T))) > 5  # no two need agree

# %%
# Its w is a sum of points, each as often as it was mistaken. So it works with a kernel as well, by counting: the rings
# of the first page are separated by a sum of Gaussian bumps.
rings, inner = plots.LIFTS["rings"].sample()
counting = Perceptron(kernel=RBF(scale=0.3)).fit(rings, inner)
assert counting.converged_
assert counting.score(rings, inner) == 1.0
assert np.allclose(counting.dual_coef_, np.round(counting.dual_coef_))
assert counting.function_.coefficients.shape == counting.support_.shape

with house():
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    scatter(left, (X[:, 0], X[:, 1]), (y > 0).astype(int))
    s = np.array([-3.3, 3.3])
    for direction in directions:
        left.plot(s, -s * direction[0] / direction[1], color=MUTED, lw=1)
    left.plot(s, -s * widest[0] / widest[1], color=INK, lw=2)
    left.set(xlim=s, ylim=s, aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    left.set_title("Eight orders; dark: the widest margin")
    plots.boundary(counting, rings, inner, ax=right)
    right.set_title("The same with a kernel")

# %%
# Where no line separates, it never comes to rest, and says so.
mixed = rng.normal(size=(60, 2)) + 0.8 * y[:, None]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    restless = Perceptron(max_epochs=50).fit(mixed, y)
assert not restless.converged_
assert restless.mistakes_per_epoch_.min() > 0
print(said[0].message)

# %%
# A margin, a penalty, and shorter steps
# --------------------------------------
# Take the hinge for the loss, so that being barely right is not enough, and a penalty on the length of w, without which
# any margin could be had by making w longer:
#
# .. math:: J(w) = \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \max(0, 1 - y_i \langle w, x_i \rangle).
#
# J has kinks, at which it has no gradient but many subgradients, slopes of lines below it. A step against a subgradient
# may lead uphill; yet it leads towards the minimiser, if it is short enough. And since slopes do not fade near a kink,
# steps must: :math:`\eta_t = 1 / (\lambda t)`. With one point at a time this is Pegasos, in six lines.
lam = 0.1


def six_lines(X, y, lam):
    w = np.zeros(X.shape[1])
    for t, (x, sign) in enumerate(zip(X, y, strict=True), start=1):
        eta = 1 / (lam * t)
        short = sign * (w @ x) < 1
        w = (1 - eta * lam) * w + short * eta * sign * x
    return w


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # one pass is not enough
    once = Pegasos(lam, max_epochs=1, shuffle=False, project=False).fit(mixed, y)
assert np.allclose(once.coef_[0], six_lines(mixed, y, lam))

# %%
# Uphill and yet closer: here are 200 steps on all points at a time, by hand. The exact minimiser, for comparison, comes
# from a machine with a certificate.
exact = LinearSVC(C=1 / (lam * 60), fit_intercept=False, tol=1e-10).fit(mixed, y)
best = exact.coef_[0]


def J(w):
    return lam / 2 * w @ w + Hinge().value(y, mixed @ w).mean()


w, uphill_and_closer = np.zeros(2), 0
for t in range(1, 201):
    short = y * (mixed @ w) < 1
    subgradient = lam * w - (y * short) @ mixed / 60
    step = w - subgradient / (lam * t)
    uphill_and_closer += J(step) > J(w) and np.linalg.norm(step - best) < np.linalg.norm(w - best)
    w = step
print(f"{uphill_and_closer} of 200 steps went uphill and came closer")
assert uphill_and_closer > 0
assert J(w) < J(best) + 1e-3

# %%
# ``Pegasos(solver="subgradient")`` takes these steps. A constant step goes around the minimum for ever. Steps
# :math:`1 / (\lambda t)` come ever closer, but slowly: a digit or a little more for ten times the steps.


def course(**how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Pegasos(lam, max_epochs=2000, tol=1e-12, random_state=0, **how).fit(mixed, y)
    return (
        model,
        model.history_["steps"] / steps_per_pass[how.get("solver", "pegasos")],
        model.history_["primal"],
    )


steps_per_pass = {"pegasos": 60, "subgradient": 1}
minimum = (
    lam * exact.certificate_.primal
)  # C = 1 / (lam n): lam times the objective of the notes' machines
courses = {
    "Pegasos, one point a step": course(evaluate="log"),
    "all points, steps 1 / (λ t)": course(solver="subgradient"),
    "all points, constant step": course(solver="subgradient", learning_rate=3.0),
}
above = {name: values - minimum for name, (_, _, values) in courses.items()}
print({name: f"{values[-1]:.1e}" for name, values in above.items()})
assert min(values.min() for values in above.values()) >= -1e-9
assert above["all points, steps 1 / (λ t)"][-1] < 1e-4
assert above["all points, constant step"][-200:].mean() > 1e-3
assert exact.certificate_.relative_gap <= 1e-10
passes, left = courses["Pegasos, one point a step"][1], above["Pegasos, one point a step"]
digits = -np.polyfit(np.log10(passes[1:]), np.log10(left[1:]), 1)[0]
print(f"Pegasos: {digits:.1f} digits for ten times the steps")
assert 0.7 < digits < 1.7

# %%
# The notes print :math:`\lambda \|w\|^2` and then take the steps of :math:`\frac{\lambda}{2} \|w\|^2`. The
# number tells which: the descent ends at the minimum of the second.
end = courses["all points, steps 1 / (λ t)"][0].coef_[0]
hinge = Hinge().value(y, mixed @ end).mean()
assert np.isclose(lam / 2 * end @ end + hinge, minimum, atol=1e-4)
twice = LinearSVC(C=1 / (2 * lam * 60), fit_intercept=False, tol=1e-10).fit(
    mixed, y
)  # the minimum of the first
assert lam * end @ end + hinge > 2 * lam * twice.certificate_.primal + 1e-3

# %%
# With a kernel it is the same descent on coefficients.
soft = Pegasos(1e-3, kernel=RBF(scale=0.3), tol=0.05, random_state=0).fit(rings, inner)
assert soft.certificate_.converged
assert soft.score(rings, inner) == 1.0

with house():
    fig, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    for (name, (_, passes, _)), colour, width in zip(
        courses.items(), (BLUE, INK, RED), (2.0, 1.0, 1.0), strict=True
    ):
        ax.loglog(passes, np.maximum(above[name], 1e-12), color=colour, lw=width, label=name)
    ax.axhline(1e-10 * minimum, color=MUTED, ls=(0, (4, 3)), lw=1)
    ax.annotate(
        "what the certified machine leaves, at most",
        (1, 1.3e-10 * minimum),
        color=MUTED,
        va="bottom",
    )
    ax.set(xlabel="passes over the data", ylabel="objective above the minimum")
    ax.set_title("Close soon, exact never")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 0.1))

# %%
# In the lab
# ----------
# .. lab:: kernel=Linear%28%29&loss=hinge&C=1&task=classes&view=steps
#    &points=scfjBSoYnAqkkkBPOcKAspt5BT8TwAwil-BTJesAqEtjBTYUEAuNl1BVzhPAtmnpBX-aTAt4m5BRrhdAvElHBSUclAtSjeBYFWOAtD
#    hEBXUe4Anmi3BUzXMAwOlvBQJiIAt4i5BVadLAqmswBf9bvAr4h2BSxXqAs4mOBPAZjAt_kNBUMZTAp8u7BWzWwAmIh4B
#
#    The perceptron, before its first step. Let it run, and then Pegasos, which goes on for the sake of the margin.

# %%
# This page shows M1 and M5.
