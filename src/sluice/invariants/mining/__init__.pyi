from .calibration import calibrate_as_paper
from .profiles import mine
from .record import Mined, mine_record
from .renewal import KeptRule, keep_tolerances
from .spans import operating_range

__all__ = [
    "KeptRule",
    "Mined",
    "calibrate_as_paper",
    "keep_tolerances",
    "mine",
    "mine_record",
    "operating_range",
]
