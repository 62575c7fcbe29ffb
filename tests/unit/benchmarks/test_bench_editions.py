"""`attest-editions`: medians, and ratios to the first edition at the same number of rows."""

import json
import sys
from types import SimpleNamespace

import pytest

from benchmarks.attest import editions
from benchmarks.attest.editions import Costs

CIRCUITS = {
    "first": SimpleNamespace(columns=600, constraints=700, rules=SimpleNamespace(invariants=())),
    "second": SimpleNamespace(columns=750, constraints=900, rules=SimpleNamespace(invariants=())),
}


def costs(scale: float) -> Costs:
    return Costs(
        cpu_s=[scale, 2 * scale, 9 * scale],
        peak_bytes=[int(scale * 1e8)] * 3,
        verify_s=[0.005],
        proof_bytes=500_000,
    )


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    unseen = SimpleNamespace(rows=lambda _, rows: rows)
    monkeypatch.setattr(editions, "editions", lambda *_: (CIRCUITS, unseen))
    found = {"first": costs(1.0), "second": costs(1.2)}
    monkeypatch.setattr(editions, "measure", lambda *_: found)


@pytest.mark.usefixtures("measured")
def test_a_line_for_each_edition_and_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["attest-editions", "--rows", "256", "--rows", "512"])
    editions.main()
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in lines] == ["| 256"] * 2 + ["| 512"] * 2
    assert "2.40 s (1.20 to 10.80), x 1.20 | 120 MB, x 1.20 | 5.0 ms | 500 kB |" in lines[1]


@pytest.mark.usefixtures("measured")
def test_every_run_is_in_the_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["attest-editions", "--rows", "256", "--json"])
    editions.main()
    first, second = json.loads(capsys.readouterr().out)
    assert (first["edition"], second["edition"], second["columns"]) == ("first", "second", 750)
    assert second["cpu_seconds"] == pytest.approx([1.2, 2.4, 10.8])
