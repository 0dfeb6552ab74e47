r"""
6. From the margin to the dual, and what the multipliers say
============================================================

The support vector machine looks for the widest street between two classes. Its dual problem bounds how wide a street
can be, the two bounds meet, and where they meet each point has a role. All of it can be checked on a fitted machine.
"""

# %%
# The widest margin
# -----------------
# A hyperplane :math:`\langle w, x \rangle + b = 0` has the geometric margin
# :math:`\min_i y_i (\langle w, x_i \rangle + b) / \|w\|`, the distance of the nearest point. Multiples of (w, b) are
# the same hyperplane; fix the multiple so that the nearest point has :math:`y f(x) = 1`. The widest margin is then
#
# .. math:: \min \tfrac12 \|w\|^2 \quad \text{with} \quad y_i (\langle w, x_i \rangle + b) \ge 1,
#
# and the street between f = -1 and f = 1 is :math:`2 / \|w\|` wide. ``C=inf`` asks for it.
import math
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from mercer import SVC, Infeasible, Linear, LinearSVC, Perceptron, plots
from mercer.losses import Hinge
from mercer.plots.style import house

rng = np.random.default_rng(0)
y = np.repeat([-1.0, 1.0], 20)
apart = rng.normal(size=(40, 2)) + 2.5 * y[:, None]
hard = SVC(C=math.inf, kernel=Linear(), tol=1e-8).fit(apart, y)
w, b = hard.coef_[0], hard.intercept_[0]
margin = y * (apart @ w + b) / np.linalg.norm(w)
print(f"the street is {hard.margin_width_:.3f} wide, the nearest point {margin.min():.3f} away")
assert np.isclose(hard.margin_width_, 2 / np.linalg.norm(w))
assert np.isclose(margin.min(), hard.margin_width_ / 2, rtol=1e-5)
for seed in range(5):  # the perceptron's hyperplanes separate, too, with less room
    other = Perceptron(shuffle=True, random_state=seed).fit(apart, y)
    assert (
        0 < (y * other.decision_function(apart)).min() / np.linalg.norm(other.coef_) < margin.min()
    )

# %%
# Where no hyperplane separates the classes the constraints contradict each other. The machine says so at once, and
# shows why: a mixture of one class that is equal to a mixture of the other.
X = rng.normal(size=(40, 2)) + 0.9 * y[:, None]
try:
    SVC(C=math.inf, kernel=Linear()).fit(X, y)
except Infeasible as refused:
    print(refused)
    mixture = refused.coefficients
else:
    raise AssertionError("these classes overlap")
assert np.isclose(mixture[mixture > 0].sum(), 1)
assert np.isclose(mixture[mixture < 0].sum(), -1)
assert np.linalg.norm(mixture @ X) < 1e-6

# %%
# The soft margin
# ---------------
# Let each point fall short of its constraint by a slack :math:`\xi_i`, at a price:
#
# .. math:: \min \tfrac12 \|w\|^2 + C \sum_i \xi_i \quad \text{with} \quad
#           y_i (\langle w, x_i \rangle + b) \ge 1 - \xi_i, \; \xi_i \ge 0.
#
# A point with slack 0 keeps its distance. Slack 1 means on the hyperplane, and slack 3 two margins beyond it.
C = 1.0
soft = SVC(C=C, kernel=Linear(), tol=1e-9).fit(X, y)
w, b = soft.coef_[0], soft.intercept_[0]
foot = -b * w / (w @ w)  # a point with f = 0
there = np.array([foot + f * w / (w @ w) for f in (1.0, 0.0, -2.0)])
assert np.allclose(soft.decision_function(there), [1, 0, -2])
assert np.allclose(soft.margins(there, [1.0, 1.0, 1.0]).slack, [0, 1, 3])

with house():
    fig, axes = plt.subplots(1, 2, figsize=(10, 5.8), layout="constrained")
    plots.boundary(hard, apart, y, ax=axes[0])
    plots.boundary(soft, X, y, ax=axes[1])
    axes[0].set_title(f"Hard: a street {hard.margin_width_:.2f} wide")
    axes[1].set_title(f"Soft: {soft.margin_width_:.2f} wide, at a price")

# %%
# The smallest slack that (w, b) allows is :math:`\max(0, 1 - y f(x))`, the hinge. Put it in, and there are no
# constraints left: the soft margin is the hinge loss plus half the squared norm. ``LinearSVC`` solves this form,
# without multipliers, and finds the same function.
table = soft.margins(X, y)
objective = w @ w / 2 + C * Hinge().value(y, X @ w + b).sum()
plain = LinearSVC(C=C, loss="hinge", tol=1e-9).fit(X, y)
assert np.allclose(table.slack, np.maximum(0, 1 - y * (X @ w + b)))
assert np.isclose(objective, soft.certificate_.primal)
assert np.allclose(plain.decision_function(X), soft.decision_function(X), atol=1e-4)

# %%
# The dual
# --------
# Give each constraint a multiplier :math:`\alpha_i \ge 0`, add them up, and minimise over w, b and the slacks. Then
# :math:`w = \sum_i \alpha_i y_i x_i`, :math:`\sum_i \alpha_i y_i = 0` and :math:`0 \le \alpha_i \le C`, and what is
# left is
#
# .. math:: g(\alpha) = \sum_i \alpha_i - \tfrac12 \sum_{ij} \alpha_i \alpha_j y_i y_j \langle x_i, x_j \rangle.
#
# Each such :math:`\alpha` gives a bound: :math:`g(\alpha)` is at most the least value of the primal, and so at most its
# value at any (w, b). This is weak duality, and here are a thousand bounds.
Q = (y[:, None] * X) @ (y[:, None] * X).T


