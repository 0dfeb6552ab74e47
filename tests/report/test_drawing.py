"""Scales, words and drawings of the report."""

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.machine.words import seconds
from mercer.report.blocks import clip, number, percent, tick
from mercer.report.scales import Bands, Linear, Log, span
from mercer.report.svg import STEPS, Chart, path, shade, tag

FINITE = st.floats(-1e9, 1e9)
SIZES = st.floats(1e-6, 1e9)


@given(FINITE, SIZES)
def test_ticks_of_a_straight_scale_are_even_and_within_it(low, size):
    scale = Linear(low, low + size, 0.0, 100.0)
    marks = scale.ticks(5)
    slack = 1e-6 * (abs(low) + size)
    assert all(low - slack <= mark <= low + size + slack for mark in marks)
    assert len(marks) <= 7
    if low + size - low > 1e-6 * abs(low):  # there is something to tell apart
        assert len(marks) >= 2
        steps = np.diff(marks)
        assert np.allclose(steps, steps[0], rtol=1e-3, atol=slack)


@given(st.floats(-8, 8), st.floats(0.01, 12))
def test_ticks_of_a_logarithmic_scale_are_within_it(power, decades):
    scale = Log(10.0**power, 10.0 ** (power + decades), 0.0, 100.0)
    marks = scale.ticks()
    assert marks
    assert marks == sorted(marks)
    assert all(-1e-6 <= float(scale(mark)) <= 100 + 1e-6 for mark in marks)


def test_scales_map_their_ends_to_their_ends():
    assert np.allclose(Linear(2.0, 4.0, 10.0, -10.0)([2, 3, 4]), [10, 0, -10])
    assert np.allclose(Log(1.0, 100.0, 0.0, 2.0)([1, 10, 100]), [0, 1, 2])
    bands = Bands(3, 30.0, 0.0)
    assert (bands.edge(0), bands.middle(2)) == (30.0, 5.0)


@given(st.lists(st.one_of(FINITE, st.just(math.nan), st.just(math.inf)), max_size=8))
def test_a_span_holds_all_finite_values_and_has_a_length(values):
    low, high = span(values)
    assert low < high
    assert all(low <= v <= high for v in values if math.isfinite(v))


@given(FINITE, FINITE)
def test_more_is_never_paler(a, b):
    low, high = min(a, b), max(a, b)
    shades = [shade(v, low, high) for v in np.linspace(low, high, 7)]
    assert shades == sorted(shades)
    assert 0 <= shades[0] <= shades[-1] <= STEPS - 1


@given(st.floats(1e-12, 1e12))
def test_a_written_number_is_near_the_number(value):
    text = number(value, 4).replace(",", "")
    if "·10" in text:
        mantissa, power = text.split("·10")
        text = mantissa + "e" + power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    assert float(text) == pytest.approx(value, rel=2e-3)


@pytest.mark.parametrize("write", [number, tick])
def test_negative_numbers_have_a_minus_sign(write):
    assert write(-2.5) == "−2.5"


def test_shares_and_times_at_the_ends():
    assert (percent(0.0), percent(0.99999), percent(math.nan)) == ("0%", "100.0%", "none")
    assert (seconds(59.6), seconds(3599.0), seconds(0.0)) == ("1 min 0 s", "1 h 0 min", "0 ms")


@given(st.text(max_size=60), st.integers(2, 20))
def test_a_clipped_text_is_short(text, length):
    assert len(clip(text, length)) <= length


@given(st.text(max_size=40))
def test_a_drawing_is_well_formed_whatever_the_words(words):
    words = "".join(c for c in words if c.isprintable())
    chart = Chart("x", words or "title", words)
    scale = chart.across(0.0, 1.0)
    chart.axis_x(scale, words)
    chart.axis_y(chart.up(0.0, 1.0), words)
    chart.names_y(Bands(1, 0.0, 10.0), [words])
    chart.box(0, 0, -5, -5, "fill", words)
    root = ElementTree.fromstring(chart.svg())
    assert root.get("role") == "img"
    assert root.find("title").text == (words or "title")
    assert {root.find("title").get("id"), root.find("desc").get("id")} == set(root.get("aria-labelledby").split())


def test_attributes_are_escaped():
    made = ElementTree.fromstring(tag("rect", class_='"><script>'))
    assert made.get("class") == '"><script>'


def test_lines_break_and_points_are_left_out_where_there_is_no_number():
    assert path([0, np.nan, 2, 3], [0, 1, 2, 3]) == "M0 0M2 2L3 3"
    chart = Chart("x", "t", "d")
    chart.dots([1.0, np.nan, 3.0], [1.0, 1.0, np.inf], "c0")
    assert sum(part.startswith("<circle") for part in chart.parts) == 1


def test_boxes_of_negative_size_are_turned_round():
    chart = Chart("x", "t", "d")
    chart.box(10, 20, -4, -6, "fill")
    box = ElementTree.fromstring(chart.parts[0])
    assert [box.get(key) for key in ("x", "y", "width", "height")] == ["6", "14", "4", "6"]
