"""The page of scores: threshold, alarms, attacks and the longest stretches."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from sluice.detector import Detector, DetectorKind, Scored, Threshold, train
from sluice.lab.plants import simulate
from sluice.reports import write_score_page
from sluice.reports.page import plotly_name
from sluice.telemetry import Label, Record
from tests.unit.reports.pages import Figure, Page, numbers, times

ATTACKED = slice(300, 400)


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=5)


@pytest.fixture(scope="module")
def detector(plant: Record) -> Detector:
    return train(plant, kind=DetectorKind.SUBSPACE)


@pytest.fixture(scope="module")
def record(plant: Record) -> Record:
    """A level jumps up and down for 100 rows, labelled as an attack; the clock jumps later."""
    batch = plant.rows(4000, 5000)
    values, labels, times_ = batch.values.copy(), batch.labels.copy(), batch.times.copy()
    values[ATTACKED.start : ATTACKED.stop : 2, batch.index("L_T2")] += 5
    labels[ATTACKED] = Label.ATTACK
    times_[700:] += np.timedelta64(1, "h")
    return replace(batch, name="<u>april & may", values=values, labels=labels, times=times_)


@pytest.fixture(scope="module")
def scored(detector: Detector, record: Record) -> Scored:
    return detector.score(record)


@pytest.fixture(scope="module")
def page(
    scored: Scored, record: Record, detector: Detector, tmp_path_factory: pytest.TempPathFactory
) -> Page:
    path = tmp_path_factory.mktemp("score") / "score.html"
    write_score_page(scored, record, detector, path)
    return Page.at(path)


@pytest.fixture(scope="module")
def figure(page: Page) -> Figure:
    (only,) = page.figures
    return only


def test_the_title_counts_alarms_and_escapes_the_name(page: Page, scored: Scored) -> None:
    alarms = int(scored.alarms.sum())
    assert alarms > 50
    assert f"<h1>&lt;u&gt;april &amp; may: {alarms:,} alarms</h1>" in page.markup
    assert "<u>april" not in page.markup


def test_the_facts_name_model_threshold_and_false_alarms(
    page: Page, scored: Scored, detector: Detector
) -> None:
    facts = page.markup.split('<p class="lead">')[1].split("</p>")[0]
    threshold = scored.threshold
    assert f"{len(scored):,} windows of {detector.framing.window_rows} rows" in facts
    assert "one row every 60 s. Detector: subspace over 11 channels" in facts
    assert f"an alarm is a score above {threshold.score:.4g}" in facts
    assert f"quantile of {threshold.clean_windows:,} clean windows" in facts
    assert page.tiles["false alarms"][0] == f"{scored.false_alarms_per_day():.2g} per day"
    assert page.tiles["threshold"][0] == f"{threshold.score:.4g}"


def test_a_tile_says_how_much_of_the_attack_raises_an_alarm(page: Page, scored: Scored) -> None:
    attacked = scored.labels == Label.ATTACK
    detected = int((scored.alarms & attacked).sum())
    assert detected > 0
    stated = f"{detected:,} of {int(attacked.sum()):,} windows with attack rows raise an alarm"
    assert page.tiles["labelled attack with an alarm"] == ("1 of 1", stated)


def test_the_score_is_drawn_against_the_threshold(figure: Figure, scored: Scored) -> None:
    limit = scored.threshold.score
    line = figure.trace(f"threshold {limit:.4g}")
    assert numbers(line["y"]).tolist() == [limit, limit]
    assert times(line["x"]) == list(scored.times[[0, -1]])
    drawn = numbers(figure.trace("score")["y"])
    assert np.nanmax(drawn) == scored.scores.max()
    assert np.isnan(drawn).sum() == 1  # the time jump breaks the line


def test_exactly_the_scores_above_the_threshold_are_drawn_as_alarms(
    figure: Figure, scored: Scored
) -> None:
    drawn = numbers(figure.trace("alarm")["y"])
    assert np.count_nonzero(~np.isnan(drawn)) == scored.alarms.sum()
    assert np.nanmin(drawn) > scored.threshold.score


def test_the_attack_is_shaded(page: Page, record: Record) -> None:
    assert page.shaded == [(record.times[ATTACKED.start], record.times[ATTACKED.stop - 1])]
    assert " data-shaded>" in page.markup


def test_alarm_events_are_listed_longest_first_with_their_blame(
    page: Page, scored: Scored, record: Record, detector: Detector
) -> None:
    events = scored.events()
    assert f"<h2>{len(events):,} alarm events, longest first</h2>" in page.markup
    header, *rows = page.rows
    blamed = "tags and rules behind the peak, worst first"
    assert header == ["from", "to", "rows", "windows", "peak score", blamed]
    windows = [int(row[3].replace(",", "")) for row in rows]
    assert len(rows) == len(events)
    assert all(one >= other for one, other in pairwise(windows))
    longest = max(events, key=lambda event: event.alarms)
    peak = int(np.flatnonzero(scored.last_rows[scored.alarms] == longest.peak_row)[0])
    assert rows[0] == [
        str(longest.start.astype("datetime64[s]")).replace("T", " "),
        str(longest.end.astype("datetime64[s]")).replace("T", " "),
        f"{longest.first_row}-{longest.last_row}",
        f"{longest.alarms:,}",
        f"{longest.peak:.4g}",
        ", ".join(detector.blame(record, scored)[peak].names),
    ]
    assert rows[0][5]


def test_the_page_loads_the_drawing_script_beside_it_and_nothing_else(page: Page) -> None:
    assert page.loads == [f"script src={plotly_name()}"]
    assert "not about people" in page.markup


def test_without_alarms_the_page_says_so(
    scored: Scored, record: Record, detector: Detector, tmp_path: Path
) -> None:
    threshold = replace(scored.threshold, score=2 * float(scored.scores.max()))
    assert isinstance(threshold, Threshold)
    quiet = replace(scored, threshold=threshold, alarms=np.zeros_like(scored.alarms))
    clean = replace(record, labels=np.zeros_like(record.labels))
    write_score_page(quiet, clean, detector, tmp_path / "score.html")
    page = Page.at(tmp_path / "score.html")
    assert ": 0 alarms</h1>" in page.markup
    assert "No window raises an alarm." in page.markup
    assert "<table" not in page.markup
    assert "labelled attack" not in page.markup
    assert page.figures[0].shapes == []


def test_only_the_longest_events_are_listed(
    scored: Scored, record: Record, detector: Detector, tmp_path: Path
) -> None:
    spread = replace(scored, alarms=np.arange(len(scored)) % 12 == 0)
    assert len(spread.events()) > 50
    write_score_page(spread, record, detector, tmp_path / "score.html")
    page = Page.at(tmp_path / "score.html")
    assert f"{len(spread.events())} alarm events, the 50 longest first" in page.markup
    assert len(page.rows) == 1 + 50
