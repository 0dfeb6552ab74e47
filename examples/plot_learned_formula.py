"""
A formula in a table of patients
================================

scikit-learn's table of 442 patients with diabetes has six values of blood serum; s5 is "possibly log of serum
triglycerides level". A metric that was learned (M14) can be read, by its columns and by its leading direction (K8): it
says what s5 is, and how LDL came into the table. By rows that were held out it is worth much for s5, and nothing for
the progression of the disease.
"""

# %%
# M12. A kernel that treats all columns alike
# -------------------------------------------
# s5 from the nine other columns, in four splits: ridge regression on standardised columns with the best of a linear
# kernel, a quadratic one, and RBF at eight scales, by cross-validation.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import RBF, FeatureLearningRegressor, KernelRidge, KernelSearchCV, Linear, Polynomial, auto, plots
from mercer.plots.style import BLUE, INK, RED, house

patients = load_diabetes(as_frame=True, scaled=False).frame
serum = {"s1": "cholesterol", "s2": "LDL", "s3": "HDL", "s4": "cholesterol / HDL", "s6": "glucose"}
patients = patients.rename(columns=serum | {"target": "progression"})
splits = list(ShuffleSplit(4, test_size=0.3, random_state=0).split(patients))

search = KernelSearchCV(
    KernelRidge(fit_intercept=True), [Linear(), Polynomial(2), RBF], {"alpha": [1e-3, 0.1, 10.0]}, cv=3
)
alike = make_pipeline(StandardScaler(), search)


def held_out(model, X, y):
    return np.array([model.fit(X.iloc[a], y.iloc[a]).score(X.iloc[b], y.iloc[b]) for a, b in splits])


X, y = patients.drop(columns=["s5", "progression"]), patients["s5"]
scores = {"s5, all alike": held_out(alike, X, y)}
print(f"M12 all columns alike: R² of s5 {scores['s5, all alike'].round(3)} on rows held out")

# %%
# M14. The metric is learned
# --------------------------
# Families, rounds, scale and alpha are chosen among the rows to learn from.
scores["s5, learned"] = held_out(FeatureLearningRegressor(), X, y)
missed = 1 - np.array(list(scores.values())).min(axis=1)
print(f"M14 metric learned: 1 - R² at most {missed[1]:.0e} on the same rows, {missed[0]:.0e} with all columns alike")

# %%
# K8. The direction of the gradients
# ----------------------------------
# Entries of a direction are in units of the columns' deviations; divided by these they are slopes per mg/dl. All
# gradients are along cholesterol - LDL - HDL. Where LDL is not measured, it is computed as cholesterol - HDL -
# triglycerides / 5 (Friedewald, Levy and Fredrickson, 1972). So it was here, and s5 is the logarithm of the
# triglycerides. What was found is a formula of the laboratory, not of the blood.
train, test = splits[0]
model = FeatureLearningRegressor().fit(X.iloc[train], y.iloc[train])
share, parts = model.directions(1)[0]
slopes = {name: part / X.iloc[train][name].std() for name, part in parts.items()}
per_unit = ", ".join(f"{name} {slope / slopes['cholesterol']:+.3f}" for name, slope in slopes.items())
print(f"K8  {model.chosen_[0]}; share of the leading direction {share:.4f}: {per_unit}")
rest = patients["cholesterol"] - patients["LDL"] - patients["HDL"]
exact = np.abs(rest - np.exp(patients["s5"]) / 5) < 0.005
print(f"K8  exp(s5) = 5 (cholesterol - LDL - HDL) in {exact.sum()} of {len(exact)} rows, to the digits that are given")

# %%
# K3. The kernel is proven, the fit certified
# -------------------------------------------
claim = model.certificate_.verify(X.iloc[train], y.iloc[train])
print(f"K3  {model.kernel_.proof()}")
print(f"K3  converged, found again by other code: {claim.converged}")

# %%
# M14. From the table, in one call
# --------------------------------
# `auto` is given the table and the name of a column. Its shares are by columns of the table.
found = auto(patients.drop(columns="progression").iloc[train], "s5")
shares = ", ".join(f"{name} {share:.0%}" for name, share in list(found.column_importances_.items())[:4])
print(f"M14 auto: R² {found.score(X.iloc[test], y.iloc[test]):.4f} on rows held out; {shares}")

# %%
# M14. Where nothing is gained
# ----------------------------
# The progression of the disease within a year has to do with many columns, and mostly with what is in none of them: a
# metric has little to find.
later = patients.drop(columns="progression"), patients["progression"]
for name, model_of in {"all alike": alike, "learned": FeatureLearningRegressor()}.items():
    scores[f"progression, {name}"] = held_out(model_of, *later)
    print(f"M14 {name}: R² of the progression {scores[f'progression, {name}'].round(3)}")

with house():
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.9), layout="constrained")
    plots.metric(model, ax=left)
    left.set_title("s5: columns")
    along = np.linspace(rest.min(), rest.max(), 200)
    someone = X.iloc[train].median()
    line = X.iloc[[0] * len(along)].assign(**someone)
    line["cholesterol"] = someone["LDL"] + someone["HDL"] + along
    middle.plot(along, model.predict(line), color=BLUE, lw=1.5, label="f, the others at their medians")
    middle.plot(rest.iloc[test], y.iloc[test], "o", color=INK, ms=4, mew=0, alpha=0.6, label="rows held out")
    middle.set(xlabel="cholesterol − LDL − HDL, mg/dl", ylabel="s5", title="s5: the leading direction")
    middle.legend(loc="lower right")
    for row, (name, four) in enumerate(scores.items()):
        right.plot(1 - four, np.full(4, row), "o", color=BLUE if "learned" in name else RED, ms=6, mew=0, alpha=0.7)
    right.set(xscale="log", xlabel="1 − R²", yticks=range(4), yticklabels=scores, ylim=(3.5, -0.5))
    right.minorticks_off()
    right.set_title("rows held out, four splits")
plt.show()
