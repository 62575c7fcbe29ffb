"""The page of a verdict: the verdict, its reasons, the worst stretches and every rule."""

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from sluice.admission import HardenedPolicy, ReasonKind, Verdict, judge
from sluice.invariants import Profile, RuleSet, mine, rule_in_words
from sluice.lab.plants import simulate
from sluice.reports import write_verdict_figure, write_verdict_page
from sluice.reports.page import plotly_name
from sluice.telemetry import Record
from tests.unit.reports.pages import Figure, Page, numbers, times

PNG = b"\x89PNG\r\n\x1a\n"
LEVEL = "L_<T2>"  # a tag that must not become markup
SWITCHED = slice(500, 900)
FROZEN = slice(1500, 1800)


@pytest.fixture(scope="module")
def plant() -> Record:
    record = simulate("line", seed=0, days=8)
    channels = tuple(
        replace(channel, name=LEVEL) if channel.name == "L_T2" else channel
        for channel in record.channels
    )
    return replace(record, name="<b>march & april", channels=channels)


@pytest.fixture(scope="module")
def rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 4320), plant.rows(4320, 8640), profile=Profile.HARDENED)


@pytest.fixture(scope="module")
def batch(plant: Record) -> Record:
    return plant.rows(8640, 10640)


@pytest.fixture(scope="module")
def refused(rules: RuleSet, batch: Record) -> Verdict:
    """A pump status is inverted for 400 rows, and a level is frozen for 300."""
    values = batch.values.copy()
    values[SWITCHED, batch.index("S_PU1")] = 1 - values[SWITCHED, batch.index("S_PU1")]
    values[FROZEN, batch.index(LEVEL)] = values[FROZEN.start, batch.index(LEVEL)]
    return judge(batch.with_values(values), rules, HardenedPolicy())


