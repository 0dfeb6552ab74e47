"""What the benchmark programs share: fair timing, peak memory, and a table that is printed and kept."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


def race(contenders: dict[str, Callable[[], Any]], rounds: int = 5) -> dict[str, float]:
    """Return the best time of each contender, run in turns so that both meet the same machine."""
    for run in contenders.values():  # memory that will be needed is touched, code is loaded
        run()
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def peak_extra_memory(setup: str, work: str) -> float:
    """Return by how many megabytes the peak of a fresh process during `work` exceeds what it held before (Linux)."""
    program = (
        "from pathlib import Path\n"
        "def kilobytes(field):\n"
        "    return int(Path('/proc/self/status').read_text().split(field)[1].split()[0])\n"
        f"{setup}\n"
        "Path('/proc/self/clear_refs').write_text('5')  # the peak starts again from here\n"
        "before = kilobytes('VmRSS:')\n"
        f"{work}\n"
        "print(kilobytes('VmHWM:') - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024


@dataclass
class Report:
    """Rows of one benchmark: what was measured, against what, and the bar it is held to."""

    name: str
    rows: list[dict[str, str]] = field(default_factory=list)

    def add(self, what: str, ours: str, peer: str, result: str, bar: str = "", met: bool | None = None) -> None:
        """Add a row and show it at once."""
        verdict = "" if met is None else ("yes" if met else "NO")
        self.rows.append({"work": what, "mercer": ours, "peer": peer, "result": result, "bar": bar, "met": verdict})
        Console().print(f"[dim]{what}:[/] {ours} | {peer} | {result} {verdict}", highlight=False)

    def finish(self) -> None:
        """Print the table and write it beside this file, as Markdown and JSON."""
        table = Table(title=f"{self.name}: {machine()}")
        for column in self.rows[0]:
            table.add_column(column, overflow="fold")
        for row in self.rows:
            table.add_row(*row.values())
        Console(width=150).print(table)
        RESULTS.mkdir(exist_ok=True)
        columns = list(self.rows[0])
        lines = [f"{machine()}.", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(row.values()) + " |" for row in self.rows]
        (RESULTS / f"{self.name}.md").write_text("\n".join(lines) + "\n")
        (RESULTS / f"{self.name}.json").write_text(
            json.dumps({"machine": machine(), "rows": self.rows}, indent=1) + "\n"
        )


def machine() -> str:
    """Return the processor, its cores and the versions that matter, in a line."""
    import numpy
    import sklearn

    from mercer import _core

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    return f"{model}, {cores} cores, {_core.isa()}, numpy {numpy.__version__}, scikit-learn {sklearn.__version__}"
