"""A federation that is killed at any moment goes on as if nothing had happened."""

import random
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = Path(__file__).with_name("federation_to_kill.py")
KILLS = 20


def begun(folder: Path) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder)], stdout=subprocess.PIPE, text=True
    )


def next_round(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_twenty_kills_at_random_moments_leave_the_weights_as_they_would_have_been(
    tmp_path: Path,
) -> None:
    undisturbed = begun(tmp_path / "undisturbed")
    assert next_round(undisturbed) == 0
    undisturbed.communicate()
    assert undisturbed.returncode == 0

    moments = random.Random(20)
    killed = tmp_path / "killed"
    resumed_at = []
    for _ in range(KILLS):
        process = begun(killed)
        resumed_at.append(next_round(process))
        assert next_round(process) == resumed_at[-1] + 1
        time.sleep(moments.uniform(0.0, 0.15))
        assert process.poll() is None, "it finished before it could be killed; give it more rounds"
        process.kill()
        process.communicate()
    last = begun(killed)
    last.communicate()
    assert last.returncode == 0

    assert resumed_at == sorted(resumed_at)
    assert resumed_at[-1] > resumed_at[0], "no kill landed after a checkpoint"
    weights = [(folder / "weights").read_bytes() for folder in (tmp_path / "undisturbed", killed)]
    assert weights[0] == weights[1]
    assert not list(killed.glob(".*.draft"))
