"""
Two columns among a hundred
===========================

A hundred columns, of which two matter. The gradients of a first fit say which, and the metric of the next ones forgets
the others: left the share of each column in the metric that was learned, right the function along the two.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import FeatureLearningRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 100))
y = np.sin(2 * X[:, 17]) + 0.5 * X[:, 60] ** 2 + 0.1 * rng.normal(size=600)
model = FeatureLearningRegressor().fit(X, y)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.bar(np.arange(100), model.feature_importances_, color="0.35")
left.margins(y=0.12)
left.set(xlabel="column", ylabel="share of the metric", title=f"found: {model.chosen_[0]}")
for column in np.argsort(model.feature_importances_)[-2:]:
    left.annotate(f"x{column}", (column, model.feature_importances_[column]), ha="center", va="bottom")
grid = np.linspace(-2, 2, 81)
points = np.zeros((81 * 81, 100))
points[:, 17], points[:, 60] = (part.ravel() for part in np.meshgrid(grid, grid))
levels = right.contourf(grid, grid, model.predict(points).reshape(81, 81), 15, cmap="cividis")
fig.colorbar(levels, ax=right, label="f, the other columns at 0")
right.set(xlabel="x17", ylabel="x60", title="sin(2 x17) + x60²/2, as it was learned")
plt.show()
