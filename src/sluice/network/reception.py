"""Reception: a plant's batch is attested once, by the log, before it takes part in rounds."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from sluice.attestation import Agreement, Brought, Desk, attest_together
from sluice.errors import VerificationError
from sluice.network.asking import Asking
from sluice.network.questions import AskBatch, Batch

__all__ = ["NO_PROOF", "Reception"]

NO_PROOF = "4"
"""The step at which a plant without an attestation is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """Takes attestations, over the wire or from files, and notes what became of them."""

    desk: Desk
    asking: Asking
    agreements: Mapping[str, Agreement]

    def invite_batches(self, *, round_: int, seconds: float) -> None:
        """Ask the plants that are there and have no attestation yet."""
        present = self.asking.wire.present()
        waiting = {
            member.name: AskBatch()
            for member in self.asking.store.members()
            if member.active and member.attestation is None and member.name in present
        }
        brought: dict[str, Batch] = {}
        for plant, answer in self.asking.ask(waiting, round_=round_, seconds=seconds):
            if isinstance(answer, Batch):
                brought.setdefault(plant, answer)
            else:
                self._refused(plant, NO_PROOF, round_)
        self.decide(brought, round_=round_)

    def decide(self, batches: Mapping[str, Batch], *, round_: int) -> None:
        """Steps 2 and 5: log commitments, verify their proofs together, log the attestations."""
        clock, store, began = self.asking.clock, self.asking.store, time.perf_counter()
        brought: dict[str, Brought] = {}
        for plant, batch in batches.items():
            try:
                enrolled = self.desk.enrolled(plant, self.agreements[plant])
                awaiting = enrolled.receive(batch.commit, at=clock())
            except VerificationError as error:
                self._refused(plant, error.step, round_)
            else:
                brought[plant] = Brought(awaiting=awaiting, proof=batch.proof)
        found = attest_together(tuple(brought.values()), at=clock())
        lasted = time.perf_counter() - began
        for plant, outcome in zip(brought, found, strict=True):
            if isinstance(outcome, VerificationError):
                self._refused(plant, outcome.step, round_)
            else:
                store.admitted(plant, outcome.attestation)
                seconds = lasted / len(batches)
                store.note("verified", plant=plant, round_=round_, at=clock(), seconds=seconds)

    def _refused(self, plant: str, step: str, round_: int) -> None:
        self.asking.store.refused(plant, step)
        self.asking.store.note(
            f"refused at step {step}", plant=plant, round_=round_, at=self.asking.clock()
        )
