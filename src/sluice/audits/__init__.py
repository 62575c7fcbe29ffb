"""Audits measure what a gate can tell apart, before anybody relies on it."""

from sluice.audits.ablation import Ablation, AblationPart, Part, ablation, subset
from sluice.audits.coverage import Coverage, Segment, coverage
from sluice.audits.masks import RuleMask, masks
from sluice.audits.sampling import SamplingRow, SamplingTable, sampling
from sluice.audits.separation import SeparationRow, SeparationTable, Skipped, separation

__all__ = [
    "Ablation",
    "AblationPart",
    "Coverage",
    "Part",
    "RuleMask",
    "SamplingRow",
    "SamplingTable",
    "Segment",
    "SeparationRow",
    "SeparationTable",
    "Skipped",
    "ablation",
    "coverage",
    "masks",
    "sampling",
    "separation",
    "subset",
]
