"""Who solves the problems of `svm.py`: mercer with its defaults, and its peers at their best.

Run as a program it is the child process in which scikit-learn fits a large problem until its time is up.
"""

from __future__ import annotations

import math
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.svm
from _data import Problem, load
from _harness import Report, fresh_process, warm_memory
from _objective import Value, svc_dual, svr_dual

import mercer

HERE = Path(__file__).parent
OURS, SKLEARN, INTELEX32, INTELEX64 = "mercer", "scikit-learn", "intelex float32", "intelex float64"


@dataclass
class Run:
    """What is kept from row to row."""

    report: Report
    quick: bool
    patience: float
    ratios: dict[str, float] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)


def listed(values: dict[str, float | None], form: str) -> str:
    """Return `who value` for each contender."""
    return ", ".join(f"{who} {'-' if value is None else form.format(value)}" for who, value in values.items())


def duration(seconds: float) -> str:
    """Return a time with its unit."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def intelex() -> Any:
    """Return the module of scikit-learn-intelex's machines, or None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import sklearnex.svm
    except Exception:  # on a processor or system it was not built for it fails in other ways than ImportError
        return None
    return sklearnex.svm


def present(*names: str) -> list[str]:
    """Return those of the contenders that are installed."""
    return [name for name in names if not name.startswith("intelex") or intelex() is not None]


def estimator(who: str, problem: Problem, **changes: Any) -> Any:
    """Return the unfitted model of a contender."""
    home = mercer if who == OURS else sklearn.svm if who == SKLEARN else intelex()
    return getattr(home, problem.model)(**problem.params | changes)


def arrays(who: str, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and X_test in the precision that the contender is fed."""
    if who != INTELEX32:
        return problem.X, problem.y, problem.X_test
    y = problem.y.astype(np.float32) if problem.model == "SVR" else problem.y
    return np.ascontiguousarray(problem.X, np.float32), y, np.ascontiguousarray(problem.X_test, np.float32)


def fitter(who: str, problem: Problem, models: dict[str, Any], **changes: Any) -> Callable[[], None]:
    """Return a function that fits afresh and leaves the model in `models`; code is loaded by a small fit first."""
    X, y, _ = arrays(who, problem)
    few = np.random.default_rng(0).permutation(len(y))[:1_000]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator(who, problem, **changes).fit(X[few], y[few])

    def fit() -> None:
        models[who] = estimator(who, problem, **changes).fit(X, y)

    return fit


def score(model: Any, who: str, problem: Problem) -> float:
    """Return the accuracy on the test rows, or the root mean squared error of a regression."""
    predicted = model.predict(arrays(who, problem)[2])
    if problem.model == "SVR":
        return float(np.sqrt(np.mean((predicted - problem.y_test) ** 2)))
    return float(np.mean(predicted == problem.y_test))


def objective(model: Any, problem: Problem) -> Value:
    """Return the dual objective of a fitted machine, by the independent program."""
    C = problem.params["C"]
    if problem.model == "SVR":
        return svr_dual(model, problem.X, problem.y, C, problem.params["epsilon"], problem.kernel)
    return svc_dual(model, problem.X, problem.y, C, problem.kernel)


def memory(who: str, name: str, quick: bool, **changes: Any) -> float:
    """Return the peak extra memory of a fit in a fresh process, in megabytes."""
    setup = (
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom _data import load\nfrom _svm_peers import fitter\n"
        f"models = {{}}\nfit = fitter({who!r}, load({name!r}, {quick}), models, **{changes!r})"
    )
    return fresh_process(setup, "fit()")[0]


def sklearn_apart(
    name: str, quick: bool, limit: float, caches: tuple[int, ...]
) -> tuple[dict[int, float], Any, float | None]:
    """Fit scikit-learn in a child process that ends after `limit` seconds of fitting.

    Returns
    -------
    The seconds at each cache size that was finished, the model of the fastest (None if there is none), its test score.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result"
        command = [sys.executable, str(HERE / "_svm_peers.py"), name, str(int(quick)), str(limit), str(out)]
        done = subprocess.run([*command, *map(str, caches)], capture_output=True, text=True)
        if done.returncode not in (0, -signal.SIGALRM):
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise RuntimeError(f"scikit-learn failed on {name}: {lines[-1]}")
        if not out.exists():
            return {}, None, None
        return pickle.loads(out.read_bytes())


def child(name: str, quick: bool, limit: float, out: Path, caches: list[int]) -> None:
    """Fit with each cache size and write the best after each; SIGALRM ends the process, whatever it is doing."""
    problem = load(name, quick)
    warm_memory(0.1 if quick else 1.5)
    seconds: dict[int, float] = {}
    best: Any = None

    def keep(score: float | None = None) -> None:
        out.with_suffix(".new").write_bytes(pickle.dumps((seconds, best, score)))
        out.with_suffix(".new").rename(out)

    models: dict[str, Any] = {}
    for size in caches:
        fit = fitter(SKLEARN, problem, models, cache_size=size)
        signal.alarm(math.ceil(limit))
        start = time.perf_counter()
        fit()
        seconds[size] = time.perf_counter() - start
        signal.alarm(0)
        if seconds[size] == min(seconds.values()):
            best = models[SKLEARN]
        keep()
        if seconds[size] > 20:  # long enough to be precise, too long to be repeated
            break
    signal.alarm(60)
    keep(score(best, SKLEARN, problem))


if __name__ == "__main__":
    child(sys.argv[1], sys.argv[2] == "1", float(sys.argv[3]), Path(sys.argv[4]), [int(size) for size in sys.argv[5:]])
