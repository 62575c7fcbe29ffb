"""Steps 1 and 2: registration, and commitments that are refused."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import BatchAttested, UpdatePledged
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import (
    COMMITS,
    REGISTRATIONS,
    Commit,
    Registration,
)
from sluice.attestation.messages.orders import APPROVALS, approve
from sluice.attestation.messages.signing import Signed, SigningKey, sign
from sluice.attestation.protocol.coordinator import Agreement
from sluice.attestation.protocol.key_folder import Pinned
from sluice.attestation.protocol.verifier import Verifier
from sluice.attestation.systems.registry import circuit_for
from sluice.errors import SettingError, VerificationError
from sluice.invariants.ruleset import RuleSet

from .conftest import HISTORY, NOW, POLICY, SYSTEM, PlantRun, World


def refused(step: str, words: str = "") -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step {step}: .*{words}")


# -- step 1 ---------------------------------------------------------------------------------------


def register(
    world: World, signed: Signed[Registration], *approvals: object, last: RuleSet | None = None
) -> None:
    world.protocol.register(
        REGISTRATIONS.write(signed),
        Agreement(system=SYSTEM, circuit=world.circuit),
        approvals=[APPROVALS.write(approval) for approval in approvals],  # type: ignore[arg-type]
        last=last,
        at=NOW,
    )


def test_rules_need_the_signature_of_a_known_approver(world: World) -> None:
    signed = world.plant().registration()
    rules, approver = signed.content.rules, world.approvers[0]
    for approvals in (
        (),
        (approve(rules, SigningKey.generate()),),
        (approve(rules, world.coordinator),),
        (approve("0" * 64, approver),),
        (approve(rules, approver, looser=True),),
    ):
        with refused("1", "0 approvals"):
            register(world, signed, *approvals)
    good = approve(rules, approver)
    with refused("1", "signature of the approval"):
        register(world, signed, replace(good, signature="0" * 128))
    assert not world.ledger.clients
    register(world, signed, good)
    assert world.ledger.clients == ("north",)


def test_a_registration_is_signed_by_the_key_it_names(world: World) -> None:
    signed = world.plant().registration()
    forged = sign(signed.content, SigningKey.generate())
    with refused("1", "signature of the registration"):
        register(world, forged, approve(forged.content.rules, world.approvers[0]))
    with refused("1", "canonical"):
        world.protocol.register(
            REGISTRATIONS.write(signed).replace(b":", b": ", 1),
            Agreement(system=SYSTEM, circuit=world.circuit),
            approvals=[],
            at=NOW,
        )


def test_a_name_has_one_key_and_a_key_one_name(world: World) -> None:
    plant = world.plant()
    world.enrol(plant)
    same_name = world.plant("north").registration()
    with refused("1", "a name has one key"):
        approval = approve(same_name.content.rules, world.approvers[0])
        register(world, same_name, approval, last=world.circuit.rules)
    with refused("1", "a name has one key"):
        world.enrol(world.plant("south", key=plant.key))


def test_no_client_has_the_coordinators_name_or_another_federation(world: World) -> None:
    with refused("1", "cannot register"):
        world.enrol(world.plant("coordinator"))
    with refused("1", "cannot register"):
        world.enrol(replace(world.plant(), federation="power"))


def test_a_plant_does_not_choose_its_own_terms_or_circuit(world: World, rules: RuleSet) -> None:
    plant = world.plant()
    with refused("1", "other terms"):
        register(world, plant.registration(overlaps=True))
    softer = circuit_for(SYSTEM, rules, replace(POLICY, rows_min=100), rows_max=4_096)
    with refused("1", "another circuit"):
        register(world, replace(plant, circuit=softer).registration())


@pytest.mark.parametrize("part", ["system", "circuit", "rules", "policy"])
def test_a_registration_that_differs_in_one_part_is_of_another_circuit(
    world: World, part: str
) -> None:
    plant = world.plant()
    other: dict[str, str] = {part: "full" if part == "system" else "0" * 64}
    content: Registration = replace(plant.registration().content, **other)  # type: ignore[arg-type]
    with refused("1", "registers another circuit than the derived one"):
        register(world, sign(content, plant.key))


def test_rules_that_the_policy_does_not_accept_are_refused(world: World, rules: RuleSet) -> None:
    loose = tuple(
        replace(r, tolerance=r.tolerance * 20) if r.name == "S_PU1~F_PU1" else r
        for r in rules.invariants
    )
    world.circuit = circuit_for(SYSTEM, replace(rules, invariants=loose), POLICY, rows_max=4_096)
    with refused("1", "are refused: "):
        world.enrol(world.plant())


def test_looser_rules_need_two_signatures(world: World, rules: RuleSet) -> None:
    plant = world.plant()
    world.enrol(plant)
    wider = tuple(
        replace(r, tolerance=r.tolerance * 1.01) if r.name == "dL_T1" else r
        for r in rules.invariants
    )
    world.circuit = circuit_for(SYSTEM, replace(rules, invariants=wider), POLICY, rows_max=4_096)
    signed = replace(plant, circuit=world.circuit).registration()
    one, two = (approve(signed.content.rules, key, looser=True) for key in world.approvers)
    with pytest.raises(SettingError, match="give the rules last accepted"):
        register(world, signed, one, two)
    stricter = [approve(signed.content.rules, key) for key in world.approvers]
    for approvals, known in ((one,), 1), ((one, one), 1), (stricter, 0):
        with refused("1", f"the looser rules of 'north': {known} approvals .*, 2 are needed"):
            register(world, signed, *approvals, last=rules)
    register(world, signed, one, two, last=rules)
    assert read_log(world.path).rules_of("north") == signed.content.rules


def test_new_rules_end_old_attestations_but_not_their_proofs(run: PlantRun, rules: RuleSet) -> None:
    world = run.world
    run.received.attest(run.proof, at=NOW)
    assert world.ledger.attestations("north", step="6", at=instant(NOW)) == (
        run.proven.attestation,
    )
    old = world.circuit
    world.circuit = circuit_for(SYSTEM, rules, POLICY, rows_max=2_048)
    signed = replace(run.plant, circuit=world.circuit).registration()
    register(world, signed, approve(signed.content.rules, world.approvers[0]), last=rules)
    assert world.ledger.attestations("north", step="6", at=instant(NOW)) == ()
    verifier = Verifier(system=SYSTEM, circuit=old, pinned=Pinned.of(old), ledger=world.ledger)
    verifier.verify(run.proof, run.commit)  # it was accepted then, and the log says so
    with refused("2", "other rules, another policy, circuit"):
        run.enrolled.receive(COMMITS.write(run.plant.commit(world.batch(1)).message), at=NOW)
    with refused("1", "another circuit"):
        world.protocol.enrolled("north", run.enrolled.agreement)


def test_an_attestation_that_new_rules_ended_has_not_expired_before_its_term(
    run: PlantRun, rules: RuleSet
) -> None:
    world = run.world
    run.received.attest(run.proof, at=NOW)
    world.circuit = circuit_for(SYSTEM, rules, POLICY, rows_max=2_048)
    signed = replace(run.plant, circuit=world.circuit).registration()
    register(world, signed, approve(signed.content.rules, world.approvers[0]), last=rules)
    until, tick = NOW + timedelta(days=HISTORY.attestation_days), timedelta(microseconds=1)
    world.protocol.open_round("a" * 64, until + 2 * tick, at=until)
    body = UpdatePledged(token=run.proven.pledge(1, "a" * 64, b"an update").message)
    with refused("6", "has no attestation .* under the rules that are in force"):
        world.log.append(body, at=until)
    with refused("5.4", "expired on 2026-05-31T12:00:00"):
        world.log.append(body, at=until + tick)


# -- step 2 ---------------------------------------------------------------------------------------


def recommitted(run: PlantRun, /, **changes: object) -> bytes:
    """The commitment of another batch of the same plant, changed and signed again."""
    content: Commit = replace(
        run.plant.commit(run.world.batch(1)).message.content,
        **changes,  # type: ignore[arg-type]
    )
    return COMMITS.write(sign(content, run.plant.key))


def test_a_commitment_is_logged_once(run: PlantRun) -> None:
    size = run.world.ledger.size
    run.enrolled.receive(run.commit, at=NOW)  # networks duplicate
    assert run.world.ledger.size == size
    again = replace(run.committed.message.content, rows=601)
    with refused("2", "already in the log, from client 'north'"):
        run.enrolled.receive(COMMITS.write(sign(again, run.plant.key)), at=NOW)


def test_a_commitment_of_another_client_is_refused(run: PlantRun) -> None:
    world, thief = run.world, run.world.plant("south")
    enrolled = world.enrol(thief)
    copied = replace(run.committed.message.content, client="south", key=thief.key.public)
    with refused("2", "already in the log, from client 'north'"):
        enrolled.receive(COMMITS.write(sign(copied, thief.key)), at=NOW)
    with refused("2", "is from 'north', expected 'south'"):
        enrolled.receive(run.commit, at=NOW)


def test_overlapping_time_is_refused_unless_the_terms_allow_it(run: PlantRun) -> None:
    world = run.world
    line = world.line
    overlapping = run.plant.commit(line.rows(8_640 + 599, 8_640 + 1_199))
    with refused("2", "already committed to .* starts after that"):
        run.enrolled.receive(COMMITS.write(overlapping.message), at=NOW)
    run.enrolled.receive(COMMITS.write(run.plant.commit(world.batch(1)).message), at=NOW)
    south = world.plant("south")  # another client's time is its own
    world.enrol(south).receive(COMMITS.write(south.commit(world.batch()).message), at=NOW)
    east = world.plant("east")
    enrolled = world.enrol(east, overlaps=True)
    for _ in range(2):
        enrolled.receive(COMMITS.write(east.commit(world.batch()).message), at=NOW)


def test_rows_outside_the_policy_are_refused(run: PlantRun) -> None:
    for rows in (0, 199, 4_097):
        with refused("2", f"{rows:,} rows; the policy takes 200 to 4,096"):
            run.enrolled.receive(recommitted(run, rows=rows), at=NOW)
    with refused("2", "do not fit between"):
        run.enrolled.receive(recommitted(run, rows=4_000), at=NOW)


@pytest.mark.parametrize(
    "changes",
    [{"rules": "0" * 64}, {"policy": "0" * 64}, {"circuit": "0" * 64}, {"system": "full"},
     {"federation": "power"}, {"key": "0" * 64}],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_a_commitment_is_for_what_was_registered(run: PlantRun, changes: dict[str, str]) -> None:
    with refused("2", "than it is registered with"):
        run.enrolled.receive(recommitted(run, **changes), at=NOW)


def test_a_commitment_is_signed_and_canonical(run: PlantRun) -> None:
    raw = recommitted(run)
    with refused("2", "signature"):
        run.enrolled.receive(raw.replace(b'"rows":600', b'"rows":601'), at=NOW)
    with refused("2", "canonical"):
        run.enrolled.receive(raw + b"\n", at=NOW)
    run.enrolled.receive(raw, at=NOW)


def test_the_log_takes_one_attestation_of_a_commitment_from_its_client(run: PlantRun) -> None:
    """Not even a coordinator that goes round its own verifier can write another one."""
    commitment = run.committed.message.content.commitment
    run.world.enrol(run.world.plant("south"))
    body = BatchAttested(client="north", commitment=commitment, attestation="1" * 64)
    with refused("5.3", "not from 'south'"):
        run.world.log.append(replace(body, client="south"), at=NOW)
    with refused("5.3", "not in the log"):
        run.world.log.append(replace(body, commitment="0" * 64), at=NOW)
    run.world.log.append(body, at=NOW)
    with refused("5.4", "already attested"):
        run.world.log.append(replace(body, attestation="2" * 64), at=NOW)


def test_an_empty_ledger_is_nobodys() -> None:
    with refused("7", "the log is empty"):
        Ledger().head("north")


def test_states_are_found_again_as_far_as_the_log_says_so(run: PlantRun) -> None:
    world, commitment = run.world, run.committed.message.content.commitment
    enrolled = world.protocol.enrolled("north", run.enrolled.agreement)
    with refused("1", "no client 'south'"):
        world.protocol.enrolled("south", run.enrolled.agreement)
    with refused("5.3", "not in the log"):
        enrolled.received("0" * 64)
    south = world.enrol(world.plant("south"))
    with refused("5.3", "not from 'south'"):
        south.received(commitment)
    with refused("5.8", "no proof of this batch"):
        enrolled.received(commitment).attested()
    attested = run.received.attest(run.proof, at=NOW)
    assert enrolled.received(commitment).attested() == attested
