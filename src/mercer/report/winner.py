"""The winner: its kernel and proof, its certificate, its learning curve, and the time that all of it took."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.machine.clock import Clock
from mercer.machine.words import brief, count, seconds
from mercer.report.blocks import Code, Facts, Figure, Figures, Prose, Section, Tree, clip, number, percent
from mercer.report.scales import span
from mercer.report.story import Machine, Story, draw
from mercer.report.svg import Chart

_CHECK = "print(model.certificate_.verify(X, y))  # X, y: what the model was fitted to"
_BEFORE = ("read", "look at columns")  # steps of the command line that come before those of the model


def winner_section(machine: Machine) -> Section:
    """Return the section on the kernel, its proof and the certificate."""
    model = machine.model
    proof = model.named_kernel_.proof()
    claim = model.certificate_
    lead = f"{clip(brief(repr(model.named_kernel_)), 160)} with {machine.name_of_price()}."
    stands = "is proven to be a kernel" if proof.proven else f"is {proof.status} as a kernel"
    if claim.stationary:
        lead += f" It {stands}, and the fit is a stationary point, which need not be the best: {claim.stationary}."
    else:
        lead += f" It {stands}, and the fit is within {_share(claim.relative_gap)} of the best there is."
    if not (claim.converged or claim.stationary):
        lead += f" The fit was not finished: {claim.stopped}."
    blocks: list[Any] = [
        Prose(["Why this similarity is positive semidefinite, step by step:"]),
        Tree(proof.to_dict()),
        Prose([_meaning(claim)]),
        Facts(_facts(claim, model)),
        Code("Check the certificate in Python", _CHECK),
        Prose(
            [
                "The check recomputes primal, dual and residuals in double precision from the training rows, by code "
                "that the solver does not share. On the command line: mercer verify, with the model and its data."
            ],
            quiet=True,
        ),
    ]
    return Section("winner", "Winner, proof and certificate", lead, blocks)


def _share(gap: float) -> str:
    if not math.isfinite(gap):
        return "an unknown distance"
    return "rounding error" if gap == 0 else f"{number(100 * gap, 2)}%"


def _meaning(claim: Any) -> str:
    """Say what the gap bounds."""
    if claim.stationary:
        return (
            f"Weak duality does not hold, for {claim.stationary}: the gap says how nearly stationary the point is, and "
            "bounds nothing."
        )
    if not math.isfinite(claim.gap):
        return "No feasible point of one of the two problems is known, so that the gap bounds nothing yet."
    if claim.relative_gap == 0:
        return (
            "Weak duality is the receipt: dual ≤ optimum ≤ primal. Here primal and dual agree to rounding: no other "
            "function of this kernel's space has a lower objective."
        )
    return (
        "Weak duality is the receipt: dual ≤ optimum ≤ primal. No other function of this kernel's space has an "
        f"objective that is lower by more than the gap, {number(max(claim.gap, 0.0), 2)}, which is "
        f"{_share(claim.relative_gap)} of the objective."
    )


def _facts(claim: Any, model: Any) -> list[tuple[str, str, str]]:
    rows = [
        ("primal", number(claim.primal, 8), "the objective at the solution"),
        ("dual", number(claim.dual, 8), "a bound that no solution can be below"),
        ("gap", number(claim.gap, 2), f"rounding alone can account for {number(claim.rounding, 2)}"),
        ("relative gap", number(claim.relative_gap, 2), f"asked for: {number(claim.tol, 2)}"),
        (
            "worst KKT residual",
            number(claim.kkt, 2),
            "largest violation of the conditions of optimality, in units of f",
        ),
        ("solver", str(claim.solver), f"{claim.stopped} after {count(int(claim.iterations), 'step')}"),
        ("time", seconds(claim.seconds), f"kernel values in {claim.precision}"),
    ]
    if len(claim.parts) > 1:
        worst = max(part.relative_gap for part in claim.parts)
        rows.append(
            (
                "problems",
                f"{len(claim.parts):,}",
                f"one for each pair of classes; worst relative gap {number(worst, 2)}",
            )
        )
    plan = getattr(model, "plan_", None)
    if plan is not None and str(plan) not in str(claim.solver):
        rows.append(("plan", "", str(plan)))
    return rows


# -- timings ----------------------------------------------------------------------------------------------


def timings_section(story: Story, report: float) -> Section:
    """Return the section on time; `report` is what the report itself took."""
    early = {name: story.timings[name] for name in _BEFORE if name in story.timings}
    everything = {**early, **getattr(story.model, "timings_", {}), **story.timings}
    spent = {str(name): float(t) for name, t in everything.items()}
    spent.setdefault("report", report)
    total = sum(spent.values())
    longest = max(spent, key=lambda name: spent[name])
    lead = f"{seconds(total)} in all, {percent(spent[longest] / total if total else 0.0)} of it for: {longest}."
    title = f"The longest step is {clip(longest, 24)}: {seconds(spent[longest])}"
    said = "; ".join(f"{name}: {seconds(t)}" for name, t in spent.items())
    chart = Chart.of_rows("timings", title, said, list(spent), 58, 24, right=66)
    x = chart.across(0, max(spent.values()) or 1.0)
    rows = chart.axis_rows(x, "seconds", list(spent))
    for i, (name, t) in enumerate(spent.items()):
        end = float(x(t))
        chart.box(
            chart.x0, rows.edge(i) + 4, max(0.8, end - chart.x0), rows.size - 8, "fill c0", f"{name}: {seconds(t)}"
        )
        chart.text(max(end, chart.x0 + 0.8) + 5, rows.middle(i) + 4, seconds(t), "tick")
    return Section("timings", "Timings", lead, [Figures([chart.figure()])])


_SIZES = 7  # sizes of a part, at most, each half of the next: down to 1/64 of the rows
_FEWEST_ROWS = 16  # rows of the smallest part
_PARTS_PER_SIZE = 3  # parts drawn of each size, whose mean is shown
_ROWS_SCORED = 2000  # rows on which a fit is scored, at most
_TIME_OF_TWICE_THE_ROWS = (
    5.0  # in units of the time of half of them, where it is not known yet: between a square and a cube
)


@dataclass
class Curve:
    """Scores on rows not seen and on rows learnt, for each size: a list of draws."""

    sizes: list[int] = field(default_factory=list)
    unseen: list[list[float]] = field(default_factory=list)
    seen: list[list[float]] = field(default_factory=list)
    stopped: bool = False


def learning_section(story: Story, machine: Machine, clock: Clock, rng: np.random.Generator) -> Section | None:
    """Return the section on the learning curve; None where there are too few rows for one."""
    y = np.asarray(story.train[1])
    train = machine.encode(story.train[0])
    tested = story.test is not None and len(story.test[0]) > 1
    if tested:
        assert story.test is not None
        chosen = draw(rng, len(story.test[0]), _ROWS_SCORED)
        judges = (machine.encode(story.test[0])[chosen], np.asarray(story.test[1])[chosen])
        pool = np.arange(len(y))
    else:
        apart = rng.permutation(len(y))
        cut = min(_ROWS_SCORED, max(2, len(y) // 5))
        judges, pool = (train[apart[:cut]], y[apart[:cut]]), apart[cut:]
    curve = grow(machine, train[pool], y[pool], judges, clock, rng, whole=machine if tested else None)
    if len(curve.sizes) < 2:
        return None
    where = "test rows" if tested else "a fifth of the rows, kept aside for this"
    return Section("learning", "Learning curve", _lead(curve), [Figures([_draw(curve, machine, where)])])


def grow(
    machine: Machine,
    Z: np.ndarray,
    y: np.ndarray,
    judges: tuple[np.ndarray, np.ndarray],
    clock: Clock,
    rng: np.random.Generator,
    whole: Machine | None,
) -> Curve:
    """Fit growing parts, from the smallest up, as long as the next will be done in time.

    `whole` is the model of all rows, if they are the ones at hand: it need not be fitted again.
    """
    curve, before = Curve(), 0.0
    least = max(_FEWEST_ROWS, 3 * len(machine.classes))
    sizes = sorted({len(y) >> k for k in range(_SIZES) if len(y) >> k >= least} | ({len(y)} if whole else set()))
    for size in sizes:
        if whole is not None and size == len(y):
            curve.sizes.append(size)
            curve.unseen.append([whole.score(*judges)])
            rows = draw(rng, size, _ROWS_SCORED // 2)
            curve.seen.append([whole.score(Z[rows], y[rows])])
            continue
        if curve.stopped:
            continue
        last, spent = 0.0, []
        unseen, seen = [], []
        for turn in range(_PARTS_PER_SIZE if size < len(y) else 1):
            expected = last if turn else _TIME_OF_TWICE_THE_ROWS * before
            if expected > clock.left and (turn or curve.sizes):
                curve.stopped = curve.stopped or not turn
                break
            began = time.perf_counter()
            rows = _part(machine, y, size, rng)
            part = machine.refitted(Z[rows], y[rows], max(0.1, clock.left))
            unseen.append(part.score(*judges))
            some = rows[: _ROWS_SCORED // 2]
            seen.append(part.score(Z[some], y[some]))
            last = time.perf_counter() - began
            spent.append(last)
        if unseen:
            curve.sizes.append(size)
            curve.unseen.append(unseen)
            curve.seen.append(seen)
            before = float(np.mean(spent))
    return curve


def _part(machine: Machine, y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return so many rows, with every class among them."""
    rows = rng.permutation(len(y))
    if not machine.classifies:
        return rows[:size]
    first = [rows[y[rows] == c][:2] for c in machine.classes]
    must = np.concatenate(first).astype(int)
    rest = rows[~np.isin(rows, must)]
    return rng.permutation(np.concatenate([must, rest[: max(0, size - len(must))]]))


