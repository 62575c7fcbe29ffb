from .operations import app
from .waivers import told_removals, told_waivers, waiver_line

__all__ = ["app", "told_removals", "told_waivers", "waiver_line"]
