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
# the counts of its pieces have both: coordinate "an" says how often "an" occurs, in short words and long ones. The inner
# product of these counts is ``Spectrum``. In "banana" and "bandana" it is easily counted by hand.
from collections import Counter

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
from mercer.plots.style import BLUE, MUTED, RED, house


def pairs(word):
    return Counter(word[i : i + 2] for i in range(len(word) - 1))


words = ["banana", "bandana", "cabana"]
by_hand = [[sum(pairs(a)[piece] * pairs(b)[piece] for piece in pairs(a)) for b in words] for a in words]
k = Spectrum(k=2)
print(k(words))
assert np.array_equal(k(words), by_hand)
assert k(words)[0, 1] == 7
Phi = k.feature_map().fit(words)  # the features themselves, for those who want them
assert Phi.transform(words).shape == (3, len(set().union(*map(pairs, words)))) == (3, 7)
assert np.array_equal(FromFeatures(Phi)(words), k(words))

# %%
# The kernel needs no list of features, and works where no list could be made. ``GappedKmers(8, 3)`` compares pieces of 8
# letters with 3 left out, in all 56 ways. Here is a motif of DNA that occurs with up to two errors, anywhere in a string
# of 60 letters. Exact pieces of 6 letters miss it more often than pieces with gaps.
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


has = np.arange(300) % 2
strands = [strand(c) for c in has]
right = {}
for kernel in (Spectrum(6).normalized(), GappedKmers(8, 3).normalized()):
    model = SVC(C=10.0, kernel=kernel).fit(strands[:200], has[:200])
    right[repr(kernel)] = model.score(strands[200:], has[200:])
    assert kernel.proof().proven and model.certificate_.converged
print(right)
assert list(right.values())[1] > list(right.values())[0] + 0.1

# %%
# Texts: words, and runs of letters. By words, two spellings have little in common; by letters they have much.
by_words, by_letters = TextNGrams((1, 1)), TextNGrams(None, characters=(2, 4))
spellings = ["my parcel was delivered", "my parcle was deliverd"]
print(f"alike by words {by_words(spellings)[0, 1]:.2f}, by letters {by_letters(spellings)[0, 1]:.2f}")
assert by_letters(spellings)[0, 1] > by_words(spellings)[0, 1] + 0.1

# %%
# Your own similarities
# ---------------------
# Where does a similarity come from that is no kernel? From a good idea: :math:`e^{-d / s}` with d the number of edits
# between two words. Its proof says "unproven", and the verdict on these words is a witness. A machine without a kernel has
# no minimum to find. ``repair`` makes the matrix positive semidefinite: negative eigenvalues are cut off, turned over, or
# lifted by adding to the diagonal. Cutting moves the matrix least.
letters = "abc"
tokens = sorted({a + b + c + d for a in letters for b in letters for c in letters for d in letters})[::2]
edits = EditSimilarity(scale=3.0)
S = edits(tokens)
found = verdict(S)
print(f"{edits.proof().status}; smallest eigenvalue {found.smallest:.2f}, a'Sa = {found.quadratic_form:.2f}")
assert edits.proof().status == "unproven" and not found.psd
assert np.isclose(found.witness @ S @ found.witness, found.smallest)
mended = {how: repair(S, how) for how in ("clip", "flip", "shift")}
for how, fixed in mended.items():
    print(f"{how}: moved by {fixed.moved_relative:.1%}")
    assert np.linalg.eigvalsh(fixed.matrix)[0] > -1e-9
assert mended["clip"].moved == min(fixed.moved for fixed in mended.values())
starts = np.array([token[0] == "a" for token in tokens])
own = SVC(kernel="precomputed").fit(mended["clip"].matrix, starts)
assert own.certificate_.converged and own.score(mended["clip"].matrix, starts) > 0.9
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


ring = np.arange(120) % 2
molecules = [chain(int(rng.integers(4, 10)), bool(c)) for c in ring]
refined = WeisfeilerLehman(h=2).normalized()
reader = SVC(C=10.0, kernel=refined).fit(molecules[:80], ring[:80])
names_only = SVC(C=10.0, kernel=WeisfeilerLehman(h=0).normalized()).fit(molecules[:80], ring[:80])
rates = [model.score(molecules[80:], ring[80:]) for model in (names_only, reader)]
print(f"right by names alone {rates[0]:.0%}, by neighbourhoods {rates[1]:.0%}")
assert rates[1] > 0.9 > 0.7 > rates[0] and refined.proof().proven

