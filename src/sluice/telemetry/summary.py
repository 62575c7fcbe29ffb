"""The summary of a record that `sluice data inspect` prints."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Run
from sluice.telemetry.channel import Channel
from sluice.telemetry.record import Label, Note, Record

__all__ = ["ChannelSummary", "Stretch", "Summary", "summarise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Rows from the first to the last, both included, with their time stamps."""

    start_row: int
    end_row: int
    start: str
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSummary:
    """A channel, the range of its readings, and how many are missing."""

    channel: Channel
    low: float
    high: float
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The main facts about a record."""

    name: str
    rows: int
    stride_s: float
    start: str
    end: str
    channels: tuple[ChannelSummary, ...]
    roles: dict[str, int]
    gaps: tuple[Stretch, ...]
    attack_segments: tuple[Stretch, ...]
    attack_rows: int
    unlabelled_rows: int
    notes: tuple[Note, ...]


def summarise(record: Record) -> Summary:
    """Summarise a record."""
    return Summary(
        name=record.name,
        rows=len(record),
        stride_s=record.stride_s,
        start=_stamp(record, 0),
        end=_stamp(record, len(record) - 1),
        channels=tuple(_channel(record, column) for column in range(len(record.channels))),
        roles=dict(Counter(channel.role.value for channel in record.channels)),
        gaps=tuple(_stretch(record, Run(gap.before, gap.after + 1)) for gap in record.gaps),
        attack_segments=tuple(_stretch(record, run) for run in record.attack_segments),
        attack_rows=int((record.labels == Label.ATTACK).sum()),
        unlabelled_rows=int((record.labels == Label.UNLABELLED).sum()),
        notes=record.notes,
    )


def _channel(record: Record, column: int) -> ChannelSummary:
    readings = record.values[:, column]
    return ChannelSummary(
        channel=record.channels[column],
        low=float(np.fmin.reduce(readings)),
        high=float(np.fmax.reduce(readings)),
        missing=int(np.isnan(readings).sum()),
    )


def _stretch(record: Record, run: Run) -> Stretch:
    last = run.stop - 1
    return Stretch(
        start_row=run.start,
        end_row=last,
        start=_stamp(record, run.start),
        end=_stamp(record, last),
    )


def _stamp(record: Record, row: int) -> str:
    """Return ISO 8601 to the second, or to the microsecond if the stride has a fraction."""
    unit = "us" if record.stride_s % 1 else "s"
    return str(record.times[row].astype(f"datetime64[{unit}]"))
