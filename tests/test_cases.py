"""Cases within one test: all are run, a failure names its case, and nothing passes unseen."""

import inspect

import pytest

from cases import each


def test_every_case_is_run():
    seen = []

    @each(("a", "b"), [(1, 2), pytest.param(3, 4)])
    @each("c", "xy")
    def run(a, b, c):
        seen.append((a, b, c))

    run()
    assert seen == [(1, 2, "x"), (1, 2, "y"), (3, 4, "x"), (3, 4, "y")]
    assert not inspect.signature(run).parameters


def test_what_fails_is_named():
    @each("n", [1, 2, 3, 4], ids=lambda n: f"number {n}")
    def run(n):
        if n == 1:
            pytest.skip("not this one")
        if n == 2:
            pytest.fail("two")
        assert n != 4

    with pytest.raises(pytest.fail.Exception, match="two") as caught:
        run()
    assert caught.value.__notes__ == ["2 of 4 cases fail: n=number 2; n=number 4"]


def test_it_is_skipped_if_all_cases_are():
    @each("n", [1, 2])
    def run(n):
        pytest.skip(f"{n}")

    with pytest.raises(pytest.skip.Exception, match="1"):
        run()


def test_what_cannot_be_a_case_is_refused():
    with pytest.raises(AssertionError, match="a mark"):
        each("n", [pytest.param(1, marks=pytest.mark.long)])
    with pytest.raises(AssertionError, match="no cases"):
        each("n", [])
    with pytest.raises(AssertionError, match="does not take all"):
        each("n", [1])(lambda m: None)
