from .channels import Channels
from .counts import CountColumns, Counted, SlackWeights
from .couplings import Couplings
from .digest import CHAIN, Digest
from .liveness import Levels
from .moments import FormWeights, MomentColumns, RowWeights, draw_form, form_totals, read_sums
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
    "FormWeights",
    "Levels",
    "MomentColumns",
    "Relations",
    "RowWeights",
    "SlackWeights",
    "Spectra",
    "SwitchBands",
    "WindowChecks",
    "draw_form",
    "form_totals",
    "read_sums",
]
