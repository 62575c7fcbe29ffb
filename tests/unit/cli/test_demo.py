"""`sluice demo` from the outside."""

from collections.abc import Callable
from pathlib import Path

from .conftest import Outcome

Run = Callable[..., Outcome]


def test_the_demo_mines_judges_and_draws(sluice: Run, tmp_path: Path) -> None:
    seen = sluice("demo", "--fast", "--out", tmp_path / "demo", "--json")
    assert seen.code == 0
    told = seen.json
    assert (tmp_path / "demo" / "report.html").stat().st_size > 1_000_000
    assert told["report"] == str(tmp_path / "demo" / "report.html")
    for count in ("rules", "batches_admitted", "batches_refused", "attacks_covered"):
        assert isinstance(told[count], int)
        assert told[count] > 0  # type: ignore[operator]


def test_a_folder_that_cannot_be_made_is_refused(sluice: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    seen = sluice("demo", "--fast", "--out", tmp_path / "taken" / "demo")
    assert seen.code == 2
    assert "cannot make the folder" in seen.err
