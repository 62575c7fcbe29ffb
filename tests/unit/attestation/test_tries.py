"""A plant that waits for a lucky draw: how many challenges the log gives it."""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import BatchChallenged, KeyRotated
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.messages import COMMITS, PROOFS, draw_challenge
from sluice.attestation.messages.orders import rotate
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.protocol.coordinator import Enrolled, ReceivedBatch
from sluice.attestation.protocol.key_folder import KeyFolder
from sluice.attestation.protocol.plant import Registered
from sluice.attestation.systems.sampled.guarantee import TRIES
from sluice.errors import VerificationError

from .drawn_plant import HISTORY, NOW, ROWS, Coordinator, batch, registered, run_plant

ANSWER = timedelta(hours=HISTORY.challenge_hours)
TICK = timedelta(microseconds=1)


def refused(step: str, words: str = "") -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step {step}: .*{words}")


@dataclass
class Cheat:
    """A plant that commits to one batch again and again, each time with an invented interval."""

    coordinator: Coordinator
    plant: Registered
    enrolled: Enrolled
    commits: int = 0

    def receive(self, *, at: datetime = NOW) -> ReceivedBatch:
        """Commit to the same rows under a fresh salt, as rows of the next day of 1900."""
        self.commits += 1
        start = datetime(1900, 1, 1) + timedelta(days=self.commits)  # noqa: DTZ001
        end = start + timedelta(minutes=ROWS)
        first, last = (each.isoformat(timespec="microseconds") for each in (start, end))
        content = replace(
            self.plant.commit(batch()).message.content, interval=Interval(start=first, end=last)
        )
        return self.enrolled.receive(COMMITS.write(sign(content, self.plant.key)), at=at)

    def draws(self, received: list[ReceivedBatch], *, since: datetime = NOW) -> int:
        """Ask for a challenge of each batch, answer none, and return how many were drawn."""
        drawn = 0
        for each in received:
            since += ANSWER + TICK
            with suppress(VerificationError):
                each.challenge(at=since)
                drawn += 1
        return drawn


@pytest.fixture
def cheat(drawn_folder: KeyFolder, tmp_path: Path) -> Cheat:
    coordinator, plant = Coordinator.at(tmp_path / "log.jsonl"), registered(drawn_folder)
    return Cheat(coordinator, plant, coordinator.enrol(plant))


def test_the_same_forged_batch_under_invented_intervals_gets_no_fresh_challenges(
    cheat: Cheat, tmp_path: Path
) -> None:
    cheat.receive().challenge(at=NOW)
    for minutes in range(20):
        received = cheat.receive()
        with refused("3", "has a challenge that it must answer by 2026-05-02T12:00:00"):
            received.challenge(at=NOW + timedelta(minutes=minutes))
    assert len(read_log(tmp_path / "log.jsonl").unanswered("north")) == 1


def test_a_challenge_is_open_to_the_moment_at_which_it_must_be_answered(cheat: Cheat) -> None:
    cheat.receive().challenge(at=NOW)
    received = cheat.receive()
    with refused("3", "has a challenge that it must answer by 2026-05-02T12:00:00"):
        received.challenge(at=NOW + ANSWER)
    received.challenge(at=NOW + ANSWER + TICK)


def test_a_plant_that_answers_none_of_its_challenges_gets_only_so_many(cheat: Cheat) -> None:
    """This is the number of tries that `sluice attest guarantee` computes with."""
    received = [cheat.receive() for _ in range(10)]
    assert cheat.draws(received) == HISTORY.unanswered_max == TRIES
    with refused("3", "left 3 challenges unanswered, 3 are allowed"):
        received[-1].challenge(at=NOW + timedelta(days=365))


