"""Every page in a real Chromium: it fits a phone, draws, complains of nothing and asks nobody."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.network.browser import CHROMIUM, Browser, chromium
from tests.unit.reports.every_page import PAGES, write_record, write_verdict

PICTURES = os.environ.get("SLUICE_PICTURES")  # a folder to leave pictures in, for people to look at
FILES = [kind for kind in PAGES if kind != "dashboard"]  # its server has a test of its own
OVERFLOW = """[...document.querySelectorAll('body *')].filter((each) => {
  const box = each.getBoundingClientRect();
  const own = each.closest('nav ul, .scroll, svg, .plot'); // they scroll or clip by themselves
  return box.right > WIDTH + 1 && box.width > 0 && !own;
}).map((each) => each.tagName + '.' + each.className).join(', ')"""
DRAWN = "[...document.querySelectorAll('.plot')].every((each) => each.querySelector('.main-svg'))"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with every page, which share Plotly."""
    written = tmp_path_factory.mktemp("pages")
    for kind in FILES:
        PAGES[kind](written / f"{kind}.html")
    return written


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


def look(browser: Browser, path: Path, *, width: int, theme: str = "light") -> None:
    """Open a page afresh: nothing that an earlier one said or remembered is left."""
    browser.said.clear()
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.call("Emulation.setEmulatedMedia", media="", features=[feature])
    browser.size(width, 900)
    browser.open(path.as_uri())
    browser.value("localStorage.clear()")


def draw_everything(browser: Browser) -> None:
    """Let every drawing come near the window, as a reader does who scrolls down."""
    browser.value(
        "window.at = 0; window.down = setInterval(() => { window.at += 400;"
        " window.scrollTo({top: window.at, behavior: 'instant'}); }, 20)"
    )
    browser.wait(DRAWN, seconds=60)
    browser.value("clearInterval(window.down)")


@pytest.mark.parametrize(("width", "theme"), [(400, "light"), (400, "dark"), (1_400, "dark")])
@pytest.mark.parametrize("kind", FILES)
def test_a_page_fits_the_window_draws_everything_and_complains_of_nothing(
    browser: Browser, folder: Path, kind: str, width: int, theme: str
) -> None:
    path = folder / f"{kind}.html"
    look(browser, path, width=width, theme=theme)
    if kind != "wide record":  # it takes a minute to scroll through
        draw_everything(browser)
    assert browser.value(OVERFLOW.replace("WIDTH", str(width))) == ""
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    assert browser.value("document.title") != "owned"
    assert {url.partition(":")[0] for url in browser.asked_for()} <= {"file", "data", "blob"}
    if PICTURES:
        browser.value("window.scrollTo(0, 0)")
        browser.picture(Path(PICTURES) / f"{kind}-{width}-{theme}.png")


def test_no_button_of_a_drawing_uploads_it(browser: Browser, folder: Path) -> None:
    look(browser, folder / "verdict.html", width=1_400)
    draw_everything(browser)
    titles = browser.value(
        "[...document.querySelectorAll('.modebar-btn')].map((each) => each.dataset.title).join('|')"
    )
    assert set(titles.split("|")) == {
        "Download plot as a PNG",
        "Zoom",
        "Pan",
        "Zoom in",
        "Zoom out",
        "Reset axes",
    }


