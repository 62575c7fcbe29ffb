"""Approvals are files of their own: the log counts who signed what, for whom, and how often."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.attestation.log.chain import Log, read_log
from sluice.attestation.log.entries import (
    ClientRegistered,
    GateSet,
    KeyRotated,
    LogOpened,
    LogTerms,
)
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import REGISTRATIONS
from sluice.attestation.messages.orders import (
    APPROVALS,
    Approval,
    ShadowOrder,
    approve,
    rotate,
)
from sluice.attestation.messages.signing import Signed, SigningKey, sign
from sluice.attestation.protocol.coordinator import Agreement
from sluice.attestation.protocol.plant import Registered
from sluice.attestation.systems.system import Circuit
from sluice.errors import DocumentError, VerificationError
from sluice.telemetry.record import Record

from .conftest import HISTORY, NOW, SYSTEM, World, later

TWO = replace(HISTORY, approvals=2)


def refused(step: str, words: str = "") -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step {step}: .*{words}")


@pytest.fixture
def strict(line: Record, circuit: Circuit, tmp_path: Path) -> World:
    """A federation in which two approvers must sign."""
    return World(line, circuit, tmp_path / "strict.jsonl", terms=TWO)


def register(world: World, plant: Registered, approvals: Sequence[Signed[Approval]]) -> None:
    world.protocol.register(
        REGISTRATIONS.write(plant.registration()),
        Agreement(system=SYSTEM, circuit=plant.circuit),
        approvals=[APPROVALS.write(each) for each in approvals],
        at=NOW,
    )


def rules_of(plant: Registered) -> str:
    return plant.registration().content.rules


# -- rules ----------------------------------------------------------------------------------------


def test_one_approval_file_does_not_count_twice(strict: World) -> None:
    plant = strict.plant()
    one, two = (approve(rules_of(plant), key) for key in strict.approvers)
    with refused("1", "the rules of 'north': 1 approvals .*, 2 are needed"):
        register(strict, plant, [one, one])
    register(strict, plant, [one, two])
    assert read_log(strict.path).clients == ("north",)


def test_two_approvals_of_one_approver_count_once(strict: World) -> None:
    plant = strict.plant()
    both = [approve(rules_of(plant), strict.approvers[0]) for _ in range(2)]
    assert both[0] != both[1]
    with refused("1", "1 approvals .*, 2 are needed"):
        register(strict, plant, both)


def test_an_approval_for_another_plant_is_refused(world: World) -> None:
    plant, key = world.plant(), world.approvers[0]
    with refused("1", "0 approvals"):
        register(world, plant, [approve(rules_of(plant), key, client="south")])
    register(world, plant, [approve(rules_of(plant), key, client="north")])


def test_an_approval_of_other_rules_or_of_an_order_is_refused(world: World) -> None:
    plant, key = world.plant(), world.approvers[0]
    order = ShadowOrder(federation="water", until=instant(later(60)), reason="the first month")
    for wrong in (approve("0" * 64, key), approve(order, key)):
        with refused("1", "0 approvals"):
            register(world, plant, [wrong])


def test_an_approval_signed_by_another_key_than_it_names_is_refused(world: World) -> None:
    plant = world.plant()
    content = approve(rules_of(plant), world.approvers[0]).content
    with refused("1", "signature of the approval"):
        register(world, plant, [sign(content, plant.key)])
    with refused("1", "canonical"):
        world.protocol.register(
            REGISTRATIONS.write(plant.registration()),
            Agreement(system=SYSTEM, circuit=plant.circuit),
            approvals=[APPROVALS.write(sign(content, world.approvers[0])) + b"\n"],
            at=NOW,
        )


def test_an_approval_by_a_key_that_was_rotated_is_refused(world: World) -> None:
    old, new = world.approvers[0], SigningKey.generate()
    plant = world.plant()
    before, after = approve(rules_of(plant), old), approve(rules_of(plant), new)
    with refused("1", "0 approvals"):
        register(world, plant, [after])
    world.log.append(KeyRotated(signed=rotate("water", old, new)), at=NOW)
    with refused("1", "0 approvals"):
        register(world, plant, [before])
    register(world, plant, [after])


def test_the_log_does_not_believe_that_rules_are_not_looser_for_less(world: World) -> None:
    """One approval for looser rules does not register stricter ones, nor the other way round."""
    signed = world.plant().registration()
    for looser in (False, True):
        approvals = tuple(
            approve(signed.content.rules, key, looser=not looser) for key in world.approvers
        )
        body = ClientRegistered(registration=signed, looser=looser, approvals=approvals)
        with refused("1", "0 approvals"):
            world.log.append(body, at=NOW)


def test_a_registration_that_a_crash_kept_from_the_store_is_logged_once(world: World) -> None:
    plant = world.plant()
    approval = approve(rules_of(plant), world.approvers[0])
    register(world, plant, [approval])
    size = world.ledger.size
    register(world, plant, [approval])
    register(world, plant, [])
    assert world.ledger.size == size


# -- channels without a rule ----------------------------------------------------------------------


def test_a_channel_needs_no_rule_only_if_every_approver_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the plant says, and an approval for another plant, do not count."""
    given: list[Mapping[str, str]] = []

    def accepted(*_: object, declared: Mapping[str, str], **__: object) -> tuple[()]:
        given.append(declared)
        return ()

    monkeypatch.setattr("sluice.attestation.protocol.coordinator.accept", accepted)
    one, two = world.approvers
    standby, spare = ("P2", "on standby"), ("P3", "a spare pump")
    for client, approvals, declared in (
        ("none", ((one, {}),), {}),
        ("one", ((one, {"declared": (standby, spare)}),), dict((standby, spare))),
        ("both", ((one, {"declared": (standby, spare)}), (two, {"declared": (standby,)})),
         dict((standby,))),
        ("silent", ((one, {"declared": (standby,)}), (two, {})), {}),
        ("other", ((one, {}), (two, {"declared": (standby,), "client": "south"})), {}),
    ):  # fmt: skip
        plant = world.plant(client)
        signed = [approve(rules_of(plant), key, **more) for key, more in approvals]
        register(world, plant, signed)
        assert given.pop() == declared, client
        assert not given


