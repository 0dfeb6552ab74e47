"""Recursive feature machines against `xrfm`: the same rows, kernel, ridge and rounds.

Of each table 8,000 rows, drawn at random, are for training, and up to 10,000 others for the test, as in `power.py`.
Columns and targets are standardised (of classes, indicators less their shares). Both do the iteration that
`_rfm_peers.Task` states, with a full M: xrfm in float32 by either of its factors, mercer by `KernelRidge` and the
gradients of its function. xrfm runs in the Python that `--peers PYTHON` names, where this one has not got it; with
`opt_einsum` beside it, which it then uses, it is several times as fast on many classes.

Each result is kept in results/ as soon as it is there, and not measured again: `--again mercer` measures mercer anew.
Run with `--rows pol` for some rows and with `--n 1000` or `--quick` for a trial, of which nothing is kept.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from _harness import Missing, Report, asked
from _power_peers import THREADS, Absent
from _rfm_peers import SOLVERS, SOME, Learned, Task, theirs
from power import TRAIN, Contest, Draw, drawn, keep, kept, mean_of
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import mercer

SCALE, RIDGE, ROUNDS = 10.0, 1e-3, 3  # the scale and the ridge are xrfm's defaults
TABLES = ["kin40k", "pol", "cal_housing", "letter"]
FEW = 600  # rows of a trial run
CONTEST = Contest("rfm", ("mercer", *SOLVERS), TABLES, drawn, 3)
Run = dict[str, Any]


# -- contenders -------------------------------------------------------------------------------------------


def prepared(draw: Draw) -> Task:
    """Return standardised columns and targets; of classes, indicators less their shares."""
    Y = np.eye(draw.y.max() + 1)[draw.y] if draw.classify else draw.y[:, None] / draw.y.std()
    scaler = StandardScaler().fit(draw.X)
    return Task(scaler.transform(draw.X), Y - Y.mean(axis=0), scaler.transform(draw.X_test), SCALE, RIDGE, ROUNDS)


def predictions(draw: Draw, values: np.ndarray) -> np.ndarray:
    """Return classes, or numbers in the target's unit, for the values of the learned functions at the test rows."""
    if draw.classify:
        return np.argmax(values + np.bincount(draw.y) / len(draw.y), axis=1)
    return draw.y.mean() + draw.y.std() * values[:, 0]


def ours(task: Task) -> Learned:
    """Return what mercer learns."""

    def fitted(X: np.ndarray, Y: np.ndarray) -> tuple[Any, np.ndarray]:
        M = A = np.eye(X.shape[1])
        for _ in range(task.rounds):
            slopes = model(A).fit(X, Y).function_.gradient(X).reshape(-1, X.shape[1])
            M = slopes.T @ slopes
            M /= M.max()
            squares, axes = np.linalg.eigh(M + 1e-8 * np.eye(len(M)))  # as xrfm does, so that A has an inverse
            A = (axes * np.sqrt(np.maximum(squares, 0.0))) @ axes.T
        return model(A).fit(X, Y), M

    def model(A: np.ndarray) -> mercer.KernelRidge:
        return mercer.KernelRidge(task.ridge, kernel=mercer.PowerExponential(1.0, task.scale).transformed(A))

    fitted(task.X[:SOME], task.Y[:SOME])  # the code is loaded
    start = time.perf_counter()
    last, M = fitted(task.X, task.Y)
    values = last.predict(task.X_test)
    return Learned(values, M, time.perf_counter() - start, mercer.__version__)


def measured(who: str, draw: Draw, peers: str | None) -> Run:
    """Return the error of a contender, its standard error over the test rows, its seconds, and M over its trace."""
    task = prepared(draw)
    found = ours(task) if who == "mercer" else theirs(who, task, peers)
    predicted = predictions(draw, found.values)
    error = draw.error(predicted)
    losses = predicted != draw.y_test if draw.classify else ((predicted - draw.y_test) / draw.y_test.std()) ** 2
    noise = float(np.std(losses) / np.sqrt(len(losses))) / (1.0 if draw.classify else 2 * error)  # of a root
    metric = found.metric / np.trace(found.metric)
    return {
        "error": error,
        "noise": noise,
        "seconds": found.seconds,
        "version": found.version,
        "metric": " ".join(f"{value:.6g}" for value in metric.ravel()),
    }


# -- rows -------------------------------------------------------------------------------------------------


