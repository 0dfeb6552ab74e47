"""Support vector machines against scikit-learn and scikit-learn-intelex.

Each row is measured in one run: contenders in turns, each one's best of several fits (one, where it takes long), after
the memory has been touched and the code loaded. The peer of a row is the fastest of scikit-learn (cache of 200 or
1000 MB), intelex in float32 and intelex in float64. Every solver stops by its own default; that they stop at the same
quality is shown by the dual objectives, computed by `_objective.py` from the fitted attributes alone.
Run with `--rows a9a,letter` for some rows, `--quick` to try it on few samples; only a full
run, with no row skipped, is written to results/.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
from _data import Problem, load, made
from _harness import Report, asked, fresh_process, turns, warm_memory
from _objective import Value
from _svm_linear import EQUAL, linear_rows
from _svm_peers import (
    HERE,
    INTELEX32,
    INTELEX64,
    OURS,
    SKLEARN,
    Run,
    arrays,
    duration,
    fitter,
    intelex,
    listed,
    memory,
    objective,
    present,
    score,
    sklearn_apart,
)
from scipy.optimize import linprog

import mercer
from mercer.solvers import Infeasible

QUALITY = 1e-5  # by how much our dual objective may be below the best peer's, relative


def fit_row(
    run: Run, name: str, title: str, bar: float, caches: tuple[int, ...] = (), rounds: int = 5, against: str = ""
) -> None:
    """Fit a problem by everyone and add its row.

    Without `caches`, scikit-learn takes its turn with the others. With them it is known to be slow, and fits in a
    child process that ends when it can no longer be the best peer. `against` names the peer that the bar is about.
    """
    problem, models = load(name, run.quick), {}
    here = present(OURS, INTELEX32, INTELEX64, *(() if caches else (SKLEARN,)))
    seconds = turns({who: fitter(who, problem, models) for who in here}, rounds)
    best = {who: min(times) for who, times in seconds.items()}
    shown = {who: f"{duration(best[who])}" for who in here}
    scores: dict[str, float | None] = {who: score(models[who], who, problem) for who in here}
    for who in here:
        if who.startswith("intelex") and not hasattr(models[who], "_onedal_estimator"):
            shown[who] += " (it called scikit-learn)"
    bound, cache = 0.0, {}
    if caches:
        rivals = [best[who] for who in here if who != OURS]
        limit = max(5.0 if run.quick else 60.0, run.patience * (min(rivals) if rivals else 8 * best[OURS]))
        times, model, scored = sklearn_apart(name, run.quick, limit, caches)
        if times:
            size = min(times, key=times.__getitem__)
            seconds[SKLEARN], models[SKLEARN], scores[SKLEARN] = list(times.values()), model, scored
            best[SKLEARN], cache = times[size], {"cache_size": size}
            shown[SKLEARN] = f"{duration(times[size])} (cache {size} MB)"
        else:
            bound = limit
            shown[SKLEARN] = f"> {limit:.0f} s (stopped)"
    values = {who: objective(model, problem) for who, model in models.items()}
    peers = [who for who in best if who != OURS]
    peer = against or (min(peers, key=best.__getitem__) if peers else SKLEARN)
    cache = cache if peer == SKLEARN else {}
    times_faster = best.get(peer, bound) / best[OURS]
    far, converged = shortfall(values), models[OURS].certificate_.converged
    run.ratios[title] = times_faster
    run.models[name] = models
    fast = times_faster >= bar
    result = f"{'' if peer in best else '> '}{times_faster:.2f} x{'' if converged else ', NOT CONVERGED'}"
    if rounds > 5:  # too short for one time to tell: the median has to agree
        middle = statistics.median(seconds[peer]) / statistics.median(seconds[OURS])
        result += f" (medians {middle:.2f} x)"
        fast = fast and middle >= bar
    held = {OURS: memory(OURS, name, run.quick)}
    if peer in best:
        held[peer] = memory(peer, name, run.quick, **cache)
    run.report.add(
        title,
        shown.pop(OURS),
        "; ".join(f"{who} {text}" for who, text in shown.items()) + ("" if intelex() else "; intelex not installed"),
        result,
        f">= {bar:g} x",
        fast and converged and (far is None or far <= QUALITY),
        dual_objective=quality(values, far),
        test_score=listed(scores, "RMSE {:.4f}" if problem.model == "SVR" else "{:.4f}"),
        extra_memory=listed(held, "{:.0f} MB"),
    )
    run.report.raw[name] = {
        "n": len(problem),
        "d": problem.X.shape[1],
        "params": problem.params,
        "seconds": seconds,
        "dual": {who: vars(value) for who, value in values.items()},
        "score": scores,
        "extra_MB": held,
        "support_vectors": {who: len(model.support_) for who, model in models.items()},
        "ratio": times_faster,
        "ratio_is_a_lower_bound": peer not in best,
        "sklearn_stopped_at_s": bound or None,
    }


def shortfall(values: dict[str, Value]) -> float | None:
    """Return by how much our dual objective is below the best of the peers', relative; None without a peer."""
    peers = [value.dual for who, value in values.items() if who != OURS]
    return (max(peers) - values[OURS].dual) / abs(max(peers)) if peers else None


