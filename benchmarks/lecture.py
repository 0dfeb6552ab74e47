"""The lectures' thought experiment (S) at its full size: 314,457,495 monomials, 300,000 examples.

Ridge and the squared hinge with the polynomial kernel of degree 8 on 40 features, exactly, without the matrix (720 GB
in float64) and without the monomials. The recipe of the data is printed. `--fraction 30` runs a thirtieth of the
examples, which is what `make demo` shows; only the full size is written to results/.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from _harness import Report
from threadpoolctl import threadpool_limits

from mercer.cli import lecture

EXAMPLES, TESTS = 300_000, 10_000
ROWS, COLUMNS = 512, 4096  # of a tile
BAR = 45 * 60.0


# -- certificates from the coefficients alone: float64, NumPy, no line shared with the solvers ----------------


def values(X: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Return K A for k(x, z) = <x, z>^8: a product by BLAS, squared three times, tile by tile on two threads."""
    out = np.zeros(A.shape)

    def part(start: int) -> None:
        rows = X[start : start + ROWS]
        total = np.zeros((len(rows), A.shape[1]))
        for j in range(0, len(X), COLUMNS):
            tile = rows @ X[j : j + COLUMNS].T
            for _ in range(3):
                np.multiply(tile, tile, out=tile)
            total += tile @ A[j : j + COLUMNS]
        out[start : start + ROWS] = total

    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        list(pool.map(part, range(0, len(X), ROWS)))
    return out


def ridge(a: np.ndarray, f: np.ndarray, y: np.ndarray, alpha: float) -> tuple[float, float]:
    """Return primal and dual of sum (y - f)^2 / 2 + alpha |f|^2 / 2; the dual at u = -alpha a."""
    square = alpha * float(a @ f)
    u = -alpha * a
    return 0.5 * float(((y - f) ** 2).sum() + square), -float((0.5 * u**2 + u * y).sum()) - 0.5 * square


def squared_hinge(
    a: np.ndarray, f: np.ndarray, c: np.ndarray, g: np.ndarray, y: np.ndarray, alpha: float
) -> tuple[float, float]:
    """Return the primal of sum max(0, 1 - y f)^2 + alpha |f|^2 / 2 at f = K a, and the dual at u = -alpha c, g = K c.

    No y_i c_i may be negative.
    """
    s = -alpha * y * c  # y u, not above 0
    primal = float((np.maximum(0.0, 1.0 - y * f) ** 2).sum()) + 0.5 * alpha * float(a @ f)
    return primal, -float((s + s**2 / 4).sum()) - 0.5 * alpha * float(c @ g)


# -- the experiment ---------------------------------------------------------------------------------------


def minutes(seconds: float) -> str:
    """Return a time as a person would say it."""
    return f"{seconds / 60:.1f} min" if seconds >= 100 else f"{seconds:.1f} s"


def peak() -> float:
    """Return the most memory this process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def train(report: Report, title: str, model: Any, X: np.ndarray, y: np.ndarray, tested: Any) -> float:
    """Fit and test, and add the row."""
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter() - start
    claim, found = model.certificate_, tested(model)
    report.add(
        title,
        minutes(fitted),
        "",
        found,
        "",
        claim.converged,
        relative_gap=f"{claim.relative_gap:.1e} (asked {claim.tol:g}), {claim.iterations} steps",
        plan=model.plan_,
    )
    report.raw[title] = {"seconds": fitted, "primal": claim.primal, "dual": claim.dual, "result": found}
    return fitted


def check(report: Report, made: lecture.Examples, models: tuple[Any, Any]) -> None:
    """Compute both certificates again by `values`."""
    labels = made.labels[0].astype(float)
    a, b = (np.ravel(model.dual_coef_) for model in models)
    c = labels * np.maximum(labels * b, 0.0)  # a dual point has no coefficient on the wrong side of 0
    start = time.perf_counter()
    F = values(made.X, np.stack([a, b, c], 1))
    seconds = time.perf_counter() - start
    both = {
        "ridge": (ridge(a, F[:, 0], made.y, lecture.ALPHA), models[0].certificate_.tol),
        "squared hinge": (squared_hinge(b, F[:, 1], c, F[:, 2], labels, lecture.ALPHA), models[1].certificate_.tol),
    }
    for name, ((primal, dual), tol) in both.items():
        gap = (primal - dual) / abs(primal)
        report.add(
            f"{name}: certificate in float64 by an independent program",
            "",
            "",
            f"primal {primal:.10g}, dual {dual:.10g}",
            f"relative gap <= {tol:g}",
            gap <= tol,
            relative_gap=f"{gap:.1e}",
        )
        report.raw[f"check {name}"] = [primal, dual, seconds]


def main() -> None:
    """Run both models and print what the explicit way would have taken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fraction", type=float, default=1.0, help="divide the number of examples by this")
    options = parser.parse_args()
    n = int(EXAMPLES / options.fraction)
    recipe = [f"{name}: {text}" for name, text in lecture.RECIPE.items()]
    print(*recipe, sep="\n", flush=True)
    report = Report("lecture")
    made = lecture.examples(n, TESTS)
    labels, test_labels = made.labels
    noise, spread = lecture.NOISE, float(np.std(made.y_test))

    def error(model: Any) -> str:
        root = float(np.sqrt(np.mean((model.predict(made.X_test) - made.y_test) ** 2)))
        residual = f"; residual {float(np.max(model.residual_)):.1e} of |y|"
        return f"test RMSE {root:.4f} (noise alone {noise}, predicting the mean {spread:.3f}){residual}"

    def accuracy(model: Any) -> str:
        return f"test accuracy {model.score(made.X_test, test_labels):.4f}"

    models = lecture.ridge(verbose=1), lecture.squared_hinge(verbose=1)
    seconds = train(report, f"ridge, {n:,} examples", models[0], made.X, made.y, error)
    seconds += train(report, f"squared hinge, {n:,} examples", models[1], made.X, labels, accuracy)
    full = options.fraction == 1.0
    report.add(
        "both fits", minutes(seconds), "", "", f"< {minutes(BAR)}" if full else "", seconds < BAR if full else None
    )
    report.add("memory, the whole process", f"{peak():.2f} GB", f"{8 * n * n / 1e9:,.0f} GB for the matrix", "")
    cost = lecture.explicit(n)
    report.add("the explicit map", "", str(cost), f"{cost.seconds / seconds:,.0f} x the time of both fits")
    check(report, made, models)
    report.notes = recipe
    report.finish(save=full)


if __name__ == "__main__":
    main()
