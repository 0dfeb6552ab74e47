"""From a table to a model as a new user would: `mercer fit` at default settings, beside scikit-learn on the same rows.

`mercer fit FILE --target NAME --report PAGE` is run as a process and held to 5 minutes of wall time, all included:
start, reading, encoding, search, fit to all training rows, test, certificate, model file and report. Beside it, each as
a process of its own:

- HistGradientBoosting with categories as pandas' category type, early stopping, and a grid of 3 learning rates x 3
  numbers of leaves in 3 folds on all training rows;
- a pipeline of StandardScaler and OneHotEncoder with SVC or SVR, whose C and gamma come from GridSearchCV (4 x 4 cells,
  3 folds, two processes) on 2,000 rows and which is then fitted to as many training rows as 150 s allow, by an estimate
  from two smaller fits.

Run with `--rows adult` for one table, `--n 3000` to try it on few rows; only a full run is written to results/.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _harness import Report, asked, file

TABLES = {"adult": ("adult.csv.gz", "ABOVE50K"), "diamonds": ("diamonds.csv.gz", "price")}
LIMIT = 300  # seconds that `mercer fit` may take
TUNING = 2_000  # rows of the grid of the pipeline
PATIENCE = 150.0  # seconds for its last fit


# -- the peers, each in a process of its own --------------------------------------------------------------


def rows_of(path: str, target: str) -> tuple[Any, Any]:
    """Return the training and the test rows that `mercer fit` takes."""
    from mercer.cli.rows import examples, read, split

    whole = examples(read(path), target, "auto", [], path)
    train, test = split(whole, 0.2, 0)
    return whole.part(train), whole.part(test)


def boosting(train: Any, test: Any) -> dict[str, Any]:
    """Histogram gradient boosting, tuned a little."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import GridSearchCV

    kind = HistGradientBoostingClassifier if train.task == "classify" else HistGradientBoostingRegressor
    model = kind(categorical_features="from_dtype", early_stopping=True, max_iter=1000, random_state=0)
    grid = {"learning_rate": [0.05, 0.1, 0.2], "max_leaf_nodes": [15, 31, 63]}
    texts = [name for name in train.X.columns if train.X[name].dtype.kind not in "ifb"]
    X, X_test = train.X.copy(), test.X.copy()
    for name in texts:
        X[name] = X[name].astype("category")
        X_test[name] = X_test[name].astype(X[name].dtype)
    search = GridSearchCV(model, grid, cv=3).fit(X, train.y)
    return {**judged(search, X_test, test), "rows": len(train.y), "chosen": str(search.best_params_)}


def pipeline(train: Any, test: Any) -> dict[str, Any]:
    """Scaled and one-hot columns before a support vector machine."""
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC, SVR

    numbers = [name for name in train.X.columns if train.X[name].dtype.kind in "ifb"]
    texts = [name for name in train.X.columns if name not in numbers]
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("texts", OneHotEncoder(handle_unknown="ignore"), texts),
        ]
    )
    if train.task == "classify":
        model: Any = make_pipeline(columns, SVC(cache_size=1000))
        before = "svc__"
    else:
        model = TransformedTargetRegressor(make_pipeline(columns, SVR(cache_size=1000)), transformer=StandardScaler())
        before = "regressor__svr__"
    grid = {f"{before}C": [0.3, 1.0, 10.0, 100.0], f"{before}gamma": [0.003, 0.01, 0.03, 0.1]}
    order = np.random.default_rng(0).permutation(len(train.y))
    some = order[:TUNING]
    search = GridSearchCV(model, grid, cv=3, n_jobs=2, refit=False).fit(train.X.iloc[some], train.y[some])
    model.set_params(**search.best_params_)
    times = []
    for n in (TUNING, 2 * TUNING):  # the growth of its time with n
        start = time.perf_counter()
        model.fit(train.X.iloc[order[:n]], train.y[order[:n]])
        times.append(time.perf_counter() - start)
    power = min(3.0, max(1.5, np.log2(times[1] / times[0])))
    n = int(min(len(order), 2 * TUNING * (PATIENCE / times[1]) ** (1 / power)))
    model.fit(train.X.iloc[order[:n]], train.y[order[:n]])
    return {**judged(model, test.X, test), "rows": n, "chosen": str(search.best_params_)}


def judged(model: Any, X: Any, test: Any) -> dict[str, Any]:
    """Return the score on the test rows with its standard error."""
    from mercer.cli.scores import classification, regression

    predicted = model.predict(X)
    if test.task == "classify":
        found = classification(test.y, predicted, np.unique(test.y))
    else:
        found = regression(test.y, predicted)
    return {"scores": {score.name: {"value": score.value, "error": score.error} for score in found}}


PEERS = {"boosting": boosting, "pipeline": pipeline}
NAMES = {"boosting": "HistGradientBoosting", "pipeline": "pipeline with {machine}"}


