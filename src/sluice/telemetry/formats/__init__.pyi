from .format import Fill, Format
from .plain import plain
from .registry import FORMATS

__all__ = ["FORMATS", "Fill", "Format", "plain"]
