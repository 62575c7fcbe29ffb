"""The bar of work in parts: an estimate from what was done, and nothing without a terminal."""

import io
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from sluice.cli import console
from sluice.cli.console import PartsBar


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    shown = io.StringIO()
    wide = Console(file=shown, force_terminal=True, width=160, color_system=None)
    monkeypatch.setattr(console, "_progress", wide)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    return shown


def left(bar: PartsBar) -> object:
    assert bar._bar is not None
    return bar._bar.tasks[0].fields["left"]


def test_the_estimate_is_that_of_the_parts_done_since_it_began(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    bar, ticks = PartsBar(), iter((0.0, 60.0, 120.0))
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    with bar.shown("proving 1,000 rows", quiet=False):
        bar(500, 1_000)  # proven before a crash: they say nothing about the speed
        assert left(bar) == ""
        bar(600, 1_000)
        assert left(bar) == "about 4 min left"
        bar(1_000, 1_000)
        assert left(bar) == ""
    assert "proving 1,000 rows" in terminal.getvalue()


def test_without_a_terminal_one_line_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bar = PartsBar()
    with bar.shown("proving 9 rows", quiet=False):
        bar(3, 9)
    assert capsys.readouterr().err == "proving 9 rows ...\n"


def test_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    bar = PartsBar()
    with bar.shown("proving 9 rows", quiet=True):
        bar(9, 9)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"), [(3.2, "3 s"), (89, "89 s"), (600, "10 min"), (9_000, "2.5 h")]
)
def test_durations_are_rough(seconds: float, words: str) -> None:
    assert console._duration(seconds) == words
