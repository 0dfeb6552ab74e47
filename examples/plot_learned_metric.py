"""
Two columns among a hundred
===========================

A hundred columns, of which two matter. A function that was fitted (M12) knows which: its gradients (K8) are long along
them. Their mean outer product is the metric of the next fit, whose kernel is still proven (K3), and which rows that had
no part in it judge (M14).
"""

# %%
# M12. A kernel that treats all columns alike
# -------------------------------------------
# Ridge regression with 600 rows: the distance of two rows is noise but for two columns.
import matplotlib.pyplot as plt
import numpy as np

from mercer import RBF, FeatureLearningRegressor, KernelRidge, KernelSearchCV
from mercer.plots.style import BLUE, house

rng = np.random.default_rng(0)


def made(n):
    X = rng.normal(size=(n, 100))
    return X, np.sin(2 * X[:, 17]) + 0.5 * X[:, 60] ** 2 + 0.1 * rng.normal(size=n)


X, y = made(600)
new, target = made(2000)
alike = KernelSearchCV(KernelRidge(fit_intercept=True), [RBF], {"alpha": [0.01, 0.1, 1.0]}).fit(X, y)
print(f"M12 all columns alike: R² {alike.score(new, target):.2f} on 2,000 new rows")

# %%
# K8. Gradients say what matters
# ------------------------------
# The mean square of the derivative of that first function along each column.
slopes = np.square(alike.best_estimator_.function_.gradient(X)).mean(axis=0)
print(f"K8  the longest gradients of the first fit are along {sorted(np.argsort(slopes)[-2:].tolist())}")

# %%
# M14. Rounds, judged by other rows
# ---------------------------------
# The metric is learned on one half of the rows and judged on the other. All families and rounds are in a table.
model = FeatureLearningRegressor().fit(X, y)
best = int(np.argmin(model.rounds_["error"]))
print(f"M14 chosen: {model.chosen_[0]}, R² {model.score(new, target):.3f} on the new rows; ", end="")
print(f"the best of {len(model.rounds_['error'])} that were judged was round {model.rounds_['round'][best]}")

# %%
# K3. The kernel is proven, the fit certified
# -------------------------------------------
# A linear map before a kernel leaves it one.
print(f"K3  {model.kernel_.proof().status}; converged, found again: {model.certificate_.verify(X, y).converged}")

with house():
    fig, axes = plt.subplot_mosaic([["first", "f"], ["metric", "f"]], figsize=(10, 4), layout="constrained")
    first, metric, right = axes["first"], axes["metric"], axes["f"]
    for axis, shares in ((first, slopes / slopes.sum()), (metric, model.feature_importances_)):
        axis.bar(np.arange(100), shares, color=BLUE, width=1.0)
        axis.set(ylim=(0, 0.75), ylabel="share")
        for column in np.argsort(shares)[-2:]:
            axis.annotate(f"x{column}", (column, shares[column]), ha="center", va="bottom")
    first.set_title("gradients of the first fit, by column")
    metric.set(xlabel="column", title="the metric")
    grid = np.linspace(-2, 2, 81)
    points = np.zeros((81 * 81, 100))
    points[:, 17], points[:, 60] = (part.ravel() for part in np.meshgrid(grid, grid))
    levels = right.contourf(grid, grid, model.predict(points).reshape(81, 81), 15, cmap="cividis")
    fig.colorbar(levels, ax=right, label="f, the other columns at 0")
    right.set(xlabel="x17", ylabel="x60", title="sin(2 x17) + x60²/2, as learned")
plt.show()
