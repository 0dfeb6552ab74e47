r"""
2. Bochner: kernels of the difference
=====================================

Many kernels look at the difference of two points only: :math:`k(x, z) = \varphi(x - z)`. Bochner's theorem says which
functions :math:`\varphi` will do, and gives a recipe that makes such kernels from probability laws, and random features
from such kernels.
"""

# %%
# The theorem
# -----------
# A continuous :math:`\varphi` with :math:`\varphi(0) = 1` gives a kernel if and only if it is the characteristic
# function of a law,
#
# .. math:: \varphi(x - z) = \mathbb{E}\, e^{i \langle w, x - z \rangle}.
#
# One direction is a line:
# :math:`\sum a_i a_j \mathbb{E}\, e^{i w (x_i - x_j)} = \mathbb{E}\, |\sum_i a_i e^{i w x_i}|^2 \ge 0`. The vector w is
# a frequency: a kernel is a mixture of waves, and the law says how much of each.
#
# Here are five laws and their kernels. ``Stationary.from_spectral`` makes a kernel of a law from ``scipy.stats``.
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.stats import cauchy, laplace, norm, t, uniform

from mercer import (
    RBF,
    Cauchy,
    FromFunction,
    Laplacian,
    Matern,
    PowerExponential,
    RandomFourier,
    Stationary,
    verdict,
)
from mercer.plots.style import BLUE, INK, MUTED, PALE_BLUE, RED, house

x = np.linspace(0.0, 8.0, 81)[:, None]
pairs = {
    "normal, Gaussian": (norm(), RBF(scale=1.0)),
    "Cauchy, Laplacian": (cauchy(), Laplacian(scale=1.0)),
    "Laplace, Cauchy": (laplace(), Cauchy(scale=1.0)),
    "uniform, sinc": (uniform(-1, 2), FromFunction(lambda x, z: np.sinc((x[0] - z[0]) / np.pi))),
    "Student t(3), Matérn 3/2": (t(3), Matern(nu=1.5, scale=1.0)),
}
for name, (law, kernel) in pairs.items():
    made = Stationary.from_spectral(law)
    worst = np.abs(made(x) - kernel(x)).max()
    print(f"{name}: {worst:.0e}, {made.proof().rule}: {made.proof().reason}")
    assert worst < 1e-9
    assert made.proof().proven

# %%
# A kernel of the library knows its law, too. The Gaussian kernel of scale s has normal frequencies with deviation
# :math:`1/s`: the wider the kernel, the slower its waves.
frequencies = RBF(scale=0.5).spectral_law(dim=1).sample(20_000, random_state=0)
print(f"deviation of the frequencies of RBF(scale=0.5): {frequencies.std():.2f}")
assert abs(frequencies.std() - 2.0) < 0.05

# %%
# The rules of the first page are rules of laws. A sum of kernels mixes their laws, a product convolves them: the
# frequencies of a product are sums of one frequency each. Below, the variance of the former is the mean of 1 and 100,
# of the latter the sum of 1 and 1.
mixed = (RBF(scale=1.0) + RBF(scale=0.1)).spectral_law(dim=1).sample(20_000, random_state=0)
product = (RBF(scale=1.0) * RBF(scale=1.0)).spectral_law(dim=1).sample(20_000, random_state=0)
assert abs(mixed.var() - 50.5) < 2.0
assert abs(product.var() - 2.0) < 0.1

# %%
# A law that is not symmetric has a complex characteristic function. Its real part :math:`\mathbb{E} \cos w(x - z)` is
# that of the symmetrised law, and a kernel. Normal frequencies about 2 give a wave that fades.
fading = Stationary.from_spectral(norm(2, 1))
assert np.allclose(fading(x), np.cos(2 * (x - x.T)) * RBF(1.0)(x))

