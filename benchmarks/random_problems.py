"""Random problems against an independent objective: does any fit claim what it has not reached?

For each problem a model, a kernel, data, weights and parameters are drawn. The objective of the fitted model is
computed here, in NumPy, from its public coefficients; the best possible one by Clarabel, an interior-point solver that
shares nothing with ours. A miss is a fit that says it has converged and whose objective is above the best by more than
its tolerance, or is not what its certificate says.

    python benchmarks/random_problems.py [problems] [seed]
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _harness import Report
from rich.progress import track
from scipy.spatial.distance import cdist

import mercer
from mercer import losses

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import conic
import referee

SHAPES = ("normal", "grid", "line", "constant feature", "scales", "far away", "tiny", "huge", "repeated")
CALCULATED = 1e-9  # what rounding can add to an objective, relative to the largest of its terms
REFEREE = 1e-6  # Clarabel's own relative error


@dataclass
class Problem:
    """min sum_i w_i L(y_i, f(x_i) + b) + s |f|^2 / 2 with a model that is said to solve it."""

    name: str
    model: Any
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray]
    theirs: Any  # the loss as Clarabel's epigraphs know it; None: an SVM with nu, by its dual
    y: np.ndarray
    price: float
    strength: float = 1.0
    intercept: bool = True
    linear: bool = False


def hinge(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1.0 - y * f)


def huber(delta: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda y, f: np.where(abs(y - f) < delta, (y - f) ** 2 / 2, delta * (abs(y - f) - delta / 2))


def points(rng: np.random.Generator, n: int, d: int) -> tuple[str, np.ndarray]:
    """Return points of one of the shapes in which data come."""
    shape = str(rng.choice(SHAPES))
    X = rng.normal(size=(n, d))
    if shape == "grid":
        X = np.round(X)
    elif shape == "line":
        X = X[:, :1] * np.ones(d)
    elif shape == "constant feature":
        X[:, 0] = 3.0
    elif shape == "scales":
        X = X * 10.0 ** rng.uniform(-3, 2, d)
    elif shape == "far away":
        X += 1000.0
    elif shape in ("tiny", "huge"):
        X *= 1e-6 if shape == "tiny" else 1e4
    elif shape == "repeated":
        X = X[rng.integers(0, max(2, n // 3), n)]
    return shape, X


def kernel(rng: np.random.Generator, X: np.ndarray) -> tuple[str, Any, np.ndarray]:
    """Return a kernel of mercer's and its matrix, in extended precision where a product of rows could cancel."""
    size = float(np.mean(np.var(X, axis=0))) * X.shape[1] or 1.0
    gamma = 10.0 ** rng.uniform(-2, 1) / size
    name = str(rng.choice(["rbf", "laplacian", "linear", "poly"]))
    if name == "rbf":
        return name, mercer.RBF.from_gamma(gamma), np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    if name == "laplacian":
        return name, mercer.Laplacian(1 / gamma), np.exp(-gamma * cdist(X, X, "cityblock"))
    wide = X.astype(np.longdouble)
    if name == "linear":
        return name, mercer.Linear(), wide @ wide.T
    degree = int(rng.integers(2, 4))
    return name, mercer.Polynomial(degree, 1.0, gamma), (gamma * (wide @ wide.T) + 1) ** degree


