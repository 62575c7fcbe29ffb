"""Split one clean record into a federation, in strict time order (section 4.2 of the paper)."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sluice.errors import SettingError
from sluice.telemetry.record import Record

__all__ = ["Shares", "Split", "shards", "split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The share of the record for each purpose, in order from the front; clients get the rest."""

    invariants: float = 0.30  # half to fit, half to calibrate
    validation: float = 0.15
    root: float = 0.05

    def __post_init__(self) -> None:
        taken = (self.invariants, self.validation, self.root)
        if min(taken) <= 0 or sum(taken) >= 1:
            raise SettingError(
                f"shares must be positive and leave rows to the clients, got {taken}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Disjoint slices of one record, earliest first."""

    fit: Record
    calibration: Record
    validation: Record
    root: Record
    shards: tuple[Record, ...]


def split(record: Record, *, clients: int, shares: Shares | None = None) -> Split:
    """Cut a clean record into mining, validation and root slices and one shard per client."""
    shares = shares or Shares()
    rows = len(record)
    mined = int(shares.invariants * rows)
    validated = mined + int(shares.validation * rows)
    rooted = validated + int(shares.root * rows)
    if mined < 2 or validated in (mined, rooted):
        raise SettingError(f"record {record.name!r} has {rows} rows, too few to split")
    return Split(
        fit=record.rows(0, mined // 2),
        calibration=record.rows(mined // 2, mined),
        validation=record.rows(mined, validated),
        root=record.rows(validated, rooted),
        shards=shards(record.rows(rooted, rows), clients=clients),
    )


def shards(record: Record, *, clients: int) -> tuple[Record, ...]:
    """Cut a record into contiguous shards of equal length, one per client."""
    if not 1 <= clients <= len(record):
        raise SettingError(f"{len(record)} rows cannot be shared by {clients} clients")
    edges = np.linspace(0, len(record), clients + 1).astype(int)
    return tuple(record.rows(int(start), int(stop)) for start, stop in pairwise(edges))
