"""What a plant has said of its batches, each in a folder named for the time that it covers.

commit.json, commit.opening    the commitment, and what opens it (mode 0600)
proof.json                     the proof, where there is one
share.json                     which rows these are

Everything is on the disk before it is said, so that a plant never proves two batches for one
commitment, and goes on with an earlier batch until the coordinator has taken the next.
"""

from dataclasses import dataclass, field
from pathlib import Path

from sluice.attestation.messages import COMMITS, PROOFS, Interval, attestation_id
from sluice.attestation.protocol import Committed, Proven, Registered, Unproven
from sluice.errors import RefusedError, SettingError
from sluice.files import atomically
from sluice.network.terms import read_document, write_document
from sluice.network.training_rows import TrainingRows
from sluice.network.wire import Batch, CommitOnly
from sluice.telemetry import Record

__all__ = ["LARGEST_PROOF_FILE", "ArchivedBatch", "BatchArchive"]

LARGEST_PROOF_FILE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedBatch:
    """A batch that the plant has committed to, and proven unless it is excused from that."""

    share: TrainingRows
    state: Proven | Unproven
    commit: bytes = field(repr=False)

    @property
    def attestation(self) -> str:
        """What tokens name."""
        return self.state.attestation

    @property
    def documents(self) -> Batch | CommitOnly:
        """The batch as it travels, over the wire or as a file."""
        if isinstance(self.state, Unproven):
            return CommitOnly(commit=self.commit)
        return Batch(commit=self.commit, proof=PROOFS.write(self.state.message))


class BatchArchive:
    """The batches of one plant."""

    def __init__(self, folder: Path, plant: Registered) -> None:
        self._folder = folder
        self._plant = plant
        self._found: dict[str, ArchivedBatch] = {}  # by attestation
        folder.mkdir(parents=True, exist_ok=True)

    def attest(self, share: TrainingRows, batch: Record, *, unproven: bool) -> ArchivedBatch:
        """Commit to a batch and prove it, or find what was committed and proven before.

        With `unproven`, one that cannot be proven is committed to and no more.
        """
        place = self._folder / _name(batch)
        committed = self._committed(place, share, batch)
        if not (place / "proof.json").exists():
            try:
                proven = committed.prove(batch)
            except RefusedError:
                if not unproven:
                    raise
                return self._held(place, share, committed.unproven())
            with atomically(place / "proof.json") as draft:
                draft.write_bytes(PROOFS.write(proven.message))
        return self._held(place, share, self._proven(place, committed))

    def named(self, attestation: str) -> ArchivedBatch:
        """Return the batch that the coordinator knows by this name."""
        if attestation not in self._found:
            for place in sorted(self._folder.glob("*/share.json")):
                self._read(place.parent)
        if attestation not in self._found:
            raise SettingError("the coordinator names an attestation that was not made here")
        return self._found[attestation]

    def refuse_overlap(self, batch: Record) -> None:
        """Raise where the batch covers time that was committed to before."""
        interval = Interval.of(batch)
        for path in sorted(self._folder.glob("*/commit.json")):
            earlier = COMMITS.read(path.read_bytes()).content.interval
            if earlier != interval and earlier.overlaps(interval):
                raise SettingError(
                    f"{interval.start} to {interval.end} overlaps {earlier.start} to "
                    f"{earlier.end}, which this plant has committed to; the coordinator takes no "
                    "stretch of time twice: give later rows"
                )

    def _committed(self, place: Path, share: TrainingRows, batch: Record) -> Committed:
        plant, path = self._plant, place / "commit.json"
        if path.exists():
            return Committed.load(path, plant.key, plant.system, plant.circuit)
        place.mkdir(exist_ok=True)
        write_document(share, place / "share.json")
        committed = plant.commit(batch)
        committed.save(path)
        return committed

    def _proven(self, place: Path, committed: Committed) -> Proven:
        message = PROOFS.read((place / "proof.json").read_bytes(), largest=LARGEST_PROOF_FILE)
        named = attestation_id(committed.message.content, message.content.proof)
        return Proven(plant=self._plant, message=message, attestation=named)

    def _read(self, place: Path) -> None:
        """Find a batch on the disk again, under each name that it can have."""
        if not (place / "commit.json").exists():
            return
        plant, share = self._plant, read_document(TrainingRows, place / "share.json")
        committed = Committed.load(place / "commit.json", plant.key, plant.system, plant.circuit)
        self._held(place, share, committed.unproven())
        if (place / "proof.json").exists():
            self._held(place, share, self._proven(place, committed))

    def _held(self, place: Path, share: TrainingRows, state: Proven | Unproven) -> ArchivedBatch:
        held = ArchivedBatch(share=share, state=state, commit=(place / "commit.json").read_bytes())
        self._found[held.attestation] = held
        return held


def _name(batch: Record) -> str:
    return f"{batch.times[0]}-{batch.times[-1]}".replace(":", "")
