"""No file makes a command run for long, use much memory, or end with a traceback.

Every command runs in its own process under limits of the operating system. A reader without limits
would end there with a signal, not with exit code 2.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from sluice.detector.alone import train
from sluice.detector.model import DetectorKind
from sluice.detector.modelfile import save_detector
from sluice.invariants.mining.profiles import mine
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

from . import bombs

MEGABYTE = 1 << 20
MOST_MEGABYTES = 300
"""Above what the command needs without the file."""
MOST_SECONDS = 5.0
LONGEST_WALL_S = 120.0
LIMITED = """
import json, os, resource, sys
child = os.fork()
if not child:
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(child, 0)
with open(sys.argv[1], "w") as out:
    seconds = used.ru_utime + used.ru_stime
    json.dump([os.waitstatus_to_exitcode(status), seconds, used.ru_maxrss], out)
"""
"""A small process between the tests and the command: the peak memory of a process includes that of
the process that started it."""


@dataclass(frozen=True)
class Ending:
    """How a command ended, and what it needed."""

    code: int
    out: str
    err: str
    seconds: float  # of processor time
    megabytes: float  # at its peak


def run(*arguments: object, cache: Path) -> Ending:
    """Run a command under limits."""
    folder = cache.parent
    wrapper = (sys.executable, "-c", LIMITED, folder / "used", sys.executable, "-m", "sluice")
    done = subprocess.run(
        [*map(str, wrapper), *map(str, arguments)],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "SLUICE_CACHE": str(cache)},
        timeout=LONGEST_WALL_S,
        check=True,
    )
    code, seconds, kilobytes = json.loads((folder / "used").read_text())
    return Ending(
        code=code,
        out=done.stdout.decode(errors="replace"),
        err=done.stderr.decode(errors="replace"),
        seconds=seconds,
        megabytes=kilobytes / 1_024,
    )


@cache
def needs(command: str, folder: Path) -> Ending:
    """Return what a command needs to start and to read small files."""
    place = folder / "needs"
    place.mkdir(exist_ok=True)
    small = place / "small.csv"
    small.write_text("time,FIT101\n0,1\n1,1\n2,2\n")
    arguments = ("data", "inspect", small) if command == "data" else (*command.split(), "--help")
    return run(*arguments, cache=place / "cache")


def demand_refusal(ending: Ending, command: str, folder: Path, *, name: str, code: int = 2) -> None:
    start = needs(command, folder)
    assert ending.code == code, ending
    assert ending.out == ""
    assert "Traceback" not in ending.err
    assert "a bug in Sluice" not in ending.err
    sentence = ending.err.splitlines()[-1]
    assert sentence.startswith("sluice: ")
    assert name in sentence
    if code == 2:
        assert re.search(r"expected|correct|fetch|give|check|save|limit|not ", sentence), sentence
    assert len(sentence) < 1_000
    assert ending.seconds - start.seconds < MOST_SECONDS, ending
    assert ending.megabytes - start.megabytes < MOST_MEGABYTES, ending


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("start")


@pytest.mark.parametrize(
    ("suffix", "bomb"),
    [
        pytest.param(suffix, bomb, id=bomb.__name__)
        for suffix, each in bombs.RECORDS.items()
        for bomb in each
    ],
)
def test_a_record_that_explodes_is_refused(
    suffix: str, bomb: Callable[[], bytes], start: Path, tmp_path: Path
) -> None:
    record = tmp_path / f"record.{suffix}"
    record.write_bytes(bomb())
    assert record.stat().st_size < 12 * MEGABYTE
    ending = run("data", "inspect", record, cache=tmp_path / "cache")
    demand_refusal(ending, "data", start, name="record")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plant and a coordinator with good files: rules, a batch, keys, a proof, a model."""
    folder = tmp_path_factory.mktemp("site")
    plant = simulate("line", seed=0, days=8)
    save_rules(mine(plant.rows(0, 4_320), plant.rows(4_320, 8_640)), folder / "rules.json")
    write(plant.rows(8_640, 9_640), folder / "batch.parquet", FileLayout.PARQUET)
    write(plant.rows(0, 4_320), folder / "clean.parquet", FileLayout.PARQUET)
    save_detector(train(plant.rows(0, 4_320), kind=DetectorKind.SUBSPACE), folder / "m.safetensors")
    for command in (
        "attest setup --system unsafe --rules {}/rules.json --out {}/keys",
        "attest commit {}/batch.parquet --keys {}/keys --out {}/commit.json",
        "attest prove {}/batch.parquet --keys {}/keys --commit {}/commit.json --out {}/proof.json",
        "coordinator init {}/water --reference {}/clean.parquet --system unsafe",
        "coordinator invite {}/water north --out {}/north.invitation",
    ):
        ending = run(*command.replace("{}", str(folder)).split(), cache=folder / "cache")
        assert ending.code == 0, ending
    return folder


