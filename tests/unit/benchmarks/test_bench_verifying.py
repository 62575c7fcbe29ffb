"""`verify-many`: the cost of verifying many plants' proofs in one call."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.attest import verifying
from benchmarks.attest.verifying import Verified
from sluice.attestation.systems.full import Full
from sluice.attestation.systems.system import ProofClaim
from sluice.errors import ProverError
from tests.unit.attestation.full_plant import Wiring, clean_batch, policy_of, rules_of

ROWS = 80


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    of = SimpleNamespace(rules=rules_of(Wiring()), unseen=clean_batch(ROWS, 1))
    monkeypatch.setattr(verifying, "subject", lambda _: of)
    monkeypatch.setattr(verifying, "HardenedPolicy", lambda: policy_of(Wiring()))
    monkeypatch.setattr(verifying, "PROOFS", 2)


@pytest.mark.usefixtures("plant")
def test_a_line_for_each_number_of_plants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    asked = ["--rows", str(ROWS), "--plants", "1", "--plants", "3", "--out", str(page)]
    monkeypatch.setattr(sys, "argv", ["verify-many", *asked])
    verifying.main()
    lines = page.read_text().splitlines()[-2:]
    assert [line.split(" | ")[3] for line in lines] == ["1", "3"]
    assert "80 | 1 |" in capsys.readouterr().out


def test_a_proof_that_is_refused_ends_the_measurement() -> None:
    circuit = Full().circuit(rules_of(Wiring()), policy_of(Wiring()), rows_max=ROWS)
    claim = ProofClaim(commitment=bytes(32), rows=ROWS, context=bytes(32), proof=b"none")
    with pytest.raises(ProverError, match="was refused"):
        verifying.measure(circuit, [claim], 2)


def test_a_line_of_the_table() -> None:
    found = Verified(
        rows=4_734, segments=2, proof_bytes=1_244_000, plants=100, cpu_s=1.5, wall_s=0.8,
        grown_bytes=30_000_000,
    )  # fmt: skip
    assert verifying.line(found) == ("| 4,734 | 2 | 1,244 kB | 100 | 15.0 ms | 0.80 s | 30 MB |")
    assert "1,000" in verifying.line(replace(found, plants=1_000))
