"""Errors of `mercer.auto` at its defaults on four regression tables, beside published ones.

RMSE in cross-validation with three folds, `KFold(3, shuffle=True, random_state=0)`; the training rows are all rows of
the other two. Houses are the Californian ones, with the logarithm of the price.

As in `power.py` each result is kept in results/ and not measured again, unless `--again` says so; `--rows a,b` measures
some tables.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from _harness import Missing, Report, asked
from power import Contest, Draw, Results, collect, mean_of, parts, pm, runs_of, table
from sklearn.model_selection import KFold

FOLDS = 3
# The bar, the published errors, which are means over three folds, and how errors are written.
MARKS: dict[str, tuple[float, dict[str, float], str]] = {
    "airfoil": (1.27, {"TabPFN": 1.274, "TabM": 1.415, "TabR": 1.699}, ".3f"),
    "concrete": (4.33, {"TabPFN": 4.33, "TabM": 5.15, "TabR": 5.47}, ".2f"),
    "houses": (0.204, {"TabPFN": 0.2037, "TabM": 0.2290, "TabR": 0.2048}, ".4f"),
    "diamonds": (524.0, {"TabPFN": 523.7, "TabM": 532.1, "TabR": 546.2}, ".1f"),
}


class Fold(Draw):
    """A draw whose error is in the unit of the target."""

    def error(self, predicted: np.ndarray) -> float:
        """Return the root mean squared error."""
        return float(np.sqrt(np.mean((predicted - self.y_test) ** 2)))


def fold(name: str, number: int) -> Fold:
    """Return the rows of one of the folds, and all others."""
    whole = table({"houses": "cal_housing"}.get(name, name))
    whole = replace(whole, y=np.log(whole.y)) if name == "houses" else whole
    train, test = list(KFold(FOLDS, shuffle=True, random_state=0).split(whole.y))[number]
    return Fold(**vars(parts(whole, train, test, number)))


CONTEST = Contest("published", ("mercer",), list(MARKS), fold, FOLDS)


def add_row(report: Report, results: Results, name: str) -> None:
    """Add the row of a table: our error, and those that were published."""
    runs = runs_of(CONTEST, results, name).get("mercer", [])
    if not runs:
        fold(name, 0)  # says so where the data are missing
        raise Missing("it has not been measured yet")
    bar, marks, form = MARKS[name]
    errors = np.array([run["error"] for run in runs])
    best = min(marks, key=lambda who: marks[who])
    about = "" if all(run["quiet"] for run in runs) else "~"
    report.add(
        name,
        f"{pm(errors, form)}, {about}{mean_of(runs, 'seconds'):.3g} s",
        f"{best} {marks[best]:{form}}",
        f"{100 * (errors.mean() / marks[best] - 1):+.1f}% error",
        f"<= {bar:g}",
        bool(errors.mean() <= bar) if len(runs) == FOLDS else None,
        folds=str(len(runs)),
        **{who: f"{mark:{form}}" for who, mark in marks.items()},
    )


def main() -> None:
    """Measure what is asked for, and report on all that is there."""
    options = asked(
        __doc__,
        MARKS,
        again={"action": "store_true", "help": "measure also what has been measured"},
        loaded={"action": "store_true", "help": "other work goes on: seconds are orders of magnitude"},
    )
    options.tables, options.only, options.peers = options.rows, ["mercer"], None
    results, _ = collect(CONTEST, options)
    report = Report(CONTEST.name)
    there = report.run(CONTEST.tables, lambda name: add_row(report, results, name))
    report.raw = {"results": results}
    report.notes = [
        "Errors are RMSE in the unit of the target (dB, MPa, the logarithm of the price, dollars): means over the "
        "folds ± one standard error. Seconds are of one fold's fit and predictions; ~ where other work went on.",
        "The published errors are second-hand, of TabPFN 2.5, TabM and TabR in TabArena. They are means over three "
        "folds, too, but over others, so that differences of a standard error say little.",
    ]
    report.finish(save=there)


if __name__ == "__main__":
    main()
