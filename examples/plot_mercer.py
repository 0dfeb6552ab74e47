"""
Mercer's theorem: a kernel as a series
======================================

A kernel and a measure have eigenvalues and eigenfunctions, and the kernel is their series (K9). What they look like,
how they answer to closed forms, and what they are good for: norms, random paths, features.
"""

# %%
# K9. A kernel, a measure, a spectrum
# -----------------------------------
# The Gaussian kernel under a Gaussian law has eigenvalues that fall by a constant factor, and Hermite functions with a
# Gaussian factor. For kernel and law of width 1 the factor is (3 - sqrt 5) / 2.
import numpy as np
from scipy.stats import norm

from mercer import RBF, Intersection, RKHSFunction, plots
from mercer.rkhs import Box, MercerExpansion, MercerFeatures

gauss = MercerExpansion(RBF(scale=1.0), norm(0, 1), rank=20)
ratio = gauss.eigenvalues[1:] / gauss.eigenvalues[:-1]
print(f"K9 {gauss!r}")
print(f"K9 each eigenvalue is {ratio.mean():.9f} of the one before, up to {np.ptp(ratio):.0e}")
plots.spectrum(gauss)

# %%
# K9. Brownian motion
# -------------------
# min(s, t) on [0, 1] is the covariance of Brownian motion. Its functions are sines, and sums of them with independent
# normal coefficients, each times the root of its eigenvalue, are paths (Karhunen and Loeve).
brown = MercerExpansion(Intersection(), Box(0, 1), rank=60, nodes=1024)
true = ((np.arange(60) + 0.5) * np.pi) ** -2.0
worst = np.abs(brown.eigenvalues / true - 1).max()
print(f"K9 the first 60 eigenvalues of min(s, t) are off by {worst:.0e} of their size at most")
rng = np.random.default_rng(0)
t = np.linspace(0, 1, 400)
paths = brown.transform(t[:, None]) @ rng.standard_normal((60, 4000))
off = np.abs(paths @ paths.T / 4000 - np.minimum(t[:, None], t)).max()
print(f"K9 the covariance of 4,000 paths differs from min(s, t) by {off:.2f} at most")
plots.spectrum(brown, functions=5)

# %%
# K9. Norms by coefficients
# -------------------------
# f = sum of c_j phi_j has the squared norm sum of c_j^2 / lambda_j. Of a function in H the sum settles; of a step,
# which does not lie in H, it grows with every term.
line = MercerExpansion(RBF(scale=0.3), Box(0, 1), rank=14)
f = RKHSFunction(RBF(scale=0.3), [[0.2], [0.7]], [1.0, -2.0])
print(f"K9 |f| = {f.norm():.6f} by centres, {line.norm(f):.6f} by coefficients")
c = line.coefficients(lambda X: (X[:, 0] > 0.5).astype(float))
grows = np.sqrt(np.cumsum(c**2 / line.eigenvalues))
print("K9 a step: " + ", ".join(f"{grows[r - 1]:.3g} with {r}" for r in (2, 6, 10, 14)) + " terms")

# %%
# K9. Features of a sample
# ------------------------
# With a sample for the measure, sqrt(lambda_j) phi_j are the features that keep most of the kernel on it.
X = rng.standard_normal((500, 2)) @ np.array([[1.0, 0.6], [0.0, 0.4]])
features = MercerFeatures(RBF(scale=1.0), n_components=20).fit(X)
left = features.expansion_.truncation_error()
print(
    f"K9 20 features leave {left.share:.1e} of the trace, and no value of the kernel is off by more than {left.sup:.1e}"
)
plots.spectrum(features.expansion_)
