"""What the README tells people to type, typed."""

import re
import shlex
from pathlib import Path

import pytest

from sluice.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
REFUSED = {"sluice check attack.csv"}  # the one command that is meant to refuse


def blocks(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    assert found
    return [str(block) for block in found]


def test_python_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "True 0." in printed
    assert "False" in printed


def test_commands_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("console") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("sluice ")]
    assert len(commands) >= 14
    for command in commands:
        with pytest.raises(SystemExit) as stopped:
            main(command[1:])
        expected = 3 if " ".join(command[:3]) in REFUSED else 0
        assert stopped.value.code == expected, command


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_policy_page_names_every_key(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["rules", "policy", "--out", str(tmp_path / "policy.toml")])
    text = (ROOT / "docs" / "reference" / "policy.md").read_text(encoding="utf-8")
    keys = re.findall(r"^(\w+) =", (tmp_path / "policy.toml").read_text(), flags=re.MULTILINE)
    assert len(keys) > 20
    assert [key for key in keys if f"`{key}" not in text] == []
