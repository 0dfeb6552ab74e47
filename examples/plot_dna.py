"""
DNA: a motif with errors, anywhere or at its place
==================================================

Two questions about strings of ACGT. Does a string have a certain motif, with errors, wherever it is? Is the motif at
its place? One machine, three kernels, and a picture of the letters that decide (K10, K3, F5, M14, M8).
"""

# %%
# K10. Strings are points
# -----------------------
# Spectrum counts pairs of equal 5-mers. GappedKmers compares 5 of 8 letters, in all ways, so that an error hurts
# less. WeightedDegree asks for equal letters at equal places: after a shift by one letter nothing is alike.
from math import comb

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from sklearn.pipeline import make_pipeline

from mercer import SVC, GappedKmers, KernelSearchCV, LinearSVC, Spectrum, WeightedDegree
from mercer.plots.style import BLUE, DIVERGING, INK, MUTED, RED, house

motif, changed, shifted = "TGACGTCATG", "TGACATCATG", "ATGACGTCAT"
spectrum, gapped = Spectrum(5).normalized(), GappedKmers(length=8, gaps=3).normalized()
places = WeightedDegree(degree=4).normalized()
names = {"Spectrum": spectrum, "GappedKmers": gapped, "WeightedDegree": places}
for name, kernel in names.items():
    one, other = kernel([motif], [changed, shifted])[0]
    print(f"K10 {name}: {one:.2f} after one error, {other:.2f} after a shift by one letter")

# %%
# K3. Why these are kernels
# -------------------------
# Counts are features, and a kernel divided by its values on the diagonal is a kernel again: the cosine in feature
# space.
print(f"K3  {gapped.proof()}")

# %%
# F5. Features that nobody lists
# ------------------------------
# Of 8 letters 3 are left out in 56 ways, and 5 remain. Spectrum has so few features that they can be listed:
# LinearSVC on them and SVC with the kernel are then one machine.
rng = np.random.default_rng(1)
length, place, width = 60, 25, len(motif)


def made(at):
    """A string at random that has the motif, with up to two errors, at a place."""
    letters = rng.choice(list("ACGT"), length)
    if at is not None:
        copy = np.array(list(motif))
        copy[rng.choice(width, 2, replace=False)] = rng.choice(list("ACGT"), 2)
        letters[at : at + width] = copy
    return "".join(letters)


y = np.arange(400) % 2
where = rng.integers(0, length - width + 1, 400)
elsewhere = np.where(where < 25, where % 15, 36 + where % 15)
has_motif = [made(int(at) if c else None) for at, c in zip(where, y, strict=True)]
at_place = [made(place if c else int(at)) for at, c in zip(elsewhere, y, strict=True)]
print(f"F5  GappedKmers(8, 3) has {comb(8, 3) * 4**5:,} features, none of which is built")
listed = make_pipeline(Spectrum(5).feature_map(), LinearSVC(C=0.01, tol=1e-8)).fit(has_motif[:200], y[:200])
never = SVC(C=0.01, kernel=Spectrum(5), tol=1e-8).fit(has_motif[:200], y[:200])
apart = np.abs(listed.decision_function(has_motif[200:]) - never.decision_function(has_motif[200:])).max()
print(f"F5  {listed[0].n_features_out_} features of Spectrum(5), listed or not: decisions {apart:.0e} apart")

# %%
# M14. Which kernel? Cross-validation says
# ----------------------------------------
# First question: all strings of one class have the motif, at any place. Second question: all strings have it, those
# of one class at letter 25. Positions are noise to the first question and the whole answer to the second.
scores = {}
for question, X in (("has the motif", has_motif), ("has it at its place", at_place)):
    search = KernelSearchCV(SVC(), list(names.values()), {"C": [0.3, 1.0, 3.0, 10.0]}, exhaustive=True).fit(X, y)
    tried, mean = search.cv_results_["param_kernel"], search.cv_results_["mean_test_score"]
    scores[question] = [max(m for k, m in zip(tried, mean, strict=True) if k is kernel) for kernel in names.values()]
    best = list(names)[int(np.argmax(scores[question]))]
    said = ", ".join(f"{name} {score:.0%}" for name, score in zip(names, scores[question], strict=True))
    print(f"M14 {question}: {said}; chosen is {best}, C = {search.best_params_['C']}")

# %%
# M8. Which letters decide?
# -------------------------
# The decision is a sum over support vectors. What a letter of a new string does to it is found by changing the
# letter: the mean over the three other ones. The motif stands out, wherever it is.
model = SVC(C=1.0, kernel=gapped).fit(has_motif, y)
print(f"M8  {len(model.support_)} of {len(y)} strings are support vectors")
starts = np.sort(rng.integers(0, length - width + 1, 24))
new = [made(int(at)) for at in starts]
others = [x[:i] + c + x[i + 1 :] for x in new for i in range(length) for c in "ACGT" if c != x[i]]
effect = model.decision_function(new)[:, None] - model.decision_function(others).reshape(24, length, 3).mean(axis=2)
inside = (np.arange(length) >= starts[:, None]) & (np.arange(length) < starts[:, None] + width)
print(f"M8  a letter of the motif is worth {effect[inside].mean():.3f}, another {effect[~inside].mean():.3f}")

with house():
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), width_ratios=(1, 1.7), layout="constrained")
    for (question, values), colour, mark in zip(scores.items(), (BLUE, RED), "o^", strict=True):
        left.plot(values, range(3), mark, color=colour, ms=9, label=question)
    left.axvline(0.5, ymax=0.9, color=MUTED, lw=1, ls=(0, (4, 3)))
    left.set(yticks=range(3), yticklabels=names, ylim=(2.4, -0.9), xlim=(0.44, 1.02), xlabel="accuracy, 5 folds")
    left.set_title("Two questions, three kernels")
    left.legend(loc="upper left", ncols=2, columnspacing=1, handletextpad=0.2)
    top = np.abs(effect).max()
    drawn = right.imshow(effect, cmap=DIVERGING, vmin=-top, vmax=top, aspect="auto")
    for row, at in enumerate(starts):
        right.add_patch(Rectangle((at - 0.5, row - 0.5), width, 1, fill=False, ec=INK, lw=0.9))
    right.set(xlabel="letter of the string", ylabel="new strings, by the place of the motif", yticks=[])
    right.set_title("What each letter adds to the decision (frames: the motif)")
    right.grid(False)
    fig.colorbar(drawn, ax=right, pad=0.02).outline.set_visible(False)
