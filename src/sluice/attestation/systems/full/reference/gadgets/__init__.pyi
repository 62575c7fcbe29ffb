from .channels import Channels
from .counts import CountColumns, Counted, SlackWeights
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
    "CountColumns",
    "Counted",
    "Couplings",
    "Digest",
    "Levels",
    "Relations",
    "SlackWeights",
    "Spectra",
    "SwitchBands",
    "WindowChecks",
]
