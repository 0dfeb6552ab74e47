r"""
8. Ridge regression, with features and with kernels
===================================================

The oldest of the penalised models, and the only one with a formula for its solution. It shows in two lines of algebra
why n coefficients are enough, what a kernel saves, and what the penalty does.
"""

# %%
# A linear model sees what its features show
# ------------------------------------------
# A linear model can only rise or fall along each feature. Three things it cannot say by itself, and what to give it:
#
# - health is best at a temperature in the middle: add the square;
# - the thousandth buyer says less than the tenth: take :math:`\log(1 + x)`, or buckets [0, 10), [10, 100), ...;
# - it is weight for a given height that matters: add all products.
#
# The square need not be centred at 37 degrees, nor the product be anyone's formula. Simple building blocks will do, and
# the fit finds their weights.
import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, KernelRidge, KernelRidgeCV, Linear, Monomials, Polynomial, Ridge
from mercer.plots.style import BLUE, INK, MUTED, RED, house

rng = np.random.default_rng(0)
n = 300
temperature = rng.uniform(34, 40, n)
health = 10 - (temperature - 37) ** 2 + 0.5 * rng.normal(size=n)
buyers = 10 ** rng.uniform(0, 3, n)
interest = np.log1p(buyers) + 0.3 * rng.normal(size=n)
height, weight = rng.normal(175, 10, n), rng.normal(75, 12, n)
shape = -(((weight - 75) - (height - 175)) ** 2) / 100 + 0.3 * rng.normal(size=n)


def fitted(features, target):
    Phi = np.column_stack(features)
    model = Ridge(alpha=1e-3).fit(Phi, target)
    return model.predict(Phi), model.score(Phi, target)


buckets = [((buyers >= low) & (buyers < 10 * low)).astype(float) for low in (1, 10, 100)]
people = np.column_stack([height - 175, weight - 75]) / 10
products = Monomials(degree=2).fit_transform(people)[:, 1:].T  # without the constant
cases = {
    "temperature and its square": (
        health,
        [temperature - 34],
        [temperature - 34, (temperature - 34) ** 2],
    ),
    "log(1 + buyers)": (interest, [buyers], [np.log1p(buyers)]),
    "buckets": (interest, [buyers], buckets),
    "height, weight, their products": (shape, people.T, products),
}
r2 = {
    name: (fitted(plain, target)[1], fitted(better, target)[1])
    for name, (target, plain, better) in cases.items()
}
for name, (before, after) in r2.items():
    print(f"{name}: R² {before:.2f} before, {after:.2f} with these features")
assert r2["temperature and its square"][0] < 0.1
assert r2["temperature and its square"][1] > 0.95
assert r2["log(1 + buyers)"][1] > r2["buckets"][1] > 0.85 > 0.7 > r2["buckets"][0]
assert r2["height, weight, their products"][0] < 0.1
assert r2["height, weight, their products"][1] > 0.95

with house():
    fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for ax, x, name in zip(axes, (temperature, buyers, buyers), cases, strict=False):
        target, plain, better = cases[name]
        order = np.argsort(x)
        ax.plot(x, target, "o", color=MUTED, ms=2.5, alpha=0.5)
        ax.plot(x[order], fitted(plain, target)[0][order], color=RED, lw=1.5, label="as it is")
        ax.plot(x[order], fitted(better, target)[0][order], color=BLUE, lw=2, label="with features")
        ax.set_title(name)
    axes[0].set(xlabel="temperature", ylabel="health")
    axes[0].legend(loc="lower center")
    axes[1].set(xlabel="buyers", ylabel="interest")
    axes[2].set(xlabel="buyers", xscale="log")

