"""Where the time went."""

from __future__ import annotations

from mercer.machine.words import seconds
from mercer.report.drawing.blocks import Figure, Figures, Section
from mercer.report.drawing.scales import Bands
from mercer.report.drawing.svg import Chart
from mercer.report.drawing.words import clip, percent
from mercer.report.story import Story

_BEFORE = ("read", "look at columns")  # steps of the command line that come before those of the model


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
