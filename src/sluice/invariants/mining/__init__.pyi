from .hardened import MINED_KINDS, TYING_KINDS, mine_hardened
from .joint import Calibrated
from .paper import calibrate_as_paper
from .profiles import mine
from .record import Mined, clean_parts, mine_record
from .renewal import KeptRule, keep_tolerances
from .spans import span_of
from .trial import BATCH_ROWS, TARGET, Blamed, HonestRefusal, RefusedShare

__all__ = [
    "BATCH_ROWS",
    "MINED_KINDS",
    "TARGET",
    "TYING_KINDS",
    "Blamed",
    "Calibrated",
    "HonestRefusal",
    "KeptRule",
    "Mined",
    "RefusedShare",
    "calibrate_as_paper",
    "clean_parts",
    "keep_tolerances",
    "mine",
    "mine_hardened",
    "mine_record",
    "span_of",
]