def _lead(curve: Curve) -> str:
    """Say what the last doubling brought, against the noise of the draws."""
    means = [float(np.mean(s)) for s in curve.unseen]
    doublings = np.log2(curve.sizes[-1] / curve.sizes[-2])
    gain = (means[-1] - means[-2]) / doublings
    noise = max(*(float(np.std(s)) for s in curve.unseen[-2:]), 1e-3)
    step = f"from {curve.sizes[-2]:,} to {curve.sizes[-1]:,} rows the score on rows not seen"
    if gain > noise:
        return f"More rows would probably help: {step} rose by about {number(gain, 2)} with each doubling."
    if gain < -noise:
        return f"The curve is not settled: {step} fell by about {number(-gain, 2)} with each doubling."
    return f"More rows would probably bring little: {step} changed by {number(gain, 1)} with each doubling."


def _draw(curve: Curve, machine: Machine, where: str) -> Figure:
    sizes = np.array(curve.sizes, float)
    last = number(np.mean(curve.unseen[-1]), 4)
    title = f"{machine.measure} on rows not seen reaches {last} with {curve.sizes[-1]:,} rows"
    said = "; ".join(f"{n:,} rows: {number(np.mean(s), 3)}" for n, s in zip(curve.sizes, curve.unseen, strict=True))
    chart = Chart("learning", title, said, height=290, top=34)
    x = chart.across_log(sizes[0] / 1.15, sizes[-1] * 1.15)
    every = [v for s in (*curve.unseen, *curve.seen) for v in s]
    # One hopeless fit of few rows must not flatten the rest.
    middle, top = float(np.median(every)), max(every)
    low = max(min(every), middle - 5 * max(top - middle, 0.1 * abs(top)))
    y = chart.up(*span([low, max(every)], 0.07))
    chart.axis_y(y, machine.measure)
    chart.axis_x(x, "rows learnt (logarithmic)")
    for name, look, lists, right in (
        ("rows learnt", "c1", curve.seen, True),
        ("rows not seen", "c0", curve.unseen, False),
    ):
        mean = np.clip([float(np.mean(s)) for s in lists], y.low, y.high)
        ends = [np.clip([f(s) for s in lists], y.low, y.high) for f in (min, max)]
        chart.band(x(sizes), y(ends[0]), y(ends[1]), look)
        chart.line(x(sizes), y(mean), look if not right else f"{look} dashed")
        hints = [f"{int(n):,} rows, {name}: {number(np.mean(s), 4)}" for n, s in zip(sizes, lists, strict=True)]
        chart.dots(x(sizes), y(mean), look, 3.2, hints)
        at = chart.x0 + (0 if not right else 130)
        chart.whisker(at, 16, at + 18, 16, f"key {look}" + (" dashed" if right else ""))
        chart.text(at + 24, 20, name, "tick")
    note = (
        f"The winner's kernel and price at every size, scored on {where}; bands reach from the worst to the best draw."
    )
    if curve.stopped:
        note += " Sizes that would have taken too long for a report were left out."
    return chart.figure(note)
