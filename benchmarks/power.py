"""Errors on tables, everyone at defaults: `mercer.auto` against gradient boosting and xRFM.

Of each table 8,000 rows, drawn at random, are for training, and up to 10,000 others for the test; of small tables three
quarters and one quarter. All contenders get the same rows, on two cores. Peers are HistGradientBoosting, CatBoost,
LightGBM and xRFM at their defaults, with categories in each one's best native way; `_power_peers.py` says how.

Each result is kept in results/ as soon as it is there, and not measured again: a run that was ended goes on where it
was, and the figures of the peers serve for later runs. `--only mercer --again` measures mercer anew, `--tables a,b`
takes some tables. Peers that cannot be imported run through the interpreter that `--peers PYTHON` names.

`--many` does the same with 36,000 training rows (or three quarters), without xRFM, which would take an hour for a
table. `--uci` does it on the 57 small sets of the collection of Fernandez-Delgado et al. (2014), in its four folds,
with a random forest in the place of LightGBM and xRFM.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from _harness import RESULTS, Missing, Report, file, machine
from _power_peers import THREADS, Absent, Rows, fitted

TRAIN, TEST, SHARE = 8_000, 10_000, 0.75
MANY, LARGE = 36_000, ["kin40k", "diamonds", "keggundirected", "adult"]  # rows, and the tables that have them
UCI, FOLDS = "uci_dev.npz", 4


# -- the tables -------------------------------------------------------------------------------------------


@dataclass
class Table:
    """Columns and a target; classes are numbered from 0."""

    X: Any
    y: np.ndarray
    classify: bool


@dataclass
class Draw(Rows):
    """What a contender is given, and the target of the test rows, which is not."""

    y_test: np.ndarray

    def error(self, predicted: np.ndarray) -> float:
        """Return the error rate, or the root mean squared error in standard deviations of the target."""
        if self.classify:
            return float(np.mean(predicted != self.y_test))
        return float(np.sqrt(np.mean((predicted - self.y_test) ** 2)) / self.y_test.std())

    def constant(self) -> np.ndarray:
        """Return the predictions of who has learned nothing, which stand for those of a contender that fails."""
        value = np.bincount(self.y).argmax() if self.classify else self.y.mean()
        return np.full(len(self.y_test), value)


def numbers(name: str, classify: bool = False) -> Table:
    """Return a table without categories."""
    with np.load(file(f"{name}.npz")) as data:
        return _table(data["X"], data["y"], classify)


def mixed(name: str, target: str, classify: bool = False) -> Table:
    """Return a table with categories, as pandas reads it."""
    import pandas as pd

    table = pd.read_csv(file(f"{name}.csv.gz"), skipinitialspace=True)
    y = table.pop(target).to_numpy()
    return _table(table, y, classify)


def small(name: str, classify: bool = False) -> Table:
    """Return one of the tables that come with scikit-learn."""
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return _table(X, y, classify)


def _table(X: Any, y: np.ndarray, classify: bool) -> Table:
    X = X.astype(float) if isinstance(X, np.ndarray) else X
    return Table(X, np.unique(y, return_inverse=True)[1] if classify else y.astype(float).ravel(), classify)


REGRESSION: dict[str, Callable[[], Table]] = {
    **{name: partial(numbers, name) for name in ("cal_housing", "pol", "kin40k", "bike")},
    "diamonds": partial(mixed, "diamonds", "price"),
    **{name: partial(numbers, name) for name in ("keggundirected", "airfoil", "concrete")},
    "diabetes": partial(small, "diabetes"),
}
CLASSIFICATION: dict[str, Callable[[], Table]] = {
    "adult": partial(mixed, "adult", "ABOVE50K", classify=True),
    **{name: partial(numbers, name, classify=True) for name in ("letter", "pendigits")},
    **{name: partial(small, name, classify=True) for name in ("breast_cancer", "digits", "wine")},
}
TABLES = REGRESSION | CLASSIFICATION


@lru_cache(1)
def table(name: str) -> Table:
    """Return a table by its name."""
    return TABLES[name]()


def drawn(name: str, split: int, most: int = TRAIN) -> Draw:
    """Return the rows of a split, which is the seed that they are drawn with, at most so many for training."""
    whole = table(name)
    order = np.random.default_rng(split).permutation(len(whole.y))
    train = min(most, int(SHARE * len(order)))
    return parts(whole, order[:train], order[train : train + TEST], split)


def uci_fold(name: str, fold: int) -> Draw:
    """Return the rows of one of the four folds of a set."""
    with np.load(file(UCI)) as data:
        whole = _table(data[f"{name}__X"], data[f"{name}__y"], classify=True)
        part = data[f"{name}__folds"][fold]
    return parts(whole, np.flatnonzero(part == 1), np.flatnonzero(part == 2), fold)


def uci_names() -> list[str]:
    """Return the sets that there are."""
    with np.load(file(UCI)) as data:
        return [str(name) for name in data["names"]]


def parts(whole: Table, train: np.ndarray, test: np.ndarray, seed: int) -> Draw:
    X, X_test = (whole.X[rows] if isinstance(whole.X, np.ndarray) else whole.X.iloc[rows] for rows in (train, test))
    return Draw(X, whole.y[train], X_test, whole.classify, seed, whole.y[test])


# -- the contest ------------------------------------------------------------------------------------------


@dataclass
class Contest:
    """Contenders, and the draws on which they meet."""

    name: str
    contenders: tuple[str, ...]
    tables: list[str]
    draw: Callable[[str, int], Draw]
    splits: int


Results = dict[str, dict[str, dict[str, dict[str, Any]]]]  # of a table, a contender, a split


def ours(rows: Rows) -> tuple[np.ndarray, dict[str, Any]]:
    """Return the predictions of `mercer.auto`, its seconds, and the kernel that it has found."""
    import mercer

    start = time.perf_counter()
    model = mercer.auto(rows.X, rows.y, task="classify" if rows.classify else "regress")
    predicted = model.predict(rows.X_test)
    seconds = time.perf_counter() - start
    return predicted, {"seconds": seconds, "version": mercer.__version__, "kernel": str(model.named_kernel_)}


def measured(contender: str, draw: Draw, peers: str | None) -> dict[str, Any]:
    """Return the error and the seconds of a contender; one that fails has the error of a constant prediction."""
    rows = Rows(draw.X, draw.y, draw.X_test, draw.classify, draw.seed)
    try:
        predicted, about = ours(rows) if contender == "mercer" else fitted(contender, rows, peers)
    except Absent:
        raise
    except Exception as problem:
        return {"error": draw.error(draw.constant()), "failed": f"{type(problem).__name__}: {problem}"}
    return {"error": draw.error(predicted)} | about


def kept(contest: Contest) -> dict[str, Any]:
    """Return what earlier runs have written."""
    path = RESULTS / f"{contest.name}.json"
    new = {"machine": machine(), "rows": [], "raw": {"results": {}}}
    return json.loads(path.read_text()) if path.exists() else new


def keep(contest: Contest, name: str, who: str, split: int, result: dict[str, Any]) -> None:
    """Write a result beside those that are there by now; the rows of the report follow at the end of a run."""
    path = RESULTS / f"{contest.name}.json"
    said = kept(contest)
    said["raw"]["results"].setdefault(name, {}).setdefault(who, {})[str(split)] = result
    part = path.with_suffix(".part")
    part.write_text(json.dumps(said, indent=1) + "\n")
    part.replace(path)  # a run that is ended leaves the old file or the new one


def collect(contest: Contest, options: argparse.Namespace) -> tuple[Results, dict[str, str]]:
    """Measure what is not there yet, one split of all tables after the other; return all results and who is absent."""
    before: Results = kept(contest)["raw"]["results"]
    absent: dict[str, str] = {}
    for split, name in ((split, name) for split in range(contest.splits) for name in options.tables):
        known = before.get(name, {})
        due = [who for who in options.only if options.again or str(split) not in known.get(who, {})]
        try:
            draw = contest.draw(name, split) if due else None
        except Missing:
            continue  # the report says so
        for who in due:
            assert draw is not None
            try:
                result = measured(who, draw, options.peers)
            except Absent as reason:
                absent[who] = str(reason)
                continue
            result |= {"test": len(draw.y_test), "quiet": not options.loaded}
            keep(contest, name, who, split, result)
            told = result.get("failed") or f"{result['seconds']:.1f} s"
            print(f"{name}, split {split}, {who}: {result['error']:.4f}, {told}", flush=True)
    return kept(contest)["raw"]["results"], absent


# -- the report -------------------------------------------------------------------------------------------


@dataclass
class Summary:
    """Mean errors and seconds of contenders (columns) on the tables (rows) on which all of them have been measured."""

    contenders: list[str]
    errors: np.ndarray
    seconds: np.ndarray
    least: np.ndarray  # error of half a wrong test row, so that an error of 0 can be divided by; 0 in regression

    def ranks(self) -> np.ndarray:
        """Return the rank of each contender on each table; equals share the mean of their ranks."""
        from scipy.stats import rankdata

        return np.asarray(rankdata(self.errors, axis=1))

    def wins(self) -> np.ndarray:
        """Return 1 for the contender with the least error; equals share it."""
        first = self.errors == self.errors.min(axis=1, keepdims=True)
        return np.asarray(first / first.sum(axis=1, keepdims=True))

    def beaten(self) -> np.ndarray:
        """Return 1 where mercer has less error than a contender, and 1/2 where it has the same."""
        ours = self.errors[:, [self.contenders.index("mercer")]]
        return np.asarray((ours < self.errors) + 0.5 * (ours == self.errors))

    def ratios(self) -> np.ndarray:
        """Return each contender's error relative to the best of the others."""
        errors = np.maximum(self.errors, self.least[:, None])
        others = [np.delete(errors, who, axis=1).min(axis=1) for who in range(len(self.contenders))]
        return np.asarray(errors / np.stack(others, axis=1))


