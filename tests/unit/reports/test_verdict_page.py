"""The page of a verdict: the verdict, its reasons, the worst stretches and every rule."""

import html
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.admission import HardenedPolicy, ReasonKind, Verdict, judge
from sluice.invariants import Profile, RuleSet, mine, rule_in_words
from sluice.lab.plants import simulate
from sluice.reports import write_verdict_figure, write_verdict_page
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
def figure(page: Page) -> Figure:
    (only,) = page.figures
    return only


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
    items = page.markup.split("<ul>")[1].split("</ul>")[0]
    assert items == "".join(f"<li>{html.escape(reason)}</li>" for reason in refused.sentences)
    assert {reason.kind for reason in refused.reasons} >= {
        ReasonKind.STILL_LEVEL,
        ReasonKind.VIOLATING_ROWS,
        ReasonKind.SEVERE_ROWS,
    }
    assert "L_&lt;T2&gt; moves by only" in items
    assert LEVEL not in page.markup


def test_the_facts_are_those_of_the_verdict(page: Page, refused: Verdict) -> None:
    count, share = refused.violating_rows, refused.violating_share
    assert count > 400
    assert f"{count:,} of 2,000 rows ({share:.2%}) count as violating" in page.markup
    assert f"{int(refused.suspect.sum()):,} are part of the evidence" in page.markup


def test_the_worst_stretches_are_drawn_with_their_tolerance_band(
    figure: Figure, rules: RuleSet
) -> None:
    tolerances = {rule.name: rule.tolerance for rule in rules.invariants}
    drawn = [f"{LEVEL} rate", f"{LEVEL} rate", "S_PU1~F_PU1", f"d{LEVEL}"]
    titles = [title for title in figure.titles if "Residual of" in title]
    for title, name in zip(titles, drawn, strict=True):
        assert title.startswith(f"<b>Residual of {html.escape(name)} (")
    bands = [(shape["y0"], shape["y1"]) for shape in figure.shapes]
    assert bands == [(-tolerances[name], tolerances[name]) for name in drawn]


def test_a_stretch_shows_the_rows_that_break_the_rule(
    figure: Figure, refused: Verdict, batch: Record
) -> None:
    at = next(i for i, trace in enumerate(figure.traces) if trace["name"] == "S_PU1~F_PU1")
    marks = times(figure.traces[at + 1]["x"])
    inverted = set(batch.times[SWITCHED].astype("datetime64[ms]"))
    assert figure.traces[at + 1]["name"] == "violating row"
    assert len(marks) > 100
    assert inverted.issuperset(marks)
    residual = numbers(figure.traces[at]["y"])
    worst = next(f for f in refused.findings if f.name == "S_PU1~F_PU1").worst[0]
    assert np.abs(residual).max() == pytest.approx(abs(worst.residual), rel=0.05)


def test_a_stretch_shows_every_channel_of_its_rule(figure: Figure, refused: Verdict) -> None:
    record = refused.measured.record
    at = next(i for i, trace in enumerate(figure.traces) if trace["name"] == "S_PU1~F_PU1")
    flow, state = figure.traces[at + 2 : at + 4]
    assert (flow["name"], state["name"]) == ("F_PU1", "S_PU1")
    rows = np.flatnonzero(np.isin(record.times.astype("datetime64[ms]"), times(state["x"])))
    np.testing.assert_array_equal(numbers(flow["y"]), record.column("F_PU1")[rows])
    np.testing.assert_array_equal(numbers(state["y"]), record.column("S_PU1")[rows])
    assert {"F_PU1 (m3/h)", "S_PU1"} <= set(figure.titles)


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
        assert row[6] == words[row[0]] + finding.sentence


@pytest.mark.parametrize("name", ["page", "admitted_page"])
def test_the_page_loads_nothing(name: str, request: pytest.FixtureRequest) -> None:
    shown: Page = request.getfixturevalue(name)
    assert shown.loads == []
    assert "not about people" in shown.markup


def test_an_admitted_batch_says_so_and_lists_its_rules(admitted_page: Page, rules: RuleSet) -> None:
    assert "<h1>&lt;b&gt;march &amp; april: admitted</h1>" in admitted_page.markup
    assert "not admitted" not in admitted_page.markup
    assert "<li>" not in admitted_page.markup
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
