"""The two audit figures: what is drawn where, on the page and in the picture."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.patches import Rectangle

from sluice.errors import SettingError
from sluice.lab.reports import audit_figures as figures
from sluice.lab.reports.audit_figures import (
    AuditPanel,
    Bar,
    Stem,
    coverage_figure,
    demand_figure_suffix,
    separation_figure,
    write_coverage_figure,
    write_separation_figure,
)
from tests.unit.reports.pages import Page

WIDE = AuditPanel(
    title="swat, <wide> & narrow",
    bars=(
        Bar(kind="honest", share=0.0, admitted_share=1.0),
        Bar(kind="scaling", share=0.88768, admitted_share=0.0),
        Bar(kind="splicing", share=0.002105, admitted_share=0.995),
    ),
)
NARROW = AuditPanel(title="wadi", bars=(Bar(kind="honest", share=0.0501, admitted_share=0.5),))
STEMS = (
    Stem(index=1, rows=1_000, shares=(0.0, 0.5)),
    Stem(index=2, rows=10, shares=(0.3, 0.002)),
    Stem(index=3, rows=500, shares=(0.2, 0.5)),
)
SETS = ("paper-narrow", "paper-wide")
PNG = b"\x89PNG\r\n\x1a\n"


def shown(path: Path) -> str:
    """The page with the escapes of its scripts undone."""
    return path.read_text(encoding="utf-8").replace("\\u003c", "<").replace("\\u003e", ">")


# -- separation -----------------------------------------------------------------------------------


def test_a_bar_is_as_long_as_its_share_and_a_zero_is_drawn_at_the_floor() -> None:
    (trace,) = separation_figure([WIDE]).data
    assert trace.orientation == "h"
    assert list(trace.y) == ["honest", "scaling", "splicing"]
    assert list(trace.x) == [1e-4, 0.88768, 0.002105]


def test_a_bar_says_its_true_share_and_how_many_batches_are_admitted() -> None:
    (trace,) = separation_figure([WIDE]).data
    assert list(trace.text) == [
        "0.00%, 100% admitted",
        "88.77%, 0% admitted",
        "0.21%, 100% admitted",
    ]


def test_clean_telemetry_has_a_colour_of_its_own() -> None:
    (trace,) = separation_figure([WIDE]).data
    clean, *fabricated = trace.marker.color
    assert clean == "var(--good)"
    assert set(fabricated) == {"var(--alarm)"}


def test_each_rule_set_has_its_own_panel_with_its_title() -> None:
    figure = separation_figure([WIDE, NARROW])
    assert len(figure.data) == 2
    titles = [note.text for note in figure.layout.annotations]
    assert titles == ["swat, <wide> & narrow", "wadi"]  # escaped when it is written
    assert figure.layout.height == 2 * 260 + 80
    assert {trace.xaxis for trace in figure.data} == {"x", "x2"}


def test_every_panel_is_on_a_log_scale_with_the_threshold_in_it() -> None:
    figure = separation_figure([WIDE, NARROW])
    low, high = figure.layout.xaxis.range
    assert (10**low, 10**high) == pytest.approx((5e-5, 1.6))
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == "log"
    assert [(line.x0, line.x1) for line in figure.layout.shapes] == [(0.01, 0.01)] * 2


def test_the_page_of_separation_says_what_its_axis_is(tmp_path: Path) -> None:
    path = tmp_path / "separation.html"
    write_separation_figure([WIDE], path)
    page = shown(path)
    assert "Honest and fabricated telemetry" in page
    assert "zero drawn at 0.01 %" in page
    assert "88.77%, 0% admitted" in page
    assert "<wide>" not in page


def test_the_picture_shows_the_bars_of_the_page() -> None:
    figure = figures._drawn_bars([WIDE, NARROW])
    first, second = figure.axes
    ends = [bar.get_x() + bar.get_width() for bar in bars_of(first)]
    (trace, _) = separation_figure([WIDE, NARROW]).data
    assert ends == pytest.approx(list(trace.x))
    assert [bar.get_x() + bar.get_width() for bar in bars_of(second)] == pytest.approx([0.0501])
    assert [text.get_text() for text in first.get_yticklabels()] == list(trace.y)
    assert first.get_title(loc="left") == WIDE.title
    assert first.get_ylim()[0] > first.get_ylim()[1]  # the first kind is at the top
    assert first.get_xlabel() == ""
    assert "zero drawn at 0.01 %" in second.get_xlabel()


def test_a_label_in_the_picture_is_inside_a_bar_that_is_long_enough() -> None:
    first, second = figures._drawn_bars([WIDE, NARROW]).axes
    sides = [text.get_horizontalalignment() for text in first.texts]
    assert sides == ["left", "right", "left"]
    assert [text.get_text() for text in first.texts] == [
        " 0.00%, 100% admitted",
        "88.77%, 0% admitted ",
        " 0.21%, 100% admitted",
    ]
    assert [text.get_horizontalalignment() for text in second.texts] == [
        "right"
    ]  # 5.01 % is above 5 %


def bars_of(axis: Axes) -> list[Rectangle]:
    return [patch for patch in axis.patches if isinstance(patch, Rectangle)]


# -- coverage -------------------------------------------------------------------------------------


def test_each_rule_set_has_a_marker_at_every_attack() -> None:
    figure = coverage_figure(STEMS, SETS)
    ring, disc = figure.data
    assert (ring.name, disc.name) == SETS
    assert list(ring.x) == list(disc.x) == ["1", "2", "3"]
    assert list(ring.y) == [1e-4, 0.3, 0.2]
    assert list(disc.y) == [0.5, 0.002, 0.5]
    assert (ring.marker.symbol, disc.marker.symbol) == ("circle-open", "circle")
    assert list(disc.text) == [
        "1,000 rows, 50.00% suspect",
        "10 rows, 0.20% suspect",
        "500 rows, 50.00% suspect",
    ]


def test_a_stem_joins_the_two_shares_of_its_attack() -> None:
    shapes = coverage_figure(STEMS, SETS).layout.shapes
    stems = [(line.x0, line.y0, line.y1) for line in shapes if line.layer == "below"]
    assert stems == [(0, 1e-4, 0.5), (1, 0.002, 0.3), (2, 0.2, 0.5)]


def test_under_one_rule_set_a_stem_stands_on_the_floor() -> None:
    figure = coverage_figure([Stem(index=4, rows=5, shares=(0.25,))], ["hardened"])
    (trace,) = figure.data
    assert trace.marker.symbol == "circle"
    assert [(line.y0, line.y1) for line in figure.layout.shapes if line.layer == "below"] == [
        (1e-4, 0.25)
    ]


def test_the_name_of_a_rule_set_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "coverage.html"
    write_coverage_figure([Stem(index=4, rows=5, shares=(0.25,))], ["<b>mine</b>"], path)
    page = Page.at(path)
    assert page.figures[0].traces[0]["name"] == "&lt;b&gt;mine&lt;/b&gt;"
    assert "<b>mine" not in page.html
    assert page.tiles["attacks covered by <b>mine</b>"] == ("1 of 1", "5 attack rows in total")


def test_a_marker_grows_with_the_duration_but_is_always_visible() -> None:
    assert figures._areas(STEMS) == [320.0, 12.0, 160.0]
    ring, disc = coverage_figure(STEMS, SETS).data
    assert list(disc.marker.size) == pytest.approx([1.5 * math.sqrt(a) for a in (320, 12, 160)])
    assert np.all(np.array(ring.marker.size) > np.array(disc.marker.size))


def test_one_percent_is_marked_among_the_attacks() -> None:
    figure = coverage_figure(STEMS, SETS)
    dashed = [line for line in figure.layout.shapes if line.line.dash == "dash"]
    assert [(line.y0, line.y1) for line in dashed] == [(0.01, 0.01)]
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.xaxis.type == "category"


def test_attacks_are_written_from_the_best_covered_to_the_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, ...]] = []

    def noted(stems: list[Stem], rule_sets: list[str]) -> object:
        seen.append(tuple(stem.index for stem in stems))
        return coverage_figure(stems, rule_sets)

    monkeypatch.setattr(figures, "coverage_figure", noted)
    write_coverage_figure(STEMS, SETS, tmp_path / "coverage.html")
    assert seen == [(3, 1, 2)]  # by the last set; the first set decides between equals
    assert "Attacks that the rules detect" in shown(tmp_path / "coverage.html")


def test_the_picture_shows_the_stems_of_the_page() -> None:
    (axis,) = figures._drawn_stems(STEMS, SETS).axes
    (lines,) = [one for one in axis.collections if isinstance(one, LineCollection)]
    ends = [tuple(segment[:, 1]) for segment in lines.get_segments()]
    np.testing.assert_allclose(ends, [(1e-4, 0.5), (0.002, 0.3), (0.2, 0.5)])
    ring, disc = [one for one in axis.collections if isinstance(one, PathCollection)]
    for drawn, trace in zip((ring, disc), coverage_figure(STEMS, SETS).data, strict=True):
        np.testing.assert_allclose(np.array(drawn.get_offsets())[:, 1], trace.y)
    assert list(disc.get_sizes()) == [320.0, 12.0, 160.0]
    assert list(ring.get_sizes()) == pytest.approx([704.0, 26.4, 352.0])
    assert [text.get_text() for text in axis.get_xticklabels()] == ["1", "2", "3"]


def test_in_the_picture_one_rule_set_stands_on_the_floor_too() -> None:
    (axis,) = figures._drawn_stems([Stem(index=4, rows=5, shares=(0.25,))], ["hardened"]).axes
    (lines,) = [one for one in axis.collections if isinstance(one, LineCollection)]
    np.testing.assert_allclose(lines.get_segments()[0][:, 1], (1e-4, 0.25))


def test_the_legend_of_the_picture_has_one_size_for_all_sets() -> None:
    (axis,) = figures._drawn_stems(STEMS, SETS).axes
    legend = axis.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(SETS)
    for handle in legend.legend_handles:
        assert isinstance(handle, PathCollection)
        assert list(handle.get_sizes()) == [36]


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["figure.png", "FIGURE.PNG"])
def test_a_figure_is_written_as_a_picture_whatever_the_case_of_its_suffix(
    tmp_path: Path, name: str
) -> None:
    write_separation_figure([NARROW], tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(PNG)


def test_coverage_is_written_as_a_picture(tmp_path: Path) -> None:
    write_coverage_figure(STEMS, SETS, tmp_path / "coverage.png")
    assert (tmp_path / "coverage.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("name", ["figure.svg", "figure", "figure.png.gz"])
def test_another_suffix_is_refused_before_any_work(tmp_path: Path, name: str) -> None:
    sentence = rf"a figure is written as .png or .html, got '{name}'; change the suffix"
    refusing: tuple[Callable[[Path], None], ...] = (
        demand_figure_suffix,
        partial(write_separation_figure, [WIDE]),
        partial(write_coverage_figure, STEMS, SETS),
    )
    for refuse in refusing:
        with pytest.raises(SettingError) as refused:
            refuse(tmp_path / name)
        assert str(refused.value) == sentence
    assert not list(tmp_path.glob("figure*"))


@pytest.mark.parametrize(
    ("stems", "sets", "got"),
    [
        ((), ("a",), "got 0 attacks and 1 sets"),
        (STEMS, (), "got 3 attacks and 0 sets"),
        (STEMS, ("a", "b", "c"), "got 3 attacks and 3 sets"),
    ],
)
def test_coverage_of_nothing_or_under_three_sets_is_refused(
    tmp_path: Path, stems: tuple[Stem, ...], sets: tuple[str, ...], got: str
) -> None:
    with pytest.raises(SettingError, match=got):
        write_coverage_figure(stems, sets, tmp_path / "coverage.html")


@pytest.mark.parametrize(
    ("share", "label"), [(1.0, "100 %"), (0.01, "1 %"), (1e-4, "0.01 %"), (0.5, "50 %")]
)
def test_an_axis_of_the_picture_counts_in_percent(share: float, label: str) -> None:
    assert figures._percent(share, None) == label
