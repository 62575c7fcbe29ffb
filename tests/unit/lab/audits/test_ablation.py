"""Ablation: what each part of the rules sees alone."""

import pytest

from sluice.admission.gate import Gate
from sluice.invariants.relations import RelationKind
from sluice.invariants.ruleset import RuleSet
from sluice.lab.audits.ablation import Ablation, Part, ablation, subset
from sluice.lab.audits.separation import separation
from sluice.telemetry.record import Record


@pytest.fixture(scope="module")
def found(unseen: Record, labelled: Record, hardened: Gate) -> Ablation:
    return ablation(unseen, hardened, labelled=labelled, batches=8, size=400)


def test_every_part_is_tried_and_the_parts_make_the_whole(found: Ablation, hardened: Gate) -> None:
    assert tuple(part.part for part in found.parts) == tuple(Part)
    *alone, whole = found.parts
    assert sum(part.rules for part in alone) == whole.rules == len(hardened.rules.invariants)


def test_the_whole_is_the_plain_audit(found: Ablation, unseen: Record, hardened: Gate) -> None:
    assert found.of(Part.ALL).separation == separation(unseen, hardened, batches=8, size=400)


def test_ranges_alone_admit_what_physics_refuses(found: Ablation) -> None:
    for kind in ("channel-roll", "scaling"):
        assert found.of(Part.RANGES).separation.of(kind).admitted_share == 1
        assert found.of(Part.ALL).separation.of(kind).admitted_share == 0


def test_no_part_covers_more_attacks_than_the_whole(found: Ablation) -> None:
    whole = found.of(Part.ALL).coverage
    assert whole is not None
    for part in found.parts:
        assert part.coverage is not None
        assert part.coverage.covered <= whole.covered


def test_a_subset_keeps_only_the_facts_about_its_rules(hardened_rules: RuleSet) -> None:
    couplings = subset(hardened_rules, frozenset({RelationKind.COUPLING}))
    names = {rule.name for rule in couplings.invariants}
    assert names
    assert couplings.clean is not None
    assert {share.rule for share in couplings.clean.severe} <= names
    assert {share.rule for share in couplings.clean.envelope} == names
    assert couplings.clean.anchors == ()
    assert couplings.clean.liveness == ()
    assert subset(hardened_rules, frozenset(RelationKind)) == hardened_rules


def test_rules_of_the_paper_have_no_ranges_to_try(unseen: Record, paper: Gate) -> None:
    found = ablation(unseen, paper, batches=3, size=300)
    ranges = found.of(Part.RANGES)
    assert (ranges.rules, ranges.coverage) == (0, None)
    assert all(row.admitted_share == 1 for row in ranges.separation.rows)


def test_progress_runs_over_all_parts(unseen: Record, paper: Gate) -> None:
    told: list[float] = []
    ablation(unseen, paper, batches=2, size=300, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1)
