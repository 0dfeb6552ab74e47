r"""
10. Strings, graphs and other things
====================================

Nothing so far has asked what a point is. A kernel compares two of them, and the machines do the rest. So a point may be
a word, a strand of DNA, a molecule, a picture, a sound, or a name in somebody's table of similarities.
"""

# %%
# Features of a string
# --------------------
# A linear machine wants vectors: the same length for all, and the same meaning at each place. A string has neither. But
# the counts of its pieces have both: coordinate "an" says how often "an" occurs, in short words and long ones. The
# inner product of these counts is ``Spectrum``. In "banana" and "bandana" it is easily counted by hand.
from collections import Counter
from math import comb

import matplotlib.pyplot as plt
import numpy as np

from mercer import (
    RBF,
    SVC,
    EditSimilarity,
    FromFeatures,
    GappedKmers,
    GlobalAlignment,
    Graph,
    Graphlets,
    LinearSVC,
    Precomputed,
    SetKernel,
    Spectrum,
    TextNGrams,
    WeisfeilerLehman,
    plots,
    repair,
    verdict,
)
from mercer.plots.style import BLUE, INK, MUTED, RED, SEQUENTIAL, house, scatter


def pairs(word):
    return Counter(word[i : i + 2] for i in range(len(word) - 1))


words = ["banana", "bandana", "cabana"]
by_hand = [
    [sum(pairs(a)[piece] * pairs(b)[piece] for piece in pairs(a)) for b in words] for a in words
]
k = Spectrum(k=2)
print(k(words))
assert np.array_equal(k(words), by_hand)
assert k(words)[0, 1] == 7
Phi = k.feature_map().fit(words)  # the features themselves, for those who want them
assert Phi.transform(words).shape == (3, len(set().union(*map(pairs, words)))) == (3, 7)
assert np.array_equal(FromFeatures(Phi)(words), k(words))

# %%
# The kernel needs no list of features, and works where no list could be made. ``GappedKmers(8, 3)`` compares pieces of
# 8 letters with 3 left out, in all 56 ways. Here is a motif of DNA that occurs with up to two errors, anywhere in a
# string of 60 letters. Exact pieces of 6 letters miss it more often than pieces with gaps.
rng = np.random.default_rng(1)
motif = "TGACGTCATG"


def strand(with_motif):
    letters = rng.choice(list("ACGT"), 60)
    if with_motif:
        copy = np.array(list(motif))
        copy[rng.choice(10, 2, replace=False)] = rng.choice(list("ACGT"), 2)
        at = rng.integers(0, 51)
        letters[at : at + 10] = copy
    return "".join(letters)


has = np.arange(400) % 2
strands = [strand(c) for c in has]
assert comb(8, 3) == 56
right = {}
exact, gapped = Spectrum(6).normalized(), GappedKmers(length=8, gaps=3).normalized()
for kernel in (exact, gapped):
    model = SVC(C=10.0, kernel=kernel).fit(strands[:300], has[:300])
    right[repr(kernel)] = model.score(strands[300:], has[300:])
    assert kernel.proof().proven
    assert model.certificate_.converged
print(right)
assert right[repr(gapped)] > right[repr(exact)] + 0.05

# %%
# Texts: words, and runs of letters. By words, two spellings have little in common; by letters they have much.
by_words, by_letters = TextNGrams((1, 1)), TextNGrams(None, characters=(2, 4))
spellings = ["my parcel was delivered", "my parcle was deliverd"]
print(
    f"alike by words {by_words(spellings)[0, 1]:.2f}, by letters {by_letters(spellings)[0, 1]:.2f}"
)
assert by_letters(spellings)[0, 1] > by_words(spellings)[0, 1] + 0.1

# %%
# Your own similarities
# ---------------------
# Where does a similarity come from that is no kernel? From a good idea: :math:`e^{-d / s}` with d the number of edits
# between two words. Its proof says "unproven", and the verdict on these words is a witness. A machine without a kernel
# has no minimum to find. ``repair`` makes the matrix positive semidefinite: negative eigenvalues are cut off, turned
# over, or lifted by adding to the diagonal. Cutting moves the matrix least.
letters = "abc"
tokens = sorted(
    {a + b + c + d for a in letters for b in letters for c in letters for d in letters}
)[::2]
edits = EditSimilarity(scale=3.0)
S = edits(tokens)
found = verdict(S)
print(f"{edits.proof().status}; a'Sa = {found.quadratic_form:.2f} for a unit vector a")
assert edits.proof().status == "unproven"
assert not found.psd
assert np.isclose(found.witness @ S @ found.witness, found.smallest)
mended = {how: repair(S, how) for how in ("clip", "flip", "shift")}
for how, fixed in mended.items():
    print(f"{how}: moved by {fixed.moved_relative:.1%}")
    assert np.linalg.eigvalsh(fixed.matrix)[0] > -1e-9
