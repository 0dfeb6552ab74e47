r"""
4. The representer theorem
==========================

A model is to fit n values and to be simple: it minimises a loss of its values at the n points plus something that grows
with its norm. The space H may have infinitely many dimensions. The theorem says that n of them are enough, whatever the
loss and whatever the penalty, and its proof is one picture.
"""

# %%
# The proof, in numbers
# ---------------------
# Take any function g of H, with centres wherever you like. Project it on the span of the kernel functions of the data,
# :math:`k(x_1, \cdot), \dots, k(x_n, \cdot)`. What is left over is orthogonal to each of them, and
# :math:`\langle g - f, k(x_i, \cdot) \rangle = g(x_i) - f(x_i)` by the reproducing property: so
#
# - f has the values of g at the data, and no loss can tell them apart;
# - :math:`\|g\|^2 = \|f\|^2 + \|g - f\|^2`: f is not longer than g.
#
# A minimiser can therefore be looked for among :math:`f = \sum_i a_i k(x_i, \cdot)`.
import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, SVC, KernelMachine, KernelRidge, RKHSFunction
from mercer.losses import (
    Absolute,
    Ball,
    Hinge,
    Huber,
    LargestErrors,
    Logistic,
    Norm,
    Pinball,
    Squared,
    SquaredNorm,
)
from mercer.plots.style import BLUE, INK, MUTED, house

k = RBF(scale=0.4)
rng = np.random.default_rng(0)
X = np.array([[-2.2], [-1.1], [0.1], [1.4], [2.4]])
g = RKHSFunction(k, rng.uniform(-3.5, 3.5, size=(25, 1)), rng.normal(size=25))
f, left_over, _ = g.project(X)
assert np.allclose(f(X), g(X))
assert np.isclose(g.norm() ** 2, f.norm() ** 2 + left_over**2)
assert len(f) == 5
assert len(g) == 25
print(f"norms: {g.norm():.2f} of g, {f.norm():.2f} of f, {left_over:.2f} of what is left over")
for x in X:
    assert abs((g - f) @ RKHSFunction(k, [x], [1.0])) < 1e-9

t = np.linspace(-3.6, 3.6, 400)[:, None]
with house():
    fig, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    ax.plot(t, g(t), color=MUTED, lw=1.4, label=f"g: 25 centres, norm {g.norm():.1f}")
    ax.plot(t, f(t), color=BLUE, lw=2.2, label=f"its projection: 5 centres, norm {f.norm():.1f}")
    ax.plot(X, f(X), "o", color=INK, ms=6, zorder=3, label="the data's places")
    ax.set(xlabel="x")
    ax.set_title("No loss at the five points can tell them apart")
    ax.legend(loc="best")

# %%
# Nothing was assumed of the loss but that it looks at the values :math:`f(x_1), \dots, f(x_n)`, and nothing of the
# penalty but that it increases with the norm. Ten functions, eight losses and three penalties: the projection never
# costs more.
y = np.array([0.5, -1.0, 0.3, 1.2, -0.4])
label = np.where(y > 0, 1.0, -1.0)
losses = [
    (Squared(), y),
    (Absolute(), y),
    (Huber(0.5), y),
    (Pinball(0.9), y),
    (Hinge(), label),
    (Logistic(), label),
]
joint = [
    lambda v: np.abs(y - v).max(),
    lambda v: np.ptp(y - v),
]  # theirs are no sums over the points
values = [lambda v, loss=loss, z=z: loss.value(z, v).sum() for loss, z in losses] + joint
penalties = [SquaredNorm(0.3), Norm(1.0), Ball(radius=5.0)]
assert len(values) == 8
assert len(penalties) == 3
for _ in range(10):
    g = RKHSFunction(k, rng.uniform(-4, 4, size=(12, 1)), rng.normal(size=12))
    f = g.project(X).function
    for loss in values:
        for R in penalties:
            assert loss(f(X)) + R.value(f.norm()) <= loss(g(X)) + R.value(g.norm()) + 1e-9

