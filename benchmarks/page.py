"""docs/benchmarks.md, made of what the benchmarks have kept in results/: python benchmarks/page.py."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
# The order of the page; what a benchmark measures is said in the first paragraph of its program.
TITLES = {
    "gram": "Kernel matrices and products",
    "svm": "Support vector machines",
    "ridge": "Ridge and logistic regression",
    "gp": "Gaussian processes and principal components",
    "search": "Cross-validation over kernels",
    "power": "Predictions on tables",
    "power_many": "Predictions on tables with more rows",
    "power_uci": "Predictions on 57 small tables",
    "published": "Predictions beside published ones",
    "rfm": "Recursive feature machines",
    "strings": "Strings and texts",
    "graphs": "Graphs",
    "tables": "From a table to a model",
    "lecture": "The lectures' thought experiment",
    "lab": "The lab",
}
COLUMNS = ("work", "mercer", "peer", "result")
HEAD = """# How fast, how good

Made by `benchmarks/page.py` of what `make bench` has measured. Peers run in the same process or on the same machine, in
turns, at their best settings; each program under `benchmarks/` says how. `benchmarks/results/` has all columns, the
bars that rows are held to, random problems against a referee, and scikit-learn's own tests with these classes.
"""


def section(name: str) -> str:
    """Return the part of one benchmark: what it measures, on which machine, and its rows."""
    kept: dict[str, Any] = json.loads((HERE / "results" / f"{name}.json").read_text())
    program = HERE / f"{name.partition('_')[0]}.py"  # power.py has three contests
    about = (ast.get_docstring(ast.parse(program.read_text())) or "").split("\n\n")[0]
    lines = [f"## {TITLES[name]}", "", *about.splitlines(), "", f"On {kept['machine']}:", ""]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(row.get(column, "") for column in COLUMNS) + " |" for row in kept["rows"]]
    lines += ["", *(f"- {note}" for note in kept["notes"])] if kept.get("notes") else []
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the whole page."""
    there = [name for name in TITLES if (HERE / "results" / f"{name}.json").exists()]
    return "\n".join([HEAD, *map(section, there)])


def write() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    write()