def runs_of(contest: Contest, results: Results, name: str) -> dict[str, list[dict[str, Any]]]:
    """Return the results of the contenders of a table, on the splits that all of them have been measured on."""
    there = {who: runs for who in contest.contenders if (runs := results.get(name, {}).get(who))}
    splits = [str(split) for split in range(contest.splits)]
    shared = [split for split in splits if all(split in runs for runs in there.values())]
    return {who: [runs[split] for split in shared] for who, runs in there.items()} if shared else {}


def mean_of(runs: list[dict[str, Any]], key: str) -> float:
    """Return the mean of what the runs have by that name."""
    there = [run[key] for run in runs if key in run]
    return float(np.mean(there)) if there else float("nan")


def summary(contest: Contest, results: Results) -> Summary:
    """Return the means of all contenders that have been measured, on the tables that they have in common."""
    runs = {name: runs_of(contest, results, name) for name in contest.tables}
    there = [who for who in contest.contenders if any(who in of for of in runs.values())]
    common = [name for name, of in runs.items() if len(of) == len(there)]
    shape = (len(common), len(there))
    means = {
        key: np.reshape([[mean_of(runs[name][who], key) for who in there] for name in common], shape)
        for key in ("error", "seconds")
    }
    least = [0.0 if name in REGRESSION else 0.5 / mean_of(runs[name][there[0]], "test") for name in common]
    return Summary(there, means["error"], means["seconds"], np.array(least))


