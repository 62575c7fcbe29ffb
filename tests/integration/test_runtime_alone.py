"""The runtime works in a clean environment that has none of the lab's packages."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

ROOT = Path(__file__).parents[2]
LAB = ("matplotlib", "numba", "piqp", "wntr", "xlsxwriter", "onnx", "ray", "pandas")
PIP = ("install", "--quiet", "--disable-pip-version-check")


@dataclass(frozen=True)
class Clean:
    """An environment with the locked runtime and network packages, and a plant's record."""

    bin: Path
    folder: Path

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(self.bin / "sluice"), *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout + done.stderr

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**kept, "SLUICE_CACHE": str(self.folder / "cache")}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Clean:
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    own = folder / "venv" / "bin"
    lock = ROOT / "requirements" / "network.txt"
    subprocess.run([str(own / "pip"), *PIP, "--require-hashes", "-r", str(lock)], check=True)
    wheel = [sys.executable, "-m", "pip", "wheel", *PIP[1:], "--no-deps", "--no-build-isolation"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(
        [*wheel, "-w", str(folder), str(ROOT)], check=True, env={**os.environ, "PATH": path}
    )
    (built,) = folder.glob("sluice_fl-*.whl")
    subprocess.run([str(own / "pip"), *PIP, "--no-deps", "--no-index", str(built)], check=True)
    write(simulate("line", seed=0, days=8), folder / "plant.csv", FileLayout.CSV)
    return Clean(own, folder)


def test_the_labs_packages_are_not_there(clean: Clean) -> None:
    for package in LAB:
        found = subprocess.run(
            [str(clean.bin / "python"), "-c", f"import {package}"], check=False, capture_output=True
        )
        assert found.returncode != 0, package


def test_rules_are_mined_and_a_batch_is_checked_proven_and_verified(clean: Clean) -> None:
    split = ("--fit", "0:4320", "--calibrate", "4320:8640")
    clean.run("mine", "plant.csv", *split, "--out", "rules.json")
    rows = ("--rows", "8640:9240")
    assert "admitted" in clean.run("check", "plant.csv", *rows, "--rules", "rules.json")
    clean.run("attest", "setup", "--rules", "rules.json", "--out", "keys", "--rows", "1024")
    commit = ("--keys", "keys", "--commit", "commit.json")
    clean.run("attest", "commit", "plant.csv", *rows, "--keys", "keys", "--out", "commit.json")
    clean.run("attest", "prove", "plant.csv", *rows, *commit, "--out", "proof.json")
    assert "verified" in clean.run("attest", "verify", "proof.json", *commit)


def test_a_plant_joins_and_runs(clean: Clean) -> None:
    """The plant starts its node and keeps trying to reach a coordinator that is not there."""
    split = ("--fit", "0:4320", "--calibrate", "4320:8640")
    clean.run("mine", "plant.csv", *split, "--out", "own.json")
    clean.run("rules", "policy", "--out", "policy.toml", "--declare", "S_PU4=runs if S_PU3 fails")
    reference = ("--reference", "plant.csv", "--rows", "4320:8640", "--largest", "1024")
    limits = ("--policy", "policy.toml", "--rounds", "1", "--port", "18999")
    clean.run("coordinator", "init", "water", *reference, *limits)
    clean.run("coordinator", "invite", "water", "north", "--out", "north.invitation")
    rows = ("--record", "plant.csv", "--rows", "8640:9240", "--rules", "own.json")
    clean.run("plant", "join", "north.invitation", *rows, "--out", "north")
    signed = ("--key", "water.approver.key", "--out", "approval.json")
    clean.run("rules", "approve", "own.json", *signed)
    clean.run("coordinator", "import", "water", "north/request.json", "--approval", "approval.json")
    assert "admitted" in clean.run("plant", "check", "north")
    said = clean.folder / "plant.log"
    with said.open("wb") as log:
        running = subprocess.Popen(
            [str(clean.bin / "sluice"), "plant", "run", "north"],
            cwd=clean.folder,
            env=clean.environment,
            stdout=log,
            stderr=log,
        )
        time.sleep(8)
        try:
            assert running.poll() is None, said.read_text()
        finally:
            running.terminate()
            running.wait(timeout=20)


def test_a_command_of_the_lab_says_what_to_install(clean: Clean) -> None:
    said = clean.run("data", "make", "treatment", "--days", "1", "--out", "other.csv", code=2)
    assert "pip install 'sluice-fl[lab]'" in said
    assert not (clean.folder / "other.csv").exists()