# %%
# One engine
# ----------
# ``KernelMachine`` takes a kernel, a loss and a penalty, and finds the n coefficients and the offset. Here are 80 noisy
# values of a sine, a tenth of them spoiled.
n = 80
x = np.sort(rng.uniform(-3, 3, size=(n, 1)), axis=0)
target = np.sin(1.5 * x[:, 0]) + 0.15 * rng.normal(size=n)
spoiled = rng.choice(n, n // 10, replace=False)
target[spoiled] += 3.0

fits = {}
for name, loss in {
    "squared": Squared(),
    "absolute": Absolute(),
    "Huber": Huber(0.3),
    "quantile 0.9": Pinball(0.9),
    "largest error": LargestErrors(1),
}.items():
    model = KernelMachine(RBF(scale=0.8), loss, penalty=0.3).fit(x, target)
    assert len(model.function_) <= n
    assert model.certificate_.converged
    assert model.certificate_.verify(x, target).converged  # found again by other code
    fits[name] = model

true = np.sin(1.5 * x[:, 0])
off = {name: np.sqrt(np.mean((model.predict(x) - true) ** 2)) for name, model in fits.items()}
print({name: round(float(value), 2) for name, value in off.items()})
assert off["absolute"] < off["squared"] / 2
assert off["Huber"] < off["squared"] / 2
under = np.mean(target <= fits["quantile 0.9"].predict(x) + 1e-6)
assert abs(under - 0.9) < 0.03

# %%
# A minimum can be tested from outside: no step into H, along centres the machine never saw, lowers the objective.
best = fits["Huber"].function_


def objective(f):
    return Huber(0.3).value(target, f(x)).sum() + 0.3 * f.norm() ** 2 / 2


for _ in range(50):
    elsewhere = RKHSFunction(
        best.kernel, rng.uniform(-4, 4, size=(5, 1)), 1e-3 * rng.normal(size=5)
    )
    assert objective(best + elsewhere) >= objective(best) - 1e-4 * objective(best)

# %%
# A loss of your own is an object with a value and a derivative. This one fears errors on one side: a unit too little
# costs exponentially, a unit too much linearly. Any increasing penalty will do, too, such as :math:`\|f\|^4 / 4`.


class Linex:
    smooth = True

    def value(self, y, f):
        return np.exp(y - f) - (y - f) - 1

    def derivative(self, y, f):
        return 1 - np.exp(y - f)


class Quartic:
    def value(self, t):
        return t**4 / 4

    def derivative(self, t):
        return t**3


clean = np.sin(1.5 * x[:, 0]) + 0.15 * rng.normal(size=n)
careful = KernelMachine(RBF(scale=0.8), Linex(), penalty=Quartic()).fit(x, clean)
assert careful.certificate_.converged
assert np.mean(careful.predict(x) - clean) > 0

# %%
# The models of the next pages are special cases: ridge regression is the squared loss, the support vector machine the
# hinge, each with a squared norm.
same = {"alpha": 0.3, "kernel": RBF(scale=0.8)}
ridge = KernelMachine(RBF(scale=0.8), Squared(), penalty=0.3, fit_intercept=False, tol=1e-9).fit(
    x, target
)
assert np.allclose(ridge.predict(x), KernelRidge(**same).fit(x, target).predict(x), atol=1e-4)
margin = KernelMachine(RBF(scale=0.8), Hinge(), penalty=0.1, tol=1e-8).fit(x, true > 0)
svc = SVC(C=10.0, kernel=RBF(scale=0.8), tol=1e-8).fit(x, true > 0)
assert np.allclose(margin.decision_function(x), svc.decision_function(x), atol=1e-3)

# %%
# One picture for the theorem: five losses, five different answers, and each of them is a sum of the same 80 kernel
# functions.
grid = np.linspace(-3, 3, 300)[:, None]
with house():
    fig, axes = plt.subplots(1, 5, figsize=(10.5, 2.9), layout="constrained", sharey=True)
    for ax, (name, model) in zip(axes, fits.items(), strict=True):
        ax.plot(x, target, "o", color=MUTED, ms=3, alpha=0.6)
        ax.plot(grid, np.sin(1.5 * grid), color=INK, lw=1, ls=(0, (4, 3)))
        ax.plot(grid, model.predict(grid), color=BLUE, lw=2)
        ax.set_title(name)
        ax.set(xlabel="x")
    axes[0].set(ylabel="y; dashed: without noise")

# %%
# In the lab
# ----------
# .. lab:: kernel=RBF%28scale%3D0.8%29&loss=absolute&C=3&task=values&view=dual
#    &points=KXoiAx4UTAUUcjAry2KAU8cUAqrneAZDVOAtfeZAP3pNA1lZ_AO9sSAqgoaANJqSAyuoNALlmnAw2T8AXaTWA01TUAaTUlAtVdSASc
#    kHAyzUhARVk-
#    A1KrvAX3UhAtVfLAM1sSAs4duAN2qcApLqcAXfSrAzlTqAW7aUAvouBAWzbNAzuUDAVvemAv4VwAaHUIAs9d9AYRVUA1kVwAVBZUAxIqlAYjUH
#    ArvjnAKUoLAzqUwAWcYSAwgVdA
#
#    The absolute loss, a tenth of the values spoiled. Swap the loss: other coefficients, the same kernel functions.

# %%
# This page shows M13.
