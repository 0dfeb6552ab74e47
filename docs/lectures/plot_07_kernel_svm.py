r"""
7. The kernel support vector machine
====================================

The dual of the last page knows points only through their inner products. Put a kernel in their place, and the same
machine draws hyperplanes in the kernel's space, which are curves in ours.
"""

# %%
# Where the kernel goes
# ---------------------
# The dual was :math:`\sum_i \alpha_i - \tfrac12 \sum_{ij} \alpha_i \alpha_j y_i y_j \langle x_i, x_j \rangle`, and the
# decision :math:`f(x) = \sum_i \alpha_i y_i \langle x_i, x \rangle + b`. With features :math:`\Phi` the inner products
# are :math:`k(x_i, x_j)`, and nothing else changes. So a linear machine after a lift and a machine with the lift's
# kernel are one machine. Exclusive or: two classes in opposite corners, and the product :math:`x_1 x_2` tells them
# apart.
import math
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from mercer import RBF, SVC, FromFeatures, Gram, KernelMachine, Linear, Monomials, Polynomial, plots
from mercer.losses import Hinge
from mercer.plots.style import house
from mercer.solvers import Control, plug_in

xor = plots.LIFTS["xor"]
X, y = xor.sample()
by_kernel = SVC(C=1.0, kernel=FromFeatures(xor), tol=1e-8).fit(X, y)
by_features = SVC(C=1.0, kernel=Linear(), tol=1e-8).fit(xor(X), y)
assert np.allclose(by_kernel.decision_function(X), by_features.decision_function(xor(X)), atol=1e-4)
by_kernel = SVC(C=1.0, kernel=Polynomial(degree=2), tol=1e-8).fit(X, y)
by_features = SVC(C=1.0, kernel=Linear(), tol=1e-8).fit(Monomials(degree=2).fit_transform(X), y)
after = by_features.decision_function(Monomials(degree=2).fit_transform(X))
assert np.allclose(by_kernel.decision_function(X), after, atol=1e-4)

with house():
    fig = plt.figure(figsize=(11, 4.8), layout="constrained")
    space = fig.add_subplot(1, 2, 2, projection="3d")
    plots.lift("xor", axes=[fig.add_subplot(1, 2, 1), space])
    space.set_box_aspect((1, 1, 0.82), zoom=1.05)

# %%
# The classic lifts are five: rings, exclusive or, points on a line with :math:`x \mapsto (x, x^2)`, stripes with
# :math:`(x_1, (x_1 + x_2)^4)`, corners with :math:`(x_1^2 - x_1, x_2^2 - x_2)`. Before the lift no machine with a
# straight cut gets all points right; after it a hard margin exists. And a kernel that was not made for any of them, the
# Gaussian, separates them all.
for name, lift in plots.LIFTS.items():
    points, classes = lift.sample()
    cut = SVC(C=100.0, kernel=Linear()).fit(points, classes).score(points, classes)
    lifted = SVC(C=math.inf, kernel=FromFeatures(lift)).fit(points, classes)
    gauss = SVC(C=1e4, kernel=RBF(scale=0.5)).fit(points, classes).score(points, classes)
    after = lifted.score(points, classes)
    print(f"{name}: {cut:.0%} with a straight cut, {after:.0%} lifted, {gauss:.0%} with a Gaussian")
    assert cut < 0.9
    assert lifted.score(points, classes) == gauss == 1.0

# %%
# What it costs
# -------------
# In 20 variables there are 10,626 monomials up to degree 4. A machine with the kernel never sees them.
rng = np.random.default_rng(0)
wide = rng.normal(size=(150, 20)) / math.sqrt(20)
side = np.sign(wide[:, 0] * wide[:, 1] + wide[:, 2] ** 2 - 0.05)
start = time.perf_counter()
implicit = SVC(C=10.0, kernel=Polynomial(degree=4), tol=1e-8).fit(wide, side)
middle = time.perf_counter()
Phi = Monomials(degree=4).fit_transform(wide)
explicit = SVC(C=10.0, kernel=Linear(), tol=1e-8).fit(Phi, side)
end = time.perf_counter()
print(f"kernel: {middle - start:.3f} s; {Phi.shape[1]:,} features: {end - middle:.3f} s")
assert Phi.shape == (150, 10_626)
assert np.allclose(implicit.decision_function(wide), explicit.decision_function(Phi), atol=1e-3)

