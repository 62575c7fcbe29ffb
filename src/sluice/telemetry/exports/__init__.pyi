from .dialect import PROBED_LINES, best_delimiter
from .numbers import Readings, readings
from .opening import CellTable, open_table
from .resampling import Rows, demand_order, in_order, merged_rows, resampled, usual_stride_s
from .shape import Shaped, shaped
from .words import LABEL_NAMES, plain_word

__all__ = [
    "LABEL_NAMES",
    "PROBED_LINES",
    "CellTable",
    "Readings",
    "Rows",
    "Shaped",
    "best_delimiter",
    "demand_order",
    "in_order",
    "merged_rows",
    "open_table",
    "plain_word",
    "readings",
    "resampled",
    "shaped",
    "usual_stride_s",
]
