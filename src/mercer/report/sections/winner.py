"""The winner: the kernel and its proof, the certificate and how to check it; and the time that all of it took."""

from __future__ import annotations

import math
from typing import Any

from mercer.machine.words import brief, count, seconds
from mercer.report.drawing.blocks import Code, Facts, Figure, Figures, Prose, Section, Tree
from mercer.report.drawing.scales import Bands
from mercer.report.drawing.svg import Chart
from mercer.report.drawing.words import clip, number, percent
from mercer.report.machine import Machine
from mercer.report.story import Story

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
    width = max(len(clip(name, 22)) for name in spent)
    chart = Chart(
        "timings",
        title,
        "; ".join(f"{name}: {seconds(t)}" for name, t in spent.items()),
        height=58 + 24 * len(spent),
        left=16 + 6.3 * width,
        right=66,
    )
    x, rows = chart.across(0, max(spent.values()) or 1.0), Bands(len(spent), chart.y1, chart.y0)
    chart.axis_x(x, "seconds", x.ticks(4))
    chart.names_y(rows, spent, 22)
    for i, (name, t) in enumerate(spent.items()):
        end = float(x(t))
        chart.box(
            chart.x0, rows.edge(i) + 4, max(0.8, end - chart.x0), rows.size - 8, "fill c0", f"{name}: {seconds(t)}"
        )
        chart.text(max(end, chart.x0 + 0.8) + 5, rows.middle(i) + 4, seconds(t), "tick")
    return Section("timings", "Timings", lead, [Figures([Figure(title, chart.svg())])])
