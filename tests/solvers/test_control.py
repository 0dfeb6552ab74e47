"""Limits, progress and the warning about a fit that ended early."""

import time
import warnings
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer.solvers import Control, Progress
from mercer.solvers.control import check_vector, warn_unfinished


def test_without_limits_nothing_ends_a_run():
    assert Control().exhausted(10**12) is None


@pytest.mark.parametrize(("limit", "steps", "over"), [(5, 4, False), (5, 5, True), (5, 9, True), (0, 0, True)])
def test_a_limit_on_steps(limit, steps, over):
    assert Control(max_iter=limit).exhausted(steps) == (f"max_iter={limit} reached" if over else None)


def test_a_limit_on_time():
    assert Control(time_limit=0.0).exhausted(0) == "time_limit=0 s reached"
    assert Control(time_limit=3600.0).exhausted(0) is None
    control = Control(time_limit=2.5, started=time.perf_counter() - 3)
    assert control.seconds >= 3
    assert control.exhausted(0) == "time_limit=2.5 s reached"


def test_cancelling_comes_before_every_limit():
    control = Control(max_iter=1)
    assert not control.cancelled
    control.cancel()
    assert control.exhausted(5) == "interrupted"


def test_a_control_is_a_value():
    control = Control(tol=1e-3)
    with pytest.raises(FrozenInstanceError):
        control.tol = 1e-6
    assert replace(control, tol=1e-6).tol == 1e-6
    assert control.tol == 1e-3


def test_copies_are_cancelled_together():
    control = Control()
    part = replace(control, tol=1e-6, max_iter=7)
    part.cancel()
    assert control.cancelled
    assert control.exhausted(0) == "interrupted"
    assert not Control().cancelled


def test_time_passes():
    control = Control()
    first = control.seconds
    assert 0 <= first <= control.seconds


@pytest.mark.parametrize(("answer", "stop"), [(True, True), (False, False), (None, False), (1, False), ("no", False)])
def test_only_true_stops_a_run(answer, stop):
    """A listener that happens to return something, such as list.append's None or a count, asks for nothing."""
    assert Control(report=lambda progress: answer).tell(iteration=1, gap=0.5, dual=1.0, support=3) is stop


def test_the_listener_hears_where_the_run_stands():
    heard = []
    assert not Control(report=heard.append).tell(iteration=7, gap=0.5, dual=1.25, support=3)
    (progress,) = heard
    assert (progress.iteration, progress.gap, progress.dual, progress.support) == (7, 0.5, 1.25, 3)
    assert progress.seconds >= 0
    assert isinstance(progress, Progress)
    with pytest.raises(FrozenInstanceError):
        progress.gap = 0.0


def test_nobody_listens():
    assert Control().tell(iteration=1, gap=0.5, dual=1.0, support=3) is False


def fit():
    """As deep below the user's call as an estimator's fit is."""
    (lambda: solve())()


def solve():
    warn_unfinished("max_iter=5 reached", 0.01234, 1e-3, "Scale the features.")


def test_the_warning_names_the_reason_the_gap_and_the_tolerance():
    with pytest.warns(ConvergenceWarning) as caught:
        fit()
    text = str(caught[0].message)
    assert "stopped early (max_iter=5 reached)" in text
    assert "relative duality gap of 0.012; tol=0.001 was asked" in text
    assert text.endswith("its certificate says how good it is. Scale the features.")
    assert caught[0].filename == __file__


def test_the_warning_without_advice_ends_with_its_sentence():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_unfinished("interrupted", np.inf, 1e-6)
    assert str(caught[0].message).endswith("says how good it is.")
    assert "gap of inf; tol=1e-06" in str(caught[0].message)


def test_vectors_are_one_float64_per_point():
    assert check_vector("width", 0.5, 3) == pytest.approx([0.5, 0.5, 0.5])
    given = np.arange(3, dtype=np.int8)
    found = check_vector("upper", given, 3)
    assert found.dtype == np.float64
    assert check_vector("upper", np.arange(6.0)[::2], 3).flags.c_contiguous
    assert check_vector("upper", [0, np.inf, 1], 3)[1] == np.inf
    with pytest.raises(ValueError, match=r"lower contains NaN\."):
        check_vector("lower", [0, np.nan, 1], 3)
    with pytest.raises(ValueError, match=r"shape"):
        check_vector("lower", [0, 1], 3)
