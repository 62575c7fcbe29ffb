"""`python -m benchmarks`: ratios of the contract, an honest rival, one sentence on bad usage."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import command
from benchmarks.speed import gate as bench_gate
from benchmarks.speed import pandas_gate
from benchmarks.speed import train as bench_train
from benchmarks.speed.ceiling import Ceiling
from benchmarks.speed.gate import GateBench, Timing
from benchmarks.speed.train import TrainBench
from sluice.admission.measured import MeasuredBatch
from sluice.admission.policy import PaperPolicy
from sluice.admission.verdict import Verdict
from sluice.detector.autoencoder import Descent
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.plants.catalogue import simulate
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]

MEASURED = GateBench(
    mined_rows=94_680,
    rows=1_000_000,
    rules=9,
    channels_read=18,
    violating_rows=2_383,
    mining=Timing(seconds=1.25, peak_bytes=20 << 20),
    ours=Timing(seconds=0.030, peak_bytes=12 << 20),
    pandas=Timing(seconds=0.180, peak_bytes=44 << 20),
    one_pass=Timing(seconds=0.0075, peak_bytes=0),
)


def test_the_gate_and_its_rival_are_measured_side_by_side(bench: Run) -> None:
    seen = bench("gate", "--rows", 2_000, "--repeats", 1, "--json")
    assert seen.code == 0, seen.err
    found = seen.json
    assert found["rows"] == 2_000
    assert found["rules"] == 9
    ratios = found["ratios"]
    assert isinstance(ratios, dict)
    assert set(ratios) == {"faster_than_pandas", "memory_passes"}
    assert all(ratio > 0 for ratio in ratios.values())
    for timed in ("mining", "ours", "pandas", "one_pass"):
        assert isinstance(found[timed], dict)


def test_the_table_shows_both_times_their_ratio_and_the_memory(
    bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "bench_gate", lambda **_: MEASURED)
    shown = re.sub(r"\s+", " ", bench("--quiet").out)
    for part in ("1.25 s", "30.0 ms 180.0 ms 6.0 times", "7.5 ms 4.0 times", "12 MiB", "2,383"):
        assert part in shown


TRAINED = TrainBench(
    clients=10,
    rows=4_734,
    rounds=25,
    descent=Descent(),
    flop=1_600_000_000_000,
    needed_flop=1_360_000_000_000,
    seconds=10.0,
    compile_seconds=1.5,
    peak_bytes=700 << 20,
    above=Ceiling(numpy=185e9, xla=140e9),
)


def test_training_is_measured_beside_the_products_of_large_matrices(
    bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_train, "MATRIX_SIZES", (64,))
    asked = ("--clients", 2, "--rows", 40, "--rounds", 2, "--repeats", 1)
    seen = bench("train", *asked, "--json")
    assert seen.code == 0, seen.err
    found = seen.json
    assert (found["clients"], found["rows"], found["rounds"]) == (2, 40, 2)
    products = 6 * 420 * 128 + 6 * 128 * 24  # per window: forwards, in weights, in inputs
    epochs = 2 * 2 * 2  # clients, rounds, epochs
    assert found["tflop"] == pytest.approx(epochs * 31 * 2 * products / 1e12)
    ratios, gemm = found["ratios"], found["gemm_gflops"]
    assert isinstance(ratios, dict)
    assert isinstance(gemm, dict)
    assert isinstance(found["gflops"], float)
    share = found["gflops"] / max(gemm.values())
    needed = 1 - 420 * 128 / products  # training ignores the gradient of the readings
    assert ratios == {
        "share_of_peak": pytest.approx(share),
        "needed_share_of_peak": pytest.approx(share * needed),
    }


def test_the_table_of_training_shows_rate_share_and_memory(
    bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_train, "bench_train", lambda **_: TRAINED)
    shown = re.sub(r"\s+", " ", bench("train", "--quiet").out)
    for part in (
        "10.00 s 160.0 86.5%",
        "73.5%",
        "700 MiB",
        "185.0",
        "140.0",
        "1.36 of",
        "1.5 s, once",
    ):
        assert part in shown


def test_too_few_rows_to_train_on_are_refused(bench: Run) -> None:
    seen = bench("train", "--rows", 9)
    assert seen.code == 2
    assert "at least 1 client of 10 rows for 1 round" in seen.err


def test_help_has_an_example(bench: Run) -> None:
    assert "Example: python -m benchmarks gate" in bench("--help").out


def test_an_unknown_bench_is_refused_with_the_nearest_name(bench: Run) -> None:
    seen = bench("gates")
    assert seen.code == 2
    known = "gate, train, attest-full, attest-sampled"
    assert f"unknown bench 'gates'; known are {known}; did you mean 'gate'?" in seen.err


def test_too_few_rows_are_refused(bench: Run) -> None:
    seen = bench("gate", "--rows", 10)
    assert seen.code == 2
    assert "at least 1000 rows, got 10" in seen.err


def test_a_rival_that_differs_by_one_row_stops_the_bench() -> None:
    record = simulate("line", seed=1, days=2)
    rules = mine(record, record, profile=Profile.PAPER_NARROW)
    judged = pandas_gate.judge(pandas_gate.frame_of(record), rules)
    verdict = Verdict(
        measured=MeasuredBatch(rules=rules, record=record),
        policy=PaperPolicy(),
        reasons=(),
        findings=(),
        violating=judged.violating.to_numpy(),
        suspect=judged.violating.to_numpy(),
    )
    agreeing = replace(judged, broken_rows=(), judged_rows=())
    bench_gate._demand_agreement(verdict, agreeing)
    flipped = verdict.violating.copy()
    flipped[7] = ~flipped[7]
    with pytest.raises(AssertionError, match="differ: on 1 rows"):
        bench_gate._demand_agreement(replace(verdict, violating=np.asarray(flipped)), agreeing)
