"""How far a search is, for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mercer.selection.search.work import Outcome, Work


@contextmanager
def watching(verbose: int, work: Work, metric: Any) -> Iterator[None]:
    """Show a bar with the best candidate so far, where it is asked for."""
    if not verbose:
        yield
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    scores: dict[int, list[float]] = {}
    best = (-np.inf, "")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[best]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bars:
        task = bars.add_task(type(work.estimator).__name__, total=len(work.candidates) * len(work.splits), best="")

        def tell(cell: tuple[int, int], outcome: Outcome) -> None:
            nonlocal best
            found = outcome.test
            if isinstance(found, dict):
                found = found.get(metric, next(iter(found.values())))
            scores.setdefault(cell[0], []).append(float(found))
            mean = float(np.mean(scores[cell[0]]))
            if mean > best[0]:
                shown = ", ".join(
                    f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in work.candidates[cell[0]].items()
                )
                best = (mean, f"best {mean:.4g} at {shown}")
            bars.update(task, advance=1, best=best[1])

        work.tell = tell
        try:
            yield
            bars.update(task, completed=len(work.candidates) * len(work.splits))
        finally:
            work.tell = None
