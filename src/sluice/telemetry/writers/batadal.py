"""BATADAL's layout, in the competition form: a blank after every comma and -999 for unlabelled."""

from typing import BinaryIO

import numpy as np
import polars as pl

from sluice.errors import InputError
from sluice.telemetry.record import Label, Record
from sluice.telemetry.writers.columns import (
    label_words,
    readings,
    refuse_finer_than,
    refuse_unwritable,
    stamps,
)

__all__ = ["write"]

WORDS: dict[Label, str | None] = {
    Label.NORMAL: "0",
    Label.ATTACK: "1",
    Label.UNLABELLED: "-999",
}
FIRST_YEAR, LAST_YEAR = np.datetime64("2000", "us"), np.datetime64("2069", "us")


def write(record: Record, out: BinaryIO) -> None:
    """Write time stamps as whole hours with two-digit years, as the layout requires."""
    refuse_unwritable(record, ("DATETIME", "ATT_FLAG"), layout="batadal")
    refuse_finer_than(record, np.timedelta64(1, "h"), layout="batadal")
    if len(record) and (record.times[0] < FIRST_YEAR or record.times[-1] >= LAST_YEAR):
        raise InputError(
            f"record {record.name!r} runs from {record.times[0]} to {record.times[-1]}; batadal "
            "writes two-digit years, 2000 to 2068: choose another layout"
        )
    table = pl.DataFrame(
        [
            stamps(record, "%d/%m/%y %H").alias("DATETIME"),
            *readings(record).get_columns(),
            label_words(record, WORDS).alias("ATT_FLAG"),
        ]
    )
    out.write(table.write_csv().replace(",", ", ").encode())
