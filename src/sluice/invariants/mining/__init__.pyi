from .calibration import calibrate_as_paper
from .profiles import mine
from .renewal import KeptRule, keep_tolerances
from .spans import operating_range

__all__ = ["KeptRule", "calibrate_as_paper", "keep_tolerances", "mine", "operating_range"]
