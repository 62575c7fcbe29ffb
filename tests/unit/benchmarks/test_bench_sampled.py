"""`python -m benchmarks attest-sampled`: ours, the rival where it is installed, and the ratios."""

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from benchmarks.attest import rival as bench_rival
from benchmarks.attest import sampled as bench_sampled
from benchmarks.attest.rival import Absent, RivalCost, Step, find_rival, run_measured
from benchmarks.attest.sampled import SampledBench, SampledSubject
from benchmarks.attest.sampled_table import Comparison, payload, show
from sluice.attestation.systems.sampled.system import poseidon
from sluice.errors import ProverError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.plants.catalogue import simulate
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]

OURS = SampledBench(
    rows=1_024,
    samples=32,
    rules=9,
    channels=42,
    constraints=168_339,
    setup_seconds=10.0,
    commit_seconds=0.1,
    prove_seconds=4.0,
    process=Step(seconds=5.0, peak_bytes=400_000_000, cpu_seconds=10.0),
    verify_milliseconds=3.0,
    proof_bytes=256,
    proving_key_bytes=90_000_000,
)
RIVAL = RivalCost(
    samples=8,
    constraints=74_464,
    compiling=Step(seconds=20.0, peak_bytes=1, cpu_seconds=40.0),
    setup=Step(seconds=200.0, peak_bytes=1, cpu_seconds=400.0),
    witness=Step(seconds=1.0, peak_bytes=1, cpu_seconds=2.0),
    proving=(
        Step(seconds=11.0, peak_bytes=460_000_000, cpu_seconds=22.0),
        Step(seconds=10.0, peak_bytes=450_000_000, cpu_seconds=20.0),
    ),
    verifying=Step(seconds=0.6, peak_bytes=1, cpu_seconds=1.2),
    key_bytes=57_000_000,
)
EQUAL = replace(OURS, samples=8, process=Step(seconds=2.0, peak_bytes=225_000_000, cpu_seconds=4.0))


def test_a_small_circuit_is_measured_from_keys_to_verification() -> None:
    plant = simulate("line", seed=0, days=8)
    rules = mine(plant.rows(0, 4_320), plant.rows(4_320, 8_640), profile=Profile.PAPER_WIDE)
    subject = SampledSubject(rules=rules, unseen=plant.rows(8_640, len(plant)))
    found = bench_sampled.bench_sampled(subject, repeats=1, samples=3)
    assert (found.samples, found.rows, found.proof_bytes) == (3, 1_024, 256)
    assert 0 < found.prove_seconds < found.process.seconds
    assert found.process.peak_bytes > 20_000_000


def test_ratios_are_those_of_thirty_two_samples_and_of_equal_memory() -> None:
    scaled = Comparison(ours=OURS, rival=RIVAL, equal=EQUAL)
    assert scaled.ratios["proving_faster"] == pytest.approx(3.9 * 11.0 / 5.0)
    assert scaled.ratios["proving_less_work"] == pytest.approx(3.9 * 22.0 / 10.0)
    assert scaled.ratios["proving_memory"] == pytest.approx(0.5)
    assert scaled.ratios["setup_faster"] == pytest.approx(78.0)
    thorough = Comparison(ours=OURS, rival=replace(RIVAL, samples=32), equal=OURS)
    assert thorough.ratios["proving_faster"] == pytest.approx(11.0 / 5.0)
    assert json.loads(json.dumps(payload(scaled)))["rival"]["constraints"] == 74_464


def test_both_are_shown_side_by_side(capfd: pytest.CaptureFixture[str]) -> None:
    show(Comparison(ours=OURS, rival=RIVAL, equal=EQUAL))
    told = " ".join(capfd.readouterr().out.split())
    assert "samples x 3.9" in told
    assert "168,339" in told
    assert "8.6 times as fast" in told
    assert "(ratio 0.50)" in told


def test_without_the_tools_ours_is_measured_alone(
    bench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_sampled, "subject", lambda: None)
    monkeypatch.setattr(bench_sampled, "bench_sampled", lambda *_, **__: OURS)
    run = ("attest-sampled", "--rival", tmp_path)
    seen = bench(*run, "--json")
    assert seen.code == 0, seen.err
    assert seen.json["rival"] is None
    assert set(cast("dict[str, float]", seen.json["ratios"])) == {"constraints_of_the_paper"}
    assert "Ours alone" in bench(*run).out


def test_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/node")
    found = find_rival(tmp_path)
    assert isinstance(found, Absent)
    assert "make rival" in found.why
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert find_rival(tmp_path) == Absent(why="node is not installed")


def test_the_rivals_inputs_open_one_root() -> None:
    told = bench_rival._inputs(3)
    (row, *_), (path, *_) = (
        cast("list[list[str]]", told["xCur"]),
        cast("list[list[str]]", told["pathCur"]),
    )
    values = [int(each) for each in row]
    rest = int(cast("list[str]", told["hRestCur"])[0])
    leaf = poseidon([poseidon(values[:9]), poseidon(values[9:]), rest])
    assert path[0] == str(leaf)
    assert str(poseidon([int(path[-1]), int(path[-1])])) == told["root"]
    drawn = cast("list[int]", told["idx"])
    assert len(set(drawn)) == 3
    assert all(1 <= at < 1_024 for at in drawn)


def test_the_size_is_read_from_the_compiled_circuit(tmp_path: Path) -> None:
    header = struct.pack("<I", 32) + bytes(32) + struct.pack("<IIIIQI", 9, 0, 35, 8, 7, 297_736)
    other = struct.pack("<IQ", 2, 3) + b"abc"
    path = tmp_path / "main.r1cs"
    path.write_bytes(
        b"r1cs" + struct.pack("<II", 1, 2) + other + struct.pack("<IQ", 1, len(header)) + header
    )
    assert bench_rival._size(path) == (297_736, 35)
    path.write_bytes(b"r1cs" + struct.pack("<II", 1, 1) + other)
    with pytest.raises(ProverError, match="no header"):
        bench_rival._size(path)


def test_a_tool_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProverError, match="ended with code 4"):
        run_measured(["/bin/sh", "-c", "echo no >&2; exit 4"], tmp_path)
