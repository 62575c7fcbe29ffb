"""The artifact cache: results of slow steps, stored on disk beside the result store.

Workers, resumed runs and audits share simulated records, mined rules, and poison with its
projection. A file name is a hash of everything the content depends on, the code included, so an
entry can be unused but never out of date. An unreadable file is computed again. When the disk is
full, new artifacts are not stored.
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
"""Name of the cache folder inside a results folder."""
Arrays = dict[str, NDArray[np.generic]]
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, RecordError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCache:
    """A folder of artifacts made by the same version of the code."""

    folder: Path
    code: str

    def rules(self, key: tuple[object, ...], make: Callable[[], RuleSet]) -> RuleSet:
        """Return the rules stored under a key; call `make` and store them if there are none."""
        path = self._path("rules", key, ".json")
        if path.exists():
            with contextlib.suppress(RulesFileError, OSError):
                return load_rules(path)
        rules = make()
        self._store(path, lambda: save_rules(rules, path))
        return rules

    def record(self, key: tuple[object, ...], make: Callable[[], Record]) -> Record:
        """Return the record stored under a key; call `make` and store it if there is none."""
        path = self._path("records", key, ".npz")
        if path.exists():
            with contextlib.suppress(*UNREADABLE), _opened(path) as archive:
                return _record(archive, "")
        record = make()
        self._store(path, lambda: _write(path, _arrays(record, "")))
        return record

    def poison(self, key: tuple[object, ...], make: Callable[[], Poison]) -> Poison:
        """Return the poison stored under a key; call `make` and store it if there is none."""
        path = self._path("poison", key, ".npz")
        if path.exists():
            with contextlib.suppress(*UNREADABLE), _opened(path) as archive:
                return _poison(archive)
        poison = make()
        self._store(path, lambda: _write(path, _poison_arrays(poison)))
        return poison

    def _path(self, kind: str, key: tuple[object, ...], suffix: str) -> Path:
        digest = hashlib.blake2b(repr((*key, self.code)).encode(), digest_size=16).hexdigest()
        return self.folder / kind / f"{digest}{suffix}"

    def _store(self, path: Path, write: Callable[[], object]) -> None:
        with contextlib.suppress(OSError, SettingError):  # the disk is full: continue without
            path.parent.mkdir(parents=True, exist_ok=True)
            write()


def content_of(record: Record) -> str:
    """Return a digest of a record's channel names, readings, times and labels."""
    digest = hashlib.blake2b(repr(record.names).encode(), digest_size=16)
    for array in (record.values.ravel(order="F"), record.times, record.labels):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _write(path: Path, arrays: Arrays) -> None:
    with atomically(path) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type] # the stub expects a flag


@contextlib.contextmanager
def _opened(path: Path) -> Iterator["np.lib.npyio.NpzFile"]:
    # np.load gets an open file: given a path, it leaves the file open if the archive is broken.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        yield archive


def _arrays(record: Record, prefix: str) -> Arrays:
    metadata = {
        "name": record.name,
        "stride_s": record.stride_s,
        "notes": [asdict(note) for note in record.notes],
        "channels": CHANNELS.dump_python(record.channels, mode="json"),
    }
    return {
        f"{prefix}values": record.values,
        f"{prefix}times": record.times.astype(np.int64),
        f"{prefix}labels": record.labels,
        f"{prefix}told": np.array(json.dumps(metadata)),
    }


def _record(archive: "np.lib.npyio.NpzFile", prefix: str) -> Record:
    metadata = json.loads(str(archive[f"{prefix}told"]))
    return Record(
        name=metadata["name"],
        channels=CHANNELS.validate_python(metadata["channels"]),
        values=archive[f"{prefix}values"],
        times=archive[f"{prefix}times"].astype("datetime64[us]"),
        stride_s=metadata["stride_s"],
        labels=archive[f"{prefix}labels"],
        notes=tuple(Note(**note) for note in metadata["notes"]),
    )


def _poison_arrays(poison: Poison) -> Arrays:
    arrays = {**_arrays(poison.shown, "shown-"), "planted": poison.planted}
    if poison.trained is not poison.shown:
        arrays |= _arrays(poison.trained, "trained-")
    if poison.exposure is not None:
        arrays["exposure"] = np.array(poison.exposure)
    return arrays


def _poison(archive: "np.lib.npyio.NpzFile") -> Poison:
    shown = _record(archive, "shown-")
    return Poison(
        shown=shown,
        trained=_record(archive, "trained-") if "trained-values" in archive else shown,
        planted=archive["planted"],
        exposure=float(archive["exposure"]) if "exposure" in archive else None,
    )
