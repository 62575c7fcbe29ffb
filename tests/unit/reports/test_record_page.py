"""The page of a record: every channel listed and drawn, attacks shaded, notes shown."""

import html
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from sluice.lab.plants import simulate
from sluice.reports import write_record_page
from sluice.reports.page import plotly_name
from sluice.telemetry import Label, Note, Record, Role, summarise
from tests.unit.reports.pages import Figure, Page, numbers, times

ROWS = 4_000  # more than the points that are drawn of a channel
TAG = "L_</script>"  # a tag that must not end the script which draws it
PEAK = 1_234.5
ATTACKS = (slice(600, 700), slice(2_000, 2_400))


@pytest.fixture(scope="module")
def record() -> Record:
    """Two attacks, one peak, some missing readings, one time jump and two notes."""
    plant = simulate("line", seed=0, days=4).rows(0, ROWS)
    values, labels, times_ = plant.values.copy(), plant.labels.copy(), plant.times.copy()
    values[777, plant.index("F_PU1")] = PEAK
    values[100:107, plant.index("F_PU2")] = np.nan
    for attack in ATTACKS:
        labels[attack] = Label.ATTACK
    times_[3_000:] += np.timedelta64(1, "h")
    channels = tuple(
        replace(channel, name=TAG, why="named <like> a level")
        if channel.name == "L_T2"
        else channel
        for channel in plant.channels
    )
    return replace(
        plant,
        name="<i>march & april",
        channels=channels,
        values=values,
        labels=labels,
        times=times_,
        notes=(
            Note(what="7 readings are <missing>", channel="F_PU2", rows=7, first_row=100),
            Note(what="the clock jumps"),
        ),
    )


@pytest.fixture(scope="module")
def page(record: Record, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("record") / "record.html"
    write_record_page(record, summarise(record), path)
    return Page.at(path)


def trace(figure: Figure) -> dict[str, object]:
    (only,) = figure.traces
    return only


def drawn(page: Page, name: str) -> Figure:
    return next(figure for figure in page.figures if trace(figure)["name"] == name)


def test_the_title_is_the_escaped_name(page: Page) -> None:
    assert "<h1>&lt;i&gt;march &amp; april</h1>" in page.markup
    assert "<i>march" not in page.markup


def test_the_tiles_count_rows_attacks_missing_readings_and_time_jumps(page: Page) -> None:
    assert page.tiles["rows"] == ("4,000", "one every 60 s")
    assert page.tiles["labelled attacks"] == ("2", "500 attack rows, 0 unlabelled")
    assert page.tiles["missing readings"] == ("7", "of 44,000")
    assert page.tiles["time jumps"][0] == "1"
    assert page.tiles["channels"] == ("11", "3 level, 4 flow, 4 actuator")
    assert page.tiles["time"][0] == "2.8 days"


def test_every_channel_is_listed_with_its_role_unit_and_range(page: Page, record: Record) -> None:
    header, *rows = page.rows[: len(record.names) + 1]
    assert header == ["name", "role", "unit", "low", "high", "missing", "why this role"]
    assert [row[0] for row in rows] == list(record.names)
    for row, channel in zip(rows, record.channels, strict=True):
        readings = record.column(channel.name)
        assert row[1:3] == [channel.role.value, channel.unit]
        assert row[3:5] == [f"{np.nanmin(readings):g}", f"{np.nanmax(readings):g}"]
        assert row[5] == ("7" if channel.name == "F_PU2" else "")
    assert rows[record.index(TAG)][6] == "named <like> a level"


def test_every_channel_is_drawn_by_role_and_no_peak_is_lost(page: Page, record: Record) -> None:
    names = [html.unescape(str(trace(figure)["name"])) for figure in page.figures]
    roles = [record.channel(name).role for name in names]
    assert sorted(names) == sorted(record.names)
    assert roles == sorted(roles, key=list(Role).index)
    assert [caption.split(" (")[0] for caption in page.captions] == names
    for figure, name in zip(page.figures, names, strict=True):
        readings = record.column(name)
        shown = numbers(trace(figure)["y"])
        assert len(shown) < ROWS / 2
        assert np.nanmax(shown) == np.nanmax(readings)
        assert np.nanmin(shown) == np.nanmin(readings)
    assert np.nanmax(numbers(trace(drawn(page, "F_PU1"))["y"])) == PEAK


def test_a_point_is_drawn_at_its_time(page: Page, record: Record) -> None:
    line = trace(drawn(page, "F_PU1"))
    at = int(np.nanargmax(numbers(line["y"])))
    assert times(line["x"])[at] == record.times[777]


def test_a_state_that_never_changes_is_drawn_with_two_points(page: Page, record: Record) -> None:
    steady = [name for name in record.names if np.ptp(record.column(name)) == 0]
    assert steady
    for name in steady:
        line = trace(drawn(page, name))
        assert times(line["x"]) == [record.times[0], record.times[-1]]


def test_every_channel_has_the_time_axis_of_the_whole_record(page: Page, record: Record) -> None:
    for figure in page.figures:
        axis = cast("dict[str, list[str]]", figure.layout["xaxis"])
        assert [np.datetime64(each) for each in axis["range"]] == list(record.times[[0, -1]])


def test_each_attack_is_shaded_on_every_channel_from_its_first_to_its_last_row(
    page: Page, record: Record
) -> None:
    assert page.shaded == [
        (record.times[attack.start], record.times[attack.stop - 1]) for attack in ATTACKS
    ]
    assert page.markup.count(" data-shaded>") == len(record.names)


def test_a_search_finds_a_channel_by_its_tag_and_its_role(page: Page) -> None:
    assert page.markup.count('data-tags="f_pu1 flow"') == 1
    assert 'data-tags="l_&lt;/script&gt; level"' in page.markup


def test_notes_are_shown_and_escaped(page: Page) -> None:
    notes = page.section("Notes from reading the file")
    first = html.escape("F_PU2: 7 readings are <missing>")
    assert f"<li>{first} (7 rows)</li><li>the clock jumps</li>" in notes


def test_the_page_loads_the_drawing_script_beside_it_and_nothing_else(page: Page) -> None:
    assert page.loads == [f"script src={plotly_name()}"]


def test_a_clean_record_has_no_attack_key_and_no_notes(
    record: Record, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("clean") / "record.html"
    clean = replace(record, labels=np.zeros_like(record.labels), notes=())
    write_record_page(clean, summarise(clean), path)
    page = Page.at(path)
    assert page.tiles["labelled attacks"] == ("0", "0 attack rows, 0 unlabelled")
    assert "labelled attack</li>" not in page.markup
    assert page.headings == ["Channels over time", "Channels", "Time jumps"]
    assert page.shaded == []
