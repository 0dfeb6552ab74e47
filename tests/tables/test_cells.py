import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.tables.cells import is_missing, name, names, number, numbers


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_itself_in_any_writing(value):
    assert number(value) == number(repr(value)) == number(f" {value!r} ") == value
    assert name(value) == name(repr(value)) == name(np.float64(value))


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_in_any_writing(value):
    written = [value, float(value), str(value), f"{value}.0", np.int64(value)]
    assert {number(v) for v in [*written, f"{value:,}"]} == {float(value)}
    assert len({name(v) for v in written}) == 1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("$5", 5), ("-$5.50", -5.5), ("$ 1,234", 1234), ("12 %", 12), ("3€", 3), ("+7", 7), (".5", 0.5), ("1e3", 1000)],
)
def test_numbers_as_people_write_them(text, wanted):
    assert number(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "-", ".", "$", "1,2", "12,34", "1 2", "five", "0x1f", "1-2", "--1", "2024-01-31", "e5"]
)
def test_texts_that_are_no_numbers(text):
    assert math.isnan(number(text))


@pytest.mark.parametrize(
    "value", [None, float("nan"), np.nan, pd.NA, pd.NaT, "", " ", "?", "NA", "n/a", "None", "NULL"]
)
def test_missing(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, "0", False, "no", "Nancy", "nil", "unknown"])
def test_not_missing(value):
    assert not is_missing(value)


@given(st.lists(st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(["a", " a", "1", "1.0", "x", "?"]))))
def test_names_number_the_categories_in_order(values):
    codes, called = names(pd.Series(values, dtype=object))
    assert called == sorted(set(called))
    assert [called[c] if c >= 0 else None for c in codes] == [None if is_missing(v) else name(v) for v in values]


def test_numbers_of_columns():
    found = numbers(pd.Series(["1", "abc", None, "inf", "$2", "?"]))
    assert found.values == pytest.approx([1, np.nan, np.nan, np.nan, 2, np.nan], nan_ok=True)
    assert (found.wrong, found.example) == (2, "abc")  # what is infinite is no number to compute with
    assert numbers(pd.Series([True, False])).values.tolist() == [1, 0]
    assert numbers(pd.Series(pd.to_timedelta(["1min", None]))).values == pytest.approx([60, np.nan], nan_ok=True)
    assert numbers(pd.Series(pd.to_datetime(["2024-01-31", None]))).wrong == 1
    assert numbers(pd.Series([1, None], dtype="Int64")).values == pytest.approx([1, np.nan], nan_ok=True)
    with pytest.raises(ValueError, match="Complex data not supported: 'z' holds complex numbers"):
        numbers(pd.Series([1j], name="z"))
