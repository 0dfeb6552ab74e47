"""Kernel ridge and logistic regression against scikit-learn, and ridge where scikit-learn runs out of memory.

Data from the folder in `MERCER_DATA`, standardised, with the fixed test masks; the scales and penalties are those that
did best on 3,000 of the training rows (pol: those of the peers' published figures). Each contender's residual
|y - (K + alpha) a| / |y| is computed by one float64 program (`residual`). Run with `--rows pol,cv` for some rows; only
a full run is written to results/.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _data import DATA, Table, logistic_data, table
from _harness import Report, asked, fresh_process, turns, warm_memory
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import mercer

ALPHAS = np.logspace(-5, 2, 50)
HERE = str(Path(__file__).parent)


def residual(coefficients: np.ndarray, X: np.ndarray, y: np.ndarray, gamma: float, alpha: float) -> float:
    """Return |y - (K + alpha) a| / |y| in float64, a block of rows at a time."""
    a, left = np.asarray(coefficients, dtype=np.float64).ravel(), np.empty(len(y))
    for i in range(0, len(y), 1024):
        left[i : i + 1024] = y[i : i + 1024] - rbf_kernel(X[i : i + 1024], X, gamma=gamma) @ a
    return float(np.linalg.norm(left - alpha * a) / np.linalg.norm(y))


def rmse(model: Any, data: Table) -> float:
    """Return the error on the test rows, of the standardised target."""
    return float(np.sqrt(np.mean((np.ravel(model.predict(data.X_test)) - data.y_test) ** 2)))


def pol_row(report: Report) -> None:
    """One fit of kernel ridge, n = 13,500."""
    data, models = table("pol"), {}
    settings = {"kernel": "rbf", "gamma": data.gamma, "alpha": data.alpha}

    def fit(who: str, kind: Any) -> Callable[[], Any]:
        def run() -> None:
            models[who] = kind(**settings).fit(data.X, data.y)

        return run

    contenders = {"mercer": fit("mercer", mercer.KernelRidge), "scikit-learn": fit("scikit-learn", KernelRidge)}
    contenders["mercer"]()  # the code is loaded; the memory was touched by warm_memory
    times = turns(contenders, 5, 40.0)
    ours, theirs = min(times["mercer"]), min(times["scikit-learn"])
    left = {who: residual(m.dual_coef_, data.X, data.y, data.gamma, data.alpha) for who, m in models.items()}
    report.add(
        f"KernelRidge on pol, {len(data.y):,} x {data.X.shape[1]}",
        f"{ours:.2f} s",
        f"{theirs:.2f} s",
        f"{theirs / ours:.1f} x",
        ">= 5 x (aim 8), residual <= 1e-6",
        theirs / ours >= 5 and left["mercer"] <= 1e-6,
        residual=", ".join(f"{who} {value:.1e}" for who, value in left.items()),
        test_error=", ".join(f"{who} {rmse(m, data):.4f}" for who, m in models.items()),
    )
    report.raw["pol"] = {"seconds": times, "residual": left, "plan": models["mercer"].plan_}


def cv_row(report: Report, n: int = 5_000) -> None:
    """A path of 50 alphas: leave-one-out here, 5 folds there."""
    data = table("pol")
    X, y = data.X[:n], data.y[:n]
    model = mercer.KernelRidgeCV(ALPHAS, kernel="rbf", gamma=data.gamma)
    model.fit(X[:500], y[:500])  # the code is loaded

    def search(jobs: int, alphas: np.ndarray) -> Any:
        grid = {"alpha": alphas}
        peer = GridSearchCV(
            KernelRidge(kernel="rbf", gamma=data.gamma), grid, cv=5, n_jobs=jobs, scoring="neg_mean_squared_error"
        )
        with threadpool_limits(2 if jobs == 1 else 1):
            return peer.fit(X, y)

    few = {jobs: min(turns({"": lambda jobs=jobs: search(jobs, ALPHAS[20:22])}, 2)[""]) for jobs in (1, 2)}
    jobs = min(few, key=few.__getitem__)
    ours = min(turns({"": lambda: model.fit(X, y)}, 3)[""])
    start = time.perf_counter()
    peer = search(jobs, ALPHAS)
    theirs = time.perf_counter() - start
    report.add(
        f"KernelRidgeCV, {len(ALPHAS)} alphas, n = {n:,}: leave-one-out",
        f"{ours:.2f} s",
        f"{theirs:.1f} s (GridSearchCV, 5 folds, n_jobs={jobs})",
        f"{theirs / ours:.1f} x",
        ">= 10 x (aim 20)",
        theirs / ours >= 10,
        test_error=f"mercer {rmse(model, data):.4f} (alpha {model.alpha_:.2g}), "
        f"scikit-learn {rmse(peer, data):.4f} (alpha {peer.best_params_['alpha']:.2g})",
    )
    report.raw["cv"] = {"mercer": ours, "scikit-learn": theirs, "n_jobs": few}


def large_row(report: Report, name: str, gibibytes: int) -> None:
    """One fit of kernel ridge in a fresh process, within a budget in which scikit-learn's matrices do not fit."""
    data = table(name)
    n = len(data.y)
    setup = (
        f"import sys, time\nsys.path.insert(0, {HERE!r})\nimport numpy as np, mercer\n"
        f"from _data import table\nfrom ridge import residual, rmse\ndata = table({name!r})\n"
        f"model = mercer.KernelRidge(data.alpha, kernel='rbf', gamma=data.gamma, budget='{gibibytes} GiB')"
    )
    work = "start = time.perf_counter()\nmodel.fit(data.X, data.y)\nseconds = time.perf_counter() - start"
    found = (
        "seconds, residual(model.dual_coef_, data.X, data.y, data.gamma, data.alpha), rmse(model, data), "
        "model.certificate_.relative_gap, model.certificate_.converged, model.certificate_.iterations"
    )
    megabytes, said = fresh_process(setup, work, found)
    seconds, left, error, gap, converged, steps = said.split()
    inside = megabytes / 1024 <= gibibytes
    report.add(
        f"KernelRidge on {name}, {n:,} x {data.X.shape[1]}, budget {gibibytes} GiB",
        f"{float(seconds):.1f} s, {megabytes / 1024:.2f} GiB",
        scikit_learn_within(name, gibibytes),
        f"{steps} steps, relative gap {float(gap):.1e}",
        f"<= {gibibytes} GiB, residual <= 1e-6",
        inside and converged == "True" and float(left) <= 1e-6,
        residual=f"{float(left):.1e}",
        test_error=f"{float(error):.4f}",
    )
    report.raw[name] = {"seconds": float(seconds), "MiB": megabytes, "residual": float(left), "rmse": float(error)}


