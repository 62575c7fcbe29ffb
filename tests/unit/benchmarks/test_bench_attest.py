"""`python -m benchmarks attest-full`: proofs as the product makes them, beside what others took."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.attest import full as bench_attest
from benchmarks.attest import full_table as bench_attest_table
from benchmarks.attest import weigh
from benchmarks.attest.full import AttestBench, Cost, Usage
from sluice.attestation.systems.full import worker
from sluice.errors import ProverError
from sluice.invariants.relations import RelationKind
from sluice.lab.plants.catalogue import simulate
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]

MEASURED = AttestBench(
    plant="treatment",
    channels=51,
    moving_channels=44,
    rules=((RelationKind.COUPLING, 8), (RelationKind.BALANCE, 3)),
    columns=670,
    constraints=862,
    processors=2,
    load=0.25,
    costs=(
        Cost(
            rows=1_024,
            prove_s=(0.5, 0.4, 0.6),
            commit_s=0.02,
            verify_s=(0.016, 0.012, 0.014),
            usage=Usage(peak_bytes=151_000_000, cpu_s=0.9),
            proof_bytes=512_000,
            proven_bits=104,
        ),
    ),
)


def test_a_small_batch_is_proven_verified_and_weighed(bench: Run) -> None:
    asked = ("--plant", "line", "--rows", 200, "--runs", 1, "--json")
    seen = bench("attest-full", *asked)
    assert seen.code == 0, seen.err
    found = seen.json
    assert found["channels"] == 11
    assert isinstance(found["rules"], dict)
    assert {"coupling", "balance", "window", "bound", "rate"} < set(found["rules"])
    assert isinstance(found["costs"], list)
    (cost,) = found["costs"]
    assert cost["rows"] == 200
    assert cost["proven_bits"] >= 100
    assert len(cost["prove_runs"]) == 1
    assert cost["prove_seconds"] == pytest.approx(200 * cost["row_seconds"])
    assert 0 < cost["cpu_seconds"] < 60
    assert 1e7 < cost["peak_bytes"] < 1e9
    assert 1e5 < cost["proof_bytes"] < 1e6
    assert isinstance(found["elsewhere"], list)
    assert all(figure["times_ours"] is None for figure in found["elsewhere"])


def test_the_table_shows_medians_and_the_ratio_to_others(
    bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_attest, "subject", lambda _: None)
    monkeypatch.setattr(bench_attest, "bench_attest", lambda *_, **__: MEASURED)
    shown = re.sub(r"\s+", " ", bench("attest-full", "--quiet").out)
    for part in (
        "1,024 500.0 ms 3: 0.40-0.60 s 488 us 900.0 ms 151 MB 14.0 ms 512 kB 104",
        "51 channels, of which 44 move; rules 8 coupling, 3 balance",
        "43.00 s 86.0 1,200 MB 610.0 ms 799 B",
        "354.0 ms 0.7 102 MB",
        "samples 32 rows",
    ):
        assert part in shown


def test_channels_that_never_move_can_be_left_out() -> None:
    record = simulate("line", seed=0, days=1)
    still = record.values.copy()
    still[:, record.index("S_PU1")] = 1.0
    named = bench_attest.moving(record.with_values(still))
    assert named == tuple(name for name in bench_attest.moving(record) if name != "S_PU1")
    assert "S_PU1" in bench_attest.moving(record)


def test_figures_of_others_name_their_machine() -> None:
    assert {figure.source for figure in bench_attest_table.FIGURES} == {"EPYC", "M3 Pro"}
    for source in ("EPYC", "M3 Pro"):
        assert f"{source}:" in bench_attest_table.NOTE


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--plant", "line", "--rows", 64), "proves 200 to 2,880 rows of 'line', got 64"),
        (
            ("--plant", "lime"),
            "unknown plant 'lime'; known are treatment, treatment-moving, line; did you mean",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(
    bench: Run, options: tuple[object, ...], said: str
) -> None:
    seen = bench("attest-full", *options)
    assert seen.code == 2
    assert said in seen.err


def test_the_other_benches_take_one_number_of_rows(bench: Run) -> None:
    seen = bench("gate", "--rows", 2_000, "--rows", 3_000)
    assert seen.code == 2
    assert "bench 'gate' takes --rows once, got 2" in seen.err


def test_measured_memory_separates_a_large_process_from_a_small_one() -> None:
    def peak_of(code: str) -> int:
        done = subprocess.run(
            [sys.executable, "-I", str(Path(weigh.__file__)), sys.executable, "-I", "-c", code],
            input=b"given",
            capture_output=True,
            check=True,
        )
        peak, seconds = done.stdout.split()
        assert 0 < float(seconds) < 10
        return int(peak)

    small = peak_of("import sys; assert sys.stdin.read() == 'given'; print('not in the answer')")
    large = peak_of("held = b'x' * 100_000_000")
    assert 1e6 < small < 4e7
    assert 1e8 < large < small + 1.2e8


def test_a_prover_that_dies_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "worker.py"
    script.write_text("import sys; sys.exit(3)")
    monkeypatch.setattr(worker, "__file__", str(script))
    with pytest.raises(ProverError, match="ended with code 3 while it was measured"):
        bench_attest.measure_usage(b"")


def test_a_statistic_is_measured_beside_the_proof_without_it(bench: Run) -> None:
    asked = ("--statistic", "moments", "--plant", "line", "--rows", 200, "--runs", 1, "--quiet")
    seen = bench("attest-full", *asked, "--json")
    assert seen.code == 0, seen.err
    assert isinstance(seen.json["batches"], list)
    (batch,) = seen.json["batches"]
    assert batch["with"]["columns"] == batch["without"]["columns"] + 30
    assert set(batch["ratios"]) == {"time", "cpu", "memory", "proof"}
    assert 1.0 < batch["ratios"]["proof"] < 1.2
    assert seen.json["statistic_bits"] == 187
    shown = bench("attest-full", *asked)
    assert "statistic: " in shown.out
    assert "(target 1.05)" in shown.out


def test_only_attest_full_measures_a_statistic(bench: Run) -> None:
    assert bench("gate", "--statistic", "moments").code == 2
    assert bench("attest-full", "--statistic", "averages").code == 2
