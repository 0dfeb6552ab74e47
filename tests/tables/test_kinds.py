import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables import TableError, target_of


@given(st.lists(st.sampled_from(["yes", "no", " maybe", None, "?"]), min_size=3))
def test_texts_are_classes_and_missing_rows_are_dropped(values):
    there = [i for i, v in enumerate(values) if v not in (None, "?")]
    if len({values[i] for i in there}) < 2:
        with pytest.raises(TableError):
            target_of(values)
        return
    found = target_of(values)
    assert found.task == "classify"
    assert found.rows.tolist() == there
    assert found.values.tolist() == [values[i].strip() for i in there]
    assert found.classes.tolist() == sorted(set(found.values.tolist()))
    assert ("dropped" in found.said) == (len(there) < len(values))


@given(st.lists(st.floats(-1e9, 1e9), min_size=3, unique=True))
def test_many_numbers_are_quantities(values):
    found = target_of(pd.Series(values, name="v"), "regress")
    assert found.classes is None
    assert found.values.tolist() == values
    assert target_of([v + 0.5 for v in range(3)]).task == "regress"


@pytest.mark.parametrize(
    ("values", "task", "kind"),
    [
        ([0, 1] * 5, "classify", "i"),
        ([0.0, 1.0] * 5, "classify", "i"),
        ([0.5, 1.5] * 5, "classify", "f"),
        ([True, False], "classify", "b"),
        ([1, 2, 3] * 10, "classify", "i"),
        (list(range(10)) * 20, "classify", "i"),
        (list(range(10)) * 2, "regress", "f"),
        (list(range(30)) * 20, "regress", "f"),
        ([1.5, 2.5, 3.5] * 20, "regress", "f"),
        (["1", "2", "3"] * 10, "classify", "U"),
        ([True, False, None] * 5, "classify", "b"),
        (pd.Categorical([3, 4, None] * 5), "classify", "i"),
        (["$1,000", "$2", "$3.50"], "regress", "f"),
        (pd.Categorical([1.5, 2.5, 3.5] * 10), "classify", "f"),
    ],
)
def test_the_task_is_found(values, task, kind):
    found = target_of(pd.Series(values))
    assert (found.task, found.values.dtype.kind) == (task, kind)


def test_texts_are_labels_as_they_are_first_written():
    found = target_of(["$1", "true", "TRUE", "007", " $1 ", "7"])
    assert found.values.tolist() == ["$1", "true", "true", "007", "$1", "007"]
    assert target_of([2**53 + 2, 2**53 + 4] * 3).values.tolist() == [2**53 + 2, 2**53 + 4] * 3


def test_the_task_can_be_said():
    assert target_of([1, 2, 3] * 10, "regress").values.dtype == np.float64
    assert target_of([1.5, 2.5, 3.5] * 10, "classify").classes.tolist() == [1.5, 2.5, 3.5]


def test_what_is_said():
    assert target_of(pd.Series(["a", "b", "a"], name="t")).said == "t: 2 classes, a (2 rows) and b (1)."
    many = target_of(pd.Series(list("abcdefgh") * 6 + ["i"]))
    assert (
        many.said == "target: 9 classes, a (6 rows), b (6), c (6), d (6), e (6), ...; 1 of them with fewer than 5 rows."
    )
    assert target_of(pd.Series([1.5, 2.5, 8.0, None])).said == (
        "target: numbers from 1.5 to 8 (median 2.5); 1 row without a target was dropped."
    )


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        ([1, 1, 1], "auto", "the target 't' is 1 in all 3 rows; there is nothing to tell apart"),
        (["a", None], "auto", "the target 't' is a in all 1 rows"),
        ([None, None], "auto", "the target 't' has no values: all 2 rows are missing"),
        ([], "auto", "the target 't' has no rows"),
        (["a", "b", "1"], "regress", "the target 't' is no number in 2 rows: 'a'. Correct them"),
        ([1.0, 2.0, np.inf], "regress", "the target 't' is infinite in row 3"),
        (
            [f"name {i}" for i in range(30)],
            "auto",
            "has 30 different values in 30 rows, too many for classes. Choose anoth",
        ),
        (np.arange(30) / 7, "classify", "too many for classes. Choose task 'regress' to predict numbers"),
    ],
)
def test_errors_are_sentences(values, task, words):
    with pytest.raises(TableError) as caught:
        target_of(pd.Series(values, name="t", dtype=object), task)
    assert words in str(caught.value)


def test_unknown_tasks():
    with pytest.raises(ValueError, match="task='guess' must be one of 'auto', 'classify', 'regress'"):
        target_of([1, 2], "guess")


def test_numbers_near_the_limits_of_float64_stay_what_they_are():
    values = [-1e307, 2.5, 1e300, 1e-307, 7.25]
    assert target_of(values, "regress").values.tolist() == values
    assert target_of([f"{v!r}" for v in values], "regress").values.tolist() == values
