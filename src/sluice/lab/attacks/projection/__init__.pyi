from .attack import Projected, project
from .by_integers import hardened_demands
from .by_paper import paper_demands
from .certificate import Certificate
from .demands import Chain, Demands, Limits
from .outcome import Conflict, Projection
from .spectra import SpectrumTangents

__all__ = [
    "Certificate",
    "Chain",
    "Conflict",
    "Demands",
    "Limits",
    "Projected",
    "Projection",
    "SpectrumTangents",
    "hardened_demands",
    "paper_demands",
    "project",
]