# -- who may be what ------------------------------------------------------------------------------


def test_a_coordinator_that_approves_is_refused(world: World, tmp_path: Path) -> None:
    """Waivers and shadow orders would need no other party."""
    key = SigningKey.generate()
    opened = LogOpened(
        federation="water",
        coordinator=key.public,
        approvers=(key.public, world.approvers[0].public),
    )
    with refused("7", "the coordinator's key is among the approvers' keys"):
        Log.create(tmp_path / "own.jsonl", opened, key, at=NOW)


@pytest.mark.parametrize("terms", [LogTerms(approvals=0), LogTerms(approvals_looser=0)])
def test_a_log_that_needs_no_approval_is_refused(
    world: World, tmp_path: Path, terms: LogTerms
) -> None:
    with refused("7", "at least one approval"):
        World(world.line, world.circuit, tmp_path / "none.jsonl", terms=terms)


def test_a_plant_with_the_key_of_an_approver_or_of_the_coordinator_is_refused(
    world: World,
) -> None:
    """It would approve its own rules."""
    for key in (*world.approvers, world.coordinator):
        plant = world.plant("south", key=key)
        with refused("1", "is the key of an approver or of the coordinator"):
            register(world, plant, [approve(rules_of(plant), each) for each in world.approvers])


# -- orders ---------------------------------------------------------------------------------------


def shadow(world: World, **changes: object) -> ShadowOrder:
    order = ShadowOrder(
        federation="water", until=instant(later(60)), reason="the first month of operation"
    )
    return replace(order, **changes)  # type: ignore[arg-type]


def set_shadow(
    world: World, order: ShadowOrder, approvals: Sequence[Signed[Approval]], *, minutes: float = 0
) -> None:
    body = GateSet(enforced=False, order=order, approvals=tuple(approvals))
    world.log.append(body, at=later(minutes))


def test_a_gate_that_only_the_coordinator_opened_is_refused(world: World) -> None:
    order = shadow(world)
    for approvals in (
        [],
        [approve(order, world.coordinator)],
        [approve(order, SigningKey.generate())],
        [approve(shadow(world, reason="another reason"), world.approvers[0])],
        [approve("0" * 64, world.approvers[0])],
    ):
        with refused("4", "the order: 0 approvals"):
            set_shadow(world, order, approvals)
    forged = replace(approve(order, world.approvers[0]), signature="0" * 128)
    with refused("4", "signature of the approval"):
        set_shadow(world, order, [forged])
    assert not world.ledger.exemptions.shadow(at=instant(NOW))
    set_shadow(world, order, [approve(order, world.approvers[0])])
    assert read_log(world.path).exemptions.order == order


def test_one_approval_does_not_open_a_gate_that_needs_two(strict: World) -> None:
    order = shadow(strict)
    one, two = (approve(order, key) for key in strict.approvers)
    with refused("4", "1 approvals .*, 2 are needed"):
        set_shadow(strict, order, [one, one, approve(order, strict.approvers[0])])
    set_shadow(strict, order, [one, two])


def test_an_order_of_another_federation_or_of_last_year_is_refused(world: World) -> None:
    for order, why in (
        (shadow(world, federation="power"), "federation 'power'"),
        (shadow(world, until=instant(later(-1))), "the shadow order ended on"),
    ):
        with refused("7", why):
            set_shadow(world, order, [approve(order, world.approvers[0])])
    last = shadow(world, until=instant(NOW))
    set_shadow(world, last, [approve(last, world.approvers[0])])


def test_a_gate_in_shadow_has_an_order_and_an_enforced_one_has_none(world: World) -> None:
    order = shadow(world)
    approvals = (approve(order, world.approvers[0]),)
    with refused("7", "shadow needs an order"):
        world.log.append(GateSet(enforced=False, approvals=approvals), at=NOW)
    set_shadow(world, order, approvals)
    with refused("7", "already has this setting"):
        set_shadow(world, order, approvals)
    with refused("7", "enforcing takes none"):
        world.log.append(GateSet(enforced=True, order=order, approvals=approvals), at=NOW)
    world.log.append(GateSet(enforced=True), at=NOW)


def test_a_reason_that_no_operator_wrote_is_not_signed(world: World) -> None:
    for reason in ("", "abc", "x" * 201, "\x1b[2J hidden", "zażółć"):
        with pytest.raises(DocumentError, match="reason"):
            sign(shadow(world, reason=reason), world.approvers[0])
