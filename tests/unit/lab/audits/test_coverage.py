"""Coverage: which labelled attacks the rules see, and which an honest stretch would look like."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.errors import RecordError
from sluice.lab.audits.coverage import coverage
from sluice.lab.audits.masks import masks
from sluice.telemetry.record import Label, Record


@pytest.fixture(params=["paper", "hardened"])
def gate(request: pytest.FixtureRequest) -> Gate:
    found = request.getfixturevalue(str(request.param))
    assert isinstance(found, Gate)
    return found


def relabelled(record: Record, *attacks: slice) -> Record:
    labels = np.full(len(record), Label.NORMAL, np.int8)
    for rows in attacks:
        labels[rows] = Label.ATTACK
    return replace(record, labels=labels)


def test_the_masks_together_are_the_suspect_rows_of_the_verdict(
    gate: Gate, labelled: Record
) -> None:
    together = np.zeros(len(labelled), bool)
    for mask in masks(gate, labelled):
        together |= mask.suspect
    assert np.array_equal(together, gate.judge(labelled).suspect)


def test_every_attack_is_scored_on_its_own_rows(gate: Gate, labelled: Record) -> None:
    found = coverage(labelled, gate)
    suspect = gate.judge(labelled).suspect
    assert found.total == len(labelled.attack_segments) > 0
    assert 0 < found.covered <= found.total
    for segment, run in zip(found.segments, labelled.attack_segments, strict=True):
        assert segment.rows == run.rows
        assert segment.violating_rows == suspect[run.slice].sum()
        assert segment.violating_share == segment.violating_rows / segment.rows
        assert segment.covered is (segment.violating_share > 0.01)
        assert bool(segment.rule) is (segment.violating_rows > 0)
    first = labelled.attack_segments[0]
    assert found.segments[0].start == str(labelled.times[first.start].astype("datetime64[s]"))
    assert found.segments[0].end == str(labelled.times[first.stop - 1].astype("datetime64[s]"))


def test_the_worst_rule_is_the_one_most_rows_break(paper: Gate, unseen: Record) -> None:
    values = unseen.values.copy()
    flow = unseen.index("F_PU1")
    values[1_000:1_100, flow] *= 3
    attacked = relabelled(unseen.with_values(values), slice(1_000, 1_100))
    segment = coverage(attacked, paper).segments[0]
    counts = {mask.name: int(mask.suspect[1_000:1_100].sum()) for mask in masks(paper, attacked)}
    assert segment.covered
    assert counts[segment.rule] == max(counts.values())


def test_one_percent_exactly_is_not_covered(paper: Gate, unseen: Record) -> None:
    values = unseen.values.copy()
    values[1_050, unseen.index("L_T1")] = np.nan  # neither row around it can be judged
    values[1_051, unseen.index("F_PU1")] += 1e6
    rows = 100
    spoiled = unseen.with_values(values)
    broken = int(paper.judge(spoiled).suspect[1_000 : 1_000 + rows].sum())
    assert broken == 1
    attacked = relabelled(spoiled, slice(1_000, 1_000 + rows))
    assert not coverage(attacked, paper).segments[0].covered
    shorter = relabelled(spoiled, slice(1_001, 1_000 + rows))
    assert coverage(shorter, paper).segments[0].covered


def test_rows_just_after_an_attack_are_not_held_against_the_rules(
    paper: Gate, unseen: Record
) -> None:
    values = unseen.values.copy()
    values[1_000:1_150, unseen.index("F_PU1")] += 1e6  # the plant recovers for fifty rows
    attacked = relabelled(unseen.with_values(values), slice(1_000, 1_100))
    assert coverage(attacked, paper).recovery_rows == 60  # an hour at one row a minute
    strict, lenient = (
        coverage(attacked, paper, recovery_rows=rows).honest_share for rows in (0, 60)
    )
    assert strict is not None
    assert lenient is not None
    assert lenient < 0.005 < strict


def test_chance_tells_a_hit_from_noise(paper: Gate, unseen: Record) -> None:
    values = unseen.values.copy()
    spikes = np.arange(20, len(unseen), 50)
    values[spikes, unseen.index("F_PU1")] += 1e6  # a meter that spikes all the time
    attacked = relabelled(unseen.with_values(values), slice(2_000, 2_060))
    segment = coverage(attacked, paper).segments[0]
    assert segment.covered
    assert segment.chance == 1
    quiet = coverage(relabelled(unseen, slice(2_000, 2_060)), paper).segments[0]
    assert quiet.chance is not None
    assert quiet.chance < 0.2


def test_without_normal_rows_there_is_nothing_to_compare_with(
    paper: Gate, labelled: Record
) -> None:
    unlabelled = np.where(labelled.labels == Label.ATTACK, Label.ATTACK, Label.UNLABELLED)
    found = coverage(replace(labelled, labels=unlabelled.astype(np.int8)), paper)
    assert found.honest_share is None
    assert {segment.chance for segment in found.segments} == {None}


def test_a_record_without_attacks_is_refused(paper: Gate, unseen: Record) -> None:
    with pytest.raises(RecordError, match="no row labelled as attack"):
        coverage(unseen, paper)


def test_every_row_is_counted_once_and_what_is_left_out_is_said(
    gate: Gate, labelled: Record
) -> None:
    labels = labelled.labels.copy()
    labels[-50:] = Label.UNLABELLED
    found = coverage(replace(labelled, labels=labels), gate)
    assert found.unlabelled_rows == 50
    assert found.recovering_rows > 0
    counted = found.attack_rows + found.honest_rows + found.recovering_rows
    assert counted + found.unlabelled_rows == len(labelled)
    assert found.honest_share == found.honest_suspect_rows / found.honest_rows
    assert len(found.missed) == found.total - found.covered


def test_a_channel_that_no_rule_reads_is_named(gate: Gate, labelled: Record) -> None:
    read = {name for rule in gate.rules.invariants for name in rule.relation.channels}
    assert set(coverage(labelled, gate).unread) == set(labelled.names) - read
