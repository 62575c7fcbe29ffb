from .channels import Channels
from .counts import CountColumns, Counted, SlackWeights
from .couplings import Couplings
from .digest import CHAIN, Digest
from .liveness import Levels
from .moments import (
    FormWeights,
    MomentColumns,
    RowWeights,
    Sums,
    demand_sealed,
    draw_form,
    form_totals,
    read_sums,
    split_totals,
)
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
    "Sums",
    "SwitchBands",
    "WindowChecks",
    "demand_sealed",
    "draw_form",
    "form_totals",
    "read_sums",
    "split_totals",
]