def scikit_learn_within(name: str, gibibytes: int) -> str:
    """Return what becomes of scikit-learn's fit in a process that may take that much memory."""
    setup = (
        f"import sys, resource\nsys.path.insert(0, {HERE!r})\nfrom sklearn.kernel_ridge import KernelRidge\n"
        f"from _data import table\ndata = table({name!r})"
    )
    work = (
        "held = kilobytes('VmSize:') * 1024\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (held + {gibibytes} * 2**30,) * 2)\n"
        "try:\n    KernelRidge(alpha=data.alpha, kernel='rbf', gamma=data.gamma).fit(data.X, data.y)\n"
        "    outcome = 'finished'\nexcept MemoryError:\n    outcome = 'MemoryError'"
    )
    outcome = fresh_process(setup, work, "outcome")[1]
    n = len(table(name).y)
    return f"{outcome}; its matrix and the factor take {16 * n * n / 2**30:.0f} GiB"


def logistic_row(report: Report) -> None:
    """The exact logistic machine against Nystroem features (accuracy) and against L-BFGS on the matrix (time)."""
    data = logistic_data()
    C, gamma = 1.0, data.gamma
    model = mercer.KernelLogisticRegression(C=C, kernel="rbf", gamma=gamma)
    model.fit(data.X[:500], data.y[:500])
    signs = np.where(data.y == 1, 1.0, -1.0)

    def generic() -> tuple[np.ndarray, float]:
        K = rbf_kernel(data.X, gamma=gamma)

        def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
            a, b = v[:-1], v[-1]
            Ka = K @ a
            margin = signs * (Ka + b)
            u = -C * signs * expit(-margin)
            value = 0.5 * a @ Ka + C * np.logaddexp(0.0, -margin).sum()
            return value, np.append(K @ (a + u), u.sum())

        done = minimize(objective, np.zeros(len(signs) + 1), jac=True, method="L-BFGS-B", options={"maxiter": 500})
        return done.x, float(done.fun)

    ours = min(turns({"": lambda: model.fit(data.X, data.y)}, 3, 20.0)[""])
    start = time.perf_counter()
    _, value = generic()
    theirs = time.perf_counter() - start
    primal = model.certificate_.primal
    scores = {"mercer": _scores(model, data)}
    seconds = {}
    for size in (500, 2_000):
        features = Nystroem(gamma=gamma, n_components=size, random_state=0)
        approximate = make_pipeline(features, LogisticRegression(C=C, max_iter=1_000))
        start = time.perf_counter()
        approximate.fit(data.X, data.y)
        seconds[size] = time.perf_counter() - start
        scores[f"Nystroem({size})"] = _scores(approximate, data)
    report.add(
        f"KernelLogisticRegression on {data.name}, {len(data.y):,} x {data.X.shape[1]}, C = {C:g}",
        f"{ours:.2f} s, objective {primal:.8g}",
        f"L-BFGS on the dense matrix {theirs:.1f} s, objective {value:.8g}; "
        + ", ".join(f"Nystroem({m}) {s:.1f} s" for m, s in seconds.items()),
        f"{theirs / ours:.1f} x",
        "objective no worse, accuracy no worse",
        primal <= value * (1 + 1e-4) and scores["mercer"][0] >= max(s[0] for s in scores.values()) - 0.002,
        test_error=", ".join(f"{who} accuracy {a:.4f}, log-loss {e:.4f}" for who, (a, e) in scores.items()),
    )
    report.raw["logistic"] = {"mercer": ours, "L-BFGS": theirs, "Nystroem": seconds, "scores": scores}


def _scores(model: Any, data: Table) -> tuple[float, float]:
    chances = model.predict_proba(data.X_test)
    return float(model.score(data.X_test, data.y_test)), float(log_loss(data.y_test, chances))


ROWS: dict[str, Callable[[Report], None]] = {
    "pol": pol_row,
    "cv": cv_row,
    "kin40k": lambda report: large_row(report, "kin40k", 4),
    "keggundirected": lambda report: large_row(report, "keggundirected", 8),
    "logistic": logistic_row,
}


def main() -> None:
    """Run the rows that were asked for."""
    options, report = asked(__doc__, ROWS), Report("ridge")
    warm_memory(6)
    there = report.run(options.rows, lambda name: ROWS[name](report))
    report.notes = [
        "Residual: |y - (K + alpha) a| / |y|, in float64 by `residual` of this program. Test error: RMSE of the "
        "standardised target, or accuracy and log-loss.",
        "; ".join(f"{name}: gamma {gamma:g}, alpha {alpha:g}" for name, (gamma, alpha) in DATA.items()) + ".",
        "Memory: growth of the resident set at its peak during the fit, in a fresh process.",
    ]
    report.finish(save=options.all and there)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