# %%
# Each such kernel is blind to something. Two triangles and a hexagon: every node has two neighbours, each of which has two
# neighbours, and so on. All colours agree for ever. Counting triangles tells them apart at once.
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
# Pixels are compared at equal places. Move a drawing by a pixel or two, and it is another point. A bag of patches forgives
# that: a mean over all pairs of patches of a kernel of patches. These drawings show a cross or a square, anywhere.


def drawing(square):
    image = np.zeros((12, 12))
    i, j = rng.integers(0, 8, 2)
    if square:
        image[i : i + 5, [j, j + 4]] = image[[i, i + 4], j : j + 5] = 1.0
    else:
        image[i + 2, j : j + 5] = image[i : i + 5, j + 2] = 1.0
    return image + 0.1 * rng.normal(size=(12, 12))


def patches(image):
    return np.lib.stride_tricks.sliding_window_view(image, (3, 3)).reshape(-1, 9)


is_square = np.arange(60) % 2
images = [drawing(c) for c in is_square]
flat = np.array([image.ravel() for image in images])
bags = [patches(image) for image in images]
by_pixels = SVC(C=10.0, kernel=RBF("median")).fit(flat[:30], is_square[:30]).score(flat[30:], is_square[30:])
bag = SetKernel(RBF(scale=1.0)).normalized()
by_patches = SVC(C=100.0, kernel=bag).fit(bags[:30], is_square[:30]).score(bags[30:], is_square[30:])
print(f"right by pixels {by_pixels:.0%}, by patches {by_patches:.0%}")
assert by_patches == 1.0 and by_pixels < 0.9

# %%
# A sound is a series, each at its own pace. ``GlobalAlignment`` sums over all ways to walk through two series together. These
# are pitches that rise or fall, 20 to 40 of them; as bags, without their order, they are all alike.


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
assert in_order == 1.0 and no_order < 0.8

# %%
# Where there are many points, features that can be listed are for a linear machine, which finds the same function.
listed = Spectrum(3).feature_map().fit(strands[:200])
few = LinearSVC(C=0.01, tol=1e-8).fit(listed.transform(strands[:200]), has[:200])
kernelised = SVC(C=0.01, kernel=Spectrum(3), tol=1e-8).fit(strands[:200], has[:200])
assert np.allclose(few.decision_function(listed.transform(strands[200:])), kernelised.decision_function(strands[200:]), atol=1e-4)

with house():
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    values = mended["clip"].eigenvalues_before[::-1]
    rank = np.arange(1, len(values) + 1)
    for shown, colour, mark, label in ((values >= 0, BLUE, "o", "kept"), (values < 0, RED, "v", "cut off")):
        left.plot(rank[shown], values[shown], mark, color=colour, ms=4, mew=0, label=label)
    left.axhline(0, color=MUTED, lw=1)
    left.set_yscale("symlog", linthresh=0.1)
    left.set(xlabel="rank", ylabel="eigenvalue")
    left.set_title("Edits: a similarity that is no kernel")
    left.legend()
    right.imshow(np.hstack([images[0], np.ones((12, 1)), images[1], np.ones((12, 1)), images[2], np.ones((12, 1)), images[3]]), cmap="Greys")
    right.set_axis_off()
    right.set_title("Four drawings, by a kernel of patches")

# %%
# Whatever the points are, the machine sees a matrix. Where the kernel suits the question, the matrix shows the classes as
# dark blocks, and the rest is the work of the pages before.
kinds = {
    "DNA": (GappedKmers(8, 3).normalized(), strands[:60], has[:60]),
    "graphs": (refined, molecules[:60], ring[:60]),
    "drawings": (bag, bags, is_square),
    "melodies": (aligned, melodies, up),
}
with house():
    fig, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
    for ax, (name, (kernel, points, classes)) in zip(axes, kinds.items(), strict=True):
        plots.gram(kernel, points, classes, ax=ax)
        ax.set_title(name)

# %%
# This page shows K10 and F5.