def quality(values: dict[str, Value], far: float | None) -> str:
    """Return how our dual objective compares, and how far each solution is from being allowed."""
    if far is None:
        return "no peer finished"
    best = max((who for who in values if who != OURS), key=lambda who: values[who].dual)
    outside = {who: max(v.box, v.balance) for who, v in values.items()}
    ours = outside.pop(OURS)
    return (
        f"{far:+.1e} below {best}{'' if far <= QUALITY else ' (NOT EQUAL)'}; "
        f"infeasible by {ours:.0e}, peers {max(outside.values()):.0e}"
    )


def predict_row(run: Run) -> None:
    """Predict the test rows of a9a with the models of its row."""
    problem = load("a9a", run.quick)
    models = run.models.get("a9a", {})
    who = present(OURS, INTELEX32, INTELEX64)
    for name in who:
        if name not in models:
            fitter(name, problem, models)()
    tests = {name: arrays(name, problem)[2] for name in who}
    predicted = {name: models[name].predict(tests[name]) for name in who}  # and code is loaded
    seconds = turns({name: lambda name=name: models[name].predict(tests[name]) for name in who})
    best = {name: min(times) for name, times in seconds.items()}
    title = f"predict a9a, {len(problem.y_test):,} rows"
    ours = best.pop(OURS)
    if not best:
        run.report.add(title, duration(ours), "intelex not installed", "", ">= 1.5 x")
        return
    ratio = run.ratios[title] = min(best.values()) / ours
    run.report.add(
        title,
        duration(ours),
        "; ".join(f"{name} {duration(best[name])}" for name in best),
        f"{ratio:.2f} x",
        ">= 1.5 x",
        ratio >= 1.5,
        test_score=listed({name: float(np.mean(p == problem.y_test)) for name, p in predicted.items()}, "{:.4f}"),
    )
    run.report.raw["predict"] = {"seconds": seconds, "ratio": ratio}


def growth_rows(run: Run) -> None:
    """Time against the number of samples, on one family of made data."""
    sizes = [2_000 * 2**k for k in range(6)] if not run.quick else [250, 500, 1_000]
    whole = made(sizes[-1])
    curves: dict[str, dict[int, float]] = {}
    raw: dict[int, dict[str, list[float]]] = {}
    for n in sizes:
        problem = Problem(
            whole.X[:n].copy(), whole.y[:n], whole.X_test, whole.y_test, "SVC", {"C": 1.0, "gamma": 1 / 30}
        )
        who = present(OURS, INTELEX32, *((SKLEARN,) if n <= 16_000 else ()))
        raw[n] = turns({name: fitter(name, problem, {}) for name in who}, 4, 4.0)
        for name in who:
            curves.setdefault(name, {})[n] = min(raw[n][name])
        ratio = min(curves[name][n] for name in who if name != OURS) / curves[OURS][n] if len(who) > 1 else math.nan
        run.report.add(
            f"growth, made data n = {n:,} C=1",
            duration(curves[OURS][n]),
            "; ".join(f"{name} {duration(curves[name][n])}" for name in who if name != OURS),
            f"{ratio:.2f} x",
        )
    slopes = {name: slope(curve) for name, curve in curves.items()}
    spans = {name: f"{slopes[name]:.2f} (to n = {max(curve):,})" for name, curve in curves.items()}
    ours = spans.pop(OURS)
    last = ", ".join(
        f"{name} {slope({n: s for n, s in curve.items() if n >= max(curve) / 4}):.2f}" for name, curve in curves.items()
    )
    run.report.add(
        "growth: slope of log time against log n",
        ours,
        "; ".join(f"{name} {text}" for name, text in spans.items()),
        f"over the last factor of 4: {last}",
    )
    run.report.raw["growth"] = {"seconds": raw, "slopes": slopes}


