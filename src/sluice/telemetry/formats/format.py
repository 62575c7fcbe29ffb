"""What a loader is: a name, a way to recognise its files and a way to read them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sluice.telemetry.channel import Role
from sluice.telemetry.source import Source
from sluice.telemetry.table import Table

__all__ = ["Fill", "Format"]


class Fill(StrEnum):
    """What to do where a reading is missing."""

    REFUSE = "refuse"  # leave it missing
    FFILL = "ffill"  # hold the last reading; before the first, the first
    LINEAR = "linear"  # interpolate in time; hold at the ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One make of plant record.

    `version` changes whenever the loader's output does, which retires cached readings.
    """

    name: str
    title: str
    version: str
    recognises: Callable[[Source], bool]
    load: Callable[[Source], Table]
    fill: Fill = Fill.REFUSE  # what the record's own documentation fills
    units: tuple[tuple[Role, str], ...] = ()  # what its documentation says readings are in
