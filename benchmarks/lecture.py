"""The lectures' thought experiment (S) at its full size: 314,457,495 monomials, 300,000 examples.

Ridge and the squared hinge with the polynomial kernel of degree 8 on 40 features, exactly, without the matrix (720 GB
in float64) and without the monomials. The recipe of the data is printed. `--fraction 30` runs a thirtieth of the
examples, which is what `make demo` shows; only the full size is written to results/.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
from _harness import Report

from mercer.cli import lecture

EXAMPLES, TESTS = 300_000, 10_000
BAR = 45 * 60.0


def minutes(seconds: float) -> str:
    """Return a time as a person would say it."""
    return f"{seconds / 60:.1f} min" if seconds >= 100 else f"{seconds:.1f} s"


def peak() -> float:
    """Return the most memory this process has held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def train(report: Report, title: str, model: Any, X: np.ndarray, y: np.ndarray, tested: Any, verify: bool) -> float:
    """Fit, test, have the certificate checked by independent code in float64, and add the row."""
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter() - start
    claim = model.certificate_
    error = tested(model)
    start = time.perf_counter()
    checked = claim.verify(X, y) if verify else None
    verified = time.perf_counter() - start
    report.add(
        title,
        minutes(fitted),
        "",
        error,
        "",
        claim.converged and (checked is None or checked.converged),
        relative_gap=f"{claim.relative_gap:.1e} (asked {claim.tol:g})",
        verified="" if checked is None else f"{checked.relative_gap:.1e} in {minutes(verified)}",
        plan=model.plan_,
    )
    report.raw[title] = {
        "seconds": fitted,
        "primal": claim.primal,
        "dual": claim.dual,
        "relative_gap": claim.relative_gap,
        "verified": None if checked is None else [checked.primal, checked.dual, checked.relative_gap],
        "verify_seconds": verified,
        "iterations": claim.iterations,
        "result": error,
    }
    return fitted


def main() -> None:
    """Run both models and print what the explicit way would have taken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fraction", type=float, default=1.0, help="divide the number of examples by this")
    parser.add_argument("--no-verify", action="store_true", help="skip the independent check of the certificates")
    options = parser.parse_args()
    n = int(EXAMPLES / options.fraction)
    print(lecture.RECIPE, flush=True)
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

    verify = not options.no_verify
    hinge = f"squared hinge, {n:,} examples"
    seconds = train(report, f"ridge, {n:,} examples", lecture.ridge(verbose=1), made.X, made.y, error, verify)
    seconds += train(report, hinge, lecture.squared_hinge(verbose=1), made.X, labels, accuracy, verify)
    bar = BAR / options.fraction**2
    report.add("both fits", minutes(seconds), "", "", f"< {minutes(bar)}", seconds < bar)
    cost = lecture.explicit(n)
    report.add("the explicit map", "", str(cost), f"{cost.seconds / seconds:,.0f} x the time of both fits")
    report.add("memory, the whole process", f"{peak():.2f} GB", f"{8 * n * n / 1e9:,.0f} GB for the matrix", "")
    report.notes = lecture.RECIPE.splitlines()
    report.finish(save=options.fraction == 1.0)


if __name__ == "__main__":
    main()
