"""
Feature extraction with scikit-learn's own tools
================================================

A linear model sees the world through its features. The notes' five lessons, each as a feature map that turns an effect
a linear model cannot express into one it can, and beside it the kernel that does the same without naming features.
"""

# %%
# F1. An effect that rises and falls: add the square
# --------------------------------------------------
# Health against body temperature is best in the middle. With the square as a second feature a linear model can say so.
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, PolynomialFeatures

from mercer import FromFeatures, Monomials, Polynomial, plots

rng = np.random.default_rng(0)
temperature = rng.uniform(34, 41, size=(300, 1))
health = 10 - (temperature[:, 0] - 37) ** 2 + 0.1 * rng.standard_normal(300)
plain = LinearRegression().fit(temperature, health).score(temperature, health)
squares = make_pipeline(PolynomialFeatures(2), LinearRegression()).fit(temperature, health).score(temperature, health)
print(f"F1  R2 with temperature alone {plain:.2f}, with its square {squares:.2f}")

# %%
# F2. Saturation: logarithms and buckets
# --------------------------------------
# The hundredth purchase says less than the first. log(1 + x) bends the scale; buckets make no assumption at all.
purchases = rng.integers(0, 1000, size=(300, 1)).astype(float)
interest = np.log1p(purchases[:, 0]) + 0.1 * rng.standard_normal(300)
for name, map_ in (
    ("the count", FunctionTransformer()),
    ("log(1 + count)", FunctionTransformer(np.log1p)),
    (
        "buckets",
        KBinsDiscretizer(8, encode="onehot-dense", strategy="quantile", quantile_method="averaged_inverted_cdf"),
    ),
):
    score = make_pipeline(map_, LinearRegression()).fit(purchases, interest).score(purchases, interest)
    print(f"F2  R2 with {name} {score:.2f}")

# %%
# F3. Interactions: all monomials, or the polynomial kernel
# ---------------------------------------------------------
# Weight should suit height. Rather than one clever feature, give all products; the kernel gives them unbuilt.
people = rng.normal(size=(300, 2))
fit = make_pipeline(Monomials(2), LinearRegression()).fit(people, -((people[:, 0] - people[:, 1]) ** 2))
print(f"F3  R2 with all monomials of degree 2: {fit.score(people, -((people[:, 0] - people[:, 1]) ** 2)):.2f}")
features = Monomials(2).fit_transform(people)
print(f"F3  kernel equals map: {np.allclose(features @ features.T, Polynomial(2)(people))}")
print(f"F3  monomials of degree 8 in 40 variables: {Monomials.count(40, 8, exact=True):,}")

# %%
# F4. The classic lifts
# ---------------------
# Rings become separable with one more coordinate; ``plots.LIFTS`` has this map and four others.
angle, radius = rng.uniform(0, 2 * np.pi, 200), np.repeat([1.0, 2.0], 100)
rings = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
lifted = np.column_stack([rings, (rings**2).sum(axis=1)])
print(f"F4  rings apart in the third coordinate: {lifted[:100, 2].max():.2f} < {lifted[100:, 2].min():.2f}")
plots.lift("rings")

# %%
# F5. Text: the same meaning in each coordinate, the same length for all
# ----------------------------------------------------------------------
# Any scikit-learn transformer is a feature map, and a feature map is a kernel.
from sklearn.feature_extraction.text import TfidfVectorizer

texts = ["kernels compare points", "points are compared by kernels", "it rained all day"]
kernel = FromFeatures(TfidfVectorizer().fit(texts))
print(f"F5  similarity of the three texts:\n{kernel(texts).round(2)}")
print(kernel.proof())
