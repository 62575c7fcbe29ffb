"""Reception: a plant's batch is attested once, by the log, before it takes part in rounds.

Without a proof it takes part only where the log excuses it: by a waiver for this batch, or because
the gate is in shadow. All other steps are as strict as ever.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from sluice.attestation.log import BatchExcused, Exemptions, GateSet, unproven_id
from sluice.attestation.messages import instant
from sluice.attestation.protocol import (
    Agreement,
    Brought,
    ProtocolCoordinator,
    ReceivedBatch,
    attest_together,
)
from sluice.errors import VerificationError
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.store import SHADOW
from sluice.network.wire import AskBatch, Batch, CommitOnly

__all__ = ["NO_PROOF", "Intake"]

NO_PROOF = "4"
"""The step at which a plant without an attestation is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Takes attestations, over the wire or from files, and notes what became of them."""

    protocol: ProtocolCoordinator
    requests: Requests
    agreements: Mapping[str, Agreement]

    def set_gate(self, *, shadow: bool) -> None:
        """Say in the log whether the gate keeps plants out from now on."""
        if self._exemptions.shadow != shadow:
            self.protocol.log.append(GateSet(enforced=not shadow), at=self.requests.clock())

    def invite_batches(self, *, round_: int, seconds: float) -> None:
        """Ask the plants that are there and have no attestation yet, or another batch."""
        self.protocol.log.catch_up()
        self._end_excuses(round_)
        present, now = self.requests.wire.present(), instant(self.requests.clock())
        waiting = {
            member.name: AskBatch(unproven=self._exemptions.open_to(member.name, at=now))
            for member in self.requests.store.members()
            if member.active
            and (member.attestation is None or member.renews)
            and member.name in present
        }
        brought: dict[str, Batch | CommitOnly] = {}
        for plant, answer in self.requests.ask(waiting, round_=round_, seconds=seconds):
            if isinstance(answer, Batch | CommitOnly):
                brought.setdefault(plant, answer)
            else:
                self._refused(plant, NO_PROOF, round_)
        self.decide(brought, round_=round_)

    def decide(self, batches: Mapping[str, Batch | CommitOnly], *, round_: int) -> None:
        """Take batches that came over the plants' own wires, or note at which step they fail."""
        for plant, failed in self._taken(batches, round_).items():
            if failed:
                self._refused(plant, failed.step, round_)

    def take(self, plant: str, batch: Batch | CommitOnly, *, round_: int) -> None:
        """Take one batch, or raise; then the plant stands as it stood: a file may be anybody's."""
        failed = self._taken({plant: batch}, round_)[plant]
        if failed:
            raise failed

    def _taken(
        self, batches: Mapping[str, Batch | CommitOnly], round_: int
    ) -> dict[str, VerificationError | None]:
        """Steps 2 and 5: log commitments, verify their proofs together, log the attestations."""
        clock, store, began = self.requests.clock, self.requests.store, time.perf_counter()
        outcomes: dict[str, VerificationError | None] = {}
        brought: dict[str, Brought] = {}
        for plant, batch in batches.items():
            outcomes[plant] = None
            try:
                received = self._received(plant, batch, round_)
            except VerificationError as error:
                outcomes[plant] = error
            else:
                if isinstance(batch, Batch):
                    brought[plant] = Brought(received=received, proof=batch.proof)
        found = attest_together(tuple(brought.values()), at=clock())
        seconds = (time.perf_counter() - began) / max(1, len(brought))
        for plant, outcome in zip(brought, found, strict=True):
            if isinstance(outcome, VerificationError):
                outcomes[plant] = outcome
            else:
                store.admitted(plant, outcome.attestation)
                store.note("verified", plant=plant, round_=round_, at=clock(), seconds=seconds)
        return outcomes

    def _received(self, plant: str, batch: Batch | CommitOnly, round_: int) -> ReceivedBatch:
        """Log a commitment; one that comes without a proof is taken where the log lets it."""
        enrolled = self.protocol.enrolled(plant, self.agreements[plant])
        received = enrolled.receive(batch.commit, at=self.requests.clock())
        if isinstance(batch, CommitOnly):
            self._excuse(received, round_)
        else:
            self._refuse_stale(plant, received)
        return received

    @property
    def _exemptions(self) -> Exemptions:
        return self.protocol.log.ledger.exemptions

    def _refuse_stale(self, plant: str, received: ReceivedBatch) -> None:
        """A batch is not taken up again once a later one of this plant was attested."""
        ledger, now = self.protocol.log.ledger, instant(self.requests.clock())
        unproven = {each.attestation for each in self._exemptions.excused}
        held = ledger.attestations(plant, step="5.4", at=now)
        proven = [each for each in held if each not in unproven]
        if ledger.attestation(received.commit.content.commitment) in proven[:-1]:
            raise VerificationError("5.4", f"{plant!r} has had another batch attested since")

    def _excuse(self, received: ReceivedBatch, round_: int) -> None:
        """Take a batch without a proof, where the log lets it; the same one twice is one entry."""
        now, commit, exempt = self.requests.clock(), received.commit.content, self._exemptions
        named, waiver = unproven_id(commit), exempt.covering(commit, at=instant(now))
        held = {each.commitment: each for each in exempt.excused}.get(commit.commitment)
        if held is None or not exempt.holds(held, at=instant(now)):
            body = BatchExcused(
                client=commit.client,
                commitment=commit.commitment,
                attestation=named,
                waiver=waiver,
            )
            self.protocol.log.append(body, at=now)
        else:
            waiver = held.waiver
        self.requests.store.admitted(commit.client, named, excuse=waiver or SHADOW)
        kind = "waived" if waiver else "would have been refused at step 4"
        self.requests.store.note(kind, plant=commit.client, round_=round_, at=now)

    def _end_excuses(self, round_: int) -> None:
        """Let go of plants whose waiver has expired, or whose shadow has ended."""
        now = instant(self.requests.clock())
        good = {
            each.attestation
            for each in self._exemptions.excused
            if self._exemptions.holds(each, at=now)
        }
        for member in self.requests.store.members():
            if member.excuse is not None and member.attestation not in good:
                self._refused(member.name, NO_PROOF, round_)

    def _refused(self, plant: str, step: str, round_: int) -> None:
        self.requests.store.refused(plant, step)
        self.requests.store.note(
            f"refused at step {step}", plant=plant, round_=round_, at=self.requests.clock()
        )
