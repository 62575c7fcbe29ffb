"""The description of a loader: its name, how it recognises files and how it reads them."""

from collections.abc import Callable
from dataclasses import dataclass

from sluice.telemetry.channel import Role
from sluice.telemetry.filling import Fill
from sluice.telemetry.source import Source
from sluice.telemetry.table import Table

__all__ = ["Format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format of plant records.

    `version` changes whenever the loader's output changes, which invalidates cached readings.
    """

    name: str
    title: str
    version: str
    recognises: Callable[[Source], bool]
    load: Callable[[Source], Table]
    fill: Fill = Fill.REFUSE  # as the format's documentation does
    units: tuple[tuple[Role, str], ...] = ()  # of readings, from the format's documentation
