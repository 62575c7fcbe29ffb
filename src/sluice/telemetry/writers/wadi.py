"""WADI's layout, in the form of release A2's attack file."""

from typing import BinaryIO

import numpy as np
import polars as pl

from sluice.telemetry.record import Label, Record
from sluice.telemetry.writers.columns import (
    label_words,
    readings,
    refuse_finer_than,
    refuse_unwritable,
    stamps,
)

__all__ = ["write"]

LABEL = "Attack LABLE (1:No Attack, -1:Attack)"  # sic
WORDS: dict[Label, str | None] = {
    Label.NORMAL: "1",
    Label.ATTACK: "-1",
    Label.UNLABELLED: None,
}
EMPTY_LINES = 2


def write(record: Record, out: BinaryIO) -> None:
    """Write column numbers, the header, month-first dates, labels 1 and -1, two empty lines."""
    refuse_unwritable(record, ("Row", "Date", "Time"), layout="wadi")
    refuse_finer_than(record, np.timedelta64(1, "ms"), layout="wadi")
    table = pl.DataFrame(
        [
            pl.Series("Row ", np.arange(1, len(record) + 1)),
            stamps(record, "%-m/%-d/%Y").alias("Date "),
            stamps(record, "%-I:%M:%S%.3f %p").alias("Time"),
            *readings(record).get_columns(),
        ]
    )
    header = ",".join([*table.columns, f'"{LABEL}"'])
    out.write(f"{','.join(map(str, range(table.width + 1)))}\n{header}\n".encode())
    table.with_columns(label_words(record, WORDS).alias("label")).write_csv(
        out, include_header=False
    )
    out.write(f"{',' * table.width}\n".encode() * EMPTY_LINES)
