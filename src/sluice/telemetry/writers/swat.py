"""SWaT's layout: a title row, stray blanks in eight names, a 12 h clock, and one misspelt label."""

import re
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

BLANKED = ("MV101", "AIT201", "MV201", "P201", "P202", "P204", "MV303")
"""Names that the attack file writes with a leading blank, like Timestamp."""

STAGED = re.compile(r"[A-Z]+([1-6])\d\d")
WORDS: dict[Label, str | None] = {
    Label.NORMAL: "Normal",
    Label.ATTACK: "Attack",
    Label.UNLABELLED: None,
}


def write(record: Record, out: BinaryIO) -> None:
    """Write the form of the attack file for any labels; an unlabelled row has an empty label."""
    refuse_unwritable(record, ("Timestamp", "Normal/Attack"), layout="swat")
    refuse_finer_than(record, np.timedelta64(1, "s"), layout="swat")
    channels = readings(record)
    channels = channels.rename({name: f" {name}" for name in BLANKED if name in channels.columns})
    table = pl.DataFrame(
        [
            stamps(record, " %d/%m/%Y %-I:%M:%S %p").alias(" Timestamp"),
            *channels.get_columns(),
            _labels(record).alias("Normal/Attack"),
        ]
    )
    out.write(f"{','.join(_titles(record))}\n".encode())
    table.write_csv(out)


def _titles(record: Record) -> list[str]:
    """Name each stage of the plant above its first tag, as the historian's title row does."""
    titles, last = [""], ""
    for name in record.names:
        stage = STAGED.fullmatch(name)
        title = f"P{stage[1]}" if stage else ""
        titles.append(title if title != last else "")
        last = title
    return [*titles, ""]


def _labels(record: Record) -> pl.Series:
    words = label_words(record, WORDS)
    if not record.attack_segments:
        return words
    last = record.attack_segments[-1]
    misspelt = np.arange((last.start + last.stop) // 2, last.stop, dtype=np.uint32)
    return words.scatter(misspelt, "A ttack")
