"""What the benchmark programs share: fair timing, peak memory, and a table that is printed and kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import page
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


class Missing(Exception):
    """The data of a row is not on this machine."""


def file(name: str) -> Path:
    """Return the path of a data file; raise Missing, with the reason, where there is none."""
    folder = os.environ.get("MERCER_DATA")
    if not folder:
        raise Missing("MERCER_DATA is not set")
    path = Path(folder) / name
    if not path.exists():
        raise Missing(f"{path} is missing")
    return path


def asked(about: str | None, rows: Iterable[str], **flags: dict[str, Any]) -> argparse.Namespace:
    """Return the options of a program: its own `flags`, the `rows` that were asked for, and whether these are `all`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="", help=f"some of {','.join(rows)}")
    for flag, what in flags.items():
        parser.add_argument(f"--{flag}", **what)
    options = parser.parse_args()
    options.all, options.rows = not options.rows, options.rows.split(",") if options.rows else list(rows)
    if unknown := [name for name in options.rows if name not in rows]:
        parser.error(f"no such rows: {', '.join(unknown)}; there are {', '.join(rows)}")
    return options


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


def turns(contenders: dict[str, Callable[[], Any]], rounds: int = 5, patience: float = 8.0) -> dict[str, list[float]]:
    """Return the times of each contender, run in turns; one that has taken `patience` seconds is not run again."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            if sum(times[name]) < patience:
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
    return times


def warm_memory(gigabytes: float) -> None:
    """Touch as much memory as the work will need: a virtual machine pays dearly for pages it has not had before."""
    import numpy

    numpy.empty(int(gigabytes * 2**30), numpy.uint8).fill(1)


def peak_extra_memory(setup: str, work: str) -> float:
    """Return by how many megabytes the peak of a fresh process during `work` exceeds what it held before (Linux)."""
    return fresh_process(setup, work)[0]


def fresh_process(setup: str, work: str, result: str = "None") -> tuple[float, str]:
    """Return the peak extra memory of `work` in a fresh process, and afterwards `result` as text."""
    program = (
        "from pathlib import Path\n"
        "def kilobytes(field):\n"
        "    return int(Path('/proc/self/status').read_text().split(field)[1].split()[0])\n"
        f"{setup}\n"
        "Path('/proc/self/clear_refs').write_text('5')  # the peak starts again from here\n"
        "before = kilobytes('VmRSS:')\n"
        f"{work}\n"
        "extra = kilobytes('VmHWM:') - before\n"
        f"print({result})\n"
        "print(extra)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the fresh process failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    *_, text, extra = done.stdout.strip().splitlines()
    return int(extra) / 1024, text


@dataclass
class Report:
    """Rows of one benchmark: what was measured, against what, and the bar it is held to."""

    name: str
    rows: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a reader of the table has to know
    raw: dict[str, Any] = field(default_factory=dict)  # kept in the JSON file only

    def add(
        self, what: str, ours: str, peer: str, result: str, bar: str = "", met: bool | None = None, **more: str
    ) -> None:
        """Add a row, with further columns where it has `more` to say, and show it at once."""
        verdict = "" if met is None else ("yes" if met else "NO")
        row = {"work": what, "mercer": ours, "peer": peer, "result": result, "bar": bar, "met": verdict}
        self.rows.append(row | {name.replace("_", " "): text for name, text in more.items()})
        text = " | ".join([ours, peer, result, *more.values()])
        Console().print(f"[dim]{what}:[/] {text} {verdict}", highlight=False)

    def run(self, names: list[str], work: Callable[[str], Any]) -> bool:
        """Do one row after the other, saying which; return whether the data of all of them are there."""
        started, there = time.perf_counter(), True
        for number, name in enumerate(names, 1):
            print(f"[{time.perf_counter() - started:4.0f} s] {number}/{len(names)} {name}", flush=True)
            try:
                work(name)
            except Missing as reason:
                self.add(name, "", "", f"skipped: {reason}")
                there = False
        self.raw["wall_s"] = time.perf_counter() - started
        return there

    def join_kept(self) -> None:
        """Take over the rows that an earlier run has written and this one has not done."""
        path = RESULTS / f"{self.name}.json"
        if path.exists():
            kept, done = json.loads(path.read_text()), {row["work"] for row in self.rows}
            self.rows += [row for row in kept["rows"] if row["work"] not in done]
            self.raw = kept.get("raw", {}) | self.raw

    def finish(self, save: bool = True) -> None:
        """Print the table and write it beside this file, as Markdown and JSON, and into docs/benchmarks.md."""
        columns = list(dict.fromkeys(column for row in self.rows for column in row))
        cells = [[row.get(column, "") for column in columns] for row in self.rows]
        table = Table(title=f"{self.name}: {machine()}", show_lines=len(columns) > 6)
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in cells:
            table.add_row(*row)
        Console(width=150 if len(columns) <= 6 else 200).print(table)
        for note in self.notes:
            Console().print(note, highlight=False, markup=False)
        if not save:
            return
        RESULTS.mkdir(exist_ok=True)
        lines = [f"{machine()}.", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(row) + " |" for row in cells]
        lines += ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        (RESULTS / f"{self.name}.md").write_text("\n".join(lines) + "\n")
        kept: dict[str, Any] = {"machine": machine(), "rows": self.rows}
        kept |= {"notes": self.notes} if self.notes else {}
        kept |= {"raw": self.raw} if self.raw else {}
        (RESULTS / f"{self.name}.json").write_text(json.dumps(kept, indent=1) + "\n")
        page.write()


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
