"""Refusals that no honest party meets: documents of others, and rules that cannot be stated."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.attestation.log.chain import compare_logs
from sluice.attestation.log.entries import BatchAttested
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import COMMITS
from sluice.attestation.messages.orders import WAIVERS, Waiver
from sluice.attestation.messages.signing import SigningKey
from sluice.attestation.protocol.approving import approve_file, read_approver
from sluice.attestation.protocol.key_folder import KeyFolder
from sluice.attestation.systems.full import derive
from sluice.attestation.systems.full.system import Full
from sluice.attestation.systems.registry import circuit_for, find_system
from sluice.attestation.systems.sampled.snarkjs import _Points
from sluice.attestation.systems.sampled.statement import _reads
from sluice.attestation.systems.system import Circuit
from sluice.attestation.systems.unsafe import RevealedTable, Unsafe
from sluice.errors import (
    DocumentError,
    MissingChannelError,
    RecordError,
    RulesFileError,
    SettingError,
    VerificationError,
)
from sluice.invariants.relations import Bound
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry.record import Record

from . import drawn_plant
from .conftest import NOW, POLICY, PlantRun, World, later, run_plant


def test_logs_of_two_federations_or_of_two_keys_are_not_compared(
    line: Record, circuit: Circuit, tmp_path: Path
) -> None:
    water = World(line, circuit, tmp_path / "water.jsonl")
    power = replace(water, path=tmp_path / "power.jsonl", federation="power")
    impostor = replace(water, path=tmp_path / "impostor.jsonl", coordinator=SigningKey.generate())
    for other in (power, impostor):
        with pytest.raises(VerificationError, match="are logs of different federations"):
            compare_logs(water.path, other.path)
    assert compare_logs(water.path, water.path) == 1


def test_a_batch_whose_rows_were_not_drawn_is_not_attested(
    drawn_folder: KeyFolder, tmp_path: Path
) -> None:
    """The coordinator itself writes the entry, past its own steps."""
    coordinator = drawn_plant.Coordinator.at(tmp_path / "log.jsonl")
    plant = drawn_plant.registered(drawn_folder)
    committed = plant.commit(drawn_plant.batch())
    coordinator.enrol(plant).receive(COMMITS.write(committed.message), at=NOW)
    commitment = committed.message.content.commitment
    body = BatchAttested(client="north", commitment=commitment, attestation="a" * 64)
    with pytest.raises(VerificationError, match=r"step 5\.3: the commitment has no challenge"):
        coordinator.log.append(body, at=NOW)


def test_a_verified_proof_attests_only_its_own_commitment(run: PlantRun) -> None:
    south = run_plant(run.world, "south", batch=1)
    verified = run.world.verifier().verify(south.proof, south.commit)
    with pytest.raises(VerificationError, match=r"step 5\.8: .* of another commitment"):
        run.received.conclude(verified, at=NOW)
    assert south.received.conclude(verified, at=NOW).client == "south"


# -- approvals ------------------------------------------------------------------------------------


def test_what_belongs_to_rules_is_not_said_of_an_order(tmp_path: Path) -> None:
    moment = "2026-05-01T12:00:00.000000"
    waiver = Waiver(
        federation="water",
        client="north",
        interval=Interval(start=moment, end=moment),
        expires=instant(later(60)),
        reason="tank 2 is being painted",
    )
    path, key = tmp_path / "waiver.json", SigningKey.generate()
    path.write_bytes(WAIVERS.write(waiver))
    with pytest.raises(SettingError, match="is a waiver; .* go with rules only"):
        approve_file(path, key, client="north")
    with pytest.raises(SettingError, match="is a waiver; .* go with rules only"):
        approve_file(path, key, looser=True)
    with pytest.raises(SettingError, match="is a waiver; .* go with rules only"):
        approve_file(path, key, declared={"P101": "on standby"})
    assert approve_file(path, key).content.approver == key.public


@pytest.mark.parametrize("text", ["ab" * 31, "ab" * 33, "AB" * 32, "xy" * 32, "", "ab" * 32 + " c"])
def test_a_public_key_is_64_lower_case_hex_digits(text: str, tmp_path: Path) -> None:
    path = tmp_path / "approver.pub"
    path.write_text(text)
    with pytest.raises(SettingError, match="does not hold a public key of 64 lower-case"):
        read_approver(str(path))


def test_no_more_of_a_public_key_file_is_read_than_a_key_can_fill(tmp_path: Path) -> None:
    path = tmp_path / "approver.pub"
    path.write_text(("ab" * 32).ljust(256))
    assert read_approver(str(path)) == "ab" * 32
    path.write_text(("ab" * 32).ljust(257))
    with pytest.raises(SettingError, match="256"):
        read_approver(str(path))


def test_a_public_key_comes_as_text_or_as_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_approver("ab" * 32) == "ab" * 32
    with pytest.raises(SettingError, match="does not hold a public key"):
        read_approver("xy" * 32)
    monkeypatch.chdir(tmp_path)
    Path("f" * 64).write_text("cd" * 32 + "\n")  # a file whose name could be a key
    assert read_approver("f" * 64) == "cd" * 32


# -- rules and circuits ---------------------------------------------------------------------------


def test_a_system_with_keys_of_its_own_is_not_found_by_name() -> None:
    with pytest.raises(SettingError, match="'sampled' needs keys; open its key folder"):
        find_system("sampled")
    with pytest.raises(SettingError, match="no proof system 'groth'; known are full, sampled"):
        find_system("groth")
    assert isinstance(find_system("full"), Full)
    assert isinstance(find_system("unsafe", reveal_rows=True), Unsafe)


def test_a_folder_without_a_circuit_is_no_key_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="is not a key folder .it has no circuit.json"):
        KeyFolder.open(tmp_path)


def test_a_batch_without_rows_is_not_judged(line: Record, rules: RuleSet) -> None:
    empty = replace(line, values=line.values[:0], times=line.times[:0], labels=line.labels[:0])
    with pytest.raises(RecordError, match="has no rows"):
        Gate.of(rules, POLICY).judge(empty)


def test_a_batch_that_lacks_a_channel_is_not_committed_to(world: World) -> None:
    rule = world.circuit.rules.invariants[0]
    channel = rule.relation.channels[0]
    with pytest.raises(MissingChannelError, match=f"'{channel}', which rule '"):
        world.plant().commit(world.batch().without(channel))


def test_a_batch_of_another_stride_is_not_committed_to(world: World) -> None:
    with pytest.raises(RecordError, match="has a stride of 120 s, the rules of 'line' one of 60 s"):
        world.plant().commit(replace(world.batch(), stride_s=120.0))


def test_a_batch_with_too_many_or_too_few_rows_is_not_committed_to(world: World) -> None:
    terms = world.plant().registration().content.terms
    for rows in (terms.rows_max + 1, terms.rows_min - 1):
        with pytest.raises(RecordError, match=f"cannot be committed to: .*{rows:,} rows"):
            world.plant().commit(world.line.rows(0, rows))
    world.plant().commit(world.line.rows(0, terms.rows_min))


@pytest.mark.parametrize("severe_share", [0.0, 0.001])
def test_bounds_that_no_reading_keeps_are_not_stated(rules: RuleSet, severe_share: float) -> None:
    policy = replace(POLICY, margins=replace(POLICY.margins, severe_share=severe_share))
    bound = next(rule for rule in rules.invariants if isinstance(rule.relation, Bound))
    assert isinstance(bound.relation, Bound)
    width = bound.relation.high - bound.relation.low
    beyond = replace(
        bound.relation, low=bound.relation.high + 2 * width, high=bound.relation.high + 3 * width
    )
    others = tuple(rule for rule in rules.invariants if rule is not bound)
    apart = replace(rules, invariants=(*others, replace(bound, relation=beyond)))
    with pytest.raises(RulesFileError, match="no reading of .* is within its bounds"):
        circuit_for(Full(), apart, policy, rows_max=1_024)


@pytest.mark.parametrize("severe_share", [0.0, 0.001])
def test_bounds_that_one_register_keeps_are_stated(rules: RuleSet, severe_share: float) -> None:
    policy = replace(POLICY, margins=replace(POLICY.margins, severe_share=severe_share))
    bound = next(rule for rule in rules.invariants if isinstance(rule.relation, Bound))
    assert isinstance(bound.relation, Bound)
    point = replace(bound.relation, low=bound.relation.high)
    others = tuple(rule for rule in rules.invariants if rule is not bound)
    still = replace(rules, invariants=(*others, replace(bound, relation=point)))
    stated = json.loads(derive(still, policy).content)
    limits = stated["bounds" if severe_share else "registers"]
    assert any(each["low"] == each["high"] for each in limits)


def test_a_rule_without_an_instrument_span_is_not_revealed(rules: RuleSet) -> None:
    encoding = POLICY.encoding(rules)
    assert encoding is not None
    assert RevealedTable.of(encoding, rules).columns > 1
    short = replace(encoding, registers=encoding.registers[1:])
    missing = encoding.registers[0].channel
    with pytest.raises(RulesFileError, match=f"read {missing} without an instrument span"):
        RevealedTable.of(short, rules)


def test_an_actuator_has_codes_and_is_not_read_as_a_number(rules: RuleSet) -> None:
    coded = next(channel for channel in rules.channels if channel.codes is not None)
    plain = next(channel for channel in rules.channels if channel.codes is None)
    assert _reads(coded, {7}, both=False).codes[-1] == 7
    with pytest.raises(SettingError, match="read as an actuator but as a number too"):
        _reads(coded, set(), both=True)
    with pytest.raises(SettingError, match="read as an actuator but has no codes"):
        _reads(plain, set(), both=False)


def test_points_of_a_proof_are_whole() -> None:
    assert _Points(bytes(64)).first() == ["0", "0", "1"]
    for raw in (bytes(63), bytes(65), bytes(32)):
        with pytest.raises(DocumentError, match="are not points of BN254"):
            _Points(raw)
    points = _Points(bytes(64))
    assert points.left
    points.first()
    assert not points.left
    with pytest.raises(DocumentError, match="ends too early"):
        points.first()
    assert np.array_equal(_Points(bytes(128)).second()[2], ["1", "0"])