assert mended["clip"].moved == min(fixed.moved for fixed in mended.values())
starts = np.array([token[0] == "a" for token in tokens])
own = SVC(kernel="precomputed").fit(mended["clip"].matrix, starts)
assert own.certificate_.converged
assert own.score(mended["clip"].matrix, starts) > 0.9
assert verdict(Precomputed(mended["clip"].matrix), np.arange(len(tokens))).psd

# %%
# Graphs
# ------
# A molecule is a graph with names at its nodes. ``WeisfeilerLehman`` gives each node a colour, its name; then h times a
# new one, made of its colour and those of its neighbours; and counts common colours. Chains and rings of atoms are told
# apart by it.


def chain(size, closed):
    edges = [(i, i + 1) for i in range(size - 1)] + [(size - 1, 0)] * closed
    return Graph(edges, labels=rng.choice(["C", "N"], size).tolist())


ring = np.arange(240) % 2
molecules = [chain(int(rng.integers(4, 10)), bool(c)) for c in ring]
refined = WeisfeilerLehman(h=2).normalized()
reader = SVC(C=10.0, kernel=refined).fit(molecules[:120], ring[:120])
names_only = SVC(C=10.0, kernel=WeisfeilerLehman(h=0).normalized()).fit(molecules[:120], ring[:120])
rates = [model.score(molecules[120:], ring[120:]) for model in (names_only, reader)]
print(f"right by names alone {rates[0]:.0%}, by neighbourhoods {rates[1]:.0%}")
assert rates[1] > 0.9 > 0.7 > rates[0]
assert refined.proof().proven

