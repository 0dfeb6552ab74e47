"""What a report is told: the model, the rows it was fitted to and judged on, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Story:
    """Everything that `write_report` tells.

    Parameters
    ----------
    title
        The heading of the page.
    source
        Where the rows come from, such as the name of a file.
    command, python
        How to reproduce the model: the command line, and a program. Either may be empty.
    model
        A fitted `AutoClassifier` or `AutoRegressor`.
    train
        The rows and the targets of the fit: (DataFrame, array).
    test
        Rows and targets that the fit has not seen; None if there are none. Then errors and calibration are those of the
        cross-validation.
    scores
        Scores on the test rows, by name.
    timings
        Seconds, by what they were spent on. Those of the model (`timings_`) are added if they are not among them.
    seed
        What the split and the search were seeded with.
    peers
        Scores of other models on the same test rows: a number for each name, or a dictionary of scores.
    treatment
        What was done to each column: `TableEncoder.treatment_`.
    notes
        Sentences to show beside the data, such as which rows were dropped.
    """

    title: str
    source: str
    command: str
    python: str
    model: Any
    train: tuple[Any, np.ndarray]
    test: tuple[Any, np.ndarray] | None = None
    scores: dict[str, float] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    seed: int = 0
    peers: dict[str, Any] | None = None
    treatment: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, rows in (("train", self.train), ("test", self.test)):
            if rows is not None and len(rows[0]) != len(rows[1]):
                raise ValueError(
                    f"{name} has {len(rows[0])} rows and {len(rows[1])} targets; a report needs one for each row."
                )
        if not len(self.train[0]):
            raise ValueError("train has no rows; a report needs the rows that the model was fitted to.")
