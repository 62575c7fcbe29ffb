"""A log with every kind of entry, written one by one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from sluice.attestation.log.entries import (
    BatchChallenged,
    BatchCommitted,
    BatchExcused,
    Body,
    ClientRegistered,
    ClientRemoved,
    FederationRecovered,
    GateSet,
    KeyRotated,
    RoundAbandoned,
    WaiverGranted,
)
from sluice.attestation.log.heads import COORDINATOR
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import draw_challenge
from sluice.attestation.messages.orders import (
    Consent,
    Recovery,
    ShadowOrder,
    Waiver,
    approve,
    rotate,
)
from sluice.attestation.messages.signing import SigningKey, content_digest, sign
from sluice.attestation.messages.tokens import TOKENS

from .conftest import NOW, World, later, run_plant

GROUPED = frozenset({"epoch", "group summed", "group given up"})
"""Kinds that only a federation with groups has; tests/unit/network/test_groups.py writes them."""
KINDS = frozenset(kind.__dataclass_fields__["kind"].default for kind in get_args(Body)) - GROUPED
MODEL, NEXT = "a" * 64, "b" * 64
UPDATE = b"an update"


def write_every_kind(world: World) -> Iterator[None]:
    """Append entries until every kind has occurred; yield after each step."""
    log = world.log
    north, south = run_plant(world, "north"), run_plant(world, "south", batch=1)
    yield
    attested = north.received.attest(north.proof, at=NOW)
    yield
    waiver = Waiver(
        federation="water",
        client="south",
        interval=south.committed.message.content.interval,
        expires=instant(later(3_600)),
        reason="tank 2 is being painted",
    )
    log.append(
        WaiverGranted(waiver=waiver, approvals=(approve(waiver, world.approvers[0]),)), at=NOW
    )
    yield
    unproven = south.committed.unproven()
    commitment = unproven.message.content.commitment
    excused = BatchExcused(
        client="south",
        commitment=commitment,
        attestation=unproven.attestation,
        waiver=content_digest(waiver),
    )
    log.append(excused, at=NOW)
    yield
    order = ShadowOrder(federation="water", until=instant(later(600)), reason="the first month")
    approval = approve(order, world.approvers[1])
    log.append(GateSet(enforced=False, order=order, approvals=(approval,)), at=NOW)
    yield
    yield from _challenged(world)
    pledging = world.protocol.open_round(MODEL, later(60), at=NOW)
    yield
    token = TOKENS.write(north.proven.pledge(1, MODEL, UPDATE).message)
    pledge = pledging.pledge(attested, token, at=NOW)
    yield
    pledging.exclude("south", "6", at=NOW)
    yield
    revealing = pledging.close(at=NOW)
    yield
    revealing.reveal(pledge, UPDATE, at=NOW)
    yield
    world.countersign(north.plant)
    yield
    revealing.finish(NEXT, at=NOW)
    yield
    world.protocol.open_round(NEXT, later(60), at=NOW)
    log.append(RoundAbandoned(round=2), at=NOW)
    yield
    new = SigningKey.generate()
    log.append(KeyRotated(signed=rotate("water", north.plant.key, new)), at=NOW)
    yield
    log.rotate(SigningKey.generate(), at=NOW)
    yield
    log.append(ClientRemoved(client="south", since=2, model_of=1, model=NEXT), at=NOW)
    yield
    world.protocol.open_round(NEXT, later(60), at=NOW)
    yield
    recovery = recovery_of(world, since=1, model_of=0, model=MODEL)
    consents = tuple(
        sign(consent, key)
        for consent, key in (
            (consent_to(recovery, "north"), new),
            (consent_to(recovery, "west"), _WEST),
        )
    )
    log.append(FederationRecovered(recovery=recovery, consents=consents), at=NOW)
    yield


_WEST = SigningKey.generate()


def _challenged(world: World) -> Iterator[None]:
    """A client of the system whose rows are drawn, as far as the log looks at it."""
    plant = world.plant("west", key=_WEST)
    registration = replace(plant.registration().content, system="sampled")
    body = ClientRegistered(
        registration=sign(registration, _WEST),
        looser=False,
        approvals=(approve(registration.rules, world.approvers[0]),),
    )
    world.log.append(body, at=NOW)
    yield
    commit = replace(plant.commit(world.batch(2)).message.content, system="sampled")
    world.log.append(BatchCommitted(commit=sign(commit, _WEST)), at=NOW)
    yield
    world.log.append(BatchChallenged(challenge=draw_challenge(commit)), at=NOW)
    yield


def recovery_of(world: World, *, since: int, model_of: int, model: str) -> Recovery:
    """A recovery that follows the log as it is now."""
    head = world.ledger.head(COORDINATOR)
    return Recovery(
        federation=head.federation,
        size=head.size,
        last=head.last,
        since=since,
        model_of=model_of,
        model=model,
    )


def consent_to(recovery: Recovery, client: str) -> Consent:
    return Consent(federation=recovery.federation, client=client, recovery=content_digest(recovery))