def g(alpha):
    return alpha.sum() - alpha @ Q @ alpha / 2


def primal(w, b):
    return w @ w / 2 + C * Hinge().value(y, X @ w + b).sum()


bounds, values = np.empty(1000), np.empty(1000)
for i in range(1000):
    alpha = rng.uniform(0, C, 40) * (rng.random(40) < rng.random())
    for side in (-1, 1):  # make both classes weigh the same, by making the heavier one lighter
        alpha[y == side] *= min(1.0, alpha[y == -side].sum() / max(alpha[y == side].sum(), 1e-12))
    bounds[i], values[i] = g(alpha), primal(rng.normal(size=2), rng.normal())
assert bounds.max() <= soft.certificate_.primal <= values.min()

# %%
# The constraints are affine and can be met, so that strong duality holds (Slater): the largest bound is the least
# value. A fit ends when its own two bounds are closer than ``tol``. Its certificate states them, and ``verify``
# computes them again. An off-the-shelf solver of quadratic programs, which knows nothing of kernels, comes to the same
# number.
print(soft.certificate_)
checked = soft.certificate_.verify(X, y)
assert checked.relative_gap < 1e-8
assert checked.dual <= checked.primal + 1e-9
quadratic_program = minimize(
    lambda alpha: -g(alpha),
    np.zeros(40),
    jac=lambda alpha: Q @ alpha - 1,
    bounds=[(0, C)] * 40,
    constraints={"type": "eq", "fun": lambda alpha: alpha @ y, "jac": lambda alpha: y},
    method="SLSQP",
    options={"ftol": 1e-12, "maxiter": 500},
)
print(f"a quadratic program: {-quadratic_program.fun:.6f}; the machine: {checked.dual:.6f}")
assert np.isclose(-quadratic_program.fun, checked.dual, rtol=1e-6)
assert max(bounds.max(), g(quadratic_program.x)) <= checked.primal + 1e-6

# %%
# A fit may be ended at any step, and is then the best so far, with two bounds that say how good. Here it is ended after
# 1, 2, 3, ... steps.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # each says that it was ended early
    ended = [
        SVC(C=C, kernel=Linear(), tol=1e-9, max_iter=n).fit(X, y).certificate_ for n in range(1, 26)
    ]
above, below = ([getattr(c, name) for c in ended] for name in ("primal", "dual"))
assert max(below) <= checked.primal <= min(above) + 1e-9
assert (np.diff(below) >= -1e-9).all()  # the dual bound only rises
bounds_over_steps = plots.DualityDisplay(
    "SVC", np.arange(1, 26), np.array(above), np.array(below)
).plot()

# %%
# What the multipliers say
# ------------------------
# Where both meet, each multiplier times its constraint is 0 (complementary slackness). So
#
# - :math:`\alpha = 0`: the point keeps its distance, :math:`y f \ge 1`;
# - :math:`0 < \alpha < C`: it lies on the margin, :math:`y f = 1`;
# - :math:`\alpha = C`: it lies inside the street or on the wrong side, :math:`y f \le 1`.
#
# ``margins`` is the table of these roles, and its last column says by how much a point breaks its rule.
print(table.groupby("role").head(2).round(4).to_string())
alpha, room = table.alpha.to_numpy(), table.margin.to_numpy()
free = (alpha > 0) & (alpha < C)
assert (room[alpha == 0] >= 1 - 1e-4).all()
assert (room[alpha == C] <= 1 + 1e-4).all()
assert np.allclose(room[free], 1, atol=1e-4)
assert free.sum() >= 2
assert table.kkt.max() < 1e-4
assert set(table.role[free]) == {"on the margin"}
assert set(table.role[alpha == 0]) == {"outside"}

# %%
# w is a sum over the points with :math:`\alpha > 0`, the support vectors. Those on the margin know the offset,
# :math:`b = y_i - \langle w, x_i \rangle`; it is averaged over them. All others can be thrown away: a machine that is
# fitted to the support vectors alone is the same.
assert np.allclose(w, (alpha * y) @ X)
assert abs(alpha @ y) < 1e-9
assert np.isclose(b, np.mean(y[free] - X[free] @ w), atol=1e-4)
kept = soft.support_
assert np.array_equal(kept, np.flatnonzero(alpha > 0))
assert len(kept) < 40
again = SVC(C=C, kernel=Linear(), tol=1e-9).fit(X[kept], y[kept])
print(f"{len(kept)} of 40 points are support vectors")
assert np.allclose(again.decision_function(X), soft.decision_function(X), atol=1e-3)

# %%
# Plot :math:`\alpha` against the margin, and the three rules are an L upside down: all points lie on it. A point that
# did not would say how to improve the machine.
roles = plots.kkt(soft, X, y)

# %%
# In the lab
# ----------
# .. lab:: kernel=Linear%28%29&loss=hinge&C=100&task=classes&view=points
#    &points=kTgyAscfjBSoYnAqkkkBPOcKAspt5BT8TwAwil-BTJesAqEtjBTYUEAuNl1BVzhPAtmnpBX-aTAt4m5BRrhdAvElHBSUclAtSjeBYF
#    WOAtDhEBXUe4Anmi3BUzXMAwOlvBQJiIAt4i5BVadLAqmswBf9bvAr4h2BSxXqAs4mOBPAZjAt_kNBUMZTAp8u7BWzWwAmIh4B
#
#    One point in the wrong place, at a price of 100. Take C down: the street widens, and that point pays.

# %%
# This page shows M2-M4, M6-M8 and M16.
