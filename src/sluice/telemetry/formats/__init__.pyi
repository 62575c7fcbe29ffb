from .format import Format
from .plain import plain
from .registry import FORMATS

__all__ = ["FORMATS", "Format", "plain"]
