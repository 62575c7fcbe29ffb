from .layout import FileLayout, layout_for
from .write import write

__all__ = ["FileLayout", "layout_for", "write"]
