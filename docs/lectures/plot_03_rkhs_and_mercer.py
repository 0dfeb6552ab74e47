r"""
3. The space of a kernel, and Mercer's series
=============================================

A kernel has a space of functions of its own, in which it is the inner product. There are two ways to see this space:
as sums of the kernel's own functions, which need nothing but the kernel, and as series of eigenfunctions, which need a
measure besides. Both give the same norms, and this page computes them both ways.
"""

# %%
# Functions made of kernels
# -------------------------
# Fix a point :math:`x_i` and let the other argument run: :math:`k(x_i, \cdot)` is a function. Sums of them,
#
# .. math:: f = \sum_i a_i k(x_i, \cdot), \qquad \langle f, g \rangle_H = \sum_{ij} a_i b_j k(x_i, z_j),
#
# and their limits are the reproducing kernel Hilbert space H. The inner product was chosen for one property: the value
# of f at x is its inner product with :math:`k(x, \cdot)`. In the library such an f is an object; ``@`` is the inner
# product.
import matplotlib.pyplot as plt
import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import norm

from mercer import RBF, Intersection, RKHSFunction, plots
from mercer.plots.style import BLUE, INK, MUTED, RED, house
from mercer.rkhs import Box, MercerExpansion

k = RBF(scale=0.7)
X, a = np.array([[-2.0], [-0.5], [0.5], [2.0]]), np.array([1.0, -1.5, 1.0, 0.8])
Z, b = np.array([[-1.0], [1.5]]), np.array([0.6, 0.9])
f, g = RKHSFunction(k, X, a), RKHSFunction(k, Z, b)
x = np.linspace(-5, 5, 401)[:, None]
assert np.allclose(f(x), k(x, X) @ a)
assert np.isclose(f @ g, a @ k(X, Z) @ b)
assert np.isclose(f.norm() ** 2, a @ k(X) @ a)
for at in (-3.0, 0.0, 1.1):  # the reproducing property
    assert np.isclose(f @ RKHSFunction(k, [[at]], [1.0]), f([[at]])[0])

# %%
# They form a vector space with the geometry one knows: sums, multiples, the parallelogram, the inequality of Cauchy and
# Schwarz, distances. Points have distances too, through :math:`\Phi(x) = k(x, \cdot)`:
# :math:`\|\Phi(x) - \Phi(z)\|^2 = k(x, x) - 2 k(x, z) + k(z, z)`.
assert np.allclose((2 * f - g)(x), 2 * f(x) - g(x))
assert np.isclose((f + g).norm() ** 2 + (f - g).norm() ** 2, 2 * f.norm() ** 2 + 2 * g.norm() ** 2)
assert abs(f @ g) <= f.norm() * g.norm()
here, there = (RKHSFunction(k, [[at]], [1.0]) for at in (0.0, 0.7))
assert np.isclose(here.distance(there) ** 2, 2 - 2 * np.exp(-0.5))

# %%
# The norm bounds the values: :math:`|f(x) - g(x)| \le \|f - g\| \sqrt{k(x, x)}`. Functions that are close in H are
# close everywhere. That is what the definition "evaluation is continuous" means.
gap = np.abs(f(x) - g(x)).max()
print(f"largest |f - g| {gap:.3f}, distance in H {f.distance(g):.3f}")
assert gap <= f.distance(g)

with house():
    fig, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for centre, coefficient in zip(X, a, strict=True):
        part = RKHSFunction(k, [centre], [coefficient])
        ax.plot(x, part(x), color=MUTED, lw=1)
        ax.plot(*centre, coefficient, "o", color=MUTED, ms=4)
    ax.plot(x, f(x), color=BLUE, lw=2.2, label=f"f, of norm {f.norm():.2f}")
    bound = f.norm() * np.ones(len(x))
    ax.fill_between(
        x[:, 0],
        -bound,
        bound,
        color=BLUE,
        alpha=0.07,
        lw=0,
        label="where a function of this norm may be",
    )
    ax.set(xlabel="x", xlim=(-5, 5), ylim=(-3.1, 3.1))
    ax.set_title("A function is a sum of the kernel's own")
    ax.legend(loc="lower right")

# %%
# Mercer's series
# ---------------
# Now let a measure :math:`\mu` say where the points are. The kernel becomes an operator on functions,
#
# .. math:: T_k f(x) = \int k(x, z) f(z)\, d\mu(z),
#
# with eigenvalues :math:`\lambda_1 \ge \lambda_2 \ge \dots \ge 0` and eigenfunctions that are orthonormal under
# :math:`\mu`, and the kernel is their series: :math:`k(x, z) = \sum_j \lambda_j \varphi_j(x) \varphi_j(z)`.
#
# For the Gaussian kernel of scale 1 under the standard normal law all of this is known. The first eigenvalue is
# :math:`(\sqrt 5 - 1) / 2 = 0.618`, the golden ratio's little sister, and each further one is 0.382 times the one
# before.
gauss = MercerExpansion(RBF(scale=1.0), norm(0, 1), rank=20)
golden = (np.sqrt(5) - 1) / 2
exact = golden * (golden**2) ** np.arange(20)
print(gauss.eigenvalues[:4].round(6))
assert round(golden, 3) == 0.618
assert round(golden**2, 3) == 0.382
assert np.allclose(gauss.eigenvalues, exact, rtol=1e-6, atol=0)

