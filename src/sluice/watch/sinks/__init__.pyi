from .delivery import Delivery, SinkHealth
from .opening import KINDS, opened_sink
from .sink import Sink, SinkError

__all__ = ["KINDS", "Delivery", "Sink", "SinkError", "SinkHealth", "opened_sink"]
