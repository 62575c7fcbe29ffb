"""What README and pages tell people to type, typed."""

import re
import shlex
from pathlib import Path

import pytest

from sluice.attestation.protocol.verifier import STEPS
from sluice.cli.app import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
VERIFIER = ROOT / "src" / "sluice" / "attestation" / "protocol" / "verifier.py"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
REFUSED = {"sluice check attack.csv"}  # the one command that is meant to refuse


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [str(block) for block in re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)]


def commands(page: Path) -> list[list[str]]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("sluice ")]


def test_python_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    found = blocks(README, "python")
    assert found
    for block in found:
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "True 0." in printed
    assert "False" in printed


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in commands(page):
        with pytest.raises(SystemExit) as stopped:
            main(command[1:])
        expected = 3 if " ".join(command[:3]) in REFUSED else 0
        assert stopped.value.code == expected, command


def test_the_verifier_has_the_numbers_of_the_protocols_page() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    on_page = re.findall(r"^   - (5\.\d) ", page, flags=re.MULTILINE)
    in_code = re.findall(r"# (5\.\d) |\. (5\.\d) The", VERIFIER.read_text(encoding="utf-8"))
    assert tuple(on_page) == STEPS
    assert tuple(one or other for one, other in in_code) == STEPS


def test_pages_link_to_what_is_there() -> None:
    broken = [
        (str(page.relative_to(ROOT)), target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_readme_shows_commands() -> None:
    assert len(commands(README)) >= 14
