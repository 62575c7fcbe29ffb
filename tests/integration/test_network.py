"""The how-to of a federation between sites, typed: real Flower processes over TLS, nginx."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "federation.md"
SLUICE = [sys.executable, "-c", "from sluice.cli import main; main()"]


def commands() -> list[list[str]]:
    text = PAGE.read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
        for line in block.splitlines()
    ]
    return [shlex.split(line)[1:] for line in lines if line.startswith("sluice ")]


def test_the_page_shows_the_whole_way() -> None:
    told = [" ".join(command[:2]) for command in commands()]
    assert told.count("plant run") == 2
    assert told.index("coordinator run") > told.index("coordinator import")
    assert told[-1] == "audit-log verify"


@pytest.mark.skipif("SLUICE_NETWORK" not in os.environ, reason="make test-network runs it")
def test_the_how_to_leads_to_a_model_and_an_unbroken_log(tmp_path: Path) -> None:
    plants: list[subprocess.Popen[bytes]] = []
    told: dict[str, str] = {}
    try:
        for command in commands():
            if command[:2] == ["plant", "run"]:
                plants.append(subprocess.Popen([*SLUICE, *command], cwd=tmp_path))
                continue
            asked = [*SLUICE, *command]
            if command[0] in ("coordinator", "audit-log"):
                asked.append("--json")
            done = subprocess.run(asked, cwd=tmp_path, check=False, capture_output=True, text=True)
            assert done.returncode == 0, (command, done.stderr)
            told[" ".join(command[:2])] = done.stdout
    finally:
        for plant in plants:
            plant.terminate()
            plant.wait(timeout=30)
    ran = json.loads(told["coordinator run"])
    assert ran["admitted"] == ["north", "south"]
    assert ran["rounds"] == 2
    assert (tmp_path / "water" / "model.safetensors").exists()
    verified = json.loads(told["audit-log verify"])
    assert verified["rounds"] == 2
    assert verified["clients"] == ["north", "south"]
