r"""
1. Kernels, and how more are made of them
=========================================

A kernel compares two points by one number :math:`k(x, z)`. Many numbers compare two points. This page says which of
them are kernels, how to see it from numbers, and how to make new kernels of old ones so that nobody has to look.
"""

# %%
# A feature that helps
# --------------------
# Two rings of points, one inside the other. No line separates them. Give each point a third coordinate,
# :math:`\Phi(x) = (x_1, x_2, x_1^2 + x_2^2)`, and a plane does.
#
# A machine that draws planes needs inner products of points only (page 6). So all that it has to know of
# :math:`\Phi` is the number :math:`k(x, z) = \langle \Phi(x), \Phi(z) \rangle`. Any Python feature map makes such a
# kernel.
import math

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from mercer import (
    RBF,
    SVC,
    FromFeatures,
    FromFunction,
    Linear,
    Monomials,
    Polynomial,
    TaylorFeatures,
    plots,
    verdict,
)
from mercer.plots.style import BLUE, INK, MUTED, RED, house

rings, side = plots.LIFTS["rings"].sample()


def with_square(X):
    return np.column_stack([X, (X**2).sum(axis=1)])


lifted = FromFeatures(with_square)
assert np.allclose(lifted(rings), with_square(rings) @ with_square(rings).T)
line = SVC(kernel=Linear()).fit(rings, side).score(rings, side)
plane = SVC(C=math.inf, kernel=lifted).fit(rings, side).score(rings, side)
print(f"right with a line: {line:.0%}; with a plane after the lift: {plane:.0%}")
assert line < 0.7
assert plane == 1.0  # C = inf: a plane that separates all points, or an error

with house():
    fig = plt.figure(figsize=(11, 4.8), layout="constrained")
    space = fig.add_subplot(1, 2, 2, projection="3d")
    plots.lift("rings", axes=[fig.add_subplot(1, 2, 1), space])
    space.set_box_aspect((1, 1, 0.82), zoom=1.05)

# %%
# What makes a similarity a kernel
# --------------------------------
# Take n points and write the similarities of all pairs into the Gram matrix :math:`K`. A symmetric :math:`k` is a
# kernel if, for whatever points, one of these holds. Each of them implies the others.
#
# - :math:`a^\top K a = \sum_{ij} a_i a_j k(x_i, x_j) \ge 0` for every vector :math:`a`;
# - no eigenvalue of :math:`K` is negative;
# - :math:`K = R^\top R` for some matrix :math:`R`, whose columns are features of the points.
#
# ``verdict`` decides it for given points. Where the answer is yes, it has the matrix :math:`R` to show.
X = np.random.default_rng(0).normal(size=(60, 2))
yes = verdict(RBF(scale=1.0), X)
R = yes.factor
assert yes.symmetric
assert yes.psd
assert yes.smallest > -yes.tolerance
assert np.allclose(R.T @ R, RBF(scale=1.0)(X))
print(yes)

# %%
# Where the answer is no, it has a vector :math:`a` with :math:`a^\top K a < 0`: a witness. "Alike if less than 1
# apart" sounds like a similarity. Put three points 0.7 apart. The outer two are both like the middle one and not like
# each other, and no features have such inner products: the smallest eigenvalue is :math:`1 - \sqrt 2`.
near = FromFunction(lambda x, z: float(abs(x[0] - z[0]) < 1.0))
three = [[0.0], [0.7], [1.4]]
no = verdict(near, three)
a = no.witness
print(near(three), "witness", a.round(3))
assert not no.psd
assert np.isclose(no.smallest, 1 - math.sqrt(2))
assert np.isclose(a @ near(three) @ a, 1 - math.sqrt(2))
assert np.allclose(np.abs(a), [0.5, math.sqrt(0.5), 0.5])

# %%
# Kernels with features that one can write down
# ---------------------------------------------
# The identity map gives the linear kernel. All monomials up to degree 2, with the right factors, give
# :math:`(1 + \langle x, z \rangle)^2`: in the plane these are the six features
# :math:`1, \sqrt 2 x_1, \sqrt 2 x_2, x_1^2, \sqrt 2 x_1 x_2, x_2^2`.
x1, x2 = X.T
root = math.sqrt(2) * np.ones(60)
by_hand = np.column_stack([np.ones(60), root * x1, root * x2, x1**2, root * x1 * x2, x2**2])
assert np.allclose(Linear()(X), X @ X.T)
assert np.allclose(Monomials(degree=2).fit_transform(X), by_hand)
assert np.allclose(Polynomial(degree=2)(X), by_hand @ by_hand.T)

