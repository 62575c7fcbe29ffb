from .channel import CHANNELS, Channel, Codes, Role, Span
from .filling import Fill
from .formats import FORMATS, Format
from .plantfile import Declaration, Placement, PlantFile, read_plant_file, write_plant_file
from .reading import ReadRecord, ReadRows, read_record, read_rows, read_with_settings
from .record import Gap, Label, Note, Record
from .source import Source, find_record_file
from .split import Shares, Split, shards, split
from .summary import Summary, summarise
from .windows import WINDOW_ROWS, Scaler, Windows, feature_names, windows
from .writers.layout import FileLayout, layout_for
from .writers.write import write

__all__ = [
    "CHANNELS",
    "FORMATS",
    "WINDOW_ROWS",
    "Channel",
    "Codes",
    "Declaration",
    "FileLayout",
    "Fill",
    "Format",
    "Gap",
    "Label",
    "Note",
    "Placement",
    "PlantFile",
    "ReadRecord",
    "ReadRows",
    "Record",
    "Role",
    "Scaler",
    "Shares",
    "Source",
    "Span",
    "Split",
    "Summary",
    "Windows",
    "feature_names",
    "find_record_file",
    "layout_for",
    "read_plant_file",
    "read_record",
    "read_rows",
    "read_with_settings",
    "shards",
    "split",
    "summarise",
    "windows",
    "write",
    "write_plant_file",
]