def test_a_challenge_is_answered_in_time_or_not_at_all(
    drawn_folder: KeyFolder, tmp_path: Path
) -> None:
    late, early = (
        run_plant(drawn_folder, tmp_path / f"{name}.jsonl") for name in ("late", "early")
    )
    with refused("5.3", "had to be answered by 2026-05-02T12:00:00"):
        late.received.attest(PROOFS.write(late.proven.message), at=NOW + ANSWER + TICK)
    early.received.attest(PROOFS.write(early.proven.message), at=NOW + ANSWER)


def test_answered_challenges_are_not_counted(drawn_folder: KeyFolder, tmp_path: Path) -> None:
    coordinator, plant = Coordinator.at(tmp_path / "log.jsonl"), registered(drawn_folder)
    enrolled = coordinator.enrol(plant)
    for nth in range(HISTORY.unanswered_max + 2):
        committed = plant.commit(batch(nth))
        received = enrolled.receive(COMMITS.write(committed.message), at=NOW)
        proven = committed.challenged(received.challenge(at=NOW)).prove(batch(nth))
        received.attest(PROOFS.write(proven.message), at=NOW)
    assert coordinator.log.ledger.unanswered("north") == ()


def test_a_challenge_of_a_system_that_draws_no_rows_is_refused(cheat: Cheat) -> None:
    commit = cheat.receive().commit.content
    drawn = draw_challenge(commit)
    with refused("3", "not for this commitment"):
        other = replace(drawn, client="south")
        cheat.coordinator.log.append(BatchChallenged(challenge=other), at=NOW)
    cheat.coordinator.log.append(BatchChallenged(challenge=drawn), at=NOW)


def test_approvers_can_start_the_count_again(cheat: Cheat) -> None:
    received = [cheat.receive() for _ in range(10)]
    assert cheat.draws(received) == TRIES
    cheat.coordinator.enrol(cheat.plant, again=True)
    more = [cheat.receive() for _ in range(10)]
    assert cheat.draws(more, since=NOW + 20 * ANSWER) == TRIES


def test_an_approval_that_was_used_does_not_start_the_count_again(
    drawn_folder: KeyFolder, tmp_path: Path
) -> None:
    """The plant sends its registration again, with the approval that it kept."""
    coordinator, plant = Coordinator.at(tmp_path / "log.jsonl"), registered(drawn_folder)
    approval = coordinator.approval(plant)
    cheat = Cheat(coordinator, plant, coordinator.enrol(plant, approval))
    received = [cheat.receive() for _ in range(10)]
    assert cheat.draws(received) == TRIES
    with refused("1", "0 approvals"):
        coordinator.enrol(plant, approval, again=True)
    coordinator.enrol(registered(drawn_folder, "south"), approval)  # it names no client


def test_commitments_from_before_a_registration_are_counted_too(cheat: Cheat) -> None:
    """The plant commits ahead, is registered again, and then asks for challenges."""
    received = [cheat.receive() for _ in range(10)]
    cheat.coordinator.enrol(cheat.plant, again=True)
    received[0].challenge(at=NOW)
    with refused("3", "has a challenge that it must answer"):
        received[1].challenge(at=NOW)
    assert cheat.draws(received[1:]) == TRIES - 1


def test_a_new_registration_does_not_close_an_open_challenge(cheat: Cheat) -> None:
    cheat.receive().challenge(at=NOW)
    cheat.coordinator.enrol(cheat.plant, again=True)
    with refused("3", "has a challenge that it must answer"):
        cheat.receive().challenge(at=NOW)


def test_a_rotated_key_does_not_start_the_count_again(cheat: Cheat) -> None:
    assert cheat.draws([cheat.receive() for _ in range(10)]) == TRIES
    new = SigningKey.generate()
    signed = rotate("water", cheat.plant.key, new)
    cheat.coordinator.log.append(KeyRotated(signed=signed), at=NOW)
    cheat.plant = replace(cheat.plant, key=new)
    with refused("3", "left 3 challenges unanswered"):
        cheat.receive().challenge(at=NOW + timedelta(days=365))
