"""
Support vectors, from the hard margin to the certificate
========================================================

Two clouds of points in the plane, and what the notes say about the machine between them (M2 to M10), each claim
computed from a fitted model and checked beside it.
"""

# %%
# M2. The hard margin
# -------------------
# Of all lines between the classes, the one whose distance from the nearest points is largest. ``C=inf`` allows no
# slack; where no line separates the classes the fit says so, and says how it knows.
import math
import warnings

import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, SVC, Gram, Linear, LinearSVC, Pegasos, plots
from mercer.losses import Hinge
from mercer.solvers import Control, Infeasible, SVMDual, solve
from mercer.solvers.representer.plug_in import plug_in

rng = np.random.default_rng(0)
y = np.repeat([-1, 1], 40)
apart = rng.normal(size=(80, 2)) + 3.0 * y[:, None]
hard = SVC(C=math.inf, kernel=Linear()).fit(apart, y)
distance = np.abs(hard.decision_function(apart)) / np.linalg.norm(hard.coef_)
print(f"M2  margin width {hard.margin_width_:.3f}, twice the distance of the nearest point {2 * distance.min():.3f}")

X = rng.normal(size=(80, 2)) + 0.9 * y[:, None]
try:
    SVC(C=math.inf, kernel=Linear()).fit(X, y)
except Infeasible as refused:
    print(f"M2  the overlapping clouds: {refused}")

# %%
# M3. The soft margin
# -------------------
# Slack has a price C. It is 0 up to the margin, 1 on the hyperplane, and 3 two margins beyond it.
soft = SVC(C=1.0, kernel=Linear(), tol=1e-8).fit(X, y)
w, b = soft.coef_[0], soft.intercept_[0]
foot = -b * w / (w @ w)  # a point with f = 0
there = np.array([foot + t * w / (w @ w) for t in (1.0, 0.0, -2.0)])  # f = 1, 0 and -2
print(f"M3  slack of a positive point at f = 1, 0, -2: {soft.margins(there, [1, 1, 1]).slack.round(6).tolist()}")

fig, axes = plt.subplots(1, 2, figsize=(10, 6.4), layout="constrained")
plots.boundary(hard, apart, y, ax=axes[0])
plots.boundary(soft, X, y, ax=axes[1])

# %%
# M4. The same thing as hinge loss plus a penalty
# -----------------------------------------------
# LinearSVC minimises ``1/2 |w|^2 + C sum hinge`` over w and b directly, without alphas.
primal = LinearSVC(loss="hinge", C=1.0, tol=1e-8).fit(X, y)
value = 0.5 * w @ w + Hinge().value(y, X @ w + b).sum()
print(f"M4  largest |f - f'| of the two routes {np.abs(primal.decision_function(X) - X @ w - b).max():.1e}")
print(f"M4  1/2 |w|^2 + C sum hinge = {value:.6f}, the certificate says {soft.certificate_.primal:.6f}")

# %%
# M5. Subgradient descent
# -----------------------
# Pegasos takes steps 1 / (lambda t), lambda = 1 / (C n): close soon, exact never. It has no offset here, so the exact
# value beside it is that of a machine without one.
slow = Pegasos(lam=1 / 80, max_epochs=64, evaluate="log", tol=1e-9, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it does not converge: that is the point
    slow.fit(X, y)
exact = LinearSVC(C=1.0, fit_intercept=False, tol=1e-8).fit(X, y).certificate_.primal / 80
course = ", ".join(f"{steps / len(X):g}: {primal:.4f}" for steps, primal in slow.history_[["steps", "primal"]])
print(f"M5  objective after so many passes: {course}; minimum {exact:.4f}")

# %%
# M6. Weak duality as a receipt
# -----------------------------
# dual <= optimum <= primal, so the gap bounds what any other solution could gain. ``verify`` computes it again from the
# data, in float64, by code that the solver does not share.
print("M6  " + str(soft.certificate_).replace("\n", "\n    "))
checked = soft.certificate_.verify(X, y)
print(f"M6  verified: primal {checked.primal:.8g}, dual {checked.dual:.8g}, worst KKT residual {checked.kkt:.1e}")

# %%
# M7. Complementary slackness
# ---------------------------
# alpha = 0: y f >= 1. 0 < alpha < C: y f = 1. alpha = C: y f <= 1. The last column is the amount by which a sample
# breaks its rule.
table = soft.margins(X, y)
print(table.groupby("role").head(2).sort_values("alpha").round(4).to_string())
print(f"M7  samples: {table.role.value_counts().to_dict()}; worst violation {table.kkt.max():.1e}")

# %%
# M8. Only support vectors matter
# -------------------------------
# w = sum alpha_i y_i x_i, and a fit to the support vectors alone finds the same machine.
alpha = table.alpha.to_numpy()
again = SVC(C=1.0, kernel=Linear(), tol=1e-8).fit(X[soft.support_], y[soft.support_])
print(f"M8  |w - sum alpha y x| = {np.linalg.norm(w - (alpha * y) @ X):.1e}, {len(soft.support_)} support vectors")
print(f"M8  largest change of f without the others {np.abs(again.decision_function(X) - X @ w - b).max():.1e}")

# %%
# M9. Kernels, by the dual and by the primal
# ------------------------------------------
# Plugging f = sum a_i k(x_i, .) into the primal, without offset, gives the same function as the dual.
gram, control = Gram(RBF(scale=1.0), X), Control(tol=1e-8)
dual = SVMDual(gram, linear=-1.0 * y, upper=np.where(y > 0, 1.0, 0.0), lower=np.where(y < 0, 1.0, 0.0), offset="none")
(by_dual,), by_primal = solve([dual], control), plug_in(gram, y, C=1.0, control=control)
print(f"M9  largest |f - f'| of the two solvers {np.abs(by_dual.values - by_primal.values).max():.1e}")

# %%
# M10. Zones of the decision
# --------------------------
# f <= -1: the negative class; up to 0: probably; up to 1: probably the positive class; from 1 on: the positive class.
gauss = SVC(C=1.0, kernel=RBF(scale=1.0)).fit(X, y)
zones, counts = np.unique(gauss.zones(X), return_counts=True)
print(f"M10 points in the zones -2, -1, 1, 2: {dict(zip(zones.tolist(), counts.tolist(), strict=True))}")

fig, ax = plt.subplots(figsize=(5.6, 6.6), layout="constrained")
plots.boundary(gauss, X, y, ax=ax)
