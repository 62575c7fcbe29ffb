"""Runs the commands and code that README and the pages show."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from sluice.admission import HardenedPolicy
from sluice.attestation.protocol.verifier import BOUND_STEPS, STEPS
from sluice.cli.app import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
VERIFIER = ROOT / "src" / "sluice" / "attestation" / "protocol" / "verifier.py"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = [*PAGES, *sorted(set(ROOT.glob("*.md")) - {README})]
ON_RECORDS = [ROOT / "docs" / "tutorial" / "watch.md"]
"""Pages whose commands need a plant's records; tests of their own run them."""
EXIT = re.compile(r"\s#.*\bexits (\d+)\b")
"""A trailing comment such as `# exits 3` states the exit code of a command; the default is 0."""


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [str(block) for block in re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)]


def command_lines(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line for line in lines if line.startswith("sluice ")]


def commands(page: Path) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in command_lines(page)]


def exit_code_of(line: str) -> int:
    stated = EXIT.search(line)
    return int(stated.group(1)) if stated else 0


def test_python_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    found = blocks(README, "python")
    assert found
    for block in found:
        exec(compile(block, "README.md", "exec"), {})
    clean, rolled = capsys.readouterr().out.splitlines()
    assert clean == "True"  # admitted, without a reason
    assert rolled.startswith("False ")


def test_only_pages_whose_python_blocks_are_run_have_some() -> None:
    with_python = [page.relative_to(ROOT) for page in PAGES if blocks(page, "python")]
    run = ["README.md", "docs/how-to/detect.md", "docs/tutorial/index.md"]
    assert list(map(str, with_python)) == run


def test_the_how_to_of_the_detector_names_what_is_behind_its_alarms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for block in blocks(ROOT / "docs" / "how-to" / "detect.md", "python"):
        exec(compile(block, "detect.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert 1 <= len(lines) <= 3
    assert all(len(line.split()) >= 3 for line in lines)  # time, peak, at least one name


def test_the_tutorial_refuses_the_third_plant(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "tutorial" / "index.md", "python"):
        exec(compile(block, "tutorial", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("east refused: ")
    assert lines[1:3] == ["north admitted", "south admitted"]
    assert lines[3].endswith("windows raise an alarm")


def test_the_readme_is_short_and_opens_with_what_it_does() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    opening = "\n".join(lines[:30])
    assert "lets water utilities train" in opening
    assert "It is for" in opening
    assert "docs/assets/overview.svg" in opening
    assert "make demo" in opening
    assert "make test" in opening


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page) and page not in ON_RECORDS],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in command_lines(page):
        with pytest.raises(SystemExit) as stopped:
            main(shlex.split(line, comments=True)[1:])
        assert stopped.value.code == exit_code_of(line), line


def historians_export(record: Path, target: Path) -> None:
    """Write a BATADAL file as a historian does: semicolons, decimal commas, a line of units."""
    header, *rows = (line.split(",") for line in record.read_text().splitlines())
    names = [name.strip() for name in header]
    tags = [at for at, name in enumerate(names) if name not in ("DATETIME", "ATT_FLAG")]
    units = {"L": "m", "F": "L/s", "P": "m", "S": ""}
    lines = [
        ";".join(["Zeitstempel", *(names[at] for at in tags)]),
        ";".join(["", *(units[names[at][0]] for at in tags)]),
    ]
    for row in rows:
        day, hour = row[0].split()
        date, month, year = day.split("/")
        cells = [row[at].strip().replace(".", ",") for at in tags]
        lines.append(";".join([f"{date}.{month}.20{year} {hour}:00", *cells]))
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_historians_export_becomes_alarms_that_an_engineer_can_act_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant_data: Callable[..., Path],
    capfd: pytest.CaptureFixture[str],
) -> None:
    clean, attacked = "dataset03.csv", "BATADAL_dataset04.csv"
    historians_export(plant_data("batadal", clean), tmp_path / "history.csv")
    historians_export(plant_data("batadal", attacked), tmp_path / "new.csv")
    monkeypatch.chdir(tmp_path)
    (page,) = ON_RECORDS
    for line in command_lines(page):
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(shlex.split(line, comments=True)[1:])
        assert stopped.value.code == exit_code_of(line), line
    shown = capfd.readouterr().out
    assert (tmp_path / "alarms.html").exists()
    # The level of tank 1 is falsified in the second attack of the record, from 9 to 11 October.
    assert "2016-10-09" in shown
    assert "S_PU2 switches on while L_T1 shows 4.6 m; it does so at 0.683 to 1.21 m" in shown
    assert "read L_T1 on site" in shown


def test_a_comment_states_the_exit_code() -> None:
    assert exit_code_of("sluice check may.csv --rules rules.json") == 0
    assert exit_code_of("sluice check may.csv --rules rules.json  # refused: exits 3") == 3
    assert exit_code_of("sluice check may.csv --rules 'exits 3.json'") == 0


def test_the_verifier_has_the_numbers_of_the_protocols_page() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    number = r"(5\.\d(?:\.\d)?)"
    on_page = re.findall(rf"^   - {number} ", page, flags=re.MULTILINE)
    code = VERIFIER.read_text(encoding="utf-8")
    in_code = re.findall(rf"# {number} |\. {number} The", code)
    assert tuple(on_page) == BOUND_STEPS
    assert tuple(one or other for one, other in in_code) == BOUND_STEPS
    assert tuple(step for step in BOUND_STEPS if step != "5.6.1") == STEPS


def test_pages_link_to_what_is_there() -> None:
    broken = [
        (str(page.relative_to(ROOT)), target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_pages_install_no_package_of_another_project() -> None:
    # `sluice` on the package index is a different project; this one is `sluice-fl`.
    named = r"pip3? install[^\n`]*(?<![\w./-])sluice(?![\w./-])"
    wrong = [
        (text.name, match)
        for text in TEXTS
        for match in re.findall(named, text.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_the_policy_page_has_every_key_with_its_default() -> None:
    page = (ROOT / "docs" / "reference" / "policy.md").read_text(encoding="utf-8")
    shown: dict[str, str] = {}
    for keys, defaults in re.findall(r"^\| (`[^|]*`) \| ([^|]+) \|", page, flags=re.MULTILINE):
        shown |= zip(re.findall(r"`(\w+)`", keys), defaults.split(", "), strict=True)
    policy = HardenedPolicy()
    values = {"rows_min": policy.rows_min, "rows_max": policy.rows_max}
    values |= asdict(policy.margins) | asdict(policy.acceptance)
    values.pop("reasons")  # a table, which the page describes below
    assert shown == {key: json.dumps(value) for key, value in values.items()}


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "adr"
    listed = re.findall(r"\]\((\d{4}-[^)]+)\)", (folder / "index.md").read_text(encoding="utf-8"))
    assert listed == sorted(page.name for page in folder.glob("0*.md"))


def test_the_readme_shows_commands_and_a_refusal() -> None:
    assert len(commands(README)) >= 6
    assert 3 in map(exit_code_of, command_lines(README))