# %%
# Two ways to the same machine
# ----------------------------
# One is the dual. The other is the representer theorem: put :math:`f = \sum_j a_j k(x_j, \cdot)` into the primal,
# without an offset, and minimise over a,
#
# .. math:: \min_a \sum_i \max(0, 1 - y_i (K a)_i) + a^\top K a.
#
# This is the machine with :math:`C = \tfrac12`, since ours has a half before the norm: its objective is half of this
# one. ``plug_in`` minimises it by Newton's method on a hinge whose kink is rounded less and less. Both ways agree.
X, y = make_moons(120, noise=0.25, random_state=3)
sign = 2.0 * y - 1.0
kernel = RBF(scale=0.5)
dual = SVC(C=0.5, kernel=kernel, fit_intercept=False, tol=1e-9).fit(X, sign)
primal = plug_in(Gram(kernel, X), sign, C=0.5, control=Control(tol=1e-9))
apart = np.abs(primal.values - dual.decision_function(X)).max()
print(f"largest difference of the two functions: {apart:.0e}")
assert apart < 1e-4

K = kernel(X)
a = np.zeros(120)
a[dual.support_] = dual.dual_coef_[0]


def notes(a):
    return Hinge().value(sign, K @ a).sum() + a @ K @ a


assert np.isclose(notes(a), 2 * dual.certificate_.primal, rtol=1e-8)
assert all(notes(a) <= notes(a + 0.01 * rng.normal(size=120)) for _ in range(100))
assert (sign[dual.support_] * a[dual.support_] > 0).all()  # a_i has the sign of its class

# %%
# A third way is the engine of page 4, with the hinge for a loss.
engine = KernelMachine(kernel, Hinge(), penalty=2.0, fit_intercept=False, tol=1e-9).fit(X, sign)
assert np.allclose(engine.decision_function(X), dual.decision_function(X), atol=1e-4)

# %%
# How sure is the decision?
# -------------------------
# Beyond the margins, :math:`|f| \ge 1`, the machine is sure; between them the class is only probable. ``zones`` says
# which: -2 and 2 outside the street, -1 and 1 on either side of the middle.
machine = SVC(C=10.0, kernel=kernel).fit(X, y)
f, zone = machine.decision_function(X), machine.zones(X)
assert np.array_equal(zone, np.select([f <= -1, f < 0, f < 1], [-2, -1, 1], 2))
test, truth = make_moons(4000, noise=0.25, random_state=4)
right = machine.predict(test) == truth
sure = np.abs(machine.zones(test)) == 2
where_sure, elsewhere = right[sure].mean(), right[~sure].mean()
print(f"new points: {where_sure:.1%} right where sure, {elsewhere:.1%} where probable")
assert where_sure > 0.95 > 0.8 > elsewhere

# %%
# A decision asks for the kernel between the new point and the support vectors, and for no other.
kept = machine.support_
by_few = kernel(test, X[kept]) @ machine.dual_coef_[0] + machine.intercept_[0]
print(f"{len(kept)} of {len(X)} points are support vectors")
assert len(kept) < len(X) / 2
assert np.allclose(by_few, machine.decision_function(test))

# %%
# The same points, the same C, three kernels: a line, a cubic, and a curve as the points ask for it. Dashed are the
# margins.
kernels = [Linear(), Polynomial(degree=3), RBF(scale=0.5)]
three = plots.boundaries(SVC(C=10.0), X, y, kernel=kernels)
three.set_figheight(3.2)
scores = {repr(k): SVC(C=10.0, kernel=k).fit(X, y).score(test, truth) for k in kernels}
for ax, (name, score) in zip(three.axes, scores.items(), strict=True):
    ax.set_title(f"{name}\n{score:.0%} of new points right", loc="left", fontsize=10)
print(scores)
assert scores["Linear()"] < 0.9
assert scores["RBF(scale=0.5)"] > 0.92

# %%
# In the lab
# ----------
# .. lab:: kernel=Polynomial%28degree%3D2%29&loss=hinge&C=1&task=classes&view=lift
#    &points=S9bhAnDVGBQbkUBnTtwAa_aUAsOcZBX8moBtbuKAR8aLA0RYZBd4teBq5sEAWSVrAnUSpBXH1wBnntvAUlVrArzWeBZNg1BqTqJAXW
#    VlAryaWBbbsCBv7mlAO9YTAywZ-Bb_pYBldkXAagW1AuLPaBT9utBxwmfATXZTAq4VoBStrcBu3k-
#    AN4ZfAojTvBUmk2BsuzAAUEYdAu8WrBXanWBqkn1ASbXwAsVSmBaRp3BsxrtAb7WpArbPnBUkvpBoJnVAWjXkAwbU4BaAtyBvAocAVBVaApNRP
#    BPGtlBuasGAOhYeAnuUdBR6oUBomuoAYHUVAk6VMBXUsWBrdnfAYWVfArTTSBUftVBvmmxASuX9Av2RXBSprsBxnmOAYTRqAooXZBYAsvBs6oN
#    A
#
#    Exclusive or, and f as a sheet that is cut at 0. Type ``Linear()``: the sheet is flat, and no cut of it will do.

# %%
# This page shows M9, M10, K11 and F4.