def runs_of(name: str, options: argparse.Namespace) -> dict[str, list[Run]]:
    """Return the results of the contenders on each split, those that are kept and those that are measured now."""
    known = {} if options.trial else kept(CONTEST)["raw"]["results"].get(name, {})
    runs: dict[str, list[Run]] = {who: [] for who in CONTEST.contenders}
    for split in range(options.splits):
        whole = drawn(name, split)
        draw = replace(whole, X=whole.X[: options.n], y=whole.y[: options.n])
        for who in reversed(CONTEST.contenders):  # where there is no peer, nothing is measured in vain
            result = known.get(who, {}).get(str(split))
            if result is None or (options.again and who.startswith(options.again)):
                result = measured(who, draw, options.peers)
                if not options.trial:
                    keep(CONTEST, name, who, split, result)
                print(f"{name}, split {split}, {who}: {result['error']:.4f}, {result['seconds']:.1f} s", flush=True)
            runs[who].append(result)
    return runs


def apart(run: Run, other: Run) -> float:
    """Return |M - M'| / |M'| of two runs, in the Frobenius norm, both of trace 1."""
    one, two = (np.array(r["metric"].split(), dtype=float) for r in (run, other))
    return float(np.linalg.norm(one - two) / np.linalg.norm(two))


def add_row(report: Report, name: str, options: argparse.Namespace) -> None:
    """Add the row of a table: seconds and errors, against the peer by the quicker of its factors."""
    try:
        runs = runs_of(name, options)
    except (Absent, RuntimeError) as reason:
        raise Missing(str(reason)) from None
    seconds = {who: mean_of(of, "seconds") for who, of in runs.items()}
    errors = {who: mean_of(of, "error") for who, of in runs.items()}
    peer = min(SOLVERS, key=lambda who: seconds[who])
    pairs = list(zip(runs["mercer"], runs[peer], strict=True))
    off = [(mine["error"] - other["error"]) / other["noise"] for mine, other in pairs]
    said = {who: f"{seconds[who]:.3g} s, error {errors[who]:.4f}" for who in runs}
    factor = seconds[peer] / seconds["mercer"]
    report.add(
        f"{name}, {options.n:,} rows",
        said["mercer"],
        f"{peer}: {said[peer]}",
        f"{factor:.1f} x, {np.mean(off):+.2f} standard errors",
        "> 1 x, within 1 standard error",
        factor > 1 and max(map(abs, off)) <= 1,
        standard_error=f"{mean_of(runs[peer], 'noise'):.4f}",
        largest_difference=f"{max(map(abs, off)):.2f} standard errors",
        metrics_apart=f"{max(apart(mine, other) for mine, other in pairs):.1e}",
        other_factor=", ".join(f"{who}: {said[who]}" for who in SOLVERS if who != peer),
    )


def main() -> None:
    """Run the rows that were asked for."""
    options = asked(
        __doc__,
        TABLES,
        n={"type": int, "default": TRAIN, "help": f"training rows ({TRAIN}); another number is a trial"},
        splits={"type": int, "default": CONTEST.splits, "help": f"random splits of each table ({CONTEST.splits})"},
        again={"choices": ["mercer", "xrfm"], "help": "who is measured although there are results"},
        peers={"metavar": "PYTHON", "help": "a Python that has xrfm"},
        quick={"action": "store_true", "help": "tiny sizes: whether it runs"},
    )
    if options.quick:
        options.n, options.splits = FEW, 1
    options.trial = options.n != TRAIN
    report = Report("rfm")
    with threadpool_limits(THREADS):
        there = report.run(options.rows, lambda name: add_row(report, name, options))
    results = kept(CONTEST)["raw"]["results"]
    versions = {run["version"] for of in results.values() for who in SOLVERS for run in of.get(who, {}).values()}
    report.raw = {"results": results}
    report.notes = [
        f"Versions of xrfm: {' and '.join(sorted(versions)) or 'none yet'}. Kernel exp(-|A (x - z)| / {SCALE:g}), "
        f"ridge {RIDGE:g}, {ROUNDS} rounds and one more fit, on {THREADS} threads. Seconds are of these and of the "
        f"test rows' predictions; means over {options.splits} splits.",
        "Errors are the error rate for letter, for the others the RMSE over the deviation of the test targets. A "
        "difference is in units of its standard error, which is over the test rows of a split.",
        "Metrics apart: |M - M'| / |M'| in the Frobenius norm, both of trace 1, the most of the splits.",
        "The peer is xrfm by the quicker of its factors; LU is its default. It computes in float32; mercer's residuals "
        "are 1e-6 at most, measured in float64.",
    ]
    report.finish(save=options.all and there and not options.trial)


if __name__ == "__main__":
    main()