# %%
# That these are eigenfunctions can be seen without the library's help, by Gauss and Hermite's rule for the normal law.
nodes, weights = hermegauss(80)
weights = weights / weights.sum()
phi = gauss.eigenfunctions(nodes[:, None])[:, :8]
image = RBF(scale=1.0)(nodes[:, None]) @ (weights[:, None] * phi)
assert np.allclose(image, phi * gauss.eigenvalues[:8], atol=1e-8)
assert np.allclose(phi.T @ (weights[:, None] * phi), np.eye(8), atol=1e-8)

# %%
# The series converges uniformly. What r terms leave out of the trace :math:`\int k(x, x) d\mu = 1` is :math:`0.382^r`.
for rank in (4, 8, 12):
    left = MercerExpansion(RBF(scale=1.0), norm(0, 1), rank=rank).truncation_error()
    print(f"{rank:2d} terms leave {left.trace:.1e} of the trace, and at most {left.sup:.1e} of k")
    assert np.isclose(left.trace, golden ** (2 * rank), rtol=1e-3)

with house():
    fig, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4), layout="constrained", width_ratios=(1, 1.3)
    )
    plots.spectrum(gauss, ax=left)
    plots.eigenfunctions(gauss, ax=right)
    right.set_title("One more zero each time")
s = np.linspace(-4, 4, 401)
signs = np.sign(gauss.eigenfunctions(s[:, None])[:, :6])
assert [int((np.diff(column) != 0).sum()) for column in signs.T] == [0, 1, 2, 3, 4, 5]

# %%
# Another kernel, another measure: :math:`\min(s, t)` on :math:`[0, 1]`, the covariance of Brownian motion. Its
# eigenvalues are :math:`1 / ((j - 1/2) \pi)^2` and its functions are sines. They fall slowly, because the kernel has a
# kink. So does the error of an integral by 128 nodes: here it is 0.2% at most.
brown = MercerExpansion(Intersection(), Box(0, 1), rank=5, nodes=128)
assert np.abs(brown.eigenvalues * ((np.arange(5) + 0.5) * np.pi) ** 2 - 1).max() < 0.002
u = np.linspace(0, 1, 101)
first = brown.eigenfunctions(u[:, None])[:, 0]
assert np.allclose(np.abs(first), np.sqrt(2) * np.sin(np.pi * u / 2), atol=1e-4)

# %%
# A sample is a measure too: n points, each of weight 1/n. Its eigenvalues are those of the Gram matrix divided by n,
# and with more points they tend to those of the law.
rng = np.random.default_rng(0)
for n in (50, 500):
    sample = rng.normal(size=(n, 1))
    of_sample = MercerExpansion(RBF(scale=1.0), sample, rank=5).eigenvalues
    assert np.allclose(of_sample, np.linalg.eigvalsh(RBF(scale=1.0)(sample))[:-6:-1] / n)
    print(f"{n} points: {of_sample.round(3)}, the law: {exact[:5].round(3)}")
assert np.abs(of_sample - exact[:5]).max() < 0.05

# %%
# The same norm, by coefficients
# ------------------------------
# With :math:`c_j = \int f \varphi_j d\mu`, H consists of the f with a finite sum
#
# .. math:: \|f\|_H^2 = \sum_j c_j^2 / \lambda_j, \qquad \langle f, g \rangle_H = \sum_j c_j d_j / \lambda_j.
#
# Small eigenvalues make it expensive to have a part along their functions, which are the ones that wiggle. For a sum of
# kernel functions both ways agree. For a step the sum has no limit: a step is not in H.
line = MercerExpansion(RBF(scale=0.3), Box(0, 1), rank=14)
h = RKHSFunction(RBF(scale=0.3), [[0.2], [0.7]], [1.0, -2.0])
e = RKHSFunction(RBF(scale=0.3), [[0.4]], [1.0])
print(f"norm of h: {h.norm():.6f} by centres, {line.norm(h):.6f} by coefficients")
assert np.isclose(line.norm(h), h.norm(), rtol=1e-5)
assert np.isclose(line.inner(h, e), h @ e, rtol=1e-4)

in_h = np.sqrt(np.cumsum(line.coefficients(h) ** 2 / line.eigenvalues))
step = np.sqrt(
    np.cumsum(line.coefficients(lambda X: (X[:, 0] > 0.5).astype(float)) ** 2 / line.eigenvalues)
)
print(f"norm of the step with 4, 8, 14 terms: {step[3]:.3g}, {step[7]:.3g}, {step[13]:.3g}")
assert step[13] > 100 * step[7] > 1000 * step[3]

with house():
    fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
    terms = np.arange(1, 15)
    ax.semilogy(terms, in_h, "o-", color=BLUE, label="h, two kernel functions")
    ax.axhline(h.norm(), color=INK, lw=1, ls=(0, (4, 3)), label="its norm by centres")
    ax.semilogy(terms, step, "^-", color=RED, label="a step")
    ax.set(xlabel="terms of Mercer's series", ylabel="norm in H so far")
    ax.set_title("Who is in H, and who is not")
    ax.legend()

# %%
# In the lab
# ----------
# .. lab:: kernel=RBF%28scale%3D0.7%29&loss=squared&C=100&task=values&view=dual
#    &points=KXoiAtfeZALlmnAyzUhAN2qcAzuUDAVBZUAwgVdA
#
#    A sum of eight kernel functions. Drag a point: its coefficient answers, and the norm tells what the bend costs.

# %%
# This page shows K8 and K9.