def pm(values: np.ndarray, form: str, geometric: bool = False) -> str:
    """Return a mean and its standard error; the mean alone where there is one value."""
    values = values[~np.isnan(values)]
    values = np.log(values) if geometric else values
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    mean, error = (np.exp(mean), np.exp(mean) * error) if geometric else (mean, error)
    return format(mean, form) + ("" if np.isnan(error) else f" ± {error:{form}}")


def add_table(report: Report, contest: Contest, results: Results, name: str) -> None:
    """Add the row of a table: the error and the seconds of each contender."""
    runs = runs_of(contest, results, name)
    means = {who: mean_of(of, "error") for who, of in runs.items()}
    if not means:
        contest.draw(name, 0)  # says so where the data are missing
        raise Missing("nobody has been measured yet")
    cells = dict.fromkeys(contest.contenders, "")
    for who in means:
        about = "~" if not all(run["quiet"] for run in runs[who]) else ""
        failures = sum("failed" in run for run in runs[who])
        cells[who] = f"{pm(np.array([run['error'] for run in runs[who]]), '.4f')}, " + (
            f"{failures} failed" if failures else f"{about}{mean_of(runs[who], 'seconds'):.3g} s"
        )
    best = min((who for who in means if who != "mercer"), key=lambda who: means[who], default="")
    both = best and "mercer" in means and means[best] > 0
    report.add(
        name,
        cells.pop("mercer"),
        f"{best} {cells[best]}" if best else "",
        f"{100 * (means['mercer'] / means[best] - 1):+.1f}% error" if both else "",
        "",
        None,
        **cells,
    )