# -- the comparison ---------------------------------------------------------------------------------------


def run(command: list[str], folder: str) -> tuple[dict[str, Any], float, float]:
    """Run a process; return the JSON that it prints, its seconds, and its peak memory in GB (Linux)."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=out, stderr=said, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said.seek(0)
        if process.returncode:
            raise RuntimeError(f"{command[:4]} failed: {said.read().decode()[-500:]}")
        return json.loads(out.read()), seconds, usage.ru_maxrss / 1e6


def compare(report: Report, name: str, n: int | None) -> None:
    """One table: `mercer fit` against the peers."""
    path, target = TABLES[name]
    with tempfile.TemporaryDirectory() as folder:
        source = str(file(path).resolve())
        if n:
            source = _few(source, n, folder)
        fit = ["fit", source, "--target", target, "--out", "model.mercer", "--report", "page.html", "--json"]
        ours, seconds, memory = run([sys.executable, "-m", "mercer.cli", *fit], folder)
        sizes = {p: (Path(folder) / p).stat().st_size / 1e6 for p in ("model.mercer", "page.html")}
        peers = {}
        for peer in PEERS:
            peers[peer] = run([sys.executable, __file__, "--peer", peer, source, target], folder)
    measure = "accuracy" if ours["task"] == "classify" else "RMSE"
    machine = "SVC" if ours["task"] == "classify" else "SVR"
    names = {peer: NAMES[peer].format(machine=machine) for peer in PEERS}
    told = []
    for peer, (found, took, peak) in peers.items():
        rows = "" if found["rows"] == ours["train_rows"] else f" (fitted to {found['rows']:,} rows)"
        told.append(f"{names[peer]}: {measure} {_score(found, measure)}, {took:.0f} s, {peak:.1f} GB{rows}")
    value = ours["scores"][measure]["value"]
    theirs = {names[peer]: found["scores"][measure]["value"] for peer, (found, _, _) in peers.items()}
    report.add(
        f"{name}: {ours['train_rows']:,} training and {ours['test_rows']:,} test rows",
        f"{measure} {_score(ours, measure)}, {seconds:.0f} s, {memory:.1f} GB",
        "; ".join(told),
        "; ".join(f"{_difference(value, other, measure)} {peer}" for peer, other in theirs.items()),
        f"<= {LIMIT} s",
        seconds <= LIMIT,
        kernel=ours["kernel"],
        files=f"model {sizes['model.mercer']:.1f} MB, report {sizes['page.html']:.1f} MB",
    )
    report.raw[name] = {
        "mercer": {key: ours[key] for key in ("kernel", "scores", "timings", "certificate", "cross_validation")},
        "wall_s": seconds,
        "peak_gb": memory,
        "peers": {peer: {**found, "wall_s": took, "peak_gb": peak} for peer, (found, took, peak) in peers.items()},
    }


def _score(found: dict[str, Any], measure: str) -> str:
    score = found["scores"][measure]
    digits = 4 if measure == "accuracy" else 1
    return f"{score['value']:.{digits}f} ± {score['error']:.{digits}f}"


def _difference(ours: float, theirs: float, measure: str) -> str:
    if measure == "accuracy":
        return f"{100 * (ours - theirs):+.2f} points against"
    return f"{100 * (ours / theirs - 1):+.1f}% error against"


def _few(source: str, n: int, folder: str) -> str:
    import pandas as pd

    path = f"{folder}/few.csv"
    pd.read_csv(source).sample(n, random_state=0).to_csv(path, index=False)
    return path


def main() -> None:
    """Run the tables that were asked for."""
    options = asked(
        __doc__,
        TABLES,
        n={"type": int, "default": None, "help": "rows of data: whether it runs, not how good"},
        peer={"nargs": 3, "default": None, "help": argparse.SUPPRESS},
    )
    if options.peer:
        peer, path, target = options.peer
        print(json.dumps(PEERS[peer](*rows_of(path, target))))
        return
    report = Report("tables")
    there = report.run(options.rows, lambda name: compare(report, name, options.n))
    report.notes = [
        f"The whole run took {report.raw['wall_s'] / 60:.1f} minutes. Times are of whole processes: start, reading, "
        "search, fit, test; ours also writes the model file and the report.",
        "HistGradientBoosting: categories as such, early stopping, 3 x 3 grid, 3 folds, all training rows. Pipeline: "
        f"StandardScaler and OneHotEncoder, 4 x 4 grid, 3 folds on {TUNING:,} rows, then fitted to the rows that "
        f"{PATIENCE:.0f} s allow.",
        "± is one standard error over the test rows, which are the same for all.",
    ]
    report.finish(save=options.all and there and options.n is None)


if __name__ == "__main__":
    main()
