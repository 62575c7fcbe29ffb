"""The page of a record: every channel listed and drawn, attacks shaded, notes shown."""

import html
from dataclasses import replace

import numpy as np
import pytest

from sluice.lab.plants import simulate
from sluice.reports import write_record_page
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


@pytest.fixture(scope="module")
def figure(page: Page) -> Figure:
    (only,) = page.figures
    return only


def test_the_title_is_the_escaped_name(page: Page) -> None:
    assert "<h1>&lt;i&gt;march &amp; april</h1>" in page.markup
    assert "<i>march" not in page.markup


def test_the_facts_count_rows_attacks_and_time_jumps(page: Page) -> None:
    facts = page.markup.split("<p>")[1].split("</p>")[0]
    assert facts.startswith("4,000 rows every 60 s, ")
    assert "500 attack rows in 2 segments, 0 unlabelled rows, 1 time jump." in facts
    assert "3 level, 4 flow, 4 actuator" in facts


def test_every_channel_is_listed_with_its_role_unit_and_range(page: Page, record: Record) -> None:
    header, *rows = page.rows
    assert header == ["name", "role", "unit", "low", "high", "missing", "why this role"]
    assert [row[0] for row in rows] == list(record.names)
    for row, channel in zip(rows, record.channels, strict=True):
        readings = record.column(channel.name)
        assert row[1:3] == [channel.role.value, channel.unit]
        assert row[3:5] == [f"{np.nanmin(readings):g}", f"{np.nanmax(readings):g}"]
        assert row[5] == ("7" if channel.name == "F_PU2" else "")
    assert rows[record.index(TAG)][6] == "named <like> a level"


def test_every_channel_is_drawn_by_role_and_no_peak_is_lost(figure: Figure, record: Record) -> None:
    roles = [record.channel(str(trace["name"])).role for trace in figure.traces]
    assert sorted(str(trace["name"]) for trace in figure.traces) == sorted(record.names)
    assert roles == sorted(roles, key=list(Role).index)
    for trace in figure.traces:
        readings = record.column(str(trace["name"]))
        drawn = numbers(trace["y"])
        assert len(drawn) < ROWS / 2
        assert np.nanmax(drawn) == np.nanmax(readings)
        assert np.nanmin(drawn) == np.nanmin(readings)
    assert np.nanmax(numbers(figure.trace("F_PU1")["y"])) == PEAK


def test_a_point_is_drawn_at_its_time(figure: Figure, record: Record) -> None:
    trace = figure.trace("F_PU1")
    at = int(np.nanargmax(numbers(trace["y"])))
    assert times(trace["x"])[at] == record.times[777]


def test_each_attack_is_shaded_from_its_first_to_its_last_row(
    figure: Figure, record: Record
) -> None:
    shaded = [(np.datetime64(str(s["x0"])), np.datetime64(str(s["x1"]))) for s in figure.shapes]
    assert shaded == [
        (record.times[attack.start], record.times[attack.stop - 1]) for attack in ATTACKS
    ]
    assert {shape["yref"] for shape in figure.shapes} == {"paper"}


def test_notes_are_shown_and_escaped(page: Page) -> None:
    notes = page.markup.split("<h2>Notes from reading the file</h2>")[1]
    first = html.escape("F_PU2: 7 readings are <missing>")
    assert f"<li>{first} (7 rows)</li><li>the clock jumps</li>" in notes


def test_the_page_loads_nothing(page: Page) -> None:
    assert page.loads == []


def test_a_clean_record_has_no_attack_key_and_no_notes(
    record: Record, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("clean") / "record.html"
    clean = replace(record, labels=np.zeros_like(record.labels), notes=())
    write_record_page(clean, summarise(clean), path)
    page = Page.at(path)
    assert "0 attack rows in 0 segments" in page.markup
    assert '<span class="key">' not in page.markup
    assert "Notes from reading" not in page.markup
    assert page.figures[0].shapes == []
