"""The transparent system: explicit, and as strict as the statement it stands for."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from sluice.admission.policy import PaperPolicy
from sluice.attestation.systems.registry import SystemName, circuit_for, find_system
from sluice.attestation.systems.system import Circuit, System
from sluice.attestation.systems.unsafe import RevealedTable, Unsafe, _broken
from sluice.errors import (
    EmptyRulesError,
    RefusedError,
    RulesFileError,
    SettingError,
    VerificationError,
)
from sluice.invariants.budgets import Budgets
from sluice.invariants.encoding import encode
from sluice.invariants.integers import evaluate
from sluice.invariants.measure import measure
from sluice.invariants.relations import RelationKind
from sluice.invariants.ruleset import Liveness, Profile, RuleSet
from sluice.telemetry.record import Record

from .conftest import POLICY, SYSTEM

COUNTED = {
    RelationKind.SWITCH_BAND: "switches",
    RelationKind.SPECTRUM: "blocks",
    RelationKind.MEAN: "windows",
}

SALT, CONTEXT = b"s" * 32, b"c" * 32


@pytest.fixture(scope="module")
def batch(line: Record) -> Record:
    """Clean rows with everything a record can have: missing readings, a jump, odd codes."""
    rows = line.rows(8_640, 9_640)
    values = rows.values.copy()
    values[10, rows.index("L_T1")] = np.nan
    values[20, rows.index("S_PU1")] = np.nan
    values[30, rows.index("S_PU1")] += 0.001
    values[40, rows.index("S_PU2")] = 7
    times = rows.times.copy()
    times[500:] += np.timedelta64(3_600, "s")
    return replace(rows, values=values, times=times)


def test_it_must_be_asked_for() -> None:
    with pytest.raises(SettingError, match="reveals every row"):
        find_system(SystemName.UNSAFE)
    with pytest.raises(SettingError, match="reveals every row"):
        Unsafe(reveal_rows=False)
    assert find_system("unsafe", reveal_rows=True).name == "unsafe"
    with pytest.raises(SettingError, match="'best'; known are full, sampled, unsafe"):
        find_system("best")


def test_it_is_a_system(circuit: Circuit) -> None:
    system: System = SYSTEM
    assert system.largest_proof(circuit) == 256 * 1024 * 1024


def test_rebuilt_rows_are_judged_as_the_batch_is(rules: RuleSet, batch: Record) -> None:
    encoding = encode(rules)
    rebuilt = RevealedTable.of(encoding, rules).reveal(batch).record
    one, other = measure(rules, batch), measure(rules, rebuilt)
    assert np.array_equal(one.violating, other.violating)
    assert np.array_equal(one.missing, other.missing)
    assert np.array_equal(one.illegal, other.illegal)
    assert one.segments == other.segments == 2
    assert one.missing.sum() == one.illegal.sum() == 2
    for here, there in zip(evaluate(encoding, batch), evaluate(encoding, rebuilt), strict=True):
        assert np.array_equal(here.excess, there.excess), here.rule.name
        assert np.array_equal(here.envelope, there.envelope)


def test_the_commitment_hides_and_binds(circuit: Circuit, batch: Record, line: Record) -> None:
    one = SYSTEM.commit(batch, circuit, salt=SALT)
    assert len(one) == 32
    assert one == SYSTEM.commit(batch, circuit, salt=SALT)
    assert one != SYSTEM.commit(batch, circuit, salt=b"t" * 32)
    assert one != SYSTEM.commit(line.rows(8_640, 9_640), circuit, salt=SALT)


def test_proofs_hold_for_their_context_commitment_and_rows(circuit: Circuit, line: Record) -> None:
    clean = line.rows(8_640, 9_640)
    commitment = SYSTEM.commit(clean, circuit, salt=SALT)
    proof = SYSTEM.prove(clean, circuit, salt=SALT, context=CONTEXT)
    arguments = {"commitment": commitment, "rows": 1_000, "context": CONTEXT, "proof": proof}

    def verify(**changes: object) -> None:
        SYSTEM.verify(circuit, **{**arguments, **changes})  # type: ignore[arg-type]

    verify()
    for step, changes in (
        ("5.8", {"context": b"d" * 32}),
        ("5.8", {"commitment": b"x" * 32}),
        ("5.8", {"proof": b"t" + proof[1:]}),
        ("5.7", {"rows": 999}),
        ("5.7", {"rows": 0}),
        ("5.7", {"proof": proof + b"\0"}),
        ("5.7", {"proof": b""}),
        ("5.7", {"proof": proof[:-1] + b"\x02"}),
    ):
        with pytest.raises(VerificationError) as refused:
            verify(**changes)
        assert refused.value.step == step


def test_rows_that_break_a_budget_are_not_proven(circuit: Circuit, line: Record) -> None:
    clean = line.rows(8_640, 9_640)
    values = clean.values.copy()
    turned, jumped, frozen = values.copy(), values.copy(), values.copy()
    turned[100:300, clean.index("S_PU1")] = 1 - values[100:300, clean.index("S_PU1")]
    jumped[500, clean.index("L_T1")] *= 0.2
    frozen[200:800, clean.index("L_T2")] = values[200, clean.index("L_T2")]
    for forged in (turned, jumped, frozen):
        with pytest.raises(RefusedError, match="does not satisfy its circuit"):
            SYSTEM.prove(clean.with_values(forged), circuit, salt=SALT, context=CONTEXT)


def exact_budgets(rules: RuleSet, batch: Record) -> Budgets:
    """Budgets that a batch uses up to the last row."""
    measured = measure(rules, batch)
    by_row = [each for each in measured.judged if not each.anchors.size]
    return Budgets(
        violating_rows=int(measured.violating.sum()),
        segments=measured.segments,
        severe_rows=0,
        severe={each.rule.name: int(each.size.max()) for each in by_row},
        envelope_rows={each.rule.name: int(each.envelope.sum()) for each in by_row},
        anchors={
            each.rule.name: int(each.violating[each.anchors].sum())
            for each in measured.judged
            if each.anchors.size
        },
        quietest={(fact.level, fact.rows): int(ranges.min()) for fact, ranges in measured.quietest},
        switches={},
        blocks={},
        repeated_rows={},
    )


@dataclass(frozen=True)
class FixedBudgets:
    """A policy whose budgets are given."""

    given: Budgets

    def budgets(self, rules: RuleSet, *, rows: int) -> Budgets:
        assert (rules.empty, rows) == (False, 1_000)
        return self.given


def test_each_budget_may_be_used_up_and_not_exceeded(circuit: Circuit, batch: Record) -> None:
    rules = circuit.rules
    values = batch.values.copy()
    values[600:640, batch.index("L_T2")] += 0.3  # breaks balances, windows and a rate
    forged = batch.with_values(values)
    revealed = RevealedTable.of(encode(rules), rules).reveal(forged)
    exact = exact_budgets(rules, revealed.record)

    def broken(budgets: Budgets) -> list[str]:
        fixed = replace(circuit, policy=FixedBudgets(budgets))  # type: ignore[arg-type]
        return [*_broken(fixed, revealed)]

    assert broken(exact) == []
    assert broken(replace(exact, segments=exact.segments - 1)) == ["segments"]
    assert broken(replace(exact, violating_rows=exact.violating_rows - 1)) == ["violating rows"]
    largest = max(exact.severe, key=lambda name: exact.severe[name])
    stricter = replace(exact, severe=exact.severe | {largest: exact.severe[largest] - 1})
    assert broken(stricter) == ["severe rows"]
    assert broken(replace(stricter, severe_rows=1)) == []
    crossed = [name for name, count in exact.envelope_rows.items() if count]
    counted = [
        (f"{COUNTED.get(rule.kind, 'windows')} of {rule.name}", rule.name)
        for rule in rules.invariants
        if exact.anchors.get(rule.name)
    ]
    assert crossed
    assert {words.split()[0] for words, _ in counted} >= {"windows", "switches"}
    for name in crossed:
        fewer = exact.envelope_rows | {name: exact.envelope_rows[name] - 1}
        assert broken(replace(exact, envelope_rows=fewer)) == [f"transitions of {name}"]
    for words, name in counted:
        fewer = exact.anchors | {name: exact.anchors[name] - 1}
        assert broken(replace(exact, anchors=fewer)) == [words]
    for (level, rows), least in exact.quietest.items():
        livelier = exact.quietest | {(level, rows): least + 1}
        assert broken(replace(exact, quietest=livelier)) == [f"liveness of {level}"]


@pytest.mark.parametrize("rows", [1, 600])
def test_a_proof_of_the_fewest_and_of_the_most_rows_has_their_shape(
    circuit: Circuit, line: Record, rows: int
) -> None:
    small = replace(circuit, rows_max=600)
    for taken, step in ((rows, "5.8"), (601, "5.7")):
        raw = RevealedTable.of(encode(circuit.rules), circuit.rules).reveal(
            line.rows(8_640, 8_640 + taken)
        )
        with pytest.raises(VerificationError) as refused:
            SYSTEM.verify(
                small,
                commitment=bytes(32),
                rows=taken,
                context=CONTEXT,
                proof=SALT + CONTEXT + raw.raw,
            )
        assert refused.value.step == step


def test_it_states_the_hardened_policy_only(rules: RuleSet) -> None:
    paper = replace(rules, profile=Profile.PAPER_WIDE, clean=None)
    with pytest.raises(SettingError, match="states the hardened policy only"):
        circuit_for(SYSTEM, rules, PaperPolicy(), rows_max=4_096)
    with pytest.raises(SettingError, match="'paper-wide'"):
        circuit_for(SYSTEM, paper, POLICY, rows_max=4_096)


def test_circuits_of_nothing_are_refused(rules: RuleSet) -> None:
    bounds = tuple(rule for rule in rules.invariants if not rule.kind.physical)
    assert rules.clean is not None
    clean = replace(rules.clean, severe=(), envelope=(), anchors=())
    with pytest.raises(EmptyRulesError, match="would say nothing"):
        circuit_for(SYSTEM, replace(rules, invariants=bounds, clean=clean), POLICY, rows_max=4_096)
    policy = replace(POLICY, rows_min=300, rows_max=4_096)
    for rows in (300, 4_096):
        assert circuit_for(SYSTEM, rules, policy, rows_max=rows).rows_max == rows
    for rows in (299, 4_097):
        with pytest.raises(SettingError, match="take batches of 300 to 4,096"):
            circuit_for(SYSTEM, rules, policy, rows_max=rows)
    for rows in (100, 1 << 21):
        with pytest.raises(SettingError, match="the rules of 'line' take batches of"):
            circuit_for(SYSTEM, rules, POLICY, rows_max=rows)
    levels = (*rules.clean.liveness, Liveness(level="S_PU4", rows=64, smallest_range=1.0))
    lively = replace(rules, clean=replace(rules.clean, liveness=levels))
    with pytest.raises(
        RulesFileError,
        match="S_PU4 .* must be a level of the file",
    ):
        circuit_for(SYSTEM, lively, POLICY, rows_max=4_096)
    spanless = tuple(replace(c, span=None) if c.name == "L_T1" else c for c in rules.channels)
    with pytest.raises(RulesFileError, match="instrument span"):
        circuit_for(SYSTEM, replace(rules, channels=spanless), POLICY, rows_max=4_096)


def test_the_circuit_is_named_by_all_it_rests_on(rules: RuleSet, circuit: Circuit) -> None:
    others = (
        circuit_for(SYSTEM, rules, POLICY, rows_max=2_048),
        circuit_for(SYSTEM, rules, replace(POLICY, rows_min=100), rows_max=4_096),
        circuit_for(SYSTEM, replace(rules, plant="other"), POLICY, rows_max=4_096),
    )
    assert len({circuit.identity, *(other.identity for other in others)}) == 4
    again = circuit_for(SYSTEM, rules, POLICY, rows_max=4_096)
    assert again.identity == circuit.identity
    assert "rules" not in repr(circuit)