def slope(curve: dict[int, float]) -> float:
    """Return the slope of a line through log time against log n."""
    return float(np.polyfit(np.log(list(curve)), np.log(list(curve.values())), 1)[0])


def budget_row(run: Run) -> None:
    """60,000 rows inside 500 MB."""
    setup = (
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom _data import load\nfrom _svm_peers import fitter\n"
        f"import time\nmodels = {{}}\np = load('big', {run.quick})\n"
        "fit = fitter('mercer', p, models, budget='500 MB')"
    )
    work = "start = time.perf_counter()\nfit()\nseconds = time.perf_counter() - start"
    found = "len(p), seconds, models['mercer'].certificate_.converged, models['mercer'].score(p.X_test, p.y_test)"
    extra, said = fresh_process(setup, work, found)
    n, seconds, converged, accuracy = said.split()
    megabytes = extra * 2**20 / 1e6  # the budget counts decimal megabytes
    run.report.add(
        f'made data n = {int(n):,} C=1 under budget="500 MB"',
        f"{megabytes:.0f} MB in {float(seconds):.1f} s",
        "",
        "converged" if converged == "True" else "NOT converged",
        "<= 500 MB",
        megabytes <= 500 and converged == "True",
        test_score=f"{float(accuracy):.4f}",
        extra_memory=f"{megabytes:.0f} MB (decimal)",
    )
    run.report.raw["budget"] = {"megabytes": megabytes, "seconds": float(seconds), "converged": converged == "True"}


def hard_rows(run: Run) -> None:
    """Whether 2,000 points can be separated, and how widely; of a linear kernel a linear program knows the former."""
    n = 200 if run.quick else 2000
    random, smooth = "random labels", "labels by a curve"
    for kernel, d, kind in (
        (mercer.Linear(), 2, random),
        (mercer.Linear(), 5, random),
        (mercer.Linear(), 20, smooth),
        (mercer.Polynomial(3), 5, random),
        (mercer.Polynomial(3), 20, random),
        (mercer.RBF(5.0), 5, random),
        (mercer.RBF(5.0), 5, smooth),
        (mercer.RBF(1.0), 5, random),
        (mercer.RBF(0.1), 2, random),
        (mercer.Matern(2.5, 1.0), 2, random),
        (mercer.RationalQuadratic(), 3, random),
        (mercer.Laplacian(1.0), 5, random),
    ):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        sign = np.where((rng.random(n) < 0.5) if kind == random else (X[:, 0] + 0.3 * np.sin(X[:, 1]) > 0), 1.0, -1.0)
        seconds, outcome = decided(kernel, X, sign)
        peer = ""
        if isinstance(kernel, mercer.Linear):
            started = time.perf_counter()
            rows = -sign[:, None] * np.column_stack([X, np.ones(n)])
            status = linprog(np.zeros(d + 1), rows, -np.ones(n), bounds=(None, None)).status
            told = "no" if status == 2 else "yes"
            peer = f"linear program {duration(time.perf_counter() - started)}: {told}"
        title = f"hard margin, {kernel}, {n:,} x {d}, {kind}"
        run.report.add(title, duration(seconds), peer, outcome, "<= 1 s", seconds <= 1)


def decided(kernel: mercer.Kernel, X: np.ndarray, sign: np.ndarray) -> tuple[float, str]:
    """Return the shorter time of two fits with C = inf, and what became of them."""
    best = math.inf
    for _ in range(2):
        started = time.perf_counter()
        try:
            model = mercer.SVC(C=math.inf, kernel=kernel).fit(X, sign)
            outcome = f"separable, margin {model.margin_width_:.2g}, gap {model.certificate_.relative_gap:.0e}"
        except Infeasible as error:
            b = error.coefficients
            assert np.allclose([b[b > 0].sum(), b[b < 0].sum()], [1, -1])
            apart = math.sqrt(max(0.0, float(b @ kernel(X) @ b)))
            outcome = f"inseparable: two mixtures are {apart:.0e} apart"
        best = min(best, time.perf_counter() - started)
    return best, outcome


