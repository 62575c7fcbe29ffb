"""ARCHITECTURE.md names files that exist, and tells a batch's way in at most 20 steps."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "sluice"


def test_a_batchs_way_has_at_most_20_steps_each_with_a_file() -> None:
    section = PAGE.split("## A batch's way")[1].split("\n## ")[0]
    steps = re.findall(r"^(\d+)\. `([^`]+)`", section, flags=re.MULTILINE)
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert 10 <= len(steps) <= 20
    assert len(re.findall(r"^\d+\. ", section, flags=re.MULTILINE)) == len(steps)
    for _, file in steps:
        assert (ROOT / file).is_file(), file


def test_every_file_and_folder_on_the_page_exists() -> None:
    named = set(re.findall(r"`([\w./-]+/[\w./-]+)`", PAGE))
    assert len(named) > 40
    for name in named:
        places = (ROOT / name, SOURCE / name, SOURCE / name.rstrip("/"))
        assert any(place.exists() for place in places), name


def test_every_package_of_the_runtime_has_its_line() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {f"src/sluice/{package}" for package in packages} <= set(
        re.findall(r"\| `(src/sluice/\w+)`", PAGE)
    )