# %%
# Constants :math:`c_1 \ge 0` and :math:`c_2 > 0` weigh the degrees; :math:`c_1 = 0` keeps the highest degree alone. The
# quadratic kernel :math:`\langle x, z \rangle + \langle x, z \rangle^2` has no constant feature.
for c1, c2, degree in ((1.0, 0.5, 3), (0.0, 2.0, 4)):
    Phi = Monomials(degree, c1=c1, c2=c2).fit_transform(X)
    assert np.allclose(Polynomial(degree, c1, c2)(X), Phi @ Phi.T)
    assert Phi.shape[1] == Monomials.count(2, degree, exact=c1 == 0)
quadratic = Linear() + Linear() ** 2
assert np.allclose(quadratic(X), X @ X.T + (X @ X.T) ** 2)
assert np.linalg.matrix_rank(quadratic(X)) == Monomials.count(2, 2) - 1 == 5

# %%
# In d variables there are :math:`\binom{p + d}{d}` monomials up to degree p, and :math:`\binom{M + d - 1}{M}` of degree
# exactly M. For 40 variables and degree 8 that is 314,457,495. The kernel takes 40 multiplications and a power,
# whatever the degree: this is the kernel trick.
assert Monomials.count(40, 8, exact=True) == math.comb(47, 8) == 314_457_495
assert Monomials.count(40, 3) == math.comb(43, 40) == 12_341
wide = np.random.default_rng(1).normal(size=(5, 40))
Phi = Monomials(degree=3).fit_transform(wide)
assert Phi.shape == (5, 12_341)
assert np.allclose(Phi @ Phi.T, Polynomial(degree=3)(wide))

with house():
    fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    for d, top in ((5, 12), (40, 12), (400, 7)):
        counts = [Monomials.count(d, p) for p in range(1, top + 1)]
        ax.plot(range(1, top + 1), counts, "o-", color=BLUE, ms=3.5)
        ax.text(top + 0.2, counts[-1], f"{d} variables", va="center")
    ax.axhline(40, color=RED)
    ax.text(15.4, 50, "the kernel, 40 variables", ha="right", color=RED)
    ax.plot(8, Monomials.count(40, 8), "o", ms=9, mfc="none", mec=INK)
    ax.set(yscale="log", xlabel="degree", ylabel="numbers per point or pair", xlim=(0.5, 15.5))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title("Features that nobody has to build")

# %%
# A kernel with infinitely many features
# --------------------------------------
# For numbers x and z, :math:`e^{-(x - z)^2} = e^{-x^2} e^{-z^2} \sum_k 2^k x^k z^k / k!`, an inner product of
# infinitely many features :math:`e^{-x^2} \sqrt{2^k / k!}\, x^k`. Cut at a degree, the map is finite and a little
# wrong. ``TaylorFeatures`` does it in any small dimension and bounds the error: on :math:`[-1, 1]` degree 10 leaves
# less than 1e-5, and for 1e-6 it takes degree 12.
t = np.linspace(-1, 1, 41)[:, None]
k = np.arange(11)
series = np.exp(-(t**2)) * np.sqrt(2.0**k / [math.factorial(j) for j in k]) * t**k
taylor = TaylorFeatures(scale=math.sqrt(0.5), degree=10).fit(t)
gauss = RBF.from_gamma(1.0)  # exp(-(x - z)^2), of scale s with 2 s^2 = 1
assert np.allclose(taylor.transform(t), series)
error = np.abs(gauss(t) - series @ series.T).max()
print(f"error {error:.2e}, bound {taylor.error_bound(t):.2e}")
assert error <= taylor.error_bound(t) < 1e-5
assert TaylorFeatures.degree_for(t, math.sqrt(0.5), tol=1e-6) == 12

# %%
# No finite map gives the kernel exactly. Features of q numbers have Gram matrices of rank q at most, and this kernel's
# are of full rank for any distinct points: here 12, of rank 12.
assert np.linalg.matrix_rank(gauss(np.linspace(-4, 4, 12)[:, None])) == 12

# %%
# New kernels of old ones
# -----------------------
# Sums, products and multiples by :math:`c \ge 0` of kernels are kernels. So are limits, hence
# :math:`e^k = \sum_m k^m / m!` and, where :math:`k(x, x) < 1`, :math:`1 / (1 - k) = \sum_m k^m`. So are
# :math:`f(x) f(z) k(x, z)`, :math:`f(x) f(z)` itself, and :math:`k(\psi(x), \psi(z))`. In the library these are
# operators and methods.


def f(X):
    return 1.0 + X[:, 0] ** 2


