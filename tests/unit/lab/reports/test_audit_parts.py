"""Separation and coverage in a grid's report."""

from pathlib import Path

import pytest

from sluice.errors import ResultsError
from sluice.lab.reports.audit_parts import audit_figures, audit_tables
from sluice.lab.results.audited import (
    AuditedAttack,
    AuditedKind,
    AuditedProof,
    AuditedSet,
    Audits,
    load_audits,
    save_audits,
)

PROOF = AuditedProof(
    record="swat",
    stand_in="treatment",
    system="full",
    rows=1_024,
    constraints=900,
    proven_bits=100,
    prove_s=1.2,
    peak_mb=300.0,
    verify_ms=20.0,
    proof_bytes=700_000,
)


def audited(record: str = "swat", *, stand_in: str | None = None) -> AuditedSet:
    return AuditedSet(
        record=record,
        stand_in=stand_in,
        invariants="paper-wide",
        couplings=6,
        balances=3,
        honest_share=0.0036,
        separation=(
            AuditedKind(
                kind="channel-roll",
                mean_violating_share=0.3,
                admitted_share=0.0,
                batches=200,
                low=0.0,
                high=0.02,
            ),
        ),
        attacks=(
            AuditedAttack(index=0, rows=100, violating_rows=90, covered=True, rule="LIT401"),
            AuditedAttack(index=1, rows=50, violating_rows=0, covered=False, rule=""),
        ),
    )


def test_the_papers_figures_stand_beside_ours_on_its_own_record_alone() -> None:
    separation, coverage = audit_tables(Audits(sets=(audited(),)))
    assert list(separation.rows[0][4:7]) == pytest.approx([30.0, 29.8895, 0.1105])
    covered, rows = ("1 of 2", "20 of 35", -19), ("90 of 150", "8,991 of 10,931", -8_901)
    assert coverage.rows[0][5:] == (*covered, *rows)
    separation, coverage = audit_tables(Audits(sets=(audited(stand_in="treatment"),)))
    assert separation.rows[0][0] == "treatment for swat"
    assert separation.rows[0][5] is None
    assert coverage.rows[0][6] is None


def test_there_is_a_figure_for_separation_and_one_a_record_for_coverage() -> None:
    titles = [drawn.title for drawn in audit_figures([audited(), audited("wadi")])]
    assert titles == [
        "Separation of clean from fabricated telemetry",
        "Attacks that the rules detect: swat",
        "Attacks that the rules detect: wadi",
    ]
    assert audit_figures([]) == []


def test_audits_are_kept_and_read_and_damage_is_said(tmp_path: Path) -> None:
    assert load_audits(tmp_path) == Audits()
    kept = Audits(sets=(audited(),), proofs=(PROOF,))
    save_audits(tmp_path, kept)
    assert load_audits(tmp_path) == kept
    (tmp_path / "audits.json").write_text("[{]")
    with pytest.raises(ResultsError, match="sluice lab audit"):
        load_audits(tmp_path)


def test_proofs_stand_beside_the_papers_with_what_differs() -> None:
    (table,) = audit_tables(Audits(proofs=(PROOF,)))
    assert table.rows[0][:3] == ("treatment for swat", "full", "all 1,024")
    assert table.rows[1][2:4] == ("32 of 1,024", 297_736)
    assert "another machine" in table.sentence
