"""Keys that are replaced, and a coordinator that lost rounds: what each party must sign."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from sluice.attestation.log.chain import demand_head, read_log
from sluice.attestation.log.entries import ClientRemoved, FederationRecovered, KeyRotated
from sluice.attestation.log.heads import COORDINATOR, HEADS
from sluice.attestation.messages.messages import COMMITS, PROOFS, REGISTRATIONS
from sluice.attestation.messages.orders import (
    APPROVALS,
    Consent,
    Recovery,
    RotationSigned,
    approve,
    rotate,
)
from sluice.attestation.messages.signing import Signed, SigningKey, sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.plant import Registered
from sluice.errors import VerificationError

from .conftest import NOW, PlantRun, World, later, run_plant
from .eventful import consent_to, recovery_of

MODEL, NEXT, LAST = "a" * 64, "b" * 64, "c" * 64


def refused(step: str, words: str = "") -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step {step}: .*{words}")


def replace_key(world: World, old: SigningKey) -> SigningKey:
    new = SigningKey.generate()
    world.log.append(KeyRotated(signed=rotate("water", old, new)), at=NOW)
    return new


# -- rotation -------------------------------------------------------------------------------------


def test_a_stolen_old_key_cannot_sign_after_rotation(run: PlantRun) -> None:
    world, old = run.world, run.plant.key
    attested = run.received.attest(run.proof, at=NOW)
    new = replace_key(world, old)
    thief, plant = run.plant, replace(run.plant, key=new)
    commit = COMMITS.write(thief.commit(world.batch(1)).message)
    with refused("2", "signature of the commit"):
        run.enrolled.receive(commit, at=NOW)
    named = replace(COMMITS.read(commit).content, key=old.public)
    with refused("2", "another policy, circuit, key"):
        run.enrolled.receive(COMMITS.write(sign(named, new)), at=NOW)
    pledging = world.protocol.open_round(MODEL, later(60), at=NOW)
    token = run.proven.pledge(1, MODEL, b"an update").message
    with refused("6", "signature of the token"):
        pledging.pledge(attested, TOKENS.write(token), at=NOW)
    head = world.ledger.head("north")
    with refused("7", "signature of the head"):
        world.protocol.countersign(HEADS.write(sign(head, old)), at=NOW)
    with refused("1", "a name has one key"):
        world.protocol.register(
            REGISTRATIONS.write(thief.registration()),
            run.enrolled.agreement,
            approvals=[
                APPROVALS.write(approve(thief.registration().content.rules, world.approvers[0]))
            ],
            last=world.circuit.rules,
            at=NOW,
        )
    with refused("1", "is not in force"):
        replace_key(world, old)
    # The plant itself goes on with the attestation that it has.
    pledging.pledge(attested, TOKENS.write(sign(token.content, new)), at=NOW)
    world.protocol.countersign(HEADS.write(sign(world.ledger.head("north"), new)), at=NOW)
    second = COMMITS.write(plant.commit(world.batch(1)).message)
    world.protocol.enrolled("north", run.enrolled.agreement).receive(second, at=NOW)
    assert read_log(world.path).client("north", step="1").key == new.public


def test_a_proof_that_was_on_its_way_when_the_key_was_rotated_is_verified(run: PlantRun) -> None:
    replace_key(run.world, run.plant.key)
    run.received.attest(run.proof, at=NOW)
    run.world.verifier(read_log(run.world.path)).verify(run.proof, run.commit)
    forged = sign(run.proven.message.content, SigningKey.generate())
    with refused("5.2", "signature of the proof"):
        run.world.verifier(run.world.ledger).verify(PROOFS.write(forged), run.commit)


def test_a_coordinator_signs_with_its_new_key_only(world: World) -> None:
    old, new = world.coordinator, SigningKey.generate()
    world.log.rotate(new, at=NOW)
    forged = HEADS.write(sign(world.ledger.head(COORDINATOR), old))
    *entries, _ = world.path.read_bytes().splitlines()
    whole = world.path.read_bytes()
    world.path.write_bytes(b"\n".join([*entries, forged]) + b"\n")
    with refused("7", "signature of the head"):
        read_log(world.path)
    world.path.write_bytes(whole)
    world.protocol.open_round(MODEL, later(60), at=NOW)
    assert read_log(world.path).coordinator == new.public


def rotations(world: World, run: PlantRun) -> dict[str, tuple[RotationSigned, str]]:
    """Rotations that the log must refuse, and why."""
    old, new, other = run.plant.key, SigningKey.generate(), SigningKey.generate()
    good = rotate("water", old, new)
    by_thief = rotate("water", old, other)
    return {
        "not signed by the old key": (
            replace(good, by_old=rotate("water", other, new).by_new), "signature of the rotation"),
        "not signed by the new key": (
            replace(good, by_new=good.by_old), "signature of the rotation"),
        "signatures of another rotation": (
            replace(good, by_old=by_thief.by_old), "signature of the rotation"),
        "another federation": (rotate("power", old, new), "for 'power'"),
        "a key of no party": (rotate("water", other, new), "is not in force"),
        "the same key": (rotate("water", old, old), "belongs to another party"),
        "the coordinator's key": (
            rotate("water", old, world.coordinator), "belongs to another party"),
        "an approver's key": (rotate("water", old, world.approvers[0]), "belongs to another party"),
        "an approver becomes a plant": (
            rotate("water", world.approvers[0], old), "belongs to another party"),
    }  # fmt: skip


REFUSED = (
    "not signed by the old key", "not signed by the new key", "signatures of another rotation",
    "another federation", "a key of no party", "the same key", "the coordinator's key",
    "an approver's key", "an approver becomes a plant",
)  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_rotation_is_refused(run: PlantRun, what: str) -> None:
    signed, why = rotations(run.world, run)[what]
    assert set(rotations(run.world, run)) == set(REFUSED)
    with refused("1", why):
        run.world.log.append(KeyRotated(signed=signed), at=NOW)


def test_heads_are_known_by_the_keys_that_signed_them(run: PlantRun) -> None:
    world = run.world
    before = world.log.signed_head()
    world.log.rotate(SigningKey.generate(), at=NOW)
    ledger = read_log(world.path)
    demand_head(world.path, ledger, before)
    demand_head(world.path, ledger, world.log.signed_head())
    seen = sign(world.ledger.head("north"), run.plant.key)
    demand_head(world.path, ledger, seen)
    content = before.content
    for head, why in (
        (sign(content, SigningKey.generate()), "not signed by 'coordinator'"),
        (sign(replace(content, signer="south"), run.plant.key), "not signed by 'south'"),
        (sign(replace(content, federation="power"), world.coordinator), "federation 'power'"),
        (sign(replace(content, size=9), world.coordinator), "entries are missing"),
        (sign(replace(content, last="0" * 64), world.coordinator), "forked"),
    ):
        with refused("7", why):
            demand_head(world.path, ledger, head)


# -- recovery -------------------------------------------------------------------------------------


@dataclass
class Recovering:
    """Four plants, of which one was removed, and two finished rounds."""

    world: World
    plants: dict[str, Registered]

    def recovery(self, **changes: object) -> Recovery:
        recovery = recovery_of(self.world, since=2, model_of=1, model=NEXT)
        return replace(recovery, **changes)  # type: ignore[arg-type]

    def consent(self, recovery: Recovery, client: str) -> Signed[Consent]:
        return sign(consent_to(recovery, client), self.plants[client].key)

    def append(self, recovery: Recovery, *consents: Signed[Consent]) -> None:
        body = FederationRecovered(recovery=recovery, consents=consents)
        self.world.log.append(body, at=NOW)


@pytest.fixture
def recovering(world: World) -> Recovering:
    plants = {name: world.plant(name) for name in ("north", "south", "east", "west")}
    for plant in plants.values():
        world.enrol(plant)
    for on, model in ((MODEL, NEXT), (NEXT, LAST)):
        world.protocol.open_round(on, later(60), at=NOW).close(at=NOW).finish(model, at=NOW)
    world.log.append(ClientRemoved(client="west", since=2, model_of=0, model=MODEL), at=NOW)
    return Recovering(world, plants)


def test_a_recovery_without_the_consent_of_most_plants_is_refused(recovering: Recovering) -> None:
    recovery = recovering.recovery()
    one, two = (recovering.consent(recovery, each) for each in ("north", "south"))
    for consents in ((), (one,), (one, one, one)):
        with refused("7", f"{len(set(map(id, consents)))} of 3 plants consent"):
            recovering.append(recovery, *consents)
    recovering.append(recovery, one, two)
    rounds = read_log(recovering.world.path).rounds
    assert (rounds.model, rounds.counted, rounds.last) == (NEXT, 1, 2)
    with refused("6", "the federation's model is bbbb"):
        recovering.world.protocol.open_round(MODEL, later(60), at=NOW)
    recovering.world.protocol.open_round(NEXT, later(60), at=NOW)


def test_the_consent_of_half_of_the_plants_is_not_enough(recovering: Recovering) -> None:
    recovering.plants["far"] = recovering.world.plant("far")
    recovering.world.enrol(recovering.plants["far"])
    recovery = recovering.recovery()
    consents = [recovering.consent(recovery, each) for each in ("north", "south", "far")]
    with refused("7", "2 of 4 plants consent"):
        recovering.append(recovery, *consents[:2])
    recovering.append(recovery, *consents)


Changed = Callable[[Recovering, Recovery], Signed[Consent]]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (lambda r, recovery: r.consent(recovery, "west"), "1 of 3 plants"),
        (lambda r, recovery: r.consent(replace(recovery, model_of=0), "south"), "1 of 3 plants"),
        (lambda r, recovery: sign(replace(consent_to(recovery, "south"), federation="power"),
                                  r.plants["south"].key), "1 of 3 plants"),
        (lambda r, recovery: sign(consent_to(recovery, "south"), r.plants["north"].key),
         "signature of the consent"),
        (lambda r, recovery: sign(consent_to(recovery, "south"), r.world.coordinator),
         "signature of the consent"),
        (lambda r, recovery: sign(consent_to(recovery, "nobody"), r.world.coordinator),
         "no client 'nobody'"),
    ],
    ids=["removed", "another recovery", "another federation", "forged", "coordinator", "unknown"],
)  # fmt: skip
def test_a_consent_that_does_not_count(recovering: Recovering, second: Changed, why: str) -> None:
    recovery = recovering.recovery()
    first = recovering.consent(recovery, "north")
    with refused("7", why):
        recovering.append(recovery, first, second(recovering, recovery))


@pytest.mark.parametrize(
    ("changes", "step", "why"),
    [
        ({"size": 3}, "7", "does not follow this log"),
        ({"last": "0" * 64}, "7", "does not follow this log"),
        ({"federation": "power"}, "7", "does not follow this log"),
        ({"model": MODEL}, "6", "is not the model after round 1"),
        ({"since": 3}, "6", "cannot discard rounds from 3"),
        ({"since": 1}, "6", "cannot discard rounds from 1"),
        ({"since": 2, "model_of": 2}, "6", "cannot discard"),
    ],
)
def test_a_recovery_of_another_log_or_model_is_refused(
    recovering: Recovering, changes: dict[str, object], step: str, why: str
) -> None:
    recovery = recovering.recovery(**changes)
    consents = (recovering.consent(recovery, each) for each in ("north", "south", "east"))
    with refused(step, why):
        recovering.append(recovery, *consents)


def test_consents_do_not_serve_twice(recovering: Recovering) -> None:
    """A recovery names the log that it follows; its own entry makes that another log."""
    recovery = recovering.recovery()
    consents = [recovering.consent(recovery, each) for each in ("north", "south")]
    recovering.append(recovery, *consents)
    with refused("7", "does not follow this log"):
        recovering.append(recovery, *consents)


def test_a_recovery_ends_the_round_in_progress(recovering: Recovering) -> None:
    world = recovering.world
    run = run_plant(world, "late")
    attested = run.received.attest(run.proof, at=NOW)
    pledging = world.protocol.open_round(MODEL, later(60), at=NOW)
    recovery = recovering.recovery(since=3, model_of=1)
    recovering.append(
        recovery, *(recovering.consent(recovery, each) for each in ("north", "south", "east"))
    )
    assert world.ledger.rounds.between
    token = TOKENS.write(run.proven.pledge(3, MODEL, b"an update").message)
    with refused("6", "which was abandoned"):
        pledging.pledge(attested, token, at=NOW)
    with refused("6", "which was abandoned"):
        pledging.close(at=NOW)
    assert (world.ledger.rounds.model, world.ledger.rounds.counted) == (NEXT, 1)
    assert world.protocol.open_round(NEXT, later(60), at=NOW).round == 4
