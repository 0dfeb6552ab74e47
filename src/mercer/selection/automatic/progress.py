"""Progress of the learning of a metric, as it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from mercer.estimators.features.metric import Round
from mercer.machine.words import count

Listener = Callable[[Round, int], None]


class Told:
    """The last round of a metric that was judged, and the best so far, in words.

    The best stands first, since terminals are narrow. One that was judged on more rows replaces those of fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.estimators.features.metric import FAMILIES, Round
    >>> told = Told()
    >>> told(Round(FAMILIES[1], 1, np.eye(2), 0, 0, error=0.056), 1000)
    'best R² 0.944 by Laplacian; now Laplacian, round 1 on 1,000 rows: 0.944'
    >>> told(Round(FAMILIES[2], 2, np.eye(2), 0, 0, error=0.069), 1000)
    'best R² 0.944 by Laplacian; now exponential, round 2 on 1,000 rows: 0.931'
    """

    def __init__(self) -> None:
        self.best: tuple[Round, int] | None = None
        self.number = 0

    def __call__(self, step: Round, rows: int) -> str:
        """Take note of a round, and return what is to be said."""
        self.number += 1
        if self.best is None or (rows, -step.error) > (self.best[1], -self.best[0].error):
            self.best = step, rows
        now = f"{step.family.name}, round {step.number} on {rows:,} rows: {1 - step.error:.3f}"
        return f"{self.winner}; now {now}"

    @property
    def winner(self) -> str:
        """The best so far."""
        return f"best R² {1 - self.best[0].error:.3f} by {self.best[0].family.name}" if self.best else ""


@contextmanager
def rounds_shown(verbose: int) -> Iterator[Listener | None]:
    """Show each round of a metric and the best so far, where it is asked for; yield what hears of them."""
    if not verbose:
        yield None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    told, lock = Told(), Lock()  # families may be judged in threads of their own
    whole, rest = Column(no_wrap=True), Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        TextColumn("{task.description}", table_column=whole),
        SpinnerColumn(finished_text="", table_column=whole),
        TextColumn("{task.fields[said]}", markup=False, table_column=rest),
        TimeElapsedColumn(table_column=whole),
    )
    with Progress(*columns, expand=True) as lines:
        task = lines.add_task("metric", total=1, said="")

        def listen(step: Round, rows: int) -> None:
            with lock:
                lines.update(task, said=told(step, rows))

        yield listen
        lines.update(task, completed=1, said=f"{told.winner}, of {count(told.number, 'round')}" if told.number else "")
