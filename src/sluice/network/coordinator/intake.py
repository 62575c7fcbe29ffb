"""Reception: a plant's batch is attested once, by the log, before it takes part in rounds.

Without a proof it takes part only where the log excuses it: by a waiver for this batch, or because
the gate is in shadow. All other steps are as strict as ever.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from sluice.attestation.log import BatchExcused, Exemptions, GateSet, unproven_id
from sluice.attestation.messages import instant
from sluice.attestation.protocol import Agreement, Awaiting, Brought, Desk, attest_together
from sluice.errors import VerificationError
from sluice.network.coordinator.requests import Asking
from sluice.network.coordinator.store import SHADOW
from sluice.network.wire import AskBatch, Batch, CommitOnly

__all__ = ["NO_PROOF", "Reception"]

NO_PROOF = "4"
"""The step at which a plant without an attestation is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """Takes attestations, over the wire or from files, and notes what became of them."""

    desk: Desk
    asking: Asking
    agreements: Mapping[str, Agreement]

    def set_gate(self, *, shadow: bool) -> None:
        """Say in the log whether the gate keeps plants out from now on."""
        if self._exemptions.shadow != shadow:
            self.desk.log.append(GateSet(enforced=not shadow), at=self.asking.clock())

    def invite_batches(self, *, round_: int, seconds: float) -> None:
        """Ask the plants that are there and have no attestation yet, or another batch."""
        self.desk.log.catch_up()
        self._end_excuses(round_)
        present, now = self.asking.wire.present(), instant(self.asking.clock())
        waiting = {
            member.name: AskBatch(unproven=self._exemptions.open_to(member.name, at=now))
            for member in self.asking.store.members()
            if member.active
            and (member.attestation is None or member.renews)
            and member.name in present
        }
        brought: dict[str, Batch | CommitOnly] = {}
        for plant, answer in self.asking.ask(waiting, round_=round_, seconds=seconds):
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
        clock, store, began = self.asking.clock, self.asking.store, time.perf_counter()
        outcomes: dict[str, VerificationError | None] = {}
        brought: dict[str, Brought] = {}
        for plant, batch in batches.items():
            outcomes[plant] = None
            try:
                awaiting = self._received(plant, batch, round_)
            except VerificationError as error:
                outcomes[plant] = error
            else:
                if isinstance(batch, Batch):
                    brought[plant] = Brought(awaiting=awaiting, proof=batch.proof)
        found = attest_together(tuple(brought.values()), at=clock())
        seconds = (time.perf_counter() - began) / max(1, len(brought))
        for plant, outcome in zip(brought, found, strict=True):
            if isinstance(outcome, VerificationError):
                outcomes[plant] = outcome
            else:
                store.admitted(plant, outcome.attestation)
                store.note("verified", plant=plant, round_=round_, at=clock(), seconds=seconds)
        return outcomes

    def _received(self, plant: str, batch: Batch | CommitOnly, round_: int) -> Awaiting:
        """Log a commitment; one that comes without a proof is taken where the log lets it."""
        enrolled = self.desk.enrolled(plant, self.agreements[plant])
        awaiting = enrolled.receive(batch.commit, at=self.asking.clock())
        if isinstance(batch, CommitOnly):
            self._excuse(awaiting, round_)
        else:
            self._refuse_stale(plant, awaiting)
        return awaiting

    @property
    def _exemptions(self) -> Exemptions:
        return self.desk.log.ledger.exemptions

    def _refuse_stale(self, plant: str, awaiting: Awaiting) -> None:
        """A batch is not taken up again once a later one of this plant was attested."""
        ledger, now = self.desk.log.ledger, instant(self.asking.clock())
        unproven = {each.attestation for each in self._exemptions.excused}
        held = ledger.attestations(plant, step="5.4", at=now)
        proven = [each for each in held if each not in unproven]
        if ledger.attestation(awaiting.commit.content.commitment) in proven[:-1]:
            raise VerificationError("5.4", f"{plant!r} has had another batch attested since")

    def _excuse(self, awaiting: Awaiting, round_: int) -> None:
        """Take a batch without a proof, where the log lets it; the same one twice is one entry."""
        now, commit, exempt = self.asking.clock(), awaiting.commit.content, self._exemptions
        named, waiver = unproven_id(commit), exempt.covering(commit, at=instant(now))
        held = {each.commitment: each for each in exempt.excused}.get(commit.commitment)
        if held is None or not exempt.holds(held, at=instant(now)):
            body = BatchExcused(
                client=commit.client,
                commitment=commit.commitment,
                attestation=named,
                waiver=waiver,
            )
            self.desk.log.append(body, at=now)
        else:
            waiver = held.waiver
        self.asking.store.admitted(commit.client, named, excuse=waiver or SHADOW)
        kind = "waived" if waiver else "would have been refused at step 4"
        self.asking.store.note(kind, plant=commit.client, round_=round_, at=now)

    def _end_excuses(self, round_: int) -> None:
        """Let go of plants whose waiver has expired, or whose shadow has ended."""
        now = instant(self.asking.clock())
        good = {
            each.attestation
            for each in self._exemptions.excused
            if self._exemptions.holds(each, at=now)
        }
        for member in self.asking.store.members():
            if member.excuse is not None and member.attestation not in good:
                self._refused(member.name, NO_PROOF, round_)

    def _refused(self, plant: str, step: str, round_: int) -> None:
        self.asking.store.refused(plant, step)
        self.asking.store.note(
            f"refused at step {step}", plant=plant, round_=round_, at=self.asking.clock()
        )
