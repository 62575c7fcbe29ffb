"""A sample of `make exactness`: gate and circuit agree, and both verdicts and every check occur."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
CHECKS = {
    "blocks", "segments", "severe rows", "stillness", "switches", "transition", "violating rows",
    "windows",
}  # fmt: skip


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], str]:
    """What a short run found, and the page it wrote."""
    written = tmp_path_factory.mktemp("exactness") / "exactness.md"
    command = [sys.executable, "-m", "benchmarks", "exactness", "--json"]
    options = ["--batches", "500", "--proofs", "4", "--chains", "3", "--shards", "0"]
    done = subprocess.run(
        [*command, *options, "--workers", "1", "--out", str(written)],
        check=False,
        capture_output=True,
        env={**os.environ, "SLUICE_DATA": str(written.parent)},
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout), written.read_text(encoding="utf-8")


def test_gate_and_circuit_agree(sampled: tuple[dict[str, object], str]) -> None:
    found, page = sampled
    assert found["wrong"] == []
    assert (found["batches"], found["proofs"], found["chains"]) == (500, 4, 3)
    assert "0 disagreements" in page
    assert page.count("0 batches failed") == 2
    assert "proven in segments of 256 rows" in page


def test_the_sample_is_worth_something(sampled: tuple[dict[str, object], str]) -> None:
    found, _ = sampled
    admitted, refused, alone = (found[name] for name in ("admitted", "refused", "alone"))
    assert isinstance(admitted, dict)
    assert isinstance(refused, dict)
    assert isinstance(alone, dict)
    for kind in ("edge", "adversarial", "random"):
        assert admitted[kind] > 0
        assert refused[kind] > 0
    assert sum(admitted.values()) > 100
    assert {check.partition(":")[0] for check in alone} == CHECKS
    assert isinstance(found["forced"], int)
    assert found["forced"] > 150
