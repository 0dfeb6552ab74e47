"""Kernels on graphs: matrices against GraKeL, and accuracies of support vector machines as the field reports them.

Matrices: nci1 (4,110 molecules), enzymes (600 proteins) and mutag (188 molecules) from the folder in `MERCER_DATA`,
each kernel not normalised, from graphs as each library reads them. Ours is the best of several runs in turns with
theirs. The largest difference of two entries is shown, of graphs without isolated nodes, which some of GraKeL's kernels
leave out.

Accuracies: 10-fold cross-validation, repeated with other folds; in each training part the number of rounds and C (and,
with attributes, the scale) are chosen within it: by 5 folds, on nci1 on one tenth that is held out, as TUDataset does.
With attributes, labels are among them as 0/1 columns, and all columns are standardised.
Published beside them: WL and WL-OA by the TUDataset paper (Morris et al., 2020), WWL by Togninalli et al. (2019).

Run with `--rows enzymes,mutag` for some rows, `--repeats 1` for one round of folds, `--no-accuracy` for the matrices;
only a full run, with no row skipped, is written to results/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from _harness import Missing, Report, file, turns
from sklearn.model_selection import StratifiedKFold

import mercer
from mercer import Graph

REPEATS = 10
PRICES = (0.1, 1.0, 10.0, 100.0)
INNER = 5
MANY = 2_000  # graphs from which on one part is held out in the place of inner folds


@cache
def load(name: str) -> tuple[list[Graph], np.ndarray]:
    """Return the graphs of a file and their classes."""
    held = np.load(file(f"{name}.npz"))
    nodes, ends = held["node_ptr"], held["edge_ptr"]
    edges = np.column_stack([held["source"], held["target"]])
    labels, bonds = held["node_label"], held["edge_label"]
    rows = held["node_attr"].astype(np.float64) if "node_attr" in held else None
    if rows is not None:
        rows = np.column_stack([rows, labels[:, None] == np.unique(labels)])  # labels are attributes, too: 0 or 1
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)  # as WWL does, without looking at y
    graphs = [
        Graph(edges[e0:e1], labels[n0:n1], bonds[e0:e1], None if rows is None else rows[n0:n1])
        for n0, n1, e0, e1 in zip(nodes, nodes[1:], ends, ends[1:])
    ]
    return graphs, held["y"]


# -- matrices ---------------------------------------------------------------------------------------------


def for_grakel(graphs: list[Graph], paths: bool) -> list[Any]:
    """Return graphs as GraKeL reads them: neighbours by node and labels; for paths edges, and nodes that have one."""
    if paths:
        twice = [np.vstack([g.edges, g.edges[:, ::-1]]).tolist() for g in graphs]
        return [
            [list(map(tuple, edges)), {v: int(g.labels[v]) for v in np.unique(g.edges).tolist()}]
            for g, edges in zip(graphs, twice)
        ]
    found = []
    for g in graphs:
        near: dict[int, list[int]] = {v: [] for v in range(g.size)}
        for a, b in g.edges.tolist():
            near[a].append(b)
            near[b].append(a)
        found.append([near, dict(enumerate(g.labels.tolist()))])
    return found


def _peer_wl(h: int) -> Any:
    from grakel.kernels import VertexHistogram, WeisfeilerLehman

    return WeisfeilerLehman(n_iter=h, base_graph_kernel=VertexHistogram)


def _peer_assignment(h: int) -> Any:
    from grakel.kernels import WeisfeilerLehmanOptimalAssignment

    return WeisfeilerLehmanOptimalAssignment(n_iter=h)


def _peer_paths() -> Any:
    from grakel.kernels import ShortestPath

    return ShortestPath(with_labels=True)


# Row: data, our kernel, GraKeL's, how many times as fast ours is to be.
MATRICES: dict[str, tuple[str, mercer.Kernel, Callable[[], Any], float]] = {
    "nci1 WL": ("nci1", mercer.WeisfeilerLehman(5), lambda: _peer_wl(5), 20.0),
    "enzymes WL": ("enzymes", mercer.WeisfeilerLehman(5), lambda: _peer_wl(5), 5.0),
    "mutag WL": ("mutag", mercer.WeisfeilerLehman(5), lambda: _peer_wl(5), 5.0),
    "enzymes WL-OA": ("enzymes", mercer.WLOptimalAssignment(5), lambda: _peer_assignment(5), 5.0),
    "enzymes shortest path": ("enzymes", mercer.ShortestPath(), _peer_paths, 10.0),
    "nci1 shortest path": ("nci1", mercer.ShortestPath(), _peer_paths, 10.0),
}


def matrix(report: Report, row: str) -> None:
    """Time a kernel matrix against GraKeL's."""
    name, kernel, peer, bar = MATRICES[row]
    graphs, _ = load(name)
    try:
        peer()
    except ImportError:
        peer = None  # type: ignore[assignment]
    theirs = for_grakel(graphs, isinstance(kernel, mercer.ShortestPath)) if peer else []
    contenders: dict[str, Callable[[], Any]] = {"mercer": lambda: kernel(graphs)}
    if peer:
        contenders["grakel"] = lambda: peer().fit_transform(theirs)
    K = contenders["mercer"]()
    times = turns(contenders, rounds=5)
    ours = min(times["mercer"])
    if not peer:
        report.add(f"{row}: {len(graphs):,} graphs", f"{ours:.3f} s", "GraKeL is not installed", "")
        return
    whole = np.array([len(np.unique(g.edges)) == g.size for g in graphs])
    apart = float(np.abs(K - contenders["grakel"]())[np.ix_(whole, whole)].max())
    ratio = min(times["grakel"]) / ours
    report.add(
        f"{row}: {len(graphs):,} graphs, {kernel!r}",
        f"{ours:.3f} s",
        f"GraKeL {min(times['grakel']):.2f} s",
        f"{ratio:.0f} times as fast, entries differ by {apart:.1g}",
        f">= {bar:.0f} times",
        ratio >= bar,
    )


