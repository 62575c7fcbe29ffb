from .layout import Layout, layout_for
from .write import write

__all__ = ["Layout", "layout_for", "write"]
