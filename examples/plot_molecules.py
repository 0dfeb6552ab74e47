"""
Molecules: kernels on graphs
============================

Made molecules of four kinds. What two graphs have in common (K10), sums of kernels (K3), colours of neighbourhoods as
features (F5), which kernel tells the kinds apart (M14), and a map of molecules to which nobody gave coordinates.
"""

# %%
# K10. A graph is a point
# -----------------------
# Atoms are nodes with labels, bonds are edges. The order in which atoms are listed means nothing, and no kernel sees
# it.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from mercer import (
    SVC,
    Graph,
    KernelPCA,
    KernelSearchCV,
    LinearSVC,
    RandomWalk,
    ShortestPath,
    WeisfeilerLehman,
    WLOptimalAssignment,
)
from mercer.plots.style import BLUE, INK, MUTED, RED, house

rng = np.random.default_rng(5)


def molecule(ring, fork):
    """A ring or a chain of six to ten atoms, with C, O, O hung on one of them as a fork or in a row; and a drawing."""
    n = int(rng.integers(6, 11))
    at, turn = int(rng.integers(1, n - 1)), 2 * np.pi * np.arange(n) / n
    bonds = [(i, i + 1) for i in range(n - 1)] + [(0, n - 1)] * ring + [(at, n), (n, n + 1), (n + 1 - fork, n + 2)]
    atoms = [*rng.choice(["C", "N"], n, p=[0.8, 0.2]).tolist(), "C", "O", "O"]
    spots = np.column_stack([np.cos(turn), np.sin(turn)]) * n / 6 if ring else np.array([[i, i % 2] for i in range(n)])
    out = spots[at] * 6 / n if ring else np.array([0, 2 * (at % 2) - 1])
    side = out[::-1] * [-1, 1] * fork
    spots = np.vstack([spots, spots[at] + out, spots[at] + 1.8 * out + side, spots[at] + (2.8 - fork) * out - side])
    return Graph(bonds, labels=atoms), spots


def shuffled(graph):
    """The same molecule, its atoms listed in another order."""
    order = rng.permutation(graph.size)
    return Graph(np.argsort(order)[graph.edges], labels=[graph.labels[i] for i in order])


kinds = ["chain, row", "chain, fork", "ring, row", "ring, fork"]
y = np.arange(120) % 4
drawn = [molecule(c > 1, c % 2) for c in y.tolist()]
X = [graph for graph, _ in drawn]
other = [shuffled(graph) for graph in X[:30]]
kernels = {
    "atoms alone": WeisfeilerLehman(h=0),
    "walks": RandomWalk(decay=0.05),
    "shortest paths": ShortestPath(),
    "colours, 3 rounds": WeisfeilerLehman(h=3),
    "atoms assigned": WLOptimalAssignment(h=3),
}
for name, kernel in kernels.items():
    apart = np.abs(kernel(X[:30]) / kernel(other) - 1).max()
    print(f"K10 {name}: atoms in another order change the matrix by {apart:.0e}")

# %%
# K3. Sums of kernels are kernels
# -------------------------------
# Counts grow with the molecules. Normalized, each is 1 on the diagonal, and the two have an equal say in a sum.
both = 0.5 * WeisfeilerLehman(h=3).normalized() + 0.5 * ShortestPath().normalized()
print(f"K3  {both.proof()}")

# %%
# F5. Colours are features
# ------------------------
# In each round of Weisfeiler and Lehman an atom gets a colour that names its own and those of its neighbours. Counts
# of colours are the features. The kernel never lists them; for very many molecules a linear machine can.
for h in range(4):
    columns = WeisfeilerLehman(h).feature_map().fit(X).n_features_out_
    print(f"F5  after {h} rounds the 120 molecules have {columns} colours")
listed = make_pipeline(WeisfeilerLehman(3).feature_map(), LinearSVC(C=0.1, tol=1e-8)).fit(X, y > 1)
never = SVC(C=0.1, kernel=WeisfeilerLehman(3), tol=1e-8).fit(X, y > 1)
apart = np.abs(listed.decision_function(X) - never.decision_function(X)).max()
print(f"F5  ring or chain, colours listed or not: decisions {apart:.0e} apart")

# %%
# M14. Which kernel tells the four kinds apart?
# ---------------------------------------------
# All kinds are made of the same atoms: counting them is no better than guessing, which is right once in four.
candidates = [kernel.normalized() for kernel in kernels.values()] + [both]
search = KernelSearchCV(SVC(), candidates, {"C": [1.0, 10.0, 100.0]}, cv=3, exhaustive=True).fit(X, y)
tried, mean = search.cv_results_["param_kernel"], search.cv_results_["mean_test_score"]
for name, kernel in zip([*kernels, "colours + paths"], candidates, strict=True):
    print(f"M14 {name}: {max(m for k, m in zip(tried, mean, strict=True) if k is kernel):.0%} right")
print(f"M14 chosen: {search.best_params_}")

# %%
# K10. A map of the molecules
# ---------------------------
# KernelPCA finds the two directions in feature space along which the molecules differ most. It is not told the kinds.
# Fork or row comes first. Ring or chain takes further directions, which the machine above has used.
pca = KernelPCA(2, kernel=WLOptimalAssignment(h=3).normalized())
plane = pca.fit_transform(X)
print(f"K10 two components keep {pca.explained_variance_ratio_.sum():.0%} of the variance in feature space")
for name, parts in (("fork or row", y % 2), ("ring or chain", y > 1)):
    print(f"K10 {name}: a line in the map is right for {LinearSVC().fit(plane, parts).score(plane, parts):.0%}")

looks = [("o", RED, RED), ("o", BLUE, BLUE), ("^", RED, "white"), ("^", BLUE, "white")]
with house():
    fig = plt.figure(figsize=(11, 4.9), layout="constrained")
    left, right = fig.subfigures(1, 2, width_ratios=(1, 1.25))
    for c, ax in enumerate(left.subplots(2, 2).flat):
        graph, spots = drawn[c][0], drawn[c][1] - (drawn[c][1].min(axis=0) + drawn[c][1].max(axis=0)) / 2
        for i, j in graph.edges:
            ax.plot(*spots[[i, j]].T, color=MUTED, lw=1.3, zorder=1)
        for atom, spot in zip(graph.labels, spots, strict=True):
            ax.text(
                *spot, atom, ha="center", va="center", size=8, bbox={"boxstyle": "circle,pad=0.2", "fc": "w", "ec": INK}
            )
        ax.set(xlim=(-5, 5), ylim=(-3.2, 3.2), aspect="equal")
        ax.set_title(kinds[c])
        ax.axis("off")
    ax = right.subplots()
    for c, (mark, colour, inside) in enumerate(looks):
        ax.plot(*plane[y == c].T, mark, mec=colour, mfc=inside, ms=6.5, mew=1.2, label=kinds[c])
    ax.set(xlabel="first component", ylabel="second component")
    ax.set_title("120 molecules: fork or row parts them first")
    ax.legend(loc="best")
