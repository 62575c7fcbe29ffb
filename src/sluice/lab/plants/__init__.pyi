from .catalogue import PLANTS, Plant, simulate
from .varied import SPREAD, VARIED_PLANTS, VariedSite, varied_site

__all__ = [
    "PLANTS",
    "SPREAD",
    "VARIED_PLANTS",
    "Plant",
    "VariedSite",
    "simulate",
    "varied_site",
]
