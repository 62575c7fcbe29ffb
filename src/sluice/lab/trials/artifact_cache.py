"""The shelf: what is slow to make, kept on disk beside the store and named by its content.

Workers, resumed runs and audits share it: simulated records, mined rules, and poison with its
projection. A name holds everything the content depends on, the code included, so nothing on the
shelf is ever wrong, only unused; a file that cannot be read is made again, and a full disk only
means that nothing is kept.
"""

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sluice.errors import RecordError, RulesFileError, SettingError
from sluice.files import atomically
from sluice.invariants import RuleSet, load_rules, save_rules
from sluice.lab.attacks import Poison
from sluice.telemetry import CHANNELS, Note, Record

__all__ = ["KEPT", "ArtifactCache", "content_of"]

KEPT = "kept"
"""The shelf's folder in a results folder."""
Arrays = dict[str, NDArray[np.generic]]
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, RecordError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCache:
    """A folder of things made before, by the same code."""

    folder: Path
    code: str

    def rules(self, told: tuple[object, ...], make: Callable[[], RuleSet]) -> RuleSet:
        """Return mined rules, mined now if they are not there."""
        kept = self._place("rules", told, ".json")
        if kept.exists():
            with contextlib.suppress(RulesFileError, OSError):
                return load_rules(kept)
        found = make()
        self._keep(kept, lambda: save_rules(found, kept))
        return found

    def record(self, told: tuple[object, ...], make: Callable[[], Record]) -> Record:
        """Return a record, made now if it is not there."""
        kept = self._place("records", told, ".npz")
        if kept.exists():
            with contextlib.suppress(*UNREADABLE), _opened(kept) as read:
                return _record(read, "")
        found = make()
        self._keep(kept, lambda: _write(kept, _arrays(found, "")))
        return found

    def poison(self, told: tuple[object, ...], make: Callable[[], Poison]) -> Poison:
        """Return a liar's poison, made now if it is not there."""
        kept = self._place("poison", told, ".npz")
        if kept.exists():
            with contextlib.suppress(*UNREADABLE), _opened(kept) as read:
                return _poison(read)
        found = make()
        self._keep(kept, lambda: _write(kept, _poison_arrays(found)))
        return found

    def _place(self, kind: str, told: tuple[object, ...], suffix: str) -> Path:
        digest = hashlib.blake2b(repr((*told, self.code)).encode(), digest_size=16).hexdigest()
        return self.folder / kind / f"{digest}{suffix}"

    def _keep(self, kept: Path, write: Callable[[], object]) -> None:
        with contextlib.suppress(OSError, SettingError):  # the disk is full: go on without
            kept.parent.mkdir(parents=True, exist_ok=True)
            write()


def content_of(record: Record) -> str:
    """Return a name that only equal readings, clocks and labels share."""
    digest = hashlib.blake2b(repr(record.names).encode(), digest_size=16)
    for array in (record.values.ravel(order="F"), record.times, record.labels):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _write(path: Path, arrays: Arrays) -> None:
    with atomically(path) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type] # the stub takes arrays for a flag


@contextlib.contextmanager
def _opened(path: Path) -> Iterator["np.lib.npyio.NpzFile"]:
    # Through a file of our own: numpy leaves its file open where the archive is broken.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as read:
        yield read


def _arrays(record: Record, prefix: str) -> Arrays:
    told = {
        "name": record.name,
        "stride_s": record.stride_s,
        "notes": [asdict(note) for note in record.notes],
        "channels": CHANNELS.dump_python(record.channels, mode="json"),
    }
    return {
        f"{prefix}values": record.values,
        f"{prefix}times": record.times.astype(np.int64),
        f"{prefix}labels": record.labels,
        f"{prefix}told": np.array(json.dumps(told)),
    }


def _record(read: "np.lib.npyio.NpzFile", prefix: str) -> Record:
    told = json.loads(str(read[f"{prefix}told"]))
    return Record(
        name=told["name"],
        channels=CHANNELS.validate_python(told["channels"]),
        values=read[f"{prefix}values"],
        times=read[f"{prefix}times"].astype("datetime64[us]"),
        stride_s=told["stride_s"],
        labels=read[f"{prefix}labels"],
        notes=tuple(Note(**note) for note in told["notes"]),
    )


def _poison_arrays(poison: Poison) -> Arrays:
    arrays = {**_arrays(poison.shown, "shown-"), "planted": poison.planted}
    if poison.trained is not poison.shown:
        arrays |= _arrays(poison.trained, "trained-")
    if poison.exposure is not None:
        arrays["exposure"] = np.array(poison.exposure)
    return arrays


def _poison(read: "np.lib.npyio.NpzFile") -> Poison:
    shown = _record(read, "shown-")
    return Poison(
        shown=shown,
        trained=_record(read, "trained-") if "trained-values" in read else shown,
        planted=read["planted"],
        exposure=float(read["exposure"]) if "exposure" in read else None,
    )
