from .channels import Channels
from .counts import Counted, RowCounts, Slack
from .couplings import Couplings
from .digest import CHAIN, Digest
from .liveness import Levels
from .relations import Relations
from .spectra import Spectra
from .switches import SwitchBands
from .windows import Anchor, WindowChecks

__all__ = [
    "CHAIN",
    "Anchor",
    "Channels",
    "Counted",
    "Couplings",
    "Digest",
    "Levels",
    "Relations",
    "RowCounts",
    "Slack",
    "Spectra",
    "SwitchBands",
    "WindowChecks",
]