# %%
# The other direction, as a way to find a witness
# -----------------------------------------------
# "Alike if at most 1 apart" is :math:`\varphi = 1_{[-1, 1]}`. Its Fourier transform :math:`2 \sin(w) / w` is negative
# for some w, lowest at w = 4.49, where it is -0.43. Therefore it is no density, and :math:`\varphi` is no kernel.
# Bochner even says how to see it: let :math:`a_i = \cos(w x_i)` on a fine grid at that w. Up to the ends of the grid
# :math:`a^\top K a / a^\top a` is the Fourier transform there, divided by the step.
grid = np.arange(0.0, 20.0, 0.05)
box = (np.abs(grid[:, None] - grid) < 1.0 + 1e-9).astype(float)
w = np.linspace(0.01, 20, 4001)
transform = 2 * np.sin(w) / w
lowest = w[transform.argmin()]
a = np.cos(lowest * grid)
form = 0.05 * (a @ box @ a) / (a @ a)
print(f"lowest at w = {lowest:.2f}: transform {transform.min():.3f}, quadratic form {form:.3f}")
assert round(lowest, 2) == 4.49
assert round(transform.min(), 2) == -0.43
assert abs(form - transform.min()) < 0.03
assert not verdict(box).psd

# %%
# The same test draws a line through :math:`e^{-|x - z|^p}`. Up to p = 2 these are kernels (p = 1 Laplacian, p = 2
# Gaussian). For p = 4 the Fourier transform dips below 0, and so do eigenvalues.
for p in (0.5, 1.0, 1.5, 2.0):
    assert PowerExponential(p, scale=1.0).proof().proven
try:
    PowerExponential(4.0, scale=1.0)
except ValueError as reason:
    print(reason)
else:
    raise AssertionError("no law has this characteristic function")
dip = 2 * quad(lambda u: np.exp(-(u**4)) * np.cos(4.5 * u), 0, 6)[0]  # the transform at w = 4.5
assert dip < -0.05
assert not verdict(np.exp(-((0.2 * (np.arange(60) - np.arange(60)[:, None])) ** 4))).psd

with house():
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    right.plot(w, transform, color=BLUE, label=r"box: $2 \sin(w) / w$")
    right.plot(
        w, np.sqrt(2 * np.pi) * np.exp(-(w**2) / 2), color=INK, ls=(0, (4, 3)), label="Gaussian"
    )
    right.fill_between(w, transform, 0, where=transform < 0, color=RED, alpha=0.35, lw=0)
    right.plot(lowest, transform.min(), "v", color=RED, ms=8)
    right.set(xlabel="frequency w", ylabel="Fourier transform of φ")
    right.set_title("Below 0 it is no law")
    right.legend()
    left.plot(grid[:120], a[:120], color=RED, label="witness: cos(4.49 x)")
    left.plot(grid[:120], (box @ a)[:120] * 0.05, color=BLUE, label="K a, times the step")
    left.axhline(0, color=MUTED, lw=1)
    left.set(xlabel="x", ylim=(-1.15, 1.75))
    left.set_title("K turns this wave upside down")
    left.legend(loc="upper right", ncols=2)

# %%
# Random features
# ---------------
# An expectation can be replaced by a mean over draws. With :math:`w_1, \dots, w_m` from the law,
#
# .. math:: k(x, z) \approx \frac1m \sum_j \cos w_j (x - z)
#           = \frac1m \sum_j \bigl(\cos w_j x \cos w_j z + \sin w_j x \sin w_j z\bigr),
#
# an inner product of 2m features. ``RandomFourier`` is a scikit-learn transformer that makes them for any kernel with a
# law. The error falls like the square root of their number: four times the features, half the error. Frequencies that
# are spread evenly (``sampling="qmc"``) do better.
k = Matern(nu=1.5, scale=1.0)
features = RandomFourier(k, n_components=200, random_state=0).fit(x)
m = features.frequencies_[:, 0]
assert np.allclose(
    features.transform(x) @ features.transform(x).T, np.cos((x - x.T)[..., None] * m).mean(axis=2)
)


def error(n, sampling, seed):
    Phi = RandomFourier(k, n, sampling, seed).fit(x).transform(x)
    return np.sqrt(np.mean((Phi @ Phi.T - k(x)) ** 2))


