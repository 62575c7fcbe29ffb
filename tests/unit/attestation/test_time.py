"""Time: batches are recent, attestations expire, and the log's clock does not go back."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice.attestation.log.chain import mend, read_log
from sluice.attestation.log.entries import LogTerms, PledgesClosed, UpdatePledged
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import COMMITS
from sluice.attestation.messages.signing import sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.coordinator import Attested
from sluice.attestation.protocol.transition import TRANSITION
from sluice.attestation.systems.system import Circuit
from sluice.errors import VerificationError
from sluice.telemetry.record import Record

from .conftest import HISTORY, NOW, PlantRun, World, later, run_plant

MODEL = "a" * 64
TICK = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
RECENT = LogTerms()


def refused(step: str, words: str = "") -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step {step}: .*{words}")


def world_of(line: Record, circuit: Circuit, folder: Path, terms: LogTerms) -> World:
    return World(line, circuit, folder / "log.jsonl", terms=terms)


def send(world: World, run: PlantRun, *, end: datetime, hours: float = 12) -> None:
    """Commit to a batch of 600 rows that ends then, on the plant's own clock."""
    content = replace(
        run.plant.commit(world.batch(1)).message.content,
        interval=Interval(start=moment(end - hours * HOUR), end=moment(end)),
    )
    run.enrolled.receive(COMMITS.write(sign(content, run.plant.key)), at=NOW)


