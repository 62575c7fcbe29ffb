from .files import GrowingFiles
from .mqtt import MqttSource
from .opcua import OpcUaSource
from .replay import HistorySource
from .sampling import Sampler
from .source import RowSource, SourceState, no_rows
from .stdin import PipeSource
from .text import TextReader

__all__ = [
    "GrowingFiles",
    "HistorySource",
    "MqttSource",
    "OpcUaSource",
    "PipeSource",
    "RowSource",
    "Sampler",
    "SourceState",
    "TextReader",
    "no_rows",
]