@pytest.fixture(scope="module")
def page(refused: Verdict, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("refused") / "verdict.html"
    write_verdict_page(refused, path)
    return Page.at(path)


@pytest.fixture(scope="module")
def timeline(page: Page) -> Figure:
    return page.figures[0]


@pytest.fixture(scope="module")
def coupling(page: Page) -> Figure:
    """The drawing of the rule on the inverted pump."""
    return page.figures[1 + page.captions.index("S_PU1~F_PU1")]


@pytest.fixture(scope="module")
def admitted_page(rules: RuleSet, batch: Record, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("admitted") / "verdict.html"
    write_verdict_page(judge(batch, rules, HardenedPolicy()), path)
    return Page.at(path)


def test_the_title_states_the_verdict_and_escapes_the_name(page: Page) -> None:
    title = "&lt;b&gt;march &amp; april: not admitted"
    assert f"<title>{title}</title>" in page.markup
    assert f"<h1>{title}</h1>" in page.markup
    assert "<b>march" not in page.markup


def test_every_reason_is_listed_in_order_and_escaped(page: Page, refused: Verdict) -> None:
    why = page.section("Why")
    items = re.findall(r"<li>(.*?)</li>", why)
    assert items == [html.escape(reason).replace("&#x27;", "&#39;") for reason in refused.sentences]
    assert {reason.kind for reason in refused.reasons} >= {
        ReasonKind.STILL_LEVEL,
        ReasonKind.VIOLATING_ROWS,
        ReasonKind.SEVERE_ROWS,
    }
    assert "L_&lt;T2&gt; moves by only" in items[0]
    assert LEVEL not in page.markup


def test_the_three_first_reasons_are_shown_and_the_others_folded(
    page: Page, refused: Verdict
) -> None:
    first, folded = page.section("Why").split("<details>")
    assert first.count("<li>") == 3
    assert folded.count("<li>") == len(refused.reasons) - 3 > 0
    assert f"<summary>{len(refused.reasons) - 3} more</summary>" in folded
    assert '<ol start="4">' in folded


def test_the_tiles_are_those_of_the_verdict(page: Page, refused: Verdict) -> None:
    count, share = refused.violating_rows, refused.violating_share
    assert count > 400
    assert page.tiles["verdict"] == ("not admitted", f"{len(refused.reasons)} reasons")
    assert page.tiles["violating rows"] == (f"{count:,}", f"of 2,000 ({share:.2%})")
    assert page.tiles["rows in the evidence"][0] == f"{int(refused.suspect.sum()):,}"
    broken = [finding for finding in refused.findings if finding.violating_rows]
    assert page.tiles["rules broken"] == (
        f"{len(broken)} of {len(refused.findings)}",
        "S_PU1~F_PU1",
    )


def test_the_timeline_counts_every_row_of_evidence_over_the_whole_batch(
    timeline: Figure, refused: Verdict
) -> None:
    (strips,) = timeline.traces
    names = cast("list[str]", strips["y"])
    assert names[:3] == ["any rule", "L_&lt;T2&gt; (still-level)", "S_PU1~F_PU1"]
    counts = dict(zip(names, numbers(strips["customdata"]), strict=True))
    assert sum(counts["any rule"]) == int(refused.suspect.sum())
    broken = next(f for f in refused.findings if f.name == "S_PU1~F_PU1")
    assert sum(counts["S_PU1~F_PU1"]) == broken.violating_rows
    batch = refused.measured.record
    axis = cast("dict[str, list[str]]", timeline.layout["xaxis"])
    assert [np.datetime64(each) for each in axis["range"]] == list(batch.times[[0, -1]])
    starts = times(strips["x"])
    hit = [at for at, count in zip(starts, counts["S_PU1~F_PU1"], strict=True) if count]
    assert abs(hit[0] - batch.times[SWITCHED.start]) < np.timedelta64(10, "m")
    assert abs(hit[-1] - batch.times[SWITCHED.stop - 1]) < np.timedelta64(10, "m")


def test_the_worst_stretches_are_drawn_with_their_tolerance_band(
    page: Page, rules: RuleSet
) -> None:
    tolerances = {rule.name: rule.tolerance for rule in rules.invariants}
    drawn = [f"{LEVEL} rate", "S_PU1~F_PU1", f"d{LEVEL}"]
    assert page.captions[:3] == drawn
    assert len(page.captions) == len(set(page.captions)) == 4
    for name, figure in zip(drawn, page.figures[1:], strict=False):
        assert figure.titles[-1].startswith(f"Residual of {html.escape(name)} (")
        (band,) = figure.shapes
        assert (band["y0"], band["y1"]) == (-tolerances[name], tolerances[name])


def test_the_limits_of_a_coupling_are_drawn_on_its_flow(
    coupling: Figure, refused: Verdict, rules: RuleSet
) -> None:
    """Where the pump is said to be off, the flow must be near zero; it is not."""
    rule = next(rule for rule in rules.invariants if rule.name == "S_PU1~F_PU1")
    low, high = (numbers(coupling.trace(f"{end} allowed")["y"]) for end in ("lowest", "highest"))
    flow, state = (numbers(coupling.trace(name)["y"]) for name in ("F_PU1", "S_PU1"))
    marks = times(coupling.trace("violating row")["x"])
    rows = np.isin(times(coupling.trace("F_PU1")["x"]), marks)
    assert (low[rows] <= high[rows]).all()
    assert ((flow[rows] < low[rows]) | (flow[rows] > high[rows])).all()
    off = rows & (state == 0)
    assert off.sum() > 50
    np.testing.assert_allclose(high[off], rule.tolerance)
    assert coupling.titles[0] == "F_PU1 (m3/h), with the limits of the rule"
    kept = ~rows & ~np.isnan(low)
    assert ((flow[kept] >= low[kept]) & (flow[kept] <= high[kept])).all()


def test_a_stretch_shows_the_rows_that_break_the_rule(
    coupling: Figure, refused: Verdict, batch: Record
) -> None:
    marks = times(coupling.trace("violating row")["x"])
    inverted = set(batch.times[SWITCHED].astype("datetime64[ms]"))
    assert len(marks) > 100
    assert inverted.issuperset(marks)
    residual = numbers(coupling.trace("S_PU1~F_PU1")["y"])
    worst = next(f for f in refused.findings if f.name == "S_PU1~F_PU1").worst[0]
    assert np.abs(residual).max() == pytest.approx(abs(worst.residual), rel=0.05)


def test_a_stretch_shows_every_channel_of_its_rule(coupling: Figure, refused: Verdict) -> None:
    record = refused.measured.record
    flow, state = coupling.trace("F_PU1"), coupling.trace("S_PU1")
    rows = np.flatnonzero(np.isin(record.times.astype("datetime64[ms]"), times(state["x"])))
    np.testing.assert_array_equal(numbers(flow["y"]), record.column("F_PU1")[rows])
    np.testing.assert_array_equal(numbers(state["y"]), record.column("S_PU1")[rows])
    assert "S_PU1" in coupling.titles


def test_every_rule_is_listed_with_its_words_and_its_finding(
    page: Page, refused: Verdict, rules: RuleSet
) -> None:
    header, *rows = page.rows
    assert header[:5] == ["rule", "kind", "violating rows", "share", "limit"]
    assert {row[0] for row in rows} == {rule.name for rule in rules.invariants}
    assert len(rows) == len(rules.invariants)
    counts = [int(row[2].replace(",", "")) for row in rows]
    assert counts == sorted(counts, reverse=True)
    words = {rule.name: rule_in_words(rule, rules) for rule in rules.invariants}
    findings = {finding.name: finding for finding in refused.findings}
    for row in rows:
        finding = findings[row[0]]
        assert row[1] == finding.kind.value
        assert row[2] == f"{finding.violating_rows:,}"
        assert row[6] == finding.sentence + words[row[0]]


@pytest.mark.parametrize("name", ["page", "admitted_page"])
def test_the_page_loads_the_drawing_script_beside_it_and_nothing_else(
    name: str, request: pytest.FixtureRequest
) -> None:
    shown: Page = request.getfixturevalue(name)
    assert shown.loads == ([f"script src={plotly_name()}"] if shown.figures else [])
    assert "not about people" in shown.markup


def test_an_admitted_batch_says_so_and_lists_its_rules(admitted_page: Page, rules: RuleSet) -> None:
    assert "<h1>&lt;b&gt;march &amp; april: admitted</h1>" in admitted_page.markup
    assert "not admitted" not in admitted_page.markup
    assert "Every budget of the policy is kept." in admitted_page.section("Why")
    assert "No rule is broken: there is nothing to draw." in admitted_page.markup
    assert admitted_page.figures == []
    assert [row[2] for row in admitted_page.rows[1:]] == ["0"] * len(rules.invariants)


def test_the_figure_is_a_png_that_grows_with_its_panels(
    refused: Verdict, batch: Record, rules: RuleSet, tmp_path: Path
) -> None:
    heights = []
    for name, verdict in (
        ("refused.png", refused),
        ("admitted.png", judge(batch, rules, HardenedPolicy())),
    ):
        write_verdict_figure(verdict, tmp_path / name)
        drawn = (tmp_path / name).read_bytes()
        assert drawn.startswith(PNG)
        heights.append(int.from_bytes(drawn[20:24], "big"))
    assert heights[0] > 3 * heights[1]