def add_summary(report: Report, contest: Contest, results: Results) -> None:
    """Add what all tables say together."""
    known = summary(contest, results)
    if len(known.errors) < 2 or len(known.contenders) < 2:
        return

    def add(what: str, values: np.ndarray, form: str = ".2f", geometric: bool = False, least: bool = True) -> None:
        cells = {who: pm(values[:, k], form, geometric) for k, who in enumerate(known.contenders)}
        means = {who: values[:, k].mean() for k, who in enumerate(known.contenders) if who != "mercer"}
        best = (min if least else max)(means, key=lambda who: means[who])
        columns = {who: cells.get(who, "") for who in contest.contenders if who != "mercer"}
        report.add(what, cells.get("mercer", ""), f"{best} {cells[best]}", "", "", None, **columns)

    if contest.name == "power_uci":
        add("mean accuracy, %", 100 * (1 - known.errors), least=False)
        if "mercer" in known.contenders:
            add("share of sets on which mercer is better", known.beaten())
    add(f"mean rank on {len(known.errors)} tables", known.ranks())
    add("share of wins", known.wins(), least=False)
    add("error relative to the best of the others", known.ratios(), ".3f", geometric=True)
    for margin in (0.05, 0.02):
        add(f"share within {margin:.0%} of the best of the others", known.ratios() <= 1 + margin, least=False)
    add("seconds", known.seconds, geometric=True)


def notes(contest: Contest, results: Results, absent: dict[str, str]) -> list[str]:
    """Return what the reader of the report has to know."""
    runs = {who: [run for of in results.values() for run in of.get(who, {}).values()] for who in contest.contenders}
    versions = {who: sorted({run["version"] for run in of if "version" in run}) for who, of in runs.items() if of}
    measure = "the error rate"
    if contest.name != "power_uci":
        measure += f" for {', '.join(CLASSIFICATION)}; for the others the RMSE over the deviation of the test targets"
    said = [
        "Versions: " + ", ".join(f"{who} {' and '.join(of)}" for who, of in versions.items()) + ".",
        f"Errors are {measure}: means over the splits ± one standard error. Seconds are of fit and prediction; ~ where "
        "other work went on beside it.",
        "The summary is of the tables on which all contenders were measured, and ± one standard error over the tables; "
        "relative errors and seconds are geometric means. Equals share a win, and an error of 0 counts as half a wrong "
        "test row where it is divided by.",
    ]
    failures = [
        f"{who} on {name}: {run['failed']}"
        for name, of in results.items()
        for who in of
        for run in of[who].values()
        if "failed" in run
    ]
    if failures:
        said.append("Who fails has the error of a constant prediction: " + "; ".join(failures) + ".")
    return said + [f"{who} was not measured in this run: {reason}." for who, reason in absent.items()]


def asked() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uci", action="store_true", help="the 57 small sets")
    parser.add_argument("--many", action="store_true", help="36,000 training rows")
    parser.add_argument("--tables", help="some of the tables (sets)")
    parser.add_argument("--splits", type=int, help="random splits of each table (3), or folds (all 4)")
    parser.add_argument("--only", help="some of the contenders")
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    parser.add_argument("--peers", metavar="PYTHON", help="a Python that has peers which this one has not")
    parser.add_argument("--loaded", action="store_true", help="other work goes on: seconds are orders of magnitude")
    options = parser.parse_args()
    try:
        options.contest = (uci if options.uci else many if options.many else power)(options.splits)
    except Missing as reason:
        parser.exit(message=f"skipped: {reason}\n")
    for asked, known in (("tables", options.contest.tables), ("only", options.contest.contenders)):
        text = getattr(options, asked)
        setattr(options, asked, text.split(",") if text else list(known))
        if unknown := set(getattr(options, asked)) - set(known):
            parser.error(f"--{asked}: no such thing as {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return options


def power(splits: int | None) -> Contest:
    """Return the contest on tables."""
    contenders = ("mercer", "hgb", "catboost", "lightgbm", "xrfm")
    return Contest("power", contenders, list(TABLES), drawn, splits or 3)


def many(splits: int | None) -> Contest:
    """Return the contest on more rows."""
    return Contest(
        "power_many", ("mercer", "hgb", "catboost", "lightgbm"), LARGE, partial(drawn, most=MANY), splits or 1
    )


def uci(folds: int | None) -> Contest:
    """Return the contest on small sets of classes."""
    return Contest("power_uci", ("mercer", "forest", "hgb", "catboost"), uci_names(), uci_fold, min(folds or 4, FOLDS))


def main() -> None:
    """Measure what is asked for, and report on all that is there."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    options = asked()
    contest = options.contest
    results, absent = collect(contest, options)
    report = Report(contest.name)
    there = report.run(contest.tables, lambda name: add_table(report, contest, results, name))
    add_summary(report, contest, results)
    report.raw = {"results": results}
    report.notes = notes(contest, results, absent)
    report.finish(save=there)


if __name__ == "__main__":
    main()
