"""The archive of a plant's batches, each in a folder named after the time it covers.

commit.json, commit.opening    the commitment, and its opening (mode 0600)
commit.proving                 a proof under way, if it has several segments (mode 0600)
proof.json                     the proof, if there is one
statistic.bin                  the statistic, if the proof binds one
share-coordinator.bin, share-helper.bin    its shares, if its sums are hidden (mode 0600)
share.json                     which rows the batch has

Every document is on disk before it is sent. A plant therefore never proves two batches for one
commitment, and keeps using an earlier batch until the coordinator has accepted the next.
"""

from dataclasses import dataclass, field
from pathlib import Path

from sluice.attestation.hidden import SharedSums
from sluice.attestation.messages import COMMITS, PROOFS, Interval, largest_proof_document
from sluice.attestation.protocol import (
    Committed,
    Proven,
    Registered,
    Unproven,
    statistic_beside,
    under_way_beside,
)
from sluice.attestation.systems import resumable
from sluice.errors import RefusedError, SettingError
from sluice.files import atomically, private_folder
from sluice.network.plant.disclosure import StatisticSharing
from sluice.network.terms import read_document, write_document
from sluice.network.training_rows import TrainingRows
from sluice.network.wire import Batch, CommitOnly
from sluice.telemetry import Record

__all__ = ["ArchivedBatch", "BatchArchive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedBatch:
    """A batch that the plant has committed to, and proven unless it is exempt."""

    share: TrainingRows
    state: Proven | Unproven
    commit: bytes = field(repr=False)
    statistic: bytes | None = field(default=None, repr=False)  # if the commitment names one
    shares: SharedSums | None = field(default=None, repr=False)  # if its sums are hidden

    @property
    def attestation(self) -> str:
        """The attestation's id, which tokens name."""
        return self.state.attestation

    @property
    def documents(self) -> Batch | CommitOnly:
        """The batch as documents, for the wire or for a file."""
        if isinstance(self.state, Unproven):
            return CommitOnly(commit=self.commit)
        proof = PROOFS.write(self.state.message)
        return Batch(commit=self.commit, proof=proof, statistic=self.statistic)


class BatchArchive:
    """The batches of one plant."""

    def __init__(
        self, folder: Path, plant: Registered, *, sharing: StatisticSharing | None = None
    ) -> None:
        self._folder = folder
        self._plant = plant
        self._sharing = sharing
        self._by_attestation: dict[str, ArchivedBatch] = {}
        private_folder(folder)

    def attest(self, share: TrainingRows, batch: Record, *, unproven: bool) -> ArchivedBatch:
        """Commit to a batch and prove it, or return the saved commitment and proof.

        With `unproven`, a batch that cannot be proven gets a commitment only.
        """
        place = self._folder / _name(batch)
        committed = self._committed(place, share, batch)
        if not (place / "proof.json").exists():
            path = place / "commit.json"
            under_way = under_way_beside(path)
            system = resumable(self._plant.system, under_way)
            resuming = Committed.load(path, self._plant.key, system, self._plant.circuit)
            try:
                proven = resuming.prove(batch)
            except RefusedError:
                if not unproven:
                    raise
                return self._remember(place, share, committed, committed.unproven())
            with atomically(place / "proof.json") as draft:
                draft.write_bytes(PROOFS.write(proven.message))
            under_way.unlink(missing_ok=True)
        return self._remember(place, share, committed, self._proven(place, committed))

    def named(self, attestation: str) -> ArchivedBatch:
        """Return the batch with this attestation id; raise if there is none."""
        found = self.find(attestation)
        if found is None:
            raise SettingError(
                f"the coordinator names attestation {attestation[:12]}, which this plant has not "
                "made; ask its operator"
            )
        return found

    def find(self, attestation: str) -> ArchivedBatch | None:
        """Return the batch with this attestation id; None if the archive has lost it."""
        if attestation not in self._by_attestation:
            for place in sorted(self._folder.glob("*/share.json")):
                self._load(place.parent)
        return self._by_attestation.get(attestation)

    def refuse_overlap(self, batch: Record) -> None:
        """Raise if the batch overlaps in time with another committed batch."""
        interval = Interval.of(batch)
        for path in sorted(self._folder.glob("*/commit.json")):
            earlier = COMMITS.read(path.read_bytes()).content.interval
            if earlier != interval and earlier.overlaps(interval):
                raise SettingError(
                    f"{interval.start} to {interval.end} overlaps {earlier.start} to "
                    f"{earlier.end}, which this plant has committed to; the coordinator accepts no "
                    "time twice: give later rows"
                )

    def _committed(self, place: Path, share: TrainingRows, batch: Record) -> Committed:
        plant, path = self._plant, place / "commit.json"
        if path.exists():
            return Committed.load(path, plant.key, plant.system, plant.circuit)
        signed_off = None if self._sharing is None else self._sharing.signed_off(batch)
        private_folder(place)
        write_document(share, place / "share.json")
        committed = plant.commit(batch, signed_off=signed_off)
        committed.save(path)
        return committed

    def _proven(self, place: Path, committed: Committed) -> Proven:
        plant = self._plant
        largest = largest_proof_document(plant.system.largest_proof(plant.circuit))
        message = PROOFS.read((place / "proof.json").read_bytes(), largest=largest)
        return committed.proven(message)

    def _load(self, place: Path) -> None:
        """Load a batch from disk under each attestation id that it can have."""
        if not (place / "commit.json").exists():
            return
        plant, share = self._plant, read_document(TrainingRows, place / "share.json")
        committed = Committed.load(place / "commit.json", plant.key, plant.system, plant.circuit)
        self._remember(place, share, committed, committed.unproven())
        if (place / "proof.json").exists():
            self._remember(place, share, committed, self._proven(place, committed))

    def _remember(
        self, place: Path, share: TrainingRows, committed: Committed, state: Proven | Unproven
    ) -> ArchivedBatch:
        path = place / "commit.json"
        sums = statistic_beside(path)
        archived = ArchivedBatch(
            share=share,
            state=state,
            commit=path.read_bytes(),
            statistic=sums.read_bytes() if sums.exists() else None,
            shares=committed.shares,
        )
        self._by_attestation[archived.attestation] = archived
        return archived


def _name(batch: Record) -> str:
    return f"{batch.times[0]}-{batch.times[-1]}".replace(":", "")
