"""Telemetry turns plant files of any known make into a `Record`."""

from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.formats import FORMATS, Fill, Format
from sluice.telemetry.plantfile import (
    Declaration,
    PlantFile,
    read_plant_file,
    write_plant_file,
)
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Gap, Label, Note, Record
from sluice.telemetry.split import Shares, Split, shards, split
from sluice.telemetry.summary import Summary, summarise
from sluice.telemetry.windows import Scaler, Windows, feature_names, windows
from sluice.telemetry.writers import Layout, layout_for, write

__all__ = [
    "FORMATS",
    "Channel",
    "Codes",
    "Declaration",
    "Fill",
    "Format",
    "Gap",
    "Label",
    "Layout",
    "Note",
    "PlantFile",
    "Record",
    "Role",
    "Scaler",
    "Shares",
    "Span",
    "Split",
    "Summary",
    "Windows",
    "feature_names",
    "layout_for",
    "read_plant_file",
    "read_record",
    "shards",
    "split",
    "summarise",
    "windows",
    "write",
    "write_plant_file",
]
