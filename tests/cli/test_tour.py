import numpy as np
import pytest

from mercer.cli import tour


@pytest.mark.parametrize("contest", list(tour.contests(quick=True)), ids=lambda c: f"{c.task} {c.dtype}")
def test_both_sides_compute_the_same(contest):
    ours, theirs = contest.ours(), contest.theirs()
    assert ours.dtype == theirs.dtype == np.dtype(contest.dtype)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(
        ours, theirs, atol=(1e-4 if contest.dtype == "float32" else 1e-11) * np.abs(theirs).max()
    )


def test_the_best_of_alternating_rounds_counts(monkeypatch):
    turns = []
    clock = iter([0.0, *[t for ours, theirs in ((3, 9), (1, 8), (2, 7)) for t in (0.0, 0.0, ours, 0.0, theirs)][1:]])
    monkeypatch.setattr(tour.time, "perf_counter", lambda: next(clock))

    def side(name, value):
        return lambda: turns.append(name) or np.array([value])

    result = tour.timed(tour.Contest("task", "size", "float64", side("ours", 1.0), side("theirs", 2.0)))
    assert turns == ["ours", "theirs"] * 4
    assert (result.ours, result.theirs, result.ratio) == (1.0, 7.0, 7.0)
    assert result.difference == 0.5


def test_a_slow_machine_is_spared(monkeypatch):
    monkeypatch.setattr(tour, "LIMIT", 0.0)
    turns = []
    work = lambda: turns.append(0) or np.ones(1)  # noqa: E731
    tour.timed(tour.Contest("task", "size", "float64", work, work))
    assert len(turns) == 4  # the warm-up and one round
