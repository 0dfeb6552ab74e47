"""
Texts and time series: points of different lengths
==================================================

Words, letters, edits and alignments as similarities of objects that are no vectors (K10), the features behind them
(F5), and what to do with a similarity that is no kernel (K1).
"""

# %%
# K10. Texts by words and by letters
# ----------------------------------
# By words, "deliverd" and "delivered" have nothing in common. By runs of letters they have.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from mercer import SVC, EditSimilarity, GlobalAlignment, KernelPCA, LinearSVC, TextNGrams, repair, verdict
from mercer.plots.style import BLUE, MUTED, RED, house

rng = np.random.default_rng(3)
words, letters = TextNGrams((1, 1)), TextNGrams(None, characters=(2, 4))
for name, kernel in (("words", words), ("letters", letters)):
    pair = kernel(["my parcel was delivered", "my parcle was deliverd"])[0, 1]
    print(f"K10 by {name}, the two spellings have the similarity {pair:.2f}")

# %%
# F5. Many texts: the same machine, by features
# ---------------------------------------------
# Made messages with slips of the pen: half of them complain. A kernel machine compares all pairs of texts. LinearSVC
# takes the features themselves, which is what to do with a million texts. Both find the same function.
subjects = ["parcel", "order", "invoice", "ticket", "refund", "account", "delivery", "package"]
complaints = ["never arrived", "is broken", "was lost again", "came too late", "is wrong once more", "does not work"]
praises = ["arrived early", "works well", "was lovely", "came on time", "is just right", "looks great"]


def slip(text):
    """The text with two neighbouring letters exchanged, twice."""
    for i in rng.integers(0, len(text) - 1, 2):
        text = text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    return text


y = np.arange(600) % 2
texts = [slip(f"my {rng.choice(subjects)} {rng.choice(complaints if c else praises)}") for c in y]
for name, kernel in (("words", words), ("letters", letters)):
    score = cross_val_score(SVC(kernel=kernel), texts, y).mean()
    print(f"F5  by {name}: accuracy {score:.1%}")
never = SVC(kernel=letters, tol=1e-7).fit(texts, y)
listed = make_pipeline(never.kernel_.feature_map(), LinearSVC(tol=1e-7)).fit(texts, y)
apart = np.abs(never.decision_function(texts) - listed.decision_function(texts)).max()
print(f"F5  {listed[0].n_features_out_:,} features, listed or not: decisions {apart:.0e} apart")

# %%
# K1. A similarity that is no kernel
# ----------------------------------
# The number of edits between two words is a good distance, but exp(-distance / s) is proven for no s. The proof says
# so, the verdict finds a vector with a'Ka < 0, and the repair moves the matrix no farther than it has to.
tokens = sorted({token for text in texts for token in text.split()})[:250]
edits = EditSimilarity(scale=3.0)
found, fixed = verdict(edits, tokens), repair(edits(tokens), how="clip")
print(f"K1  {edits.proof()}")
print(f"K1  {len(tokens)} words: kernel? {bool(found)}; smallest eigenvalue {found.smallest:.2f}")
print(f"K1  a'Ka = {found.quadratic_form:.2f} for a unit vector a")
print(f"K1  clipped, the matrix has moved by {fixed.moved_relative:.1%}; kernel? {bool(verdict(fixed.matrix))}")

# %%
# K10. Time series of different lengths
# -------------------------------------
# Two kinds of heartbeat, each at its own pace: the second bump is higher than the first, or lower. GlobalAlignment
# sums over all ways to walk through two series together, and is a kernel. No series is cut or stretched.


def beat(kind):
    """A series of 30 to 60 numbers with two bumps at a pace of its own."""
    t = np.linspace(0, 1, rng.integers(30, 61)) ** rng.uniform(0.7, 1.4)
    low, high = np.exp(-(((t - 0.3) / 0.08) ** 2)), np.exp(-(((t - 0.7) / 0.08) ** 2))
    return (1.0 - 0.4 * kind) * low + (0.6 + 0.4 * kind) * high + 0.1 * rng.normal(size=len(t))


kind = np.arange(80) % 2
beats = [beat(c) for c in kind]
alignment = GlobalAlignment(scale=1.0)
print(f"K10 {len(beats)} series of {min(map(len, beats))} to {max(map(len, beats))} numbers")
print(f"K10 accuracy {cross_val_score(SVC(kernel=alignment, C=10.0), beats, kind).mean():.1%}")
print(f"K10 {alignment.proof()}")
plane = KernelPCA(2, kernel=alignment).fit_transform(beats)

with house():
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    values = fixed.eigenvalues_before
    rank = np.arange(len(values), 0, -1)
    left.axhline(0, color=MUTED, lw=1)
    left.plot(rank[values >= 0], values[values >= 0], "o", color=BLUE, ms=3.5, mew=0, label="positive")
    left.plot(rank[values < 0], values[values < 0], "v", color=RED, ms=5.5, mew=0, label="negative: clipped to 0")
    left.set_yscale("symlog", linthresh=0.2)
    left.set(xlabel="rank", ylabel="eigenvalue")
    left.set_title("Edits: eigenvalues of no kernel")
    left.legend(loc="upper right")
    for c, colour, line in ((0, BLUE, "-"), (1, RED, (0, (5, 2)))):
        for row, series in enumerate(sorted((beats[i] for i in np.flatnonzero(kind == c)), key=len)[::13]):
            middle.plot(series - 1.6 * (2 * row + c), color=colour, ls=line, lw=1.4)
        label = ("first bump higher", "second bump higher")[c]
        right.plot(*plane[kind == c].T, "o^"[c], color=colour, ms=6, mew=0, label=label)
    middle.set(xlabel="time", yticks=[])
    middle.set_title("Eight series, each at its pace")
    right.set(xlabel="first component", ylabel="second component")
    right.set_title("All series, by alignments")
    right.legend(loc="best")
