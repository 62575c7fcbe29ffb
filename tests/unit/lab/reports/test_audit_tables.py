"""Separation, coverage and proofs as tables: our figures, the paper's and their differences."""

from dataclasses import replace

import pytest

from sluice.lab.reports.audit_parts import audit_figures, audit_tables
from sluice.lab.reports.tables import ReportTable
from sluice.lab.results.audited import (
    AuditedAttack,
    AuditedKind,
    AuditedProof,
    AuditedSet,
    Audits,
)
from tests.unit.lab.reports.stored_cells import column


def kind(name: str, *, share: float, admitted: float, batches: int = 200) -> AuditedKind:
    return AuditedKind(
        kind=name,
        mean_violating_share=share,
        admitted_share=admitted,
        batches=batches,
        low=max(0.0, admitted - 0.01),
        high=min(1.0, admitted + 0.02),
    )


def attack(index: int, *, rows: int, violating: int, covered: bool) -> AuditedAttack:
    return AuditedAttack(
        index=index, rows=rows, violating_rows=violating, covered=covered, rule="LIT401"
    )


WIDE = AuditedSet(
    record="wadi",
    stand_in=None,
    invariants="paper-narrow",
    couplings=6,
    balances=3,
    honest_share=0.0036,
    separation=(
        kind("honest", share=0.0012, admitted=0.995),
        kind("scaling", share=0.27, admitted=0.24),
        kind("drift", share=0.1, admitted=0.0),
    ),
    attacks=(
        attack(1, rows=1_000, violating=900, covered=True),
        attack(2, rows=500, violating=0, covered=False),
    ),
)
PROOF = AuditedProof(
    record="wadi",
    stand_in=None,
    system="full",
    rows=1_024,
    constraints=900,
    proven_bits=100,
    prove_s=1.25,
    peak_mb=300.0,
    verify_ms=20.0,
    proof_bytes=700_000,
)


def tables(*sets: AuditedSet) -> tuple[ReportTable, ReportTable]:
    separation, coverage = audit_tables(Audits(sets=sets))
    return separation, coverage


def test_without_audits_there_is_no_table() -> None:
    assert audit_tables(Audits()) == []


def test_proofs_come_after_separation_and_coverage() -> None:
    found = audit_tables(Audits(sets=(WIDE,), proofs=(PROOF,)))
    assert [table.slug for table in found] == ["separation", "coverage", "proofs"]


def test_separation_is_in_percent_with_its_interval() -> None:
    separation, _ = tables(WIDE)
    assert column(separation, "telemetry") == ["honest", "scaling", "drift"]
    assert column(separation, "batches") == [200, 200, 200]
    assert column(separation, "violating %") == pytest.approx([0.12, 27.0, 10.0])
    assert column(separation, "admitted %") == pytest.approx([99.5, 24.0, 0.0])
    assert column(separation, "from") == pytest.approx([98.5, 23.0, 0.0])
    assert column(separation, "to") == pytest.approx([100.0, 26.0, 2.0])


def test_the_papers_separation_is_beside_the_kinds_that_it_measured() -> None:
    separation, _ = tables(WIDE)
    assert column(separation, "paper")[:2] == pytest.approx([0.1185, 26.939])
    assert column(separation, "difference")[:2] == pytest.approx([0.0015, 0.061])
    assert column(separation, "paper", nth=1)[:2] == pytest.approx([100.0, 23.5])
    assert column(separation, "difference", nth=1)[:2] == pytest.approx([-0.5, 0.5])
    for name in ("paper", "difference"):
        assert [column(separation, name, nth=nth)[2] for nth in (0, 1)] == [None, None]


def test_a_rule_set_that_the_paper_did_not_measure_has_no_figure_beside_it() -> None:
    separation, coverage = tables(replace(WIDE, invariants="hardened"))
    assert set(column(separation, "paper")) == {None}
    assert column(coverage, "paper") == [None]
    assert column(coverage, "difference") == [None]


