"""Figures as data of a page: times, gaps and texts come back; few points lose no peak."""

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sluice.arrays import Floats
from sluice.reports.drawings import figure_data, stamps, thinned, time_axis
from tests.unit.reports.pages import numbers, times

READINGS = arrays.arrays(
    np.float64, st.integers(1, 400), elements=st.sampled_from([0.0, 1.0, 2.5, np.nan])
)


def read(figure: go.Figure) -> Any:
    return json.loads(figure_data(figure))


@pytest.mark.parametrize("step_ms", [1, 250, 1_000, 3_600_000])
def test_times_come_back_to_the_millisecond(step_ms: int) -> None:
    start = np.datetime64("2016-02-28T23:59:59.750", "ms")
    drawn = start + np.array([0, 3, 4, 90_000]) * np.timedelta64(step_ms, "ms")
    trace = read(go.Figure(go.Scatter(x=drawn, y=[1, 2, 3, 4])))["data"][0]
    assert times(trace["x"]) == list(drawn)
    assert trace["x"]["unit"] == step_ms


def test_times_further_apart_than_a_packed_step_come_back() -> None:
    written = ["1969-01-01T00:00:00.000", "1969-01-01T00:00:00.001", "2026-01-01T00:00:00.000"]
    drawn = np.array(written, "datetime64[ms]")
    trace = read(go.Figure(go.Scatter(x=drawn, y=[1, 2, 3])))["data"][0]
    assert "packed" not in trace["x"]
    assert times(trace["x"]) == list(drawn)


def test_packed_times_are_a_fifth_of_written_ones() -> None:
    drawn = np.datetime64("2026-01-01", "ms") + np.arange(1_000) * np.timedelta64(10_000, "ms")
    written = len(json.dumps([str(each) for each in drawn]))
    assert len(figure_data(go.Figure(go.Scatter(x=drawn)))) < written / 4


def test_a_gap_stays_a_gap() -> None:
    trace = read(go.Figure(go.Scatter(x=[1, 2, 3], y=np.array([1.0, np.nan, np.inf]))))["data"][0]
    assert np.isnan(numbers(trace["y"])[1])
    listed = read(go.Figure(go.Scatter(x=[1, 2], y=[1.0, float("nan")])))["data"][0]
    assert listed["y"] == [1.0, None]


def test_a_text_that_plotly_shows_is_escaped_and_only_a_line_break_is_markup() -> None:
    figure = go.Figure(go.Bar(x=["a<br>b", "<b>c</b>"], y=[1, 2], name="x & <a href='y'>z</a>"))
    trace = read(figure)["data"][0]
    assert trace["x"] == ["a<br>b", "&lt;b&gt;c&lt;/b&gt;"]
    assert trace["name"] == "x &amp; &lt;a href='y'&gt;z&lt;/a&gt;"


def test_no_text_ends_the_element_that_holds_it() -> None:
    text = figure_data(go.Figure(go.Bar(x=["</script><!--"], y=[1], name="&lt;")))
    assert not set(text) & set("<>&")


def test_the_template_of_plotly_is_not_written() -> None:
    assert "template" not in read(go.Figure(go.Bar(x=[1], y=[1])))["layout"]


def test_a_time_axis_spans_the_record() -> None:
    drawn = np.array(["2026-01-01T00:00:00", "2026-01-02T12:30:00"], "datetime64[us]")
    assert time_axis(drawn)["range"] == ["2026-01-01T00:00:00.000", "2026-01-02T12:30:00.000"]
    assert stamps(drawn).dtype == "datetime64[ms]"


@given(READINGS, st.integers(10, 100))
def test_few_points_keep_the_ends_and_every_peak(readings: Floats, most: int) -> None:
    rows = thinned(readings, most)
    assert rows[0] == 0
    assert rows[-1] == len(readings) - 1
    assert (np.diff(rows) > 0).all() or len(rows) == 1
    assert len(rows) <= most + 2
    if not np.isnan(readings).all():
        assert np.nanmax(readings[rows]) == np.nanmax(readings)
        assert np.nanmin(readings[rows]) == np.nanmin(readings)


@given(READINGS)
def test_points_that_are_left_out_of_a_line_change_nothing(readings: Floats) -> None:
    """Where all changes fit, a line through the points is the line through all rows."""
    rows = thinned(readings, len(readings) + 1)
    known = ~np.isnan(readings)
    kept = rows[known[rows]]
    if len(kept):
        drawn = np.interp(np.arange(len(readings)), kept, readings[kept])
        np.testing.assert_array_equal(drawn[known], readings[known])