COMMANDS: tuple[tuple[str, tuple[Callable[[], bytes], ...], int], ...] = (
    # Each command with its bad file as BAD, what is in it, and the exit code.
    ("data inspect {}/batch.parquet --plant BAD", bombs.TOML_BOMBS, 2),
    ("rules show BAD", bombs.RULES_BOMBS, 2),
    ("rules diff {}/rules.json BAD", bombs.JSON_BOMBS[:1], 2),
    ("check {}/batch.parquet --rules BAD", bombs.JSON_BOMBS[:1], 2),
    ("check {}/batch.parquet --rules {}/rules.json --policy BAD", bombs.TOML_BOMBS[:3], 2),
    ("check BAD --rules {}/rules.json", (bombs.a_cell_in_the_last_corner,), 2),
    ("mine BAD --out {}/mined.json", (bombs.gzip_of_a_gigabyte,), 2),
    ("attest setup --rules BAD --out {}/other", bombs.JSON_BOMBS[:1], 2),
    ("attest commit BAD --keys {}/keys --out {}/c.json", (bombs.a_hundred_million_equal_rows,), 2),
    ("attest verify BAD --keys {}/keys --commit {}/commit.json", bombs.JSON_BOMBS, 3),
    ("attest verify {}/proof.json --keys {}/keys --commit BAD", bombs.JSON_BOMBS[:1], 3),
    (
        "attest verify {}/proof.json --keys {}/keys --commit {}/commit.json --log BAD",
        bombs.LOG_BOMBS[:1],
        3,
    ),
    ("audit-log verify BAD", bombs.LOG_BOMBS, 3),
    ("audit-log verify BAD", bombs.JSON_BOMBS[:1], 2),
    ("score {}/batch.parquet --model BAD --out {}/scores.csv", bombs.MODEL_BOMBS, 2),
    ("score BAD --model {}/m.safetensors --out {}/s.csv", (bombs.a_cell_far_below,), 2),
    (
        "plant join BAD --record {}/batch.parquet --rules {}/rules.json --out {}/north",
        bombs.JSON_BOMBS,
        2,
    ),
    (
        "plant join {}/north.invitation --record {}/batch.parquet --rules BAD --out {}/north",
        bombs.JSON_BOMBS[:1],
        2,
    ),
    ("coordinator import {}/water BAD", bombs.JSON_BOMBS, 2),
    ("coordinator init {}/w2 --reference {}/clean.parquet --policy BAD", bombs.TOML_BOMBS[:1], 2),
    ("lab plan BAD", bombs.TOML_BOMBS[:3], 2),
)


@pytest.mark.parametrize(
    ("command", "bomb", "code"),
    [
        pytest.param(command, bomb, code, id=f"{command.split(' {')[0]}-{bomb.__name__}")
        for command, each, code in COMMANDS
        for bomb in each
    ],
)
def test_a_document_that_explodes_is_refused(
    command: str, bomb: Callable[[], bytes], code: int, site: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.file"
    bad.write_bytes(bomb())
    bad.chmod(0o600)
    arguments = command.replace("{}", str(site)).replace("BAD", str(bad)).split()
    ending = run(*arguments, cache=tmp_path / "cache")
    start = command.split(" ", 2)
    group = start[0] if start[0] in ("check", "mine", "score") else " ".join(start[:2])
    name = "step" if code == 3 else "bad"
    demand_refusal(ending, group, site, name=name, code=code)


@pytest.mark.parametrize(
    "command",
    [
        "data inspect {}/batch.parquet --plant /dev/zero",
        "rules show /dev/zero",
        "check {}/batch.parquet --rules {}/rules.json --policy /dev/zero",
        "score {}/batch.parquet --model /dev/zero --out {}/scores.csv",
        "audit-log verify /dev/zero",
        "coordinator import {}/water /dev/zero",
        "lab plan /dev/zero",
    ],
)
def test_a_file_that_never_ends_is_refused(command: str, site: Path, tmp_path: Path) -> None:
    arguments = command.replace("{}", str(site)).split()
    ending = run(*arguments, cache=tmp_path / "cache")
    start = command.split(" ", 2)
    group = start[0] if start[0] in ("check", "score") else " ".join(start[:2])
    demand_refusal(ending, group, site, name="/dev/zero")


@pytest.mark.parametrize(
    ("file", "bomb"),
    [
        ("circuit.json", bombs.deep_lists),
        ("rules.json", bombs.deep_objects),
        ("policy.toml", bombs.a_key_of_a_hundred_thousand_parts),
        ("private/client.key", bombs.a_log_line_without_end),
    ],
    ids=["circuit", "rules", "policy", "key"],
)
def test_a_key_folder_that_explodes_is_refused(
    file: str, bomb: Callable[[], bytes], site: Path, tmp_path: Path
) -> None:
    shutil.copytree(site / "keys", tmp_path / "keys")
    (tmp_path / "keys" / file).write_bytes(bomb())
    options = ("--keys", tmp_path / "keys", "--out", tmp_path / "commit.json")
    ending = run("attest", "commit", site / "batch.parquet", *options, cache=tmp_path / "cache")
    name = "circuit" if file == "circuit.json" else file
    demand_refusal(ending, "attest commit", site, name=name)


def test_a_request_whose_rules_explode_is_refused(site: Path, tmp_path: Path) -> None:
    invitation = json.loads((site / "north.invitation").read_text())
    request = {
        "schema": 2,
        "plant": "north",
        "protocols": [1],
        "secret": invitation["secret"],
        "node_key": "",
        "registration": bombs.deep_lists().decode(),
        "rules": bombs.deep_lists().decode(),
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    command = ("coordinator", "import", site / "water", tmp_path / "request.json")
    ending = run(*command, cache=tmp_path / "cache")
    demand_refusal(ending, "coordinator import", site, name="registration")