# %%
# Each such kernel is blind to something. Two triangles and a hexagon: every node has two neighbours, each of which has
# two neighbours, and so on. All colours agree for ever. Counting triangles tells them apart at once.
triangles = Graph([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
hexagon = Graph([(i, (i + 1) % 6) for i in range(6)])
for h in (1, 5, 20):
    assert np.isclose(WeisfeilerLehman(h).normalized()([triangles, hexagon])[0, 1], 1.0)
seen = Graphlets(3).normalized()([triangles, hexagon])[0, 1]
print(f"alike by colours 1, by connected triples {seen:.2f}")
assert seen < 0.1

# %%
# Pictures and sounds
# -------------------
# Pixels are compared at equal places. Move a drawing by a pixel or two, and it is another point. A bag of patches
# forgives that: a mean over all pairs of patches of a kernel of patches. These drawings show a cross or a square,
# anywhere.


def drawing(square):
    image = np.zeros((16, 16))
    i, j = rng.integers(0, 12, 2)
    if square:
        image[i : i + 5, [j, j + 4]] = image[[i, i + 4], j : j + 5] = 1.0
    else:
        image[i + 2, j : j + 5] = image[i : i + 5, j + 2] = 1.0
    return image + 0.1 * rng.normal(size=(16, 16))


def patches(image):
    return np.lib.stride_tricks.sliding_window_view(image, (3, 3)).reshape(-1, 9)


is_square = np.arange(100) % 2
images = [drawing(c) for c in is_square]
flat = np.array([image.ravel() for image in images])
bags = [patches(image) for image in images]
bag = SetKernel(RBF(scale=1.0)).normalized()
by_pixels = (
    SVC(C=10.0, kernel=RBF("median"))
    .fit(flat[:40], is_square[:40])
    .score(flat[40:], is_square[40:])
)
by_patches = (
    SVC(C=100.0, kernel=bag).fit(bags[:40], is_square[:40]).score(bags[40:], is_square[40:])
)
print(f"right by pixels {by_pixels:.0%}, by patches {by_patches:.0%}")
assert by_patches > 0.9
assert by_pixels < 0.85

# %%
# A sound is a series, each at its own pace. ``GlobalAlignment`` sums over all ways to walk through two series together.
# These are pitches that rise or fall, 20 to 40 of them; as bags, without their order, they are all alike.


def pitch(rises):
    t = np.linspace(0, 1, rng.integers(20, 41)) ** rng.uniform(0.7, 1.4)
    return (t if rises else 1 - t) + 0.1 * rng.normal(size=len(t))


up = np.arange(60) % 2
melodies = [pitch(c) for c in up]
aligned = GlobalAlignment(scale=0.5)
in_order = SVC(C=10.0, kernel=aligned).fit(melodies[:30], up[:30]).score(melodies[30:], up[30:])
unordered = SetKernel(RBF(scale=0.3)).normalized()
columns = [m[:, None] for m in melodies]
no_order = SVC(C=10.0, kernel=unordered).fit(columns[:30], up[:30]).score(columns[30:], up[30:])
print(f"right by alignments {in_order:.0%}, without order {no_order:.0%}")
assert in_order == 1.0
assert no_order < 0.8

# %%
# Where there are many points, features that can be listed are for a linear machine, which finds the same function.
listed = Spectrum(3).feature_map().fit(strands[:300])
few = LinearSVC(C=0.01, tol=1e-8).fit(listed.transform(strands[:300]), has[:300])
kernelised = SVC(C=0.01, kernel=Spectrum(3), tol=1e-8).fit(strands[:300], has[:300])
assert np.allclose(
    few.decision_function(listed.transform(strands[300:])),
    kernelised.decision_function(strands[300:]),
    atol=1e-4,
)

# %%
# Left, what ``repair`` cuts off. In the middle, drawings as the machine of patches gets them. Right, the Gram matrix of
# the melodies: two that rise are alike, and two that fall.
with house():
    fig = plt.figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = fig.subfigures(1, 3, width_ratios=(1.1, 0.8, 1))
    ax = left.subplots()
    values = mended["clip"].eigenvalues_before[::-1]
    rank = np.arange(1, len(values) + 1)
    for shown, colour, mark, label in (
        (values >= 0, BLUE, "o", "kept"),
        (values < 0, RED, "v", "cut off"),
    ):
        ax.plot(rank[shown], values[shown], mark, color=colour, ms=4.5, mew=0, label=label)
    ax.axhline(0, color=MUTED, lw=1)
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set(xlabel="rank", ylabel="eigenvalue", ylim=(-0.4, 40))
    ax.set_title("Edits: a similarity that is no kernel")
    ax.legend()
    for ax, image in zip(middle.subplots(2, 2).ravel(), images, strict=False):
        ax.imshow(image, cmap=SEQUENTIAL)
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
    ax = right.subplots()
    plots.gram(aligned, melodies, np.array(["falls", "rises"])[up], ax=ax)
    ax.set_title("Melodies, by alignments")

# %%
# Whatever the points are, what comes out is a number f. Here are those of things that no machine had seen before. Four
# kinds of points, four kernels, and one machine.
unseen = {
    "DNA: with the motif": (gapped, strands, has, 300),
    "Graphs: rings": (refined, molecules, ring, 120),
    "Drawings: squares": (bag, bags, is_square, 40),
    "Melodies: rising": (aligned, melodies, up, 30),
}
with house():
    fig, axes = plt.subplots(1, 4, figsize=(10.5, 3), layout="constrained", sharey=True)
    for ax, (name, (kernel, points, classes, n)) in zip(axes, unseen.items(), strict=True):
        f = SVC(C=100.0, kernel=kernel).fit(points[:n], classes[:n]).decision_function(points[n:])
        right = np.mean((f > 0) == (classes[n:] == 1))
        assert right > 0.8
        scatter(ax, (f, classes[n:] + rng.uniform(-0.25, 0.25, len(f))), classes[n:], alpha=0.8)
        ax.axvline(0, color=INK, lw=1)
        ax.set(xlabel="f", ylim=(-0.5, 1.5), yticks=[0, 1], yticklabels=["no", "yes"])
        ax.set_title(f"{name}? {right:.0%}")

# %%
# In the lab
# ----------
# .. lab:: kernel=Sigmoid%28gamma%3D1%2C+c%3D-1%29&loss=hinge&C=1&task=classes&view=gram
#    &points=X2elAwVeDBcOcwAcMLhBYoiIAPshKBgFlFApkt_BZ9kuAh2O4BmJhsAQGn0BeLmTAj7tqBgMckAlhusBgaczAxLfaBjYk3AZRtkBjZ
#    kzAdSOCBfUnZAxMlcBgincAulfCBe1jbAYEP3BcnXAAsnY9Bmpl2AuojtBjmcrAMTewBiYkFAacUxBonezAqJwqBaNkJAYGvrBcufWAucnfBe5
#    nsAnJr9BeRmyApmsLBecjGArZquBd5mZAYcRABYTfnAOHdYBf6mLAvPfNBoygNAlcsJBc_lgAdAP6Bf-
#    ouAshSoBhOmjArEnpBbJerAcEweBjydkAsvQ9BgdkqAVYpiBfamQAwLYhBcCnQAx5pWBbfj4Agov8Bdxl4AsHWSBedcWAWSuWBgXbaAkcQgB
#
#    A similarity of points that is no kernel: a witness, and no certificate. Take c up to 0 and above: does it help?

# %%
# This page shows K10 and F5.
