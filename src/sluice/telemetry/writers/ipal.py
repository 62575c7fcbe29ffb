"""IPAL's layout: one state per line, as JSON."""

from typing import BinaryIO

import numpy as np
import polars as pl

from sluice.telemetry.record import Record
from sluice.telemetry.writers.columns import readings

__all__ = ["write"]

SECOND_US = 1_000_000


def write(record: Record, out: BinaryIO) -> None:
    """Write epoch seconds in UTC; unlabelled rows and missing readings become `null`."""
    microseconds = record.times.astype(np.int64)
    whole = not np.any(microseconds % SECOND_US)
    seconds = microseconds // SECOND_US if whole else microseconds / SECOND_US
    malicious = pl.Series([False, True, None], dtype=pl.Boolean)
    pl.DataFrame(
        [
            pl.Series("timestamp", seconds),
            readings(record).to_struct("state"),
            malicious.gather(pl.Series(record.labels).cast(pl.UInt32)).alias("malicious"),
        ]
    ).write_ndjson(out)