# %%
# The solution lies in the span of the data
# -----------------------------------------
# Ridge regression minimises :math:`\|X w - y\|^2 + \lambda \|w\|^2`. Set the gradient to 0:
# :math:`w = (X^\top X + \lambda I)^{-1} X^\top y`, a system with one equation for each feature. But
# :math:`(X^\top X + \lambda I) X^\top = X^\top (X X^\top + \lambda I)`, so that also
#
# .. math:: w = X^\top a, \qquad a = (X X^\top + \lambda I)^{-1} y,
#
# a system with one equation for each sample: w is a sum of rows of X. Both are the same w; the smaller system is the
# cheaper. ``Ridge`` chooses it.
lam = 0.7
X = rng.normal(size=(30, 500))
z = X[:, 0] + rng.normal(size=30)
w = np.linalg.solve(X.T @ X + lam * np.eye(500), X.T @ z)
a = np.linalg.solve(X @ X.T + lam * np.eye(30), z)
assert np.allclose(w, X.T @ a)
wide = [
    Ridge(alpha=lam, solver=how, fit_intercept=False).fit(X, z)
    for how in ("primal", "dual", "auto")
]
assert all(np.allclose(model.coef_, w) for model in wide)
assert wide[2].solver_ == "dual"  # 500 features, 30 samples
assert Ridge(alpha=lam, fit_intercept=False).fit(X[:, :5], z).solver_ == "primal"  # 5 features
outside = w - X.T @ np.linalg.lstsq(X.T, w)[0]
assert np.linalg.norm(outside) < 1e-12

# %%
# And so with kernels
# -------------------
# The second form knows X by inner products alone. With a kernel it is kernel ridge regression,
#
# .. math:: f = \sum_i a_i k(x_i, \cdot), \qquad a = (K + \lambda I)^{-1} y,
#
# the minimiser of :math:`\sum_i (y_i - f(x_i))^2 + \lambda \|f\|_H^2`. It is one linear system, and its residual says
# how exactly it was solved. With a polynomial kernel it is ridge regression on all monomials.
x = np.sort(rng.uniform(-3, 3, size=(60, 1)), axis=0)
y = np.sin(2 * x[:, 0]) + 0.25 * rng.normal(size=60)
kernel = RBF(scale=0.4)
model = KernelRidge(alpha=lam, kernel=kernel, residual=1e-12).fit(x, y)
assert np.allclose(model.dual_coef_, np.linalg.solve(kernel(x) + lam * np.eye(60), y))
assert model.residual_ <= 1e-12
f = model.function_
J = np.sum((y - f(x)) ** 2) + lam * f.norm() ** 2
assert np.isclose(J, lam * y @ model.dual_coef_)  # the least value, in one line

cubic = KernelRidge(alpha=lam, kernel=Polynomial(degree=3)).fit(x, y)
monomials = Ridge(alpha=lam, fit_intercept=False).fit(Monomials(degree=3).fit_transform(x), y)
assert np.allclose(cubic.predict(x), monomials.predict(Monomials(degree=3).fit_transform(x)))
linear = KernelRidge(alpha=lam, kernel=Linear()).fit(X, z)
assert np.allclose(linear.predict(X), X @ w)

# %%
# Some notes put 1/n before the sum, and then mean a :math:`\lambda` that is n times smaller: their machine is ours
# at :math:`n \lambda`.
theirs = np.linalg.solve(kernel(x) + 60 * 0.01 * np.eye(60), y)
assert np.allclose(KernelRidge(alpha=60 * 0.01, kernel=kernel).fit(x, y).dual_coef_, theirs)

# %%
# Three hundred million features
# ------------------------------
# The notes imagine 314,457,495 features, all monomials of degree 8 in 40 variables. With a thousand samples the matrix
# of features would weigh 2.5 terabytes. The kernel matrix weighs 8 megabytes. (``benchmarks/lecture.py`` takes
# 300,000 samples.)
count = Monomials.count(40, 8, exact=True)
assert count == 314_457_495
assert round(1000 * count * 8 / 1e12, 1) == 2.5
assert 1000 * 1000 * 8 / 1e6 == 8


def sphere(size):
    z = rng.normal(size=(size, 40)) / np.sqrt(np.arange(1, 41))
    return z / np.linalg.norm(z, axis=1, keepdims=True)


power = Polynomial(degree=8, c1=0.0)
train, test, teacher = sphere(1000), sphere(500), sphere(20)
truth = power(np.vstack([train, test]), teacher) @ rng.normal(size=20)
truth = (truth - truth.mean()) / truth.std()
many = KernelRidge(alpha=0.1, kernel=power).fit(train, truth[:1000])
error = np.sqrt(np.mean((many.predict(test) - truth[1000:]) ** 2))
spread = truth[1000:].std()
print(f"{count:,} features: error {error:.2f} on new points, that of predicting 0 {spread:.2f}")
assert many.dual_coef_.shape == (1000,)
assert error < 0.7 * spread

