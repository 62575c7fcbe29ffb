"""Intake: a plant's batch is attested once, in the log, before the plant takes part in rounds.

A batch without a proof is accepted only if the log exempts it: by a waiver for this batch, or
because the gate is in shadow mode. All other steps of the protocol apply unchanged.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sluice.attestation.log import BatchExcused, Exemptions, GateSet, unproven_id
from sluice.attestation.messages import PROOFS, instant
from sluice.attestation.protocol import (
    Agreement,
    Brought,
    ProtocolCoordinator,
    ReceivedBatch,
    attest_together,
)
from sluice.attestation.systems.full import StatisticName
from sluice.errors import CheckpointError, SettingError, VerificationError
from sluice.federation import Attestation, CommitmentOnly, Decision, Reply
from sluice.network.coordinator.grouping import totals_bytes
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.store import BATCH_ASKS, SHADOW, Member

__all__ = ["NO_PROOF", "Intake", "RoundIntake"]

NO_PROOF = "4"
"""The step reported for a plant without an attestation."""
EXPIRED = "5.4"
"""The step reported for a plant whose attestation has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Receives attestations, over the wire or from files, and records the outcomes."""

    protocol: ProtocolCoordinator
    requests: Requests
    agreements: Mapping[str, Agreement]

    def set_gate(self, *, shadow: bool) -> None:
        """Enforce the gate, or demand that an approved order has put it in shadow."""
        now = self.requests.clock()
        if self._exemptions.shadow(at=instant(now)) == shadow:
            return
        if shadow:
            raise SettingError(
                "the gate is enforced; shadow needs an order that approvers have signed: 'sluice "
                "coordinator shadow', 'sluice rules approve', 'sluice coordinator import'"
            )
        self.protocol.log.append(GateSet(enforced=True), at=now)

    def due(self, *, round_: int) -> tuple[str, ...]:
        """Return the online plants without an attestation, with one that ends, or a new batch.

        A plant that takes part is asked for its new batch a few times only. If it does not deliver,
        it continues with the batch it has.
        """
        self.protocol.log.catch_up()
        self._end_excuses(round_)
        self._end_expired(round_)
        present = self.requests.wire.present()
        return tuple(
            member.name
            for member in self.requests.store.members()
            if member.active
            and member.name in present
            and (
                member.attestation is None
                or (member.renews and member.unanswered < BATCH_ASKS)
                or self._ends_soon(member)
            )
        )

    def before(self, round_: int) -> "RoundIntake":
        """Return the admission check of one round."""
        return RoundIntake(intake=self, round=round_)

    def decide(
        self, shown: Mapping[str, Reply | None], *, round_: int
    ) -> dict[str, VerificationError | None]:
        """Accept batches from the plants' own connections, or record at which step they fail.

        The attestation of a plant that sent no batch stays in force.
        """
        batches: dict[str, Attestation | CommitmentOnly] = {}
        attested = {each.name for each in self.requests.store.members() if each.attestation}
        for plant, reply in shown.items():
            if isinstance(reply, Attestation | CommitmentOnly):
                batches[plant] = reply
            elif plant in attested:
                self.requests.store.unanswered(plant)
            elif reply is not None:
                self._refuse(plant, NO_PROOF, round_)
        outcomes = self._attest(batches, round_)
        for plant, failed in outcomes.items():
            if failed:
                self._refuse(plant, failed.step, round_)
        return outcomes

    def decisions(self) -> dict[str, Decision]:
        """Return the decision on each active plant; the log gives the rows of its batch."""
        return {
            member.name: self._decision(member)
            for member in self.requests.store.members()
            if member.active
        }

    def _decision(self, member: Member) -> Decision:
        if member.attestation is None:
            return Decision(admitted=False, reasons=(f"step {member.step or NO_PROOF}",))
        ledger = self.protocol.log.ledger
        try:
            commit = ledger.attested_commit(member.name, member.attestation, step=NO_PROOF)
        except VerificationError as error:
            raise CheckpointError(
                f"the store and the log disagree ({error.why}); restore both from the same backup"
            ) from None
        reasons = (member.state,) if member.excuse else ()
        return Decision(admitted=True, rows=commit.rows, reasons=reasons)

    def take(self, plant: str, batch: Attestation | CommitmentOnly, *, round_: int) -> None:
        """Accept one batch, or raise; then the plant's state stays: anyone can write a file."""
        failed = self._attest({plant: batch}, round_)[plant]
        if failed:
            raise failed

    def _attest(
        self, batches: Mapping[str, Attestation | CommitmentOnly], round_: int
    ) -> dict[str, VerificationError | None]:
        """Steps 2 and 5: log commitments, verify their proofs together, log the attestations."""
        clock, store, began = self.requests.clock, self.requests.store, time.perf_counter()
        outcomes: dict[str, VerificationError | None] = {}
        brought: dict[str, Brought] = {}
        for plant, batch in batches.items():
            outcomes[plant] = None
            try:
                received = self._receive(plant, batch, round_)
            except VerificationError as error:
                outcomes[plant] = error
            else:
                if isinstance(batch, Attestation):
                    brought[plant] = Brought(
                        received=received, proof=batch.proof, statistic=batch.statistic
                    )
        results = attest_together(tuple(brought.values()), at=clock())
        seconds = (time.perf_counter() - began) / max(1, len(brought))
        for plant, outcome in zip(brought, results, strict=True):
            if isinstance(outcome, VerificationError):
                outcomes[plant] = outcome
            else:
                statistic = self._kept(plant, brought[plant])
                store.admitted(plant, outcome.attestation, statistic=statistic)
                store.note("verified", plant=plant, round_=round_, at=clock(), seconds=seconds)
        return outcomes

    def _kept(self, plant: str, brought: Brought) -> bytes | None:
        """Return what is kept of a verified statistic; of a sealed one with the proof's totals."""
        circuit = self.agreements[plant].circuit
        if brought.statistic is None or circuit.statistic != StatisticName.HIDDEN:
            return brought.statistic
        document = PROOFS.read(brought.proof, largest=len(brought.proof))
        return brought.statistic + totals_bytes(document.content.proof)

    def _receive(
        self, plant: str, batch: Attestation | CommitmentOnly, round_: int
    ) -> ReceivedBatch:
        """Log a commitment; one without a proof is accepted only if the log exempts it."""
        enrolled = self.protocol.enrolled(plant, self.agreements[plant])
        received = enrolled.receive(batch.commit, at=self.requests.clock())
        if isinstance(batch, CommitmentOnly):
            self._excuse(received, round_)
        else:
            self._refuse_stale(plant, received)
        return received

    @property
    def _exemptions(self) -> Exemptions:
        return self.protocol.log.ledger.exemptions

    def _refuse_stale(self, plant: str, received: ReceivedBatch) -> None:
        """Raise if a later batch of this plant has been attested."""
        ledger, now = self.protocol.log.ledger, instant(self.requests.clock())
        unproven = {each.attestation for each in self._exemptions.excused}
        attestations = ledger.attestations(plant, step="5.4", at=now)
        proven = [each for each in attestations if each not in unproven]
        if ledger.attestation(received.commit.content.commitment) in proven[:-1]:
            raise VerificationError("5.4", f"{plant!r} has attested a later batch; send that one")

    def _excuse(self, received: ReceivedBatch, round_: int) -> None:
        """Accept a batch without a proof if the log exempts it; a repeat adds no log entry."""
        now, commit, exempt = self.requests.clock(), received.commit.content, self._exemptions
        attestation, waiver = unproven_id(commit), exempt.covering(commit, at=instant(now))
        excused = {each.commitment: each for each in exempt.excused}.get(commit.commitment)
        if excused is None or not exempt.holds(excused, at=instant(now)):
            body = BatchExcused(
                client=commit.client,
                commitment=commit.commitment,
                attestation=attestation,
                waiver=waiver,
            )
            self.protocol.log.append(body, at=now)
        else:
            waiver = excused.waiver
        self.requests.store.admitted(commit.client, attestation, excuse=waiver or SHADOW)
        kind = "waived" if waiver else "would have been refused at step 4"
        self.requests.store.note(kind, plant=commit.client, round_=round_, at=now)

    def _end_excuses(self, round_: int) -> None:
        """Refuse plants whose waiver has expired, or whose shadow mode has ended."""
        now = instant(self.requests.clock())
        valid = {
            each.attestation
            for each in self._exemptions.excused
            if self._exemptions.holds(each, at=now)
        }
        for member in self.requests.store.members():
            if member.excuse is not None and member.attestation not in valid:
                self._refuse(member.name, NO_PROOF, round_)

    def _end_expired(self, round_: int) -> None:
        """Refuse plants whose attestation has expired; they must attest later rows."""
        now, ledger = instant(self.requests.clock()), self.protocol.log.ledger
        for member in self.requests.store.members():
            if member.attestation is None or member.excuse is not None or not member.active:
                continue
            if member.attestation not in ledger.attestations(member.name, step=EXPIRED, at=now):
                self._refuse(member.name, EXPIRED, round_)

    def _ends_soon(self, member: Member) -> bool:
        """Whether a plant's attestation expires within a fifth of its time."""
        if member.excuse is not None:
            return False
        ledger = self.protocol.log.ledger
        soon = self.requests.clock() + timedelta(days=ledger.terms.attestation_days) / 5
        holding = ledger.attestations(member.name, step=EXPIRED, at=instant(soon))
        return member.attestation not in holding

    def _refuse(self, plant: str, step: str, round_: int) -> None:
        self.requests.store.refused(plant, step)
        self.requests.store.note(
            f"refused at step {step}", plant=plant, round_=round_, at=self.requests.clock()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundIntake:
    """The admission check of a federation between sites, before one round."""

    intake: Intake
    round: int

    def decide(self, client: str, shown: Reply | None) -> Decision:
        """Decide on one plant."""
        return self.decide_all({client: shown})[client]

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Verify all proofs in one call; each refusal names the step that failed."""
        self.intake.decide(shown, round_=self.round)
        decisions = self.intake.decisions()
        return {plant: decisions[plant] for plant in shown}
