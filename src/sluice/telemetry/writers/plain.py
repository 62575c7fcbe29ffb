"""Plain tables with time, channels and label, as CSV or Parquet."""

from typing import BinaryIO

import numpy as np
import polars as pl

from sluice.telemetry.channel import CHANNELS, CHANNELS_KEY
from sluice.telemetry.record import Label, Record
from sluice.telemetry.writers.columns import label_words, readings, refuse_unwritable, stamps

__all__ = ["write_csv", "write_parquet"]

TIME = "time"
LABEL = "label"
WORDS: dict[Label, str | None] = {label: label.name.lower() for label in Label}
SECOND_US = 1_000_000


def write_csv(record: Record, out: BinaryIO) -> None:
    """Write ISO time stamps, readings in full precision and the label as a word."""
    refuse_unwritable(record, (TIME, LABEL), layout="csv")
    whole_seconds = not np.any(record.times.astype(np.int64) % SECOND_US)
    layout = "%Y-%m-%dT%H:%M:%S" if whole_seconds else "%Y-%m-%dT%H:%M:%S%.6f"
    _table(record, stamps(record, layout), readings(record)).write_csv(out)


def write_parquet(record: Record, out: BinaryIO) -> None:
    """Write the same columns, typed, with roles, units, codes and spans in the metadata."""
    refuse_unwritable(record, (TIME, LABEL), layout="parquet")
    times = pl.Series(TIME, record.times)
    metadata = {CHANNELS_KEY: CHANNELS.dump_json(record.channels).decode()}
    _table(record, times, readings(record, whole_codes=False)).write_parquet(out, metadata=metadata)


def _table(record: Record, times: pl.Series, channels: pl.DataFrame) -> pl.DataFrame:
    labels = label_words(record, WORDS).alias(LABEL)
    return pl.DataFrame([times.alias(TIME), *channels.get_columns(), labels])