# %%
# How much penalty
# ----------------
# Without a penalty f goes through all targets, noise and all. With a large one it is flat. In between, ask each sample
# what the fit without it would have said. For ridge regression this needs no refitting: the error is
# :math:`a_i / C_{ii}` with :math:`C = (K + \lambda I)^{-1}`. ``KernelRidgeCV`` looks at a whole path.
errors = model.loo_residuals()
inverse = np.linalg.inv(kernel(x) + lam * np.eye(60))
assert np.allclose(errors, model.dual_coef_ / np.diag(inverse))
without = np.arange(60) != 7
alone = KernelRidge(alpha=lam, kernel=kernel).fit(x[without], y[without])
assert np.isclose(errors[7], y[7] - alone.predict(x[7:8])[0])

alphas = np.logspace(-6, 3, 37)
path = [KernelRidge(alpha=alpha, kernel=kernel).fit(x, y) for alpha in alphas]
left_out = np.array([np.sqrt(np.mean(fit.loo_residuals() ** 2)) for fit in path])
trained = np.array([np.sqrt(np.mean((fit.predict(x) - y) ** 2)) for fit in path])
chosen = KernelRidgeCV(alphas=alphas, kernel=kernel).fit(x, y)
print(f"chosen: alpha = {chosen.alpha_:.2g}; error {left_out.min():.2f} where left out, noise 0.25")
assert np.isclose(chosen.alpha_, alphas[left_out.argmin()])
assert (np.diff(trained) > 0).all()  # the training error always says: no penalty
assert abs(left_out.min() - 0.25) < 0.05
assert path[-1].function_.norm() < 0.2 < path[0].function_.norm()

grid = np.linspace(-3, 3, 400)[:, None]
with house():
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4), layout="constrained", width_ratios=(1.4, 1)
    )
    left.plot(x, y, "o", color=MUTED, ms=4, alpha=0.7)
    looks = ((1e-6, RED, 1.1), (chosen.alpha_, BLUE, 2.4), (100.0, INK, 1.1))
    for alpha, colour, width in looks:
        fit = KernelRidge(alpha=alpha, kernel=kernel).fit(x, y)
        label = f"λ = {alpha:.2g}, norm {fit.function_.norm():.3g}"
        left.plot(grid, fit.predict(grid), color=colour, lw=width, label=label)
    left.set(xlabel="x", ylim=(-2.2, 2.8))
    left.set_title("Too little, enough, too much")
    left.legend(loc="upper left")
    right.loglog(alphas, trained, color=MUTED, label="on the samples themselves")
    right.loglog(alphas, left_out, color=BLUE, lw=2, label="on samples left out")
    for alpha, colour, _ in looks:
        right.plot(
            alpha, left_out[np.argmin(np.abs(np.log(alphas / alpha)))], "o", color=colour, ms=7
        )
    right.axhline(0.25, color=MUTED, lw=1, ls=(0, (4, 3)))
    right.annotate(
        "noise", (alphas[-1], 0.25), (0, 3), textcoords="offset points", ha="right", color=MUTED
    )
    right.set(xlabel="λ", ylabel="error")
    right.set_title("Samples that are left out can tell")
    right.legend()

# %%
# In the lab
# ----------
# .. lab:: kernel=RBF%28scale%3D0.4%29&loss=squared&C=1&task=values&view=points
#    &points=KXoiAx4UTAUUcjAryh2AU8cUAqrneAZDVOAtfeZAP3pNA1lZ_AO9sSAqgoaANJqSAyuT5ALlmnAw2T8AXaTWA01TUAaTUlAtVdSASc
#    kHAyzUhARVk-
#    A1KXbAX3UhAtVfLAM1sSAs4duAN2qcApLqcAXfSrAzlTqAW7aUAvoZtAWzbNAzuUDAVvemAv4VwAaHUIAs9d9AYRVUA1kVwAVBZUAxIWRAYjUH
#    ArvjnAKUoLAzqUwAWcYSAwgVdA
#
#    A sine with a gap, where C is :math:`1 / \lambda`. Take C up and down, and watch the line in the gap.

# %%
# This page shows M11, M12, F1-F3 and S.