def moment(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(timespec="microseconds")


@pytest.fixture
def recent(line: Record, circuit: Circuit, tmp_path: Path) -> tuple[World, PlantRun]:
    """A log that takes recent batches only, and a plant that has committed to nothing yet."""
    world = world_of(line, circuit, tmp_path, RECENT)
    plant = world.plant()
    enrolled = world.enrol(plant)
    committed = plant.commit(world.batch())
    return world, PlantRun(world, plant, enrolled, committed, None, None)  # type: ignore[arg-type]


# -- batches --------------------------------------------------------------------------------------


def test_a_batch_that_ends_after_the_logs_clock_is_refused(
    recent: tuple[World, PlantRun],
) -> None:
    """A plant's clock has no time zone, and no zone is more than 14 hours ahead of UTC."""
    old = World(recent[0].line, recent[0].circuit, recent[0].path.with_name("old.jsonl"))
    for world, run in (recent, (old, run_plant(old))):
        with refused("2", "ends at 2026-05-02T02:00:00.000001, which is after 2026-05-01T12:00"):
            send(world, run, end=NOW + 14 * HOUR + TICK)
        with refused("2", "ends at 9999-12-31T23:59:59"):
            send(world, run, end=datetime.max.replace(tzinfo=UTC))
        send(world, run, end=NOW + 14 * HOUR)


def test_a_batch_of_last_year_is_refused_unless_the_log_holds_history(
    recent: tuple[World, PlantRun], tmp_path: Path
) -> None:
    world, run = recent
    for wrong in (datetime(1900, 1, 1, tzinfo=UTC), NOW - timedelta(days=365)):
        with refused("2", "more than 30 days before 2026-05-01T12:00:00.*founded with --history"):
            send(world, run, end=wrong)
    edge = NOW - timedelta(days=30) - 12 * HOUR  # a plant's clock may be 12 hours behind
    with refused("2", "more than 30 days before"):
        send(world, run, end=edge - TICK)
    send(world, run, end=edge)
    old = World(world.line, world.circuit, tmp_path / "old.jsonl", terms=HISTORY)
    run_plant(old)  # the records are of 2024


def test_a_batch_before_the_last_one_is_refused(recent: tuple[World, PlantRun]) -> None:
    """A gap in the record cannot be filled in later, when the plant knows what would pass."""
    world, run = recent
    send(world, run, end=NOW - 10 * HOUR, hours=10)
    for end in (NOW - 30 * HOUR, NOW, NOW - 5 * HOUR):
        with refused("2", "already committed to 2026-04-30T16:00:00.* starts after that"):
            send(world, run, end=end, hours=10)
    with refused("2", "already committed to"):
        send(world, run, end=NOW, hours=10)
    send(world, run, end=NOW + TICK, hours=10)


@pytest.mark.parametrize("most", [10**9, (1 << 53) - 1])
def test_terms_beyond_every_calendar_are_read_without_an_accident(
    line: Record, circuit: Circuit, tmp_path: Path, most: int
) -> None:
    terms = LogTerms(batch_days=most, attestation_days=most, challenge_hours=most)
    run = run_plant(world_of(line, circuit, tmp_path, terms))
    run.received.attest(run.proof, at=NOW)
    ledger = read_log(run.world.path)
    until = ledger.attested_until(run.committed.message.content.commitment)
    assert until == "9999-12-31T00:00:00.000000Z"


# -- attestations ---------------------------------------------------------------------------------


def pledge(run: PlantRun, *, at: datetime) -> None:
    world = run.world
    pledging = world.protocol.open_round(MODEL, at + HOUR, at=at)
    claimed = Attested(client="north", attestation=run.proven.attestation, transition=TRANSITION)
    token = TOKENS.write(run.proven.pledge(1, MODEL, b"an update").message)
    pledging.pledge(claimed, token, at=at)


def test_an_attestation_older_than_its_term_is_step_5_4(run: PlantRun) -> None:
    run.received.attest(run.proof, at=NOW)
    late = NOW + timedelta(days=HISTORY.attestation_days)
    commitment = run.committed.message.content.commitment
    assert run.world.ledger.attested_until(commitment) == instant(late)
    assert run.world.ledger.attestations("north", step="6", at=instant(late))
    assert not run.world.ledger.attestations("north", step="6", at=instant(late + TICK))
    with pytest.raises(VerificationError, match="has no attestation"):
        run.world.protocol.attested("north", run.proven.attestation, at=late + TICK)
    with refused("5.4", "expired on 2026-05-31T12:00:00"):
        pledge(run, at=late + TICK)


def test_an_unknown_attestation_has_not_expired(run: PlantRun) -> None:
    run.received.attest(run.proof, at=NOW)
    late = NOW + timedelta(days=HISTORY.attestation_days) + TICK
    run.world.protocol.open_round(MODEL, late, at=late)
    known = run.proven.pledge(1, MODEL, b"an update").message.content
    unknown = sign(replace(known, attestation="0" * 64), run.plant.key)
    with refused("6", "has no attestation 000000000000"):
        run.world.log.append(UpdatePledged(token=unknown), at=late)


def test_an_attestation_holds_until_its_term_ends(run: PlantRun) -> None:
    run.received.attest(run.proof, at=NOW)
    pledge(run, at=NOW + timedelta(days=HISTORY.attestation_days))


def test_an_expired_attestation_is_not_verified_again(run: PlantRun) -> None:
    run.received.attest(run.proof, at=NOW)
    verifier = run.world.verifier(run.world.ledger)
    late = NOW + timedelta(days=HISTORY.attestation_days)
    run.world.protocol.open_round(MODEL, late, at=late)
    verifier.verify(run.proof, run.commit)
    run.world.log.append(PledgesClosed(round=1), at=late + TICK)
    with refused("5.4", "expired on 2026-05-31"):
        verifier.verify(run.proof, run.commit)
    with refused("5.4", "expired on 2026-05-31"):
        run.received.attest(run.proof, at=late)


def test_a_batch_committed_long_ago_and_proven_now_has_expired_already(run: PlantRun) -> None:
    """A plant does not keep commitments in stock, to attest old rows year after year."""
    late = NOW + timedelta(days=HISTORY.attestation_days)
    with refused("5.4", "was committed to on 2026-05-01"):
        run.received.attest(run.proof, at=late + TICK)
    run.received.attest(run.proof, at=late)
    with refused("5.4", "expired on 2026-05-31"):
        pledge(run, at=late + TICK)


# -- the log's clock ------------------------------------------------------------------------------


def test_a_clock_that_goes_back_does_not_take_the_log_with_it(world: World) -> None:
    world.protocol.open_round(MODEL, later(60), at=later(10))
    world.log.append(PledgesClosed(round=1), at=later(-600))
    assert world.ledger.time == read_log(world.path).time == instant(later(10))


def test_a_log_whose_time_goes_back_is_refused(world: World) -> None:
    """The coordinator itself writes and signs such a log, past its own checks."""
    world.protocol.open_round(MODEL, later(60), at=later(10))
    *entries, _ = world.path.read_bytes().splitlines()
    entry = json.loads(entries[1])
    entry["time"] = instant(later(-1))
    entries[1] = json.dumps(entry, sort_keys=True, separators=(",", ":")).encode()
    world.path.write_bytes(b"\n".join(entries) + b"\n")
    with refused("7", "entry 1 is of 2026-05-01T11:59:00.* before the entry before it"):
        mend(world.path, world.coordinator)