def test_the_theme_follows_the_system_until_the_reader_chooses_one(
    browser: Browser, folder: Path
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    look(browser, folder / "score.html", width=1_400, theme="dark")
    browser.wait("document.querySelector('.main-svg') !== null")
    assert browser.value(ground) == "rgb(20, 24, 31)"
    ink = "document.querySelector('.xtick text').style.fill"
    dark_ink = browser.value(ink)
    browser.value("document.getElementById('theme').click()")
    assert browser.value(ground) == "rgb(255, 255, 255)"
    browser.wait(f"{ink} !== {dark_ink!r}")  # the drawing follows
    browser.reload()
    assert browser.value(ground) == "rgb(255, 255, 255)"  # remembered; the system is still dark
    browser.value("localStorage.clear()")


def test_a_search_over_tags_leaves_the_channels_that_match(browser: Browser, folder: Path) -> None:
    look(browser, folder / "record.html", width=1_400)
    plots = "[...document.querySelectorAll('.drawing')].filter((each) => !each.hidden).length"
    assert browser.value(plots) == 11
    type_in = "(text) => { const box = document.getElementById('search'); box.value = text;"
    type_in += " box.dispatchEvent(new Event('input')); }"
    browser.value(f"({type_in})('l_t')")
    assert browser.value(plots) == 2  # the third level has a hostile name
    assert browser.value("document.getElementById('found').textContent") == "4 of 22"
    browser.value(f"({type_in})('<script> owned')")
    assert browser.value(plots) == 1
    browser.value(f"({type_in})('no such tag')")
    assert browser.value(plots) == 0
    nothing = "document.querySelectorAll('.nothing:not([hidden])').length"
    assert browser.value(nothing) == 2
    browser.value(f"({type_in})('')")
    assert browser.value(plots) == 11
    assert browser.value(nothing) == 0


def test_channels_are_zoomed_together_and_attacks_are_shaded(
    browser: Browser, folder: Path
) -> None:
    look(browser, folder / "record.html", width=1_400)
    browser.wait("document.querySelectorAll('.js-plotly-plot').length >= 4")
    shaded = "document.querySelectorAll('.plot')[1].querySelectorAll('.shapelayer path').length"
    assert browser.value(shaded) == 1
    browser.value(
        "Plotly.relayout(document.querySelectorAll('.plot')[0], {'xaxis.range[0]': "
        "'2024-01-07 06:00', 'xaxis.range[1]': '2024-01-07 09:00'})"
    )
    browser.wait(
        "String(document.querySelectorAll('.plot')[3].layout.xaxis.range[0]).startsWith("
        "'2024-01-07 06:00')"
    )
    draw_everything(browser)  # one that is drawn later shows the same time
    last = "[...document.querySelectorAll('.plot')].pop().layout.xaxis.range[0]"
    assert str(browser.value(last)).startswith("2024-01-07 06:00")


def test_times_are_those_of_the_plant_in_every_time_zone(browser: Browser, folder: Path) -> None:
    browser.call("Emulation.setTimezoneOverride", timezoneId="Pacific/Auckland")
    try:
        look(browser, folder / "record.html", width=1_400)
        browser.wait("document.querySelector('.js-plotly-plot') !== null")
        first = browser.value("document.querySelector('.js-plotly-plot').data[0].x[0]")
        assert first == "2024-01-07T00:00:00.000"
    finally:
        browser.call("Emulation.setTimezoneOverride", timezoneId="")


def test_a_printed_page_is_light_open_and_without_controls(browser: Browser, folder: Path) -> None:
    look(browser, folder / "verdict.html", width=1_400, theme="dark")
    browser.value("window.dispatchEvent(new Event('beforeprint'))")
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    browser.call("Emulation.setEmulatedMedia", media="print", features=[feature])
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.value("document.querySelectorAll('details:not([open])').length") == 0
    assert browser.value(DRAWN)
    assert browser.value("document.querySelector('.main-svg').clientWidth") == 680
    browser.value("window.dispatchEvent(new Event('afterprint'))")
    browser.call("Emulation.setEmulatedMedia", media="", features=[feature])
    assert browser.value("document.querySelectorAll('details[open]').length") == 0
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"


def test_a_page_that_was_sent_without_plotly_says_what_is_missing(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_bytes((folder / "record.html").read_bytes())
    look(browser, tmp_path / "page.html", width=1_400)
    missing = browser.value("document.querySelector('.plot').textContent")
    assert missing.startswith("This drawing needs JavaScript and the file plotly-")
    assert "in the folder of this page" in missing


def test_a_script_that_is_not_the_pages_own_does_not_run(
    browser: Browser, folder: Path, tmp_path: Path
) -> None:
    """A second defence, should a name ever reach a page unescaped."""
    text = (folder / "admitted.html").read_text(encoding="utf-8")
    spoilt = text.replace("<main>", "<main><script>document.title = 'owned'</script>", 1)
    (tmp_path / "page.html").write_text(spoilt, encoding="utf-8")
    look(browser, tmp_path / "page.html", width=1_400)
    assert browser.value("document.title") != "owned"
    assert any("Content Security Policy" in each for each in browser.complaints())


@pytest.mark.parametrize("write", [write_record, write_verdict])
def test_a_self_contained_page_draws_alone(
    browser: Browser, tmp_path: Path, write: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluice.reports import page as pages  # noqa: PLC0415

    real = pages.rendered
    monkeypatch.setattr(pages, "rendered", lambda shown, **_: real(shown, self_contained=True))
    assert callable(write)
    write(tmp_path / "page.html")
    for script in tmp_path.glob("*.js"):
        script.unlink()
    look(browser, tmp_path / "page.html", width=1_400)
    draw_everything(browser)
    assert browser.complaints() == []
