from .ablation import Ablation, AblationPart, Part, ablation, subset
from .coverage import Coverage, Segment, coverage
from .evaluation import (
    FABRICATED,
    Fabricated,
    Honest,
    Pool,
    Proportion,
    admissible,
    fabricated,
    honest_batches,
)
from .level_attacks import FREEZE_JITTER, Freeze, RampAudit, freeze, ramp, slowest_ramp
from .loosening import loosening
from .masks import RuleMask, masks
from .progress import Progress, ignore_progress
from .sampling import DRAWS, SamplingRow, SamplingTable, sampling
from .separation import SeparationRow, SeparationTable, Skipped, separation

__all__ = [
    "DRAWS",
    "FABRICATED",
    "FREEZE_JITTER",
    "Ablation",
    "AblationPart",
    "Coverage",
    "Fabricated",
    "Freeze",
    "Honest",
    "Part",
    "Pool",
    "Progress",
    "Proportion",
    "RampAudit",
    "RuleMask",
    "SamplingRow",
    "SamplingTable",
    "Segment",
    "SeparationRow",
    "SeparationTable",
    "Skipped",
    "ablation",
    "admissible",
    "coverage",
    "fabricated",
    "freeze",
    "honest_batches",
    "ignore_progress",
    "loosening",
    "masks",
    "ramp",
    "sampling",
    "separation",
    "slowest_ramp",
    "subset",
]
