"""Small tables, fitted once, and their pages."""

import numpy as np
import pytest

from mercer import RBF, AutoClassifier, AutoRegressor
from mercer.report import render
from mercer.tables import TableEncoder
from report_stories import EVIL, LABELS, story_of, table


@pytest.fixture(scope="session")
def two():
    frame, score = table(260)
    y = LABELS[(score > 0.5).astype(int)]
    model = AutoClassifier(cv=3, kernels=[RBF, "0.5 * Linear()"]).fit(frame[:200], y[:200])
    return story_of(
        model,
        frame[:200],
        y[:200],
        test=(frame[200:], y[200:]),
        scores={"accuracy": 0.9, f"{EVIL}": 0.5},
        timings={"read": 0.1, "search": 2.0},
        peers={"boosting": {"accuracy": 0.91}, "linear": 0.8},
    )


@pytest.fixture(scope="session")
def several():
    frame, score = table(240, 1)
    y = np.digitize(score, [-0.4, 1.2])
    model = AutoClassifier(cv=3, kernels=["RBF(2.0)"]).fit(frame[:180], y[:180])
    return story_of(model, frame[:180], y[:180], test=(frame[180:], y[180:]))


@pytest.fixture(scope="session")
def numbers():
    frame, score = table(240, 2)
    y = np.exp(score)
    model = AutoRegressor(cv=3, kernels=["RBF(2.0)", "RBF(5.0)"]).fit(frame[:180], y[:180])
    return story_of(model, frame[:180], y[:180], test=(frame[180:], y[180:]), scores={"R²": 0.9})


@pytest.fixture(scope="session")
def learned():
    """A model whose kernel has a learned metric, which mixes columns."""
    frame, score = table(200, 3)
    width = TableEncoder().fit(frame).transform(frame).shape[1]
    kernel = RBF(2.0).transformed(np.diag(0.5 ** np.arange(width)) + 0.1)
    return story_of(AutoRegressor(cv=3, kernels=[kernel]).fit(frame, score), frame, score)


@pytest.fixture(scope="session")
def pages(two, several, numbers):
    return {name: render(story, 1.0) for name, story in (("two", two), ("several", several), ("numbers", numbers))}