ROWS: dict[str, Callable[[Run], None]] = {
    "iris": lambda run: fit_row(run, "iris", "iris, 150 rows, C=1", 1.0, rounds=300, against=SKLEARN),
    "breast_cancer": lambda run: fit_row(
        run, "breast_cancer", "breast cancer, 569 rows, C=1", 1.0, rounds=150, against=SKLEARN
    ),
    "pendigits": lambda run: fit_row(run, "pendigits", "pendigits, 10 classes, C=10", 1.5),
    "letter": lambda run: fit_row(run, "letter", "letter, 26 classes, C=10", 3.0),
    "poly": lambda run: fit_row(run, "poly", "letter, polynomial of degree 3, C=10", 3.0),
    "made-1": lambda run: fit_row(run, "made-1", "made data, 20,000 x 30, C=1", 3.0, (200, 1000)),
    "made-100": lambda run: fit_row(run, "made-100", "made data, 20,000 x 30, C=100", 5.0, (1000,)),
    "svr-1": lambda run: fit_row(run, "svr-1", "SVR on cal_housing, C=1", 3.0, (200, 1000)),
    "svr-10": lambda run: fit_row(run, "svr-10", "SVR on cal_housing, C=10", 3.0, (1000,)),
    "a9a": lambda run: fit_row(run, "a9a", "a9a, 32,560 x 123, C=1", 3.0, (1000,)),
    "predict": predict_row,
    "adult": lambda run: fit_row(run, "adult", "adult, one-hot, C=10", 3.0, (1000,)),
    "linear": linear_rows,
    "growth": growth_rows,
    "budget": budget_row,
    "hard": hard_rows,
}


def main() -> None:
    """Run the rows that were asked for."""
    options = asked(
        __doc__,
        ROWS,
        quick={"action": "store_true", "help": "few samples: whether it runs, not how fast"},
        patience={
            "type": float,
            "default": 3.0,
            "help": "stop scikit-learn at so many times intelex's time (60 s at least)",
        },
    )
    run = Run(Report("svm"), options.quick, options.patience)
    warm_memory(0.1 if options.quick else 4)
    there = run.report.run(options.rows, lambda name: ROWS[name](run))
    whole = options.all and there and not options.quick
    counted = [r for r in run.ratios.values() if r > 0]
    if counted:
        mean = statistics.geometric_mean(counted)
        goal = mean >= 5 if whole else None
        run.report.add(f"geometric mean of {len(counted)} ratios", "", "", f"{mean:.2f} x", ">= 5 x (goal)", goal)
    run.report.raw["ratios"] = run.ratios
    run.report.notes = notes(run.report.raw["wall_s"])
    run.report.finish(save=whole)


def notes(seconds: float) -> list[str]:
    """Return what the table's reader has to know."""
    return [
        f"{versions()}; the whole run took {seconds / 60:.1f} minutes.",
        "Times are each contender's best fit; the ratio is the fastest peer's time over ours (iris and breast cancer: "
        "scikit-learn's). `met` asks for the ratio and for the dual objective.",
        f"Dual objective: (best finished peer - mercer) / |best|, in float64 by `_objective.py`; bar {QUALITY:g}, "
        "negative where ours is better. Infeasible by: the worst of sum(y alpha) / sum(alpha) and of what is outside "
        "of [0, C], relative.",
        "`> t (stopped)`: scikit-learn, in a process of its own, was ended once it could no longer be the best.",
        f"Linear: a peer counts at its first rung within {EQUAL:g} of the best objective known, each w with its best "
        "unpenalised offset; mercer counts with its default tol. SGDClassifier (tuned): steps 0.1 / sqrt(t), averaged, "
        "chosen beforehand on this data; the choice is not timed.",
        "Hard margins (C = inf): the shorter of two fits, up to the widest margin or to the mixtures that meet.",
        "Test score: accuracy, or RMSE of the standardised target.",
        "Extra memory: growth of the resident set at its peak during a fit in a fresh process.",
    ]


def versions() -> str:
    """Return the versions of the peers."""
    from importlib.metadata import version

    return f"mercer {mercer.__version__}, " + (
        f"scikit-learn-intelex {version('scikit-learn-intelex')}" if intelex() else "scikit-learn-intelex not installed"
    )


if __name__ == "__main__":
    os.environ.setdefault("SKLEARNEX_VERBOSE", "ERROR")
    main()