def problem(rng: np.random.Generator, X: np.ndarray, w: np.ndarray, k: Any) -> Problem:
    """Return a model with random parameters, and what it is to minimise."""
    n = len(X)
    f = np.sin(2 * X[:, 0] / (X[:, 0].std() or 1.0)) + 0.5 * rng.normal(size=n)
    real = f * 10.0 ** rng.uniform(-2, 2)
    sign = np.where(f > rng.uniform(-0.5, 0.5), 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    C, spread = 10.0 ** rng.uniform(-2, 3), float(real.std())
    nu, epsilon, q = rng.uniform(0.05, 0.9), rng.uniform(0, 0.5) * spread, rng.uniform(0.05, 0.95)
    nu_svc = min(nu, 1.9 * min(w[sign > 0].sum(), w[sign < 0].sum()) / w.sum())
    intercept = bool(rng.random() < 0.7)
    alpha = 10.0 ** rng.uniform(-6, 2)
    beyond, tube = lambda y, f: np.maximum(0.0, abs(y - f) - epsilon), losses.EpsilonInsensitive(epsilon)
    choices: list[Callable[[], Problem]] = [
        lambda: Problem("SVC", mercer.SVC(C=C, kernel=k), hinge, losses.Hinge(), sign, C),
        lambda: Problem("SVR", mercer.SVR(C=C, kernel=k, epsilon=epsilon), beyond, tube, real, C),
        lambda: Problem("NuSVC", mercer.NuSVC(nu=nu_svc, kernel=k), hinge, None, sign, 1.0),
        lambda: Problem("NuSVR", mercer.NuSVR(nu=nu, C=C, kernel=k), hinge, None, real, C),
        lambda: Problem("OneClassSVM", mercer.OneClassSVM(nu=nu, kernel=k), hinge, None, np.zeros(n), 1.0),
        lambda: Problem("LinearSVC", mercer.LinearSVC(C=C, fit_intercept=intercept), hinge, losses.Hinge(), sign, C,
                        intercept=intercept, linear=True),
        lambda: Problem("LinearSVC squared", mercer.LinearSVC(C=C, loss="squared_hinge"), lambda y, f: hinge(y, f) ** 2,
                        losses.SquaredHinge(), sign, C, linear=True),
        lambda: Problem("LinearSVR", mercer.LinearSVR(C=C, epsilon=epsilon), beyond, tube, real, C, linear=True),
        lambda: Problem("KernelRidge", mercer.KernelRidge(alpha, kernel=k, fit_intercept=intercept),
                        lambda y, f: (y - f) ** 2 / 2, losses.Squared(), real, 1.0, alpha, intercept),
        lambda: Problem("KernelLogisticRegression", mercer.KernelLogisticRegression(C, kernel=k),
                        lambda y, f: np.logaddexp(0, -y * f), losses.Logistic(), sign, C),
        lambda: Problem("KernelQuantileRegressor", mercer.KernelQuantileRegressor((q,), C, kernel=k),
                        lambda y, f: np.maximum(q * (y - f), (q - 1) * (y - f)), losses.Pinball(q), real, C),
        lambda: Problem("KernelMachine huber", mercer.KernelMachine(k, losses.Huber(spread), 1 / C), huber(spread),
                        losses.Huber(spread), real, 1.0, 1 / C),
    ]  # fmt: skip
    return choices[int(rng.integers(len(choices)))]()


def coefficients(model: Any, n: int) -> np.ndarray:
    """Return a of f = sum_i a_i k(x_i, .), from public attributes."""
    if not hasattr(model, "support_"):
        return np.ravel(model.dual_coef_)
    a = np.zeros(n)
    a[model.support_] = np.ravel(model.dual_coef_)
    return a


def reached(task: Problem, X: np.ndarray, K: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """Return the objective of a fitted model, and the size of its terms."""
    b = float(np.ravel(task.model.intercept_)[0]) if hasattr(task.model, "intercept_") else 0.0
    if task.linear:
        coef = np.ravel(task.model.coef_)
        f, square = X @ coef, float(coef @ coef)
    else:
        a = coefficients(task.model, len(w))
        f = K @ a
        square = float(a @ f)
    norm = task.strength * square / 2
    terms = [norm + task.price * float(w @ task.loss(task.y, at)) for at in (f + b, np.zeros(len(w)))]
    return terms[0], terms[1]


def nu_dual(task: Problem, K: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """Return the dual objective of a model with nu, and Clarabel's; that of a model without a margin is 0."""
    zero, model, y = np.zeros(len(w)), task.model, task.y
    half, C = model.nu * w.sum() / 2, getattr(model, "C", 1.0)
    unit = C * max(C * float(np.abs(K).max()), float(np.abs(y).max()))  # of the objective, for coefficients up to 1
    K = (K * (C * C / unit)).astype(np.float64)
    dual = {
        "NuSVC": lambda: referee.Dual(K, zero, w * (y > 0), w * (y < 0), offset="split", total=(half, half)),
        "NuSVR": lambda: referee.Dual(K, -y * (C / unit), w, w, offset="split", total=(half, half)),
        "OneClassSVM": lambda: referee.Dual(K, zero, w, zero, total=2 * half),
    }[task.name]()
    word = referee.solve(dual, 1e-9)
    best = unit * word.dual if word.solved else np.nan
    if not hasattr(model, "support_"):
        return 0.0, best
    a = coefficients(model, len(w)) / C
    if task.name == "NuSVC":  # f is divided by the margin's half width at the end
        a = a * (half / max(float(np.maximum(a, 0).sum()), 1e-300))
    return -unit * (0.5 * float(a @ K @ a) + float(dual.linear @ a)), best


def judge(rng: np.random.Generator) -> tuple[str, str]:
    """Return which problem was drawn, and "agrees", or what became of it."""
    n, d = int(rng.integers(6, 60)), int(rng.integers(1, 5))
    shape, X = points(rng, n, d)
    name, k, K = kernel(rng, X)
    weights = rng.choice([0.3, 1.0, 2.0], n) if rng.random() < 0.4 else None
    w = np.ones(n) if weights is None else weights
    task = problem(rng, X, w, k)
    if task.linear:
        name, K = "linear", X.astype(np.longdouble) @ X.T
    what = f"{task.name}, {name} kernel, {n} x {d} {shape}, {task.model}"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            claim = task.model.fit(X, task.y, sample_weight=weights).certificate_
        except ValueError as error:
            if "margin of NuSVC vanishes" not in str(error):
                return what, f"MISS: {error}"
            claim = None  # a margin of 0 is no model
    if claim is not None and not claim.converged:
        said = f"; {seen[0].message}" if seen else ""
        return what, f"not converged, and said so{said}" if seen else "MISS: not converged and no warning"
    tol = REFEREE + (1e-3 if claim is None else claim.tol)
    if task.theirs is None:
        ours, best = nu_dual(task, K, w)
        if not np.isfinite(best):
            return what, "Clarabel is not sure"
        size = max(abs(best), abs(ours), 1e-9 * float(np.abs(K).max()) * float(w.sum()) ** 2)
        return what, "agrees" if best - ours <= 2 * tol * size else f"MISS: dual {ours:.9g}, possible {best:.9g}"
    assert claim is not None
    ours, size = reached(task, X, K, w)
    if abs(ours - claim.primal) > max(tol * abs(ours), claim.rounding + CALCULATED * size):
        return what, f"MISS: objective {ours:.9g}, the certificate says {claim.primal:.9g}"
    K = K.astype(np.float64)
    best, _, solved = conic.minimum(
        K, task.y, task.theirs, losses.SquaredNorm(task.strength), task.price * w, task.intercept
    )
    if not solved:
        return what, "Clarabel is not sure"
    enough = ours - best <= tol * abs(ours) + claim.rounding + CALCULATED * size
    return what, "agrees" if enough else f"MISS: objective {ours:.9g}, possible {best:.9g}"


def main(count: int = 2000, seed: int = 0) -> int:
    """Judge the problems; show the counts by model, every miss, and every fit that says it has not converged."""
    report, outcomes = Report("random_problems"), Counter()
    for i in track(range(count), "random problems"):
        what, outcome = judge(np.random.default_rng([seed, i]))
        outcomes[what.split(",")[0], outcome.split(":")[0].split(";")[0]] += 1
        if outcome.startswith(("MISS", "not converged")):
            report.notes.append(f"problem {i}: {what}: {outcome}")
    for name in sorted({name for name, _ in outcomes}):
        here = {outcome: number for (which, outcome), number in outcomes.items() if which == name}
        rest = ", ".join(f"{n} {o}" for o, n in sorted(here.items()) if o not in ("agrees", "MISS"))
        missed, agreed = here.get("MISS", 0), f"{here.get('agrees', 0)} of {sum(here.values())} agree"
        report.add(name, agreed, rest, f"{missed} misses", "0 misses", not missed)
    report.finish(save=count == 2000 and seed == 0)
    return int(any(outcome == "MISS" for _, outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