# -- accuracies -------------------------------------------------------------------------------------------

ROUNDS = (1, 2, 3, 4, 5, 6)


def _wl(h: int) -> mercer.Kernel:
    return mercer.WeisfeilerLehman(h).normalized()


def _assignment(h: int) -> mercer.Kernel:
    return mercer.WLOptimalAssignment(h).normalized()


def _attributes() -> list[mercer.Kernel]:
    """Return the kernels on attributes: of nodes and of their neighbours, at the median distance and a third of it."""
    graphs, _ = load("enzymes_attr")
    median = [mercer.WLSlicedWasserstein(h).resolve(graphs) for h in (0, 1)]
    return [kernel.replace(scale=kernel.scale / times) for kernel in median for times in (1.0, 3.0)]


def _both() -> list[mercer.Kernel]:
    """Return sums of kernels on attributes and on the labels of surroundings, which count for a fifth as much."""
    return [kernel + 0.2 * _assignment(h) for kernel in _attributes() for h in (1, 2, 3)]


# Row: data, the kernels to choose from, what is published, and the accuracy in per cent it is held to.
ACCURACIES: dict[str, tuple[str, Callable[[], list[mercer.Kernel]], str, float | None]] = {
    "mutag accuracy, WL": ("mutag", lambda: [_wl(h) for h in ROUNDS], "", None),
    "mutag accuracy, WL-OA": ("mutag", lambda: [_assignment(h) for h in ROUNDS], "WWL 87.3", None),
    "enzymes accuracy, WL": ("enzymes", lambda: [_wl(h) for h in ROUNDS], "WL 50.8", None),
    "enzymes accuracy, WL-OA": ("enzymes", lambda: [_assignment(h) for h in ROUNDS], "WL-OA 56.4, WWL 59.1", 56.0),
    "nci1 accuracy, WL-OA": ("nci1", lambda: [_assignment(h) for h in (4, 5, 6)], "WL-OA 85.0, WWL 85.8", 85.0),
    "enzymes with attributes, sliced Wasserstein": ("enzymes_attr", _attributes, "WWL 73.3", 73.0),
    "enzymes with attributes and labels": ("enzymes_attr", _both, "WWL 73.3", 73.0),
}


def accuracy(report: Report, row: str, repeats: int) -> None:
    """Score a support vector machine by repeated cross-validation, with everything chosen inside the training parts."""
    name, choose, published, bar = ACCURACIES[row]
    graphs, y = load(name)
    kernels = choose()
    grams = [np.asarray(kernel(graphs)) for kernel in kernels]
    means, chosen = [], []
    for repeat in range(repeats):
        scores = []
        for train, test in StratifiedKFold(10, shuffle=True, random_state=repeat).split(y, y):
            k, C = best(grams, y, train, repeat)
            scores.append(score(grams[k], y, train, test, C))
            chosen.append(f"{kernels[k]!r}, C={C:g}")
        means.append(100 * float(np.mean(scores)))
    usual = max(set(chosen), key=chosen.count)
    found = float(np.mean(means))
    report.add(
        row,
        f"{found:.2f} ± {np.std(means):.2f} % ({repeats} x 10 folds)",
        published and f"published: {published}",
        f"most often {usual}",
        "" if bar is None else f">= {bar:g} %",
        None if bar is None else found >= bar,
    )
    report.raw[row] = {"means": means, "chosen": {one: chosen.count(one) for one in sorted(set(chosen))}}


def best(grams: list[np.ndarray], y: np.ndarray, train: np.ndarray, seed: int) -> tuple[int, float]:
    """Return which matrix and which C have the best mean accuracy in folds of the training part."""
    many = len(train) > MANY
    folds = list(StratifiedKFold(10 if many else INNER, shuffle=True, random_state=seed).split(train, y[train]))
    folds = folds[:1] if many else folds
    grid = [(k, C) for k in range(len(grams)) for C in PRICES]
    means = [np.mean([score(grams[k], y, train[a], train[b], C) for a, b in folds]) for k, C in grid]
    return grid[int(np.argmax(means))]


def score(K: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, C: float) -> float:
    """Return the accuracy on some graphs of a machine fitted to others."""
    model = mercer.SVC(kernel="precomputed", C=C).fit(K[np.ix_(train, train)], y[train])
    return float((model.predict(K[np.ix_(test, train)]) == y[test]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help="beginnings of rows, with commas")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--no-accuracy", action="store_true")
    given = parser.parse_args()
    report = Report("graphs")
    skipped = given.rows is not None or given.repeats != REPEATS or given.no_accuracy
    for row in [*MATRICES, *([] if given.no_accuracy else ACCURACIES)]:
        if given.rows and not row.startswith(tuple(given.rows.split(","))):
            continue
        try:
            matrix(report, row) if row in MATRICES else accuracy(report, row, given.repeats)
        except Missing as reason:
            print(f"{row}: skipped, {reason}")
            skipped = True
    report.finish(save=not skipped)


if __name__ == "__main__":
    main()
