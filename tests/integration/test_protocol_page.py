"""What docs/protocol.md tells people to type, typed; and its numbers, held against the code."""

import re
import shlex
from pathlib import Path

import pytest

from sluice.attestation.verifier import STEPS
from sluice.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
VERIFIER = ROOT / "src" / "sluice" / "attestation" / "verifier.py"


def test_commands_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    commands = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert len(commands) == 8
    for command in commands:
        with pytest.raises(SystemExit) as stopped:
            main(command[1:])
        assert stopped.value.code == 0, command


def test_the_verifier_has_the_numbers_of_the_page() -> None:
    on_page = re.findall(r"^   - (5\.\d) ", PAGE, flags=re.MULTILINE)
    in_code = re.findall(r"# (5\.\d) |\. (5\.\d) The", VERIFIER.read_text(encoding="utf-8"))
    assert tuple(on_page) == STEPS
    assert tuple(one or other for one, other in in_code) == STEPS
