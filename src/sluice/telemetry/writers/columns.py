"""A record's columns as a table, ready to write."""

from collections.abc import Collection

import numpy as np
import polars as pl

from sluice.errors import InputError, RecordError
from sluice.telemetry.record import Label, Record

__all__ = ["label_words", "readings", "refuse_finer_than", "refuse_unwritable", "stamps"]

UNWRITABLE = ',"\r\n'


def readings(record: Record, *, whole_codes: bool = True) -> pl.DataFrame:
    """Return the channels, null where missing; whole actuator codes become integers."""
    columns = []
    for at, channel in enumerate(record.channels):
        column = pl.Series(channel.name, record.values[:, at]).fill_nan(None)
        if whole_codes and channel.role.discrete and _whole(column):
            column = column.cast(pl.Int64)
        columns.append(column)
    return pl.DataFrame(columns)


def _whole(column: pl.Series) -> bool:
    present = column.drop_nulls()
    return bool((present.round() == present).all())


def stamps(record: Record, layout: str) -> pl.Series:
    """Return the time stamps as text."""
    return pl.Series("time", record.times).dt.strftime(layout)


def label_words(record: Record, words: dict[Label, str | None]) -> pl.Series:
    """Return one label word per row; None leaves the cell empty."""
    table = pl.Series([words[label] for label in Label], dtype=pl.String)
    return table.gather(pl.Series(record.labels).cast(pl.UInt32))


def refuse_finer_than(record: Record, unit: np.timedelta64, *, layout: str) -> None:
    """Refuse times that are finer than the layout's time stamps."""
    lost = np.flatnonzero(
        record.times.astype(np.int64) % unit.astype("timedelta64[us]").astype(int)
    )
    if lost.size:
        row = int(lost[0])
        raise InputError(
            f"record {record.name!r} has a stride of {record.stride_s:g} s and the time stamp "
            f"{record.times[row]} at row {row}; {layout} writes multiples of {unit}: "
            "thin the record or choose another layout"
        )


def refuse_unwritable(record: Record, taken: Collection[str], *, layout: str) -> None:
    """Refuse channel names that would change when the file is read back."""
    lowered = {name.lower() for name in taken}
    for name in record.names:
        if not name or name != name.strip() or any(mark in name for mark in UNWRITABLE):
            raise RecordError(
                f"record {record.name!r}: {layout} cannot write the channel name {name!r}; rename "
                "it without commas, quotes, line breaks and outer blanks"
            )
        if name.lower() in lowered:
            raise RecordError(
                f"record {record.name!r}: {layout} has its own column {name!r}; rename the channel"
            )
