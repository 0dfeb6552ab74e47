"""Kernels of strings: times of kernel matrices, and errors on DNA and texts against features with a linear machine.

Data from the folder in `MERCER_DATA`; a row whose data is absent says so. Kernels and costs are chosen by 5-fold
cross-validation on the training part, or on 2,000 of it, from one list for all sets. Published AUC are the best of
FastSK, gkmSVM-2.0 and GaKCo (Blakely et al., 2020). FastSK's times are those of its exact algorithm on a machine of the
same kind (14 s and more than 350 s). Its version 0.0.2 asks for a pybind11 that does not compile any more; a newer one
does, by `pip install pybind11 setuptools wheel` and `pip install --no-deps --no-build-isolation fastsk==0.0.2`.

Run with `--rows gapped,auc` for some rows and with `--quick` for few strings; only a full run is written to results/.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from _harness import Missing, Report, asked, file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import mercer
from mercer import GappedKmers, Kernel, Spectrum, Subsequence, TextNGrams, WeightedDegree

COSTS = (0.1, 1.0, 10.0)
PUBLISHED = {"CTCF": 0.9714, "JUND": 0.9687, "SIN3A": 0.9114, "KAT2B": 0.9216, "Pbde": 0.8761}
LINEAR = {"CTCF": 0.9231, "JUND": 0.9644, "SIN3A": 0.9082, "KAT2B": 0.9167, "Pbde": 0.8702}  # 4- to 8-mers, LinearSVC
PRICES = (0.1, 0.3, 1.0, 3.0, 10.0)
NGRAMS = ((1, 1), None), ((1, 2), None), (None, (2, 4)), (None, (3, 5))  # of words or of characters
BELOW = 0.003  # of a published AUC on one set; in the mean, none
FEW = 2000  # strings that kernels are chosen by


def lines(name: str, quick: bool) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Return training strings and labels, and those to test on."""
    with gzip.open(file(f"{name}.txt.gz"), "rt", encoding="utf-8") as text_file:
        rows = [line.rstrip("\n").split("\t") for line in text_file]
    if quick:
        rows = rows[:: max(1, len(rows) // 300)]
    parts = [[row for row in rows if row[1] == part] for part in ("train", "test")]
    train, test = (([row[2] for row in part], np.array([int(row[0]) for row in part])) for part in parts)
    return *train, *test


def seconds(work: Callable[[], Any], rounds: int = 5) -> float:
    """Return the best time of a few."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def chosen(kernels: Iterable[Kernel], X: list[str], y: np.ndarray) -> tuple[Kernel, float]:
    """Return the kernel, or the exponential of twice one, and the cost of the best AUC in 5-fold cross-validation."""
    if len(X) > FEW:
        some, _ = train_test_split(np.arange(len(X)), train_size=FEW, stratify=y, random_state=0)
        X, y = [X[i] for i in some], y[some]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = {}
    for k in kernels:
        K = k(X)
        for each, matrix in ((k, K), ((2.0 * k).exp(), np.exp(2.0 * K))):
            for C in COSTS:
                model = mercer.SVC(C=C, kernel="precomputed")
                scores[each, C] = cross_val_score(model, matrix, y, cv=folds, scoring="roc_auc").mean()
    return max(scores, key=scores.__getitem__)


def gapped(report: Report, quick: bool) -> None:
    """Time the whole kernel matrix of gapped k-mers."""
    for name, g, m, theirs, bar in (("SIN3A", 8, 2, 14.0, 1.0), ("CTCF", 13, 7, 350.0, 5.0)):
        X, _, Z, _ = lines(f"dna_{name}", quick)
        k, strings = GappedKmers(g, m), X + Z
        took = seconds(partial(k, strings))
        n = len(X) + len(Z)
        pairs = n * n / 2 * (101 - g) ** 2
        report.add(
            f"gapped k-mers g={g} m={m}, {name}, {n} strings", f"{took:.2f} s", f"FastSK exact: {theirs:.0f} s or more",
            f"{pairs / took:.1e} pairs of g-mers a second", f"{bar:.0f} s", None if quick else took <= bar,
        )  # fmt: skip


def counted(report: Report, quick: bool) -> None:
    """Time spectrum and subsequence kernels on splice sites."""
    with np.load(file("splice.npz")) as data:
        X = [str(x) for x in data[data.files[0]]][: 300 if quick else None]
    took = seconds(lambda: Spectrum(6)(X))
    report.add(f"spectrum k=6, {len(X)} splice sites", f"{took:.2f} s", "", f"{len(X) ** 2 / took:.1e} pairs a second")
    k, few = Subsequence(3, 0.5, blended=True).normalized(), X[:12]
    took, slow = seconds(lambda: k(X), 3), seconds(lambda: by_numpy(few, 3, 0.5), 3)
    whole = slow * (len(X) * (len(X) + 1)) / (len(few) * (len(few) + 1))
    if not np.allclose(by_numpy(few, 3, 0.5), k(few), rtol=0, atol=1e-9):
        raise AssertionError("the subsequence kernel in NumPy has other values")
    report.add(
        f"subsequences of up to 3, {len(X)} splice sites", f"{took:.2f} s",
        f"NumPy, one pair at a time: {whole:.0f} s (from {len(few)} strings)",
        f"{whole / took:.0f}x", "50x", None if quick else whole > 50 * took,
    )  # fmt: skip
    try:
        from strkernels import SubsequenceStringKernel
    except ImportError:
        report.notes.append("strkernels is not installed (pip install strkernels): its row is left out.")
        return
    peer, some = SubsequenceStringKernel(maxlen=3, ssk_lambda=0.5), X[:300]
    slow = seconds(lambda: peer(some, some), 3)  # of one triangle, as ours
    whole = slow * (len(X) * (len(X) + 1)) / (len(some) * (len(some) + 1))
    apart = float(np.abs(peer(some, some) - k(some)).max())
    report.add(
        f"subsequences of up to 3, {len(X)} splice sites", f"{took:.2f} s",
        f"strkernels: {whole:.0f} s (from {len(some)} strings)",
        f"{whole / took:.0f}x, values {apart:.0e} apart", "20x", None if quick else whole > 20 * took and apart < 1e-9,
    )  # fmt: skip


def by_numpy(X: list[str], n: int, decay: float) -> np.ndarray:
    """Return the normalized kernel of subsequences of up to n letters, a row of the recurrence of a pair at a time."""
    coded = [np.array([ord(c) for c in x]) for x in X]
    out = np.empty((len(X), len(X)))
    for a, x in enumerate(coded):
        for b, z in enumerate(coded[: a + 1]):
            m = len(z)
            powers = decay ** np.maximum(np.arange(m)[:, None] - np.arange(m), 0) * np.tri(m).astype(float)
            below, total = np.ones((len(x) + 1, m + 1)), 0.0
            for length in range(n):
                total += decay**2 * sum((below[i, :-1] * (z == letter)).sum() for i, letter in enumerate(x))
                if length == n - 1:
                    break
                here = np.zeros_like(below)
                for i, letter in enumerate(x):
                    here[i + 1, 1:] = decay * here[i, 1:] + powers @ (decay**2 * (z == letter) * below[i, :-1])
                below = here
            out[a, b] = out[b, a] = total
    root = np.sqrt(np.diag(out))
    return out / root / root[:, None]


def auc(report: Report, quick: bool) -> None:
    """Report the area under the curve on binding sites."""
    kernels = [GappedKmers(g, m, reverse_complement=True).normalized() for g, m in ((5, 1), (8, 2), (11, 4), (13, 7))]
    more = []
    for name, published in PUBLISHED.items():
        X, y, Z, target = lines(f"dna_{name}", quick)
        k, C = chosen(kernels, X, y)
        ours = roc_auc_score(target, mercer.SVC(C=C, kernel=k).fit(X, y).decision_function(Z))
        more.append(ours - published)
        report.add(
            f"AUC on {name}", f"{ours:.4f} ({k!r}, C={C:g})", f"published {published}, linear {LINEAR[name]}",
            f"{more[-1]:+.4f}", f"-{BELOW}", None if quick else more[-1] >= -BELOW,
        )  # fmt: skip
    mean = float(np.mean(more))
    report.add("AUC, mean of the five", "", "published", f"{mean:+.4f}", "+0", None if quick else mean >= 0)


def splice(report: Report, quick: bool) -> None:
    """Report the accuracy on splice sites, 10-fold."""
    with np.load(file("splice.npz")) as data:
        X, y = (np.asarray(data[name]) for name in data.files[:2])
    X, y = (v[:: 10 if quick else 1] for v in (X, y))
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    ours = cross_val_score(mercer.SVC(C=10.0, kernel=WeightedDegree(6, shift=2).normalized()), X, y, cv=folds).mean()
    linear = make_pipeline(TfidfVectorizer(analyzer="char", ngram_range=(3, 6), sublinear_tf=True), LinearSVC())
    theirs = cross_val_score(linear, X, y, cv=folds).mean()
    report.add("accuracy on splice sites, 10-fold", f"{ours:.4f} (WeightedDegree)", f"tf-idf + LinearSVC {theirs:.4f}",
               f"{ours - theirs:+.4f}")  # fmt: skip


def text(report: Report, quick: bool) -> None:
    """Report the accuracy on web pages and short messages."""
    X, y, Z, target = lines("webkb", quick)
    cases = [("webkb", X, y, Z, target, 0.931)]
    with suppress(Missing):
        with np.load(file("sms_spam.npz")) as data:
            X, y = (np.asarray(data[name]) for name in data.files[:2])
        X, y = [str(x) for x in X[:: 10 if quick else 1]], y[:: 10 if quick else 1]
        half = len(X) // 2
        cases.append(("SMS spam, half to train", X[:half], y[:half], X[half:], y[half:], 0.985))
    for name, X, y, Z, target, bar in cases:
        kernels = [TextNGrams(*given, sublinear=log).resolve(X) for given in NGRAMS for log in (True, False)]
        search = mercer.KernelSearchCV(mercer.SVC(), kernels, {"C": PRICES}, cv=5).fit(X, y)
        best, ours = search.best_score_, search.score(Z, target)
        machine, k, C = "SVC", search.best_params_["kernel"], search.best_params_["C"]
        for each in kernels[:4]:  # of words, one machine for each class against all others
            features = each.feature_map().fit(X)
            linear = GridSearchCV(mercer.LinearSVC(), {"C": PRICES}, cv=5).fit(features.transform(X), y)
            if linear.best_score_ > best:
                best, ours = linear.best_score_, linear.score(features.transform(Z), target)
                machine, k, C = "LinearSVC", each, linear.best_params_["C"]
        peer = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LinearSVC()).fit(X, y)
        theirs = peer.score(Z, target)
        chosen = f"{machine}, {k.replace(idf='auto')!r}, C={C:g}"
        report.add(
            f"accuracy on {name}", f"{ours:.4f} ({chosen})", f"tf-idf + LinearSVC {theirs:.4f}",
            f"{ours - theirs:+.4f}", f"{bar}", None if quick else ours >= bar,
        )  # fmt: skip


ROWS = {"gapped": gapped, "counted": counted, "auc": auc, "splice": splice, "text": text}


def main() -> None:
    """Run the rows."""
    options = asked(__doc__, ROWS, quick={"action": "store_true", "help": "few strings; nothing is written"})
    report = Report("strings")
    there = report.run(options.rows, lambda name: ROWS[name](report, options.quick))
    report.finish(save=options.all and there and not options.quick)


if __name__ == "__main__":
    main()