def test_separation_says_how_many_clean_batches_are_refused_and_what_passes() -> None:
    other = replace(
        WIDE,
        record="swat",
        separation=(
            kind("honest", share=0.0, admitted=0.98, batches=100),
            kind("replay", share=0.0, admitted=0.5),
        ),
    )
    separation, _ = tables(WIDE, other)
    assert separation.finding == (
        "3 of 300 clean batches are refused; batches of these fabricated kinds pass: replay, "
        "scaling."
    )


def test_separation_says_so_if_nothing_fabricated_passes() -> None:
    refusing = (kind("honest", share=0.0, admitted=1.0), kind("drift", share=0.9, admitted=0.0))
    separation, _ = tables(replace(WIDE, separation=refusing))
    assert separation.finding == "0 of 200 clean batches are refused; no fabricated batch passes."


def test_coverage_counts_attacks_and_rows_beside_the_papers() -> None:
    _, coverage = tables(WIDE)
    (row,) = coverage.rows
    assert list(row) == [
        "wadi",
        "paper-narrow",
        6,
        3,
        pytest.approx(0.36),
        "1 of 2",
        "3 of 14",
        -2,
        "900 of 1,500",
        "395 of 1,996",
        505,
    ]
    assert coverage.finding == "paper-narrow on wadi covers 1 of 2 attacks."


def test_coverage_without_clean_rows_has_no_share_of_them() -> None:
    _, coverage = tables(replace(WIDE, honest_share=None))
    assert column(coverage, "clean rows suspect %") == [None]


def test_a_stand_in_is_named_in_every_table_and_figure() -> None:
    stood = replace(WIDE, stand_in="treatment")
    for table in audit_tables(
        Audits(sets=(stood,), proofs=(replace(PROOF, stand_in="treatment"),))
    ):
        assert column(table, "record")[0] == "treatment for wadi"
    separation, coverage = audit_figures([stood])
    assert [note.text for note in separation.figure.layout.annotations] == [
        "treatment for wadi, paper-narrow"
    ]
    assert coverage.title == "Attacks that the rules detect: treatment for wadi"


def test_every_table_has_a_value_below_each_heading() -> None:
    for table in audit_tables(Audits(sets=(WIDE,), proofs=(PROOF,))):
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_a_proofs_cost_is_told_as_measured_and_the_papers_comes_last() -> None:
    (table,) = audit_tables(Audits(proofs=(PROOF,)))
    assert table.rows == (
        ("wadi", "full", "all 1,024", 900, 100, 1.25, 300.0, 20.0, 700_000),
        ("swat (paper)", "Groth16", "32 of 1,024", 297_736, None, 12.0, 3_800.0, 290.0, 806),
    )


def test_the_figures_data_are_those_of_the_tables() -> None:
    separation, _ = tables(WIDE)
    drawn, covered = audit_figures([WIDE])
    assert (drawn.topic, covered.topic) == ("separation", "coverage")
    (bars,) = drawn.figure.data
    assert [100 * share for share in bars.x] == pytest.approx(column(separation, "violating %"))
    (markers,) = covered.figure.data
    assert list(markers.x) == ["1", "2"]
    assert list(markers.y) == [0.9, 1e-4]


def test_coverage_sets_the_first_two_rule_sets_of_a_record_side_by_side() -> None:
    hardened = replace(
        WIDE,
        invariants="hardened",
        attacks=(
            attack(1, rows=1_000, violating=1_000, covered=True),
            attack(2, rows=500, violating=50, covered=True),
        ),
    )
    _, covered = audit_figures([WIDE, hardened])
    narrow, wide = covered.figure.data
    assert (narrow.name, wide.name) == ("paper-narrow", "hardened")
    assert list(narrow.y) == [0.9, 1e-4]
    assert list(wide.y) == [1.0, 0.1]


def test_two_rule_sets_that_saw_other_attacks_are_not_drawn_together() -> None:
    shorter = replace(WIDE, invariants="hardened", attacks=WIDE.attacks[:1])
    with pytest.raises(ValueError, match="zip"):
        audit_figures([WIDE, shorter])