k1, k2 = RBF(scale=1.0), 0.3 * Linear()
K1, K2 = k1(X), k2(X)
made = {
    "k1 + k2": (k1 + k2, K1 + K2),
    "k1 * k2": (k1 * k2, K1 * K2),
    "2 * k1": (2 * k1, 2 * K1),
    "exp(k2)": (k2.exp(), np.exp(K2)),
    "1 / (1 - k1 / 2)": ((0.5 * k1).geometric(), 1 / (1 - K1 / 2)),
    "f(x) f(z) k1": (k1.rescaled(f), np.outer(f(X), f(X)) * K1),
    "f(x) f(z)": (FromFeatures(f), np.outer(f(X), f(X))),
    "k1(ψ(x), ψ(z))": (k1.compose(np.abs), k1(np.abs(X))),
}
for kernel, values in made.values():
    assert np.allclose(kernel(X), values)
    assert verdict(kernel, X).psd
    assert kernel.proof().proven

# %%
# The last line asked each kernel for its proof: the tree of rules, down to kernels that are known to be such. Here is
# the Gaussian kernel once more, made of the linear one by rules alone, since
# :math:`e^{-\gamma \|x - z\|^2} = f(x) f(z) e^{2 \gamma \langle x, z \rangle}` with :math:`f(x) = e^{-\gamma \|x\|^2}`.


def bell(X):
    return np.exp(-(X**2).sum(axis=1))


by_rules = (2.0 * Linear()).exp().rescaled(bell)
assert np.allclose(by_rules(X), gauss(X))
assert by_rules.proof().proven
tree = plots.proof(by_rules)

# %%
# Differences and negative multiples are refused, with the reason. The reason is not pedantry: the difference of these
# two Gaussian matrices has negative eigenvalues.
for refused in (lambda: RBF(1.0) - RBF(2.0), lambda: -2 * RBF(1.0)):
    try:
        refused()
    except (TypeError, ValueError) as reason:
        print(reason)
    else:
        raise AssertionError("this is no kernel")
difference = RBF(1.0)(X) - RBF(2.0)(X)
assert verdict(difference).witness is not None
assert verdict(difference).smallest < -5

# %%
# So this is the whole story in a picture: the eigenvalues of Gram matrices on 60 points. Those of kernels lie above 0,
# and the rules keep them there. A difference falls through.
spectra = {name: np.linalg.eigvalsh(values) for name, (_, values) in made.items()}
spectra["RBF(1) - RBF(2)"] = np.linalg.eigvalsh(difference)
with house():
    fig, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
    for row, values in enumerate(spectra.values()):
        below = values < -1e-9
        ax.plot(
            values[~below], np.full((~below).sum(), row), "o", color=BLUE, ms=5, alpha=0.5, mew=0
        )
        ax.plot(values[below], np.full(below.sum(), row), "v", color=RED, ms=6, mew=0)
    ax.axvline(0, color=MUTED, lw=1)
    ax.set_xscale("symlog", linthresh=0.01)
    ax.set_yticks(range(len(spectra)), spectra)
    ax.invert_yaxis()
    ax.set(xlabel="eigenvalues of K", xlim=(-60, 1200))
    ax.set_title("The rules keep eigenvalues above 0")

# %%
# In the lab
# ----------
# .. lab:: kernel=Linear%28%29+%2B+Linear%28%29+**+2&loss=hinge&C=1&task=classes&view=gram
#    &points=X2elAwVeDBcOcwAcMLhBYoiIAPshKBgFlFApkt_BZ9kuAh2O4BmJhsAQGn0BeLmTAj7tqBgMckAlhusBgaczAxLfaBjYk3AZRtkBjZ
#    kzAdSOCBfUnZAxMlcBgincAulfCBe1jbAYEP3BcnXAAsnY9Bmpl2AuojtBjmcrAMTewBiYkFAacUxBonezAqJwqBaNkJAYGvrBcufWAucnfBe5
#    nsAnJr9BeRmyApmsLBecjGArZquBd5mZAYcRABYTfnAOHdYBf6mLAvPfNBoygNAlcsJBc_lgAdAP6Bf-
#    ouAshSoBhOmjArEnpBbJerAcEweBjydkAsvQ9BgdkqAVYpiBfamQAwLYhBcCnQAx5pWBbfj4Agov8Bdxl4AsHWSBedcWAWSuWBgXbaAkcQgB
#
#    Rings under the quadratic kernel, with its proof. Write ``Linear() - Linear() ** 2``, and read why that is refused.

# %%
# This page shows K1-K6, K11 and F4.
