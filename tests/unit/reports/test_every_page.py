"""What holds for every page: size, nothing from elsewhere, its parts, and hostile names."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sluice.errors import SettingError
from sluice.reports.page import (
    PageSection,
    Prose,
    ReportPage,
    Tile,
    asset,
    plotly_name,
    plotly_source,
    write_page,
)
from tests.unit.reports.every_page import PAGES, TAGS, write_record
from tests.unit.reports.pages import Page

LARGEST = 1_500_000
LIGHT = re.compile(r":root \{(.*?)\}", re.DOTALL)
DARK = re.compile(r':root\[data-theme="dark"\] \{(.*?)\}', re.DOTALL)
BY_SYSTEM = re.compile(r':root:not\(\[data-theme="light"\]\) \{(.*?)\}', re.DOTALL)
VARIABLE = re.compile(r"(--[a-z-]+): ([^;]+);")


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module", params=list(PAGES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def path(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("page") / "page.html"
    PAGES[kind](written)
    return written


@pytest.fixture(scope="module")
def page(path: Path) -> Page:
    return Page.at(path)


def test_a_page_is_small_and_its_folder_holds_plotly_once(path: Path, kind: str) -> None:
    assert path.stat().st_size < LARGEST
    scripts = [beside.name for beside in path.parent.glob("*.js")]
    assert scripts == ([plotly_name()] if kind not in ("admitted", "grid", "dashboard") else [])


def test_a_page_refers_to_nothing_but_its_own_folder_or_server(page: Page, kind: str) -> None:
    own = (
        {
            "link href=/assets/page.css",
            "script src=/assets/page.js",
            "script src=/assets/plotly.js",
            "script src=/assets/live.js",
        }
        if kind == "dashboard"
        else {f"script src={plotly_name()}"}
    )
    assert set(page.loads) <= own


def test_a_page_has_navigation_tiles_a_theme_button_and_one_heading(page: Page) -> None:
    elements = Elements(page.markup).found
    ids = {each["id"] for _, each in elements if each.get("id")}
    links = [str(each["href"]) for tag, each in elements if tag == "a"]
    assert links
    assert all(link.removeprefix("#") in ids for link in links)
    assert len(page.tiles) >= 3
    assert [tag for tag, _ in elements].count("h1") == 1
    assert ("button", "theme") in [(tag, each.get("id")) for tag, each in elements]
    assert 'name="viewport"' in page.markup


def test_no_two_elements_of_a_page_have_the_same_id(page: Page) -> None:
    ids = [each["id"] for _, each in Elements(page.markup).found if each.get("id")]
    assert len(ids) == len(set(ids))


def test_a_page_has_dark_and_print_styles(page: Page, kind: str) -> None:
    style = asset("page.css")
    assert "@media print" in style
    assert "@media (prefers-color-scheme: dark)" in style
    assert "@media (max-width:" in style
    assert kind == "dashboard" or f"<style>{style}</style>" in page.html


@pytest.mark.parametrize("tag", TAGS)
def test_a_hostile_name_is_text_and_nothing_else(page: Page, tag: str) -> None:
    """No element, script, link or attribute comes from a name."""
    if "<" in tag:  # otherwise the name is harmless as text
        assert tag not in page.html
    assert "<script>document.title" not in page.html
    for element, attributes in Elements(page.html).found:
        assert element != "img"
        assert not [name for name in attributes if name.startswith("on") or name == "autofocus"]
        assert "evil.example" not in str(attributes.get("href", ""))
        assert "evil.example" not in str(attributes.get("src", ""))


def test_the_hostile_names_are_on_every_page(page: Page, kind: str) -> None:
    """Otherwise the test above would show nothing."""
    assert "document.title" in page.markup or kind == "wide record"
    assert "document.title" in page.html


def test_no_figure_holds_markup_that_plotly_would_read(page: Page) -> None:
    for figure in page.figures:
        for text in _texts([figure.traces, figure.layout]):
            assert not re.search(r"<(?!br>|extra>|/extra>)", text), text


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return []


def test_scripts_in_a_file_run_only_by_their_hash(page: Page, kind: str) -> None:
    policies = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page.html)
    if kind == "dashboard":
        assert policies == []  # the server sends a stricter one
        return
    (policy,) = policies
    assert policy.startswith("default-src &#39;none&#39;; script-src &#39;self&#39; file: ")
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    assert policy.count("sha256-") == 1


# -- the design --------------------------------------------------------------------------------


def variables(pattern: re.Pattern[str]) -> dict[str, str]:
    (found,) = pattern.findall(asset("page.css"))[:1]
    return dict(VARIABLE.findall(found))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("back", ["--paper", "--card", "--plot", "--warn-tint", "--bad-tint"])
@pytest.mark.parametrize("text", ["--ink", "--soft", "--accent", "--good", "--warn", "--bad"])
def test_text_has_enough_contrast_on_every_ground(
    theme: re.Pattern[str], back: str, text: str
) -> None:
    """WCAG 2 asks for 4.5 to 1."""
    colours = variables(theme)
    light, dark = sorted((luminance(colours[text]), luminance(colours[back])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_can_be_told_from_their_ground(theme: re.Pattern[str]) -> None:
    colours = variables(theme)
    for line in ("level", "flow", "pressure", "quality", "speed", "position", "actuator", "limit"):
        pair = (luminance(colours[f"--{line}"]), luminance(colours["--plot"]))
        light, dark = sorted(pair, reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3.0, line


def test_the_dark_page_of_the_system_is_the_one_that_is_chosen() -> None:
    assert variables(DARK) == variables(BY_SYSTEM)
    assert set(variables(DARK)) == set(variables(LIGHT)) - {"--none"}


def test_every_colour_that_a_page_names_is_in_the_stylesheet(page: Page) -> None:
    known = set(variables(LIGHT))
    named = set(re.findall(r'"var\((--[a-z-]+)\)"', page.html))
    named |= set(re.findall(r"style=\"--key: var\((--[a-z-]+)\)\"", page.html))
    assert named <= known


# -- files -------------------------------------------------------------------------------------


def test_another_script_in_the_place_of_plotly_is_replaced(tmp_path: Path) -> None:
    beside = tmp_path / plotly_name()
    beside.write_text("document.title = 'owned'")
    write_record(tmp_path / "page.html")
    assert beside.read_text(encoding="utf-8") == plotly_source()


def test_plotly_is_written_once_for_all_pages_of_a_folder(tmp_path: Path) -> None:
    write_record(tmp_path / "one.html")
    written = (tmp_path / plotly_name()).stat().st_mtime_ns
    write_record(tmp_path / "two.html")
    assert (tmp_path / plotly_name()).stat().st_mtime_ns == written


def test_a_page_is_not_written_over_the_script_it_needs(tmp_path: Path) -> None:
    page = ReportPage(
        kind="Test",
        title="A page",
        tiles=(Tile(label="a", value="1"),),
        sections=(PageSection(title="One", parts=(Prose(text="text"),)),),
    )
    with pytest.raises(SettingError, match="is the name of the drawing script"):
        write_page(page, tmp_path / plotly_name())
    assert list(tmp_path.iterdir()) == []


def test_sections_with_the_same_title_have_links_of_their_own(tmp_path: Path) -> None:
    section = PageSection(title="Recall <1>", parts=(Prose(text="text"),))
    page = ReportPage(kind="Test", title="A page", tiles=(), sections=(section, section))
    assert [anchor for anchor, _ in page.anchors] == ["section-recall-1", "section-recall-1-2"]
