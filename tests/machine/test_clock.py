import pytest

from mercer.machine.clock import Clock


def test_a_clock_without_limit_never_runs_out():
    clock = Clock()
    assert clock.time_limit() is None
    assert clock.left == float("inf")
    assert not clock.out


def test_a_time_limit_is_positive_even_when_none_is_left():
    clock = Clock(0.0)
    assert clock.out
    assert clock.left == 0.0
    assert clock.time_limit() > 0.0


def test_an_interruption_leaves_a_moment():
    clock = Clock(None)
    clock.interrupt(2.0)
    assert clock.interrupted
    assert 0.0 < clock.left <= 2.0
    assert clock.time_limit(0.5) <= 1.0


def test_seconds_count_where_the_work_fails_too():
    clock = Clock()
    with pytest.raises(ValueError, match="in the middle"), clock("work"):
        raise ValueError("in the middle")
    assert set(clock.spent) == {"work"}
