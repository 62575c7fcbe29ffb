"""Snapshots: the ledger's state after some entries, signed by the party that verified them.

A coordinator or a plant that opens its log continues from its own snapshot instead of verifying
every entry again. A snapshot with another signature is not used: then the whole log is verified.

log.jsonl.snapshot     one line with the signed `SnapshotHead`, then the state as JSON
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from sluice.attestation.log.heads import EMPTY_LOG
from sluice.attestation.log.ledger import LedgerState
from sluice.attestation.messages import STRICT, Count, Form, Hex32, Name, Signed, SigningKey, sign
from sluice.errors import DocumentError, VerificationError
from sluice.files import atomically

__all__ = ["LedgerSnapshot", "load_snapshot", "save_snapshot", "snapshot_path"]

LARGEST_SNAPSHOT = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHead:
    """What a snapshot is of: the entries and bytes of a log, and the hash of the state."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "snapshot"

    schema: Literal[1] = 1
    federation: Name
    size: Count
    last: Hex32
    length: Count  # bytes of the entries
    last_length: Count  # bytes of the last entry
    state: Hex32  # SHA-256 of the state's bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSnapshot:
    """A ledger's state, and where in the log's file the next entry begins."""

    state: LedgerState
    length: int
    last_length: int


_HEADS: Form[Signed[SnapshotHead]] = Form.of(Signed[SnapshotHead], "snapshot", largest=4_096)


def snapshot_path(log: Path) -> Path:
    """Return where the snapshot of a log is."""
    return log.with_name(f"{log.name}.snapshot")


def save_snapshot(log: Path, snapshot: LedgerSnapshot, key: SigningKey) -> None:
    """Write a snapshot beside the log, signed with the key of the party that verified it."""
    state = snapshot.state
    if state.opened is None:
        return
    raw = _adapter().dump_json(state)
    head = SnapshotHead(
        federation=state.opened.federation,
        size=state.size,
        last=state.recent[-1] if state.recent else EMPTY_LOG,
        length=snapshot.length,
        last_length=snapshot.last_length,
        state=hashlib.sha256(raw).hexdigest(),
    )
    with atomically(snapshot_path(log)) as draft:
        draft.write_bytes(_HEADS.write(sign(head, key)) + b"\n" + raw)


def load_snapshot(log: Path, key: str) -> LedgerSnapshot | None:
    """Return the snapshot beside a log; None if there is none that this key has signed."""
    path = snapshot_path(log)
    try:
        if path.stat().st_size > LARGEST_SNAPSHOT:
            return None
        line, _, raw = path.read_bytes().partition(b"\n")
        signed = _HEADS.read(line)
        signed.verify(key, step="7")
        head = signed.content
        if hashlib.sha256(raw).hexdigest() != head.state:
            return None
        state = _adapter().validate_json(raw)
    except (OSError, DocumentError, VerificationError, ValidationError):
        return None
    return LedgerSnapshot(state=state, length=head.length, last_length=head.last_length)


@cache
def _adapter() -> TypeAdapter[LedgerState]:
    return TypeAdapter(LedgerState)
