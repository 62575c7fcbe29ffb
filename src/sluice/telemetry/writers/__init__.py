"""Writers put a record into a file of a known make, whole or not at all."""

from sluice.telemetry.writers.layout import Layout, layout_for
from sluice.telemetry.writers.write import write

__all__ = ["Layout", "layout_for", "write"]
