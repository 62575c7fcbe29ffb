"""Acts of operators: a gate in shadow, waivers with limits, removals that anyone can follow."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import (
    BatchChallenged,
    BatchExcused,
    ClientRegistered,
    ClientRemoved,
    GateSet,
    WaiverGranted,
)
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import COMMITS, draw_challenge
from sluice.attestation.messages.orders import ShadowOrder, Waiver, approve
from sluice.attestation.messages.signing import SigningKey, content_digest
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.coordinator import Attested, Pledging
from sluice.attestation.protocol.plant import Unproven
from sluice.attestation.protocol.transition import TRANSITION
from sluice.errors import VerificationError

from .conftest import NOW, PlantRun, World, later, run_plant

MODEL, NEXT, LAST = "a" * 64, "b" * 64, "c" * 64
UPDATE = b"an update"
TICK = timedelta(microseconds=1)


def refused(step: str, words: str) -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step {step}: .*{words}")


@pytest.fixture
def run(world: World) -> PlantRun:
    """A plant that has committed, and proves nothing."""
    return run_plant(world, "north")


def waiver_for(run: PlantRun) -> Waiver:
    return Waiver(
        federation="water",
        client="north",
        interval=COMMITS.read(run.commit).content.interval,
        expires=instant(later(3_600)),
        reason="tank 2 is being painted",
    )


def grant(world: World, waiver: Waiver, key: SigningKey | None = None) -> str:
    approval = approve(waiver, key or world.approvers[0])
    world.log.append(WaiverGranted(waiver=waiver, approvals=(approval,)), at=NOW)
    return content_digest(waiver)


def shadow(world: World, *, minutes: float = 9_000) -> GateSet:
    """An approved order: the gate only logs until it ends."""
    order = ShadowOrder(
        federation=world.federation, until=instant(later(minutes)), reason="the first month"
    )
    approval = approve(order, world.approvers[0])
    return GateSet(enforced=False, order=order, approvals=(approval,))


def excuse(world: World, run: PlantRun, waiver: str | None) -> Unproven:
    unproven = run.committed.unproven()
    body = BatchExcused(
        client="north",
        commitment=unproven.message.content.commitment,
        attestation=unproven.attestation,
        waiver=waiver,
    )
    world.log.append(body, at=later(1))
    return unproven


def pledge(world: World, unproven: Unproven, *, minutes: int = 2) -> Pledging:
    pledging = world.protocol.open_round(MODEL, later(9_000), at=later(minutes))
    token = TOKENS.write(unproven.pledge(1, MODEL, UPDATE).message)
    attested = Attested(client="north", attestation=unproven.attestation, transition=TRANSITION)
    pledging.pledge(attested, token, at=later(minutes))
    return pledging


# -- shadow ---------------------------------------------------------------------------------------


def test_no_client_takes_part_without_a_proof_unless_the_gate_is_in_shadow(
    world: World, run: PlantRun
) -> None:
    with refused("4", "sends no proof; the gate is enforced"):
        excuse(world, run, None)
    world.log.append(shadow(world), at=NOW)
    unproven = excuse(world, run, None)
    pledge(world, unproven)
    again = read_log(world.path)
    assert again.exemptions.shadow(at=instant(NOW))
    assert [each.client for each in again.exemptions.excused] == ["north"]


def test_once_the_gate_is_enforced_a_shadow_serves_no_longer(world: World, run: PlantRun) -> None:
    world.log.append(shadow(world), at=NOW)
    unproven = excuse(world, run, None)
    world.log.append(GateSet(enforced=True), at=NOW)
    with refused("6", "has no attestation"):
        pledge(world, unproven)


def test_the_gate_does_not_change_during_a_round(world: World) -> None:
    world.protocol.open_round(MODEL, later(60), at=NOW)
    with refused("7", "between rounds only"):
        world.log.append(shadow(world), at=NOW)
    assert not world.ledger.exemptions.shadow(at=instant(NOW))


def test_shadow_ends_by_itself(world: World, run: PlantRun) -> None:
    """No entry is needed: a coordinator that forgets to enforce the gate does not leave it open."""
    world.log.append(shadow(world, minutes=60), at=NOW)
    unproven = excuse(world, run, None)
    ledger = world.ledger
    assert ledger.attestations("north", step="6", at=instant(later(60))) == (unproven.attestation,)
    assert ledger.exemptions.open_to("north", at=instant(later(60)))
    with refused("6", "has no attestation"):
        pledge(world, unproven, minutes=61)
    late = instant(later(61))
    assert not read_log(world.path).exemptions.shadow(at=late)
    assert not ledger.exemptions.open_to("north", at=late)
    assert ledger.attestations("north", step="6", at=late) == ()


def test_no_batch_is_excused_after_shadow_has_ended(world: World, run: PlantRun) -> None:
    world.log.append(shadow(world, minutes=0.5), at=NOW)
    with refused("4", "sends no proof; the gate is enforced"):
        excuse(world, run, None)  # a minute later
    with refused("7", "already has this setting"):
        world.log.append(GateSet(enforced=True), at=later(1))
    world.log.append(shadow(world), at=later(1))  # a new order begins a new shadow
    excuse(world, run, None)


def test_the_gate_is_set_between_rounds_and_to_something_else(world: World) -> None:
    with refused("7", "already has this setting"):
        world.log.append(GateSet(enforced=True), at=NOW)
    world.protocol.open_round(MODEL, later(60), at=NOW)
    with refused("7", "between rounds"):
        world.log.append(shadow(world), at=NOW)


def test_a_shadow_order_is_for_this_federation_and_can_begin_until_it_ends(world: World) -> None:
    order = ShadowOrder(federation="water", until=instant(NOW), reason="the first month")

    def begin(order: ShadowOrder | None, *, enforced: bool = False) -> None:
        approvals = (approve(order, world.approvers[0]),) if order else ()
        world.log.append(GateSet(enforced=enforced, order=order, approvals=approvals), at=NOW)

    with refused("7", "the shadow order ended on"):
        begin(replace(order, until=instant(NOW - TICK)))
    with refused("7", "for federation 'power'"):
        begin(replace(order, federation="power"))
    with refused("7", "shadow needs an order"):
        begin(None)
    begin(order)
    assert world.ledger.exemptions.shadow(at=instant(NOW))
    assert not world.ledger.exemptions.shadow(at=instant(NOW + TICK))
    with refused("7", "enforcing takes none"):
        begin(order, enforced=True)
    begin(None, enforced=True)


def test_an_excuse_has_its_own_name_and_is_made_once(world: World, run: PlantRun) -> None:
    world.log.append(shadow(world), at=NOW)
    commit = COMMITS.read(run.commit).content
    body = BatchExcused(
        client="north", commitment=commit.commitment, attestation="0" * 64, waiver=None
    )
    with refused("4", "has another id"):
        world.log.append(body, at=NOW)
    excuse(world, run, None)
    with refused("4", "already excused"):
        excuse(world, run, None)
    with refused("5.3", "of another client"):
        world.log.append(replace(body, client="south"), at=NOW)


def test_a_batch_with_a_proof_is_not_excused(world: World, run: PlantRun) -> None:
    run.received.attest(run.proof, at=NOW)
    with refused("5.3", "of another client, or has a proof"):
        excuse(world, run, grant(world, waiver_for(run)))


# -- waivers --------------------------------------------------------------------------------------


def test_a_waiver_serves_for_its_plant_and_window_until_it_expires(
    world: World, run: PlantRun
) -> None:
    unproven = excuse(world, run, grant(world, waiver_for(run)))
    pledge(world, unproven)
    assert read_log(world.path).exemptions.waivers == (waiver_for(run),)


def test_a_token_under_an_expired_waiver_is_refused(world: World, run: PlantRun) -> None:
    unproven = excuse(world, run, grant(world, waiver_for(run)))
    with refused("6", "has no attestation"):
        pledge(world, unproven, minutes=3_601)


def test_an_expired_waiver_is_refused(world: World, run: PlantRun) -> None:
    with refused("4", "expired on"):
        grant(world, replace(waiver_for(run), expires=instant(later(-1))))
    short = grant(world, replace(waiver_for(run), expires=instant(NOW)))
    with refused("4", "expired on"):
        excuse(world, run, short)


def test_a_waiver_serves_to_the_moment_at_which_it_expires(world: World, run: PlantRun) -> None:
    ends = later(1)  # an excuse is logged then
    unproven = excuse(world, run, grant(world, replace(waiver_for(run), expires=instant(ends))))
    ledger = world.ledger
    assert ledger.attestations("north", step="6", at=instant(ends)) == (unproven.attestation,)
    assert ledger.attestations("north", step="6", at=instant(ends + TICK)) == ()


def test_a_batch_whose_excuse_has_ended_is_excused_again(world: World, run: PlantRun) -> None:
    world.log.append(shadow(world, minutes=1), at=NOW)
    unproven = excuse(world, run, None)
    world.log.append(shadow(world, minutes=60), at=later(2))
    with refused("4", "already excused"):
        excuse(world, run, None)
    world.log.append(GateSet(enforced=True), at=later(3))
    assert world.ledger.attestations("north", step="6", at=instant(later(3))) == ()
    assert excuse(world, run, grant(world, waiver_for(run))).attestation == unproven.attestation


def test_a_waiver_of_another_plant_is_refused(world: World, run: PlantRun) -> None:
    with refused("4", "no client 'south'"):
        grant(world, replace(waiver_for(run), client="south"))
    world.enrol(world.plant("south"))
    with refused("4", "for 'south', not for 'north'"):
        excuse(world, run, grant(world, replace(waiver_for(run), client="south")))


def test_a_waiver_that_only_the_coordinator_signed_is_refused(world: World, run: PlantRun) -> None:
    waiver = waiver_for(run)
    approver = world.approvers[0]
    for approvals in (
        (),
        (approve(waiver, world.coordinator),),
        (approve(replace(waiver, client="south"), approver),),
        (approve(replace(waiver, expires=instant(later(9_999))), approver),),
    ):
        with refused("4", "the waiver: 0 approvals"):
            world.log.append(WaiverGranted(waiver=waiver, approvals=approvals), at=NOW)
    assert read_log(world.path).exemptions.waivers == ()
    grant(world, waiver)
    with refused("4", "already in the log"):
        grant(world, waiver)


def test_a_waiver_with_a_forged_signature_is_refused(world: World, run: PlantRun) -> None:
    approval = approve(waiver_for(run), world.approvers[0])
    forged = replace(approval, signature="0" * 128)
    with refused("4", "signature of the approval"):
        world.log.append(WaiverGranted(waiver=waiver_for(run), approvals=(forged,)), at=NOW)
    with refused("4", "the waiver: 0 approvals"):
        grant(world, waiver_for(run), key=run.plant.key)
    with refused("4", "no such waiver"):
        excuse(world, run, content_digest(waiver_for(run)))
    with refused("4", "federation 'power'"):
        grant(world, replace(waiver_for(run), federation="power"))


def test_a_waiver_whose_window_does_not_cover_the_batch_is_refused(
    world: World, run: PlantRun
) -> None:
    whole = waiver_for(run).interval
    moment = Interval(start=whole.start, end=whole.start)
    narrow = grant(world, replace(waiver_for(run), interval=moment))
    with refused("4", "the batch covers"):
        excuse(world, run, narrow)


def test_a_waiver_holds_to_the_instant_at_which_it_expires(world: World, run: PlantRun) -> None:
    with refused("4", "expired on"):
        excuse(world, run, grant(world, replace(waiver_for(run), expires=instant(later(1) - TICK))))
    unproven = excuse(world, run, grant(world, replace(waiver_for(run), expires=instant(later(1)))))
    held = world.ledger.attestations("north", step="6", at=instant(later(1)))
    assert held == (unproven.attestation,)
    assert world.ledger.attestations("north", step="6", at=instant(later(1) + TICK)) == ()


def test_a_waiver_covers_a_batch_from_its_first_row_to_its_last(
    world: World, run: PlantRun
) -> None:
    whole = waiver_for(run).interval
    start, end = (datetime.fromisoformat(each) for each in (whole.start, whole.end))

    def covers(first: datetime, last: datetime, batch: Interval = whole) -> bool:
        window = Interval(start=_moment(first), end=_moment(last))
        commit = replace(COMMITS.read(run.commit).content, interval=batch)
        digest = grant(world, replace(waiver_for(run), interval=window, reason="x" * len(seen)))
        seen.append(digest)
        return world.ledger.exemptions.covering(commit, at=instant(NOW)) == digest

    seen = ["four"] * 4
    assert not covers(start + TICK, end)
    assert not covers(start, end - TICK)
    assert covers(start, end)
    once = Interval(start=_moment(start - TICK), end=_moment(start - TICK))  # a batch of one row
    assert covers(start - TICK, start - TICK, once)


def _moment(time: datetime) -> str:
    return time.isoformat(timespec="microseconds")


def test_the_waiver_that_covers_a_batch_is_found(world: World, run: PlantRun) -> None:
    world.enrol(world.plant("south"))
    whole, commit = waiver_for(run), COMMITS.read(run.commit).content
    exemptions = world.ledger.exemptions
    grant(world, replace(whole, client="south"))
    grant(world, replace(whole, interval=Interval(start=whole.interval.start,
                                                  end=whole.interval.start)))  # fmt: skip
    grant(world, replace(whole, expires=instant(NOW)))
    assert exemptions.covering(commit, at=instant(later(1))) is None
    covering = grant(world, whole)
    assert exemptions.covering(commit, at=instant(later(1))) == covering


# -- removals -------------------------------------------------------------------------------------


def take_round(world: World, number: int, on: str, model: str) -> None:
    pledging = world.protocol.open_round(on, later(60), at=NOW)
    assert pledging.round == number
    pledging.close(at=NOW).finish(model, at=NOW)


def test_a_round_is_opened_on_the_model_that_the_federation_has(world: World) -> None:
    take_round(world, 1, MODEL, NEXT)
    with refused("6", "the federation's model is bbbb"):
        world.protocol.open_round(MODEL, later(60), at=NOW)


def test_a_removal_goes_back_to_a_model_that_there_was(world: World, run: PlantRun) -> None:
    take_round(world, 1, MODEL, NEXT)
    take_round(world, 2, NEXT, LAST)
    body = ClientRemoved(client="north", since=2, model_of=1, model=NEXT)
    for wrong in (
        replace(body, model=MODEL),
        replace(body, since=3),
        replace(body, model_of=2),
        replace(body, client="south"),
    ):
        with pytest.raises(VerificationError, match="step 6"):
            world.log.append(wrong, at=NOW)
    world.log.append(body, at=NOW)
    with refused("6", "already removed"):
        world.log.append(body, at=NOW)
    with refused("6", "the federation's model is bbbb"):
        world.protocol.open_round(LAST, later(60), at=NOW)
    take_round(world, 3, NEXT, MODEL)
    again = read_log(world.path)
    assert again.rounds.removals == (body,)
    assert (again.rounds.last, again.rounds.counted) == (3, 2)


def test_a_client_is_not_removed_during_a_round(world: World, run: PlantRun) -> None:
    take_round(world, 1, MODEL, NEXT)
    world.protocol.open_round(NEXT, later(60), at=NOW)
    with refused("6", "a round is in progress"):
        world.log.append(ClientRemoved(client="north", since=1, model_of=0, model=MODEL), at=NOW)


def test_a_removed_client_cannot_come_back(world: World, run: PlantRun) -> None:
    attested = run.received.attest(run.proof, at=NOW)
    take_round(world, 1, MODEL, NEXT)
    world.log.append(ClientRemoved(client="north", since=1, model_of=0, model=MODEL), at=NOW)
    pledging = world.protocol.open_round(MODEL, later(60), at=NOW)
    token = TOKENS.write(run.proven.pledge(2, MODEL, UPDATE).message)
    with refused("6", "was removed"):
        pledging.pledge(attested, token, at=NOW)
    commit = COMMITS.write(run.plant.commit(world.batch(1)).message)
    with refused("2", "was removed"):
        run.enrolled.receive(commit, at=NOW)
    registration = run.plant.registration()
    approvals = tuple(approve(registration.content.rules, key) for key in world.approvers)
    body = ClientRegistered(registration=registration, looser=False, approvals=approvals)
    with refused("1", "was removed"):
        world.log.append(body, at=NOW)


def test_a_commitment_of_which_no_row_is_drawn_takes_no_challenge(
    world: World, run: PlantRun
) -> None:
    challenge = draw_challenge(run.received.commit.content)
    with refused("3", "or its system takes none"):
        world.log.append(BatchChallenged(challenge=challenge), at=NOW)


def test_an_attestation_leads_to_its_own_clients_commitment_alone(
    world: World, run: PlantRun
) -> None:
    other = run_plant(world, "south", batch=1)
    attested = other.received.attest(other.proof, at=NOW)
    excused = excuse(world, run, grant(world, waiver_for(run)))
    ledger = read_log(world.path)
    for client, attestation, plant in (
        ("south", attested.attestation, other),
        ("north", excused.attestation, run),
    ):
        commit = ledger.attested_commit(client, attestation, step="6")
        assert commit == COMMITS.read(plant.commit).content
    for client, attestation in (("north", attested.attestation), ("south", "0" * 64)):
        with refused("6", "has no attestation"):
            ledger.attested_commit(client, attestation, step="6")
