"""The rows of `svm.py` without a kernel: a million samples, compared at equal objective."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _data import Problem, load
from _harness import fresh_process, turns
from _objective import linear_primal
from _svm_peers import HERE, OURS, Run, duration, listed, score
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

import mercer

EQUAL = 1e-3  # objectives this close, relative, to the best known are equal
BAR = 2.0
SGD, TUNED, DUAL, PRIMAL = "SGDClassifier", "SGDClassifier (tuned)", "LinearSVC (dual)", "LinearSVC (primal)"
LOOSE, TIGHT = "mercer tol=1e-3", "mercer tol=1e-8"

Ladder = list[tuple[str, Callable[[], Any]]]


def ladders(loss: str, C: float, n: int) -> dict[str, Ladder]:
    """Return the settings of each peer, quickest first.

    The step sizes that SGDClassifier chooses by itself are far too long here, so it runs also with steps that suit
    standardised data, eta0 / sqrt(t), and an averaged iterate (Polyak and Juditsky 1992).
    """

    def sgd(**settings: Any) -> Callable[[], Any]:
        return lambda: SGDClassifier(loss=loss, alpha=1 / (C * n), tol=None, random_state=0, **settings)

    def liblinear(**settings: Any) -> Callable[[], Any]:
        return lambda: LinearSVC(loss=loss, C=C, random_state=0, **settings)

    epochs = (1, 3, 10, 30, 100, 300, 1_000)
    steps = {"learning_rate": "invscaling", "eta0": 0.1, "power_t": 0.5, "average": True}
    result = {TUNED: [(f"max_iter={k}", sgd(max_iter=k, **steps)) for k in epochs]}
    if loss == "hinge":
        result[DUAL] = [(f"max_iter={k}", liblinear(dual=True, max_iter=k)) for k in epochs]
    else:
        tols = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
        result[PRIMAL] = [(f"tol={t:g}", liblinear(dual=False, tol=t)) for t in tols]
    result[SGD] = [(f"max_iter={k}", sgd(max_iter=k)) for k in epochs]
    return result


class Trial:
    """Fits of one problem with one loss, each with its time and its objective."""

    def __init__(self, problem: Problem, loss: str) -> None:
        self.problem = problem
        self.loss = loss
        self.C = problem.params["C"]
        self.signs = np.where(problem.y == 1, 1.0, -1.0)
        self.entries: dict[str, list[dict[str, Any]]] = {}
        self.last: dict[str, Any] = {}

    def ours(self, **settings: Any) -> Any:
        return mercer.LinearSVC(loss=self.loss, C=self.C, **settings)

    def measure(self, who: str, rung: str, make: Callable[[], Any]) -> dict[str, Any]:
        """Fit once and keep what came of it."""
        start = time.perf_counter()
        model = make().fit(self.problem.X, self.problem.y)
        seconds = time.perf_counter() - start
        value = linear_primal(model.coef_, self.problem.X, self.signs, self.C, self.loss != "hinge")[0]
        self.last[who] = model
        self.entries.setdefault(who, []).append({"rung": rung, "seconds": [seconds], "objective": value})
        return self.entries[who][-1]

    @property
    def optimum(self) -> float:
        """The best objective that anyone has reached."""
        return min(entry["objective"] for entries in self.entries.values() for entry in entries)

    def above(self, who: str) -> float:
        """By how much the last fit of a contender is above that, relative."""
        return self.entries[who][-1]["objective"] / self.optimum - 1

    def seconds(self, who: str) -> float:
        """The best time of the last setting of a contender."""
        return min(self.entries[who][-1]["seconds"])

    def climb(self, limit: float) -> tuple[list[str], list[str]]:
        """Try each peer's settings until one is good enough; return those that got there, and those that did not.

        A peer is given up when one fit takes `limit` seconds, or longer than another peer took to get there.
        """
        reached: list[str] = []
        peers = ladders(self.loss, self.C, len(self.problem))
        for who, rungs in peers.items():
            for rung, make in rungs:
                self.measure(who, rung, make)
                if self.above(who) <= EQUAL:
                    reached.append(who)
                    break
                if self.seconds(who) > min([limit, *map(self.seconds, reached)]):
                    break
        reached = [who for who in reached if self.above(who) <= EQUAL]  # the best known may have improved since
        return reached, [who for who in peers if who not in reached]


def linear_rows(run: Run) -> None:
    """Add a row for each loss; a peer counts at its first setting that reaches the best objective known."""
    problem = load("linear", run.quick)
    few = problem.X[:2_000], problem.y[:2_000]
    for loss in ("hinge", "squared_hinge"):
        trial = Trial(problem, loss)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few epochs do not converge: that is known
            for make in (trial.ours, *(rungs[0][1] for rungs in ladders(loss, trial.C, 2_000).values())):
                make().fit(*few)  # loads code
            trial.measure(TIGHT, "", lambda trial=trial: trial.ours(tol=1e-8))
            trial.measure(OURS, "default tol", trial.ours)
            trial.measure(LOOSE, "", lambda trial=trial: trial.ours(tol=1e-3))
            reached, missed = trial.climb(max(1.0 if run.quick else 10.0, 4 * trial.seconds(OURS)))
            report_row(run, trial, reached, missed)


def report_row(run: Run, trial: Trial, reached: list[str], missed: list[str]) -> None:
    """Let the best peer and us take turns, and add the row."""
    problem, loss = trial.problem, trial.loss
    contenders = {OURS: lambda: trial.ours().fit(problem.X, problem.y)}
    contenders[LOOSE] = lambda: trial.ours(tol=1e-3).fit(problem.X, problem.y)
    if reached:
        peer = min(reached, key=trial.seconds)
        rung = trial.entries[peer][-1]["rung"]
        make = dict(ladders(loss, trial.C, len(problem))[peer])[rung]
        contenders[peer] = lambda: make().fit(problem.X, problem.y)
    else:
        peer = min(missed, key=trial.seconds)  # all have gone on for longer than this
    for who, times in turns(contenders, 3, 8.0).items():
        trial.entries[who][-1]["seconds"].extend(times)
    ratio = trial.seconds(peer) / trial.seconds(OURS)
    title = f"linear, {loss}, {len(problem):,} x {problem.X.shape[1]} made data, C={trial.C:g}"
    run.ratios[title] = ratio
    words = [f"{who} {describe(trial, who)}" for who in reached]
    words += [f"{who} not equal after {describe(trial, who)}" for who in missed]
    held = {OURS: memory(run, loss, "trial.ours().fit(trial.problem.X, trial.problem.y)")}
    if reached:
        build = f"dict(ladders({loss!r}, trial.C, len(trial.problem))[{peer!r}])[{rung!r}]()"
        held[peer] = memory(run, loss, f"{build}.fit(trial.problem.X, trial.problem.y)")
    run.report.add(
        title,
        f"{duration(trial.seconds(OURS))} (at tol=1e-3 {duration(trial.seconds(LOOSE))})",
        "; ".join(words),
        f"{'' if reached else '> '}{ratio:.2f} x (at tol=1e-3 {trial.seconds(peer) / trial.seconds(LOOSE):.2f} x)",
        f">= {BAR:g} x",
        ratio >= BAR and trial.above(OURS) <= EQUAL,
        dual_objective=f"primal: {trial.above(OURS):+.1e} above the best known (at tol=1e-3 {trial.above(LOOSE):+.1e})",
        test_score=listed({who: score(trial.last[who], who, problem) for who in (OURS, *reached, *missed)}, "{:.4f}"),
        extra_memory=listed(held, "{:.0f} MB"),
    )
    run.report.raw[f"linear {loss}"] = {
        "tried": trial.entries,
        "optimum": trial.optimum,
        "peer": peer if reached else None,
        "ratio": ratio,
        "ratio_is_a_lower_bound": not reached,
        "extra_MB": held,
    }


def describe(trial: Trial, who: str) -> str:
    """Return the time, the setting and the quality of the last fit of a peer."""
    return f"{duration(trial.seconds(who))} ({trial.entries[who][-1]['rung']}, {trial.above(who):+.0e})"


def memory(run: Run, loss: str, work: str) -> float:
    """Return the peak extra memory of a linear fit in a fresh process, in megabytes."""
    setup = (
        f"import sys, warnings\nsys.path.insert(0, {str(HERE)!r})\nwarnings.simplefilter('ignore')\n"
        "from _data import load\nfrom _svm_linear import Trial, ladders\n"
        f"trial = Trial(load('linear', {run.quick}), {loss!r})\n"
        "for make in (trial.ours, *(rungs[0][1] for rungs in ladders(trial.loss, 1.0, 2_000).values())):\n"
        "    make().fit(trial.problem.X[:2_000], trial.problem.y[:2_000])"
    )
    return fresh_process(setup, work)[0]
