"""Ctrl-C ends a command at once, also while the Rust core works."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants.catalogue import simulate

STARTS_S = 60.0
ENDS_S = 2.0
INTERRUPTED = 130


def children(process: int) -> list[int]:
    return [
        int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("whole_group", [False, True], ids=["the command", "a terminal's group"])
def test_control_c_during_the_set_up_of_sampled_proofs_was_ignored(
    tmp_path: Path, *, whole_group: bool
) -> None:
    plant = simulate("line", seed=0, days=8)
    rules = mine(plant.rows(0, 4_320), plant.rows(4_320, 8_640), profile=Profile.PAPER_WIDE)
    save_rules(rules, tmp_path / "rules.json")
    keys = tmp_path / "keys"
    command = (
        *(sys.executable, "-m", "sluice", "attest", "setup", "--system", "sampled"),
        *("--policy", "paper", "--rules", str(tmp_path / "rules.json"), "--out", str(keys)),
        *("--rows", "8192"),  # the keys of this circuit take long to make
    )
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"deriving the circuit ...\n"
        deadline = time.monotonic() + STARTS_S
        while not (workers := children(process.pid)):
            assert process.poll() is None
            assert time.monotonic() < deadline, "the core works in the command's own process"
            time.sleep(0.05)
        time.sleep(0.5)
        assert process.poll() is None
        sent = time.monotonic()
        if whole_group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        try:
            code = process.wait(timeout=STARTS_S)
        finally:
            process.kill()
        assert time.monotonic() - sent < ENDS_S
        assert code == INTERRUPTED
        assert process.stderr.read().endswith(b"sluice: interrupted\n")
    assert not keys.exists()
    assert not any(map(alive, workers))
