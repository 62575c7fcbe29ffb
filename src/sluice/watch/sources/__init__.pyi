from .files import GrowingFiles
from .mqtt import MqttSource
from .opcua import OpcUaSource
from .replay import Replay
from .sampling import Sampler
from .source import Source, SourceState, no_rows
from .stdin import Pipe
from .text import TextReader

__all__ = [
    "GrowingFiles",
    "MqttSource",
    "OpcUaSource",
    "Pipe",
    "Replay",
    "Sampler",
    "Source",
    "SourceState",
    "TextReader",
    "no_rows",
]