sizes = 2 ** np.arange(4, 12)
errors = {
    how: [np.mean([error(int(n), how, s) for s in range(5)]) for n in sizes]
    for how in ("plain", "qmc")
}
slope = np.polyfit(np.log(sizes), np.log(errors["plain"]), 1)[0]
print(f"the error falls like the number of features to the power {slope:.2f}")
assert abs(slope + 0.5) < 0.1
assert errors["qmc"][-1] < errors["plain"][-1] / 3

with house():
    fig, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
    ax.loglog(sizes, errors["plain"], "o-", color=BLUE, label="drawn")
    ax.loglog(sizes, errors["qmc"], "^-", color=RED, label="spread evenly")
    ax.loglog(
        sizes,
        errors["plain"][0] * (sizes / sizes[0]) ** -0.5,
        color=MUTED,
        lw=1,
        ls=(0, (4, 3)),
        label="slope -1/2",
    )
    ax.set(xlabel="features", ylabel="root mean square error of k")
    ax.set_title("Four times the features, half the error")
    ax.legend()

# %%
# Laws above, kernels below. The grey curves are kernels of 100 drawn frequencies each: rough copies, and every one of
# them is a kernel itself.
lag = np.linspace(0, 8, 161)[:, None]
with house():
    fig, axes = plt.subplots(
        2, 5, figsize=(10, 4.4), layout="constrained", sharex="row", sharey="row"
    )
    w = np.linspace(-6, 6, 400)
    for (name, (law, kernel)), (top, bottom) in zip(pairs.items(), axes.T, strict=True):
        of_law, of_kernel = name.split(", ")
        top.fill_between(w, law.pdf(w), color=PALE_BLUE)
        top.plot(w, law.pdf(w), color=BLUE)
        for seed in range(5):
            Phi = (
                RandomFourier(Stationary.from_spectral(law), 200, random_state=seed)
                .fit(lag)
                .transform(lag)
            )
            bottom.plot(lag, Phi @ Phi[0], color=MUTED, lw=0.7, alpha=0.6)
        bottom.plot(lag, kernel(lag[:1], lag)[0], color=BLUE, lw=2)
        top.set_title(of_law)
        bottom.set_title(of_kernel)
        top.set(xlabel="w")
        bottom.set(xlabel="x - z")
    axes[0, 0].set(ylabel="density of frequencies")
    axes[1, 0].set(ylabel="k(x, z)")

# %%
# In the lab
# ----------
# .. lab:: kernel=Matern%28nu%3D1.5%2C+scale%3D0.7%29&loss=hinge&C=10&task=classes&view=features
#    &points=SSn1AYGgiBakr9AomViBTSmYAwTdFBfWnlAxucXBQahaAuUYcBkSh4AZ9jrBOtgvAtaZkBkPfUAusc1BakpVAu9esBRdpDAw4f6BUS
#    lcAZ1g9BONiDAdMXfBXXpTAZrZUBUFnrAiYUrBTNlzAuKhTBQgeTAhUWmBfSrvAqfX4BPfhVAbuetBnfe6AaOXZBkIkWAsEUtBVZqaAbqazBTw
#    nHAiZZJBN0ejAkWUZBjwn1AjPXEBdWq3AaxgrBlUfPAxZdFBgrqAAbPfYBkHdlAkgTpBOdhzAegXVBlMdeAwdijBlEh5AYnmUBlNgPApdWfBVo
#    osAuYcKBj4mvAm-
#    VtBXfqSAwycmBUdqZAvAgiBPygFAkRTxBessNAt6YSBQcdJAjJV9BiOjfAxPgcBiip0AlwTRBRTlHAe_XcBQ8pHAZif_BXOp0AZfd-
#    BYupOAz3fJBkWddAZFeRBP0lgAo4WnBlVfOAeSWjBaUrgAhrWHBkMimAugYiB
#
#    In violet, what 50 random features make of Matérn's kernel. Take more of them: the two lines draw near.

# %%
# This page shows K7.
