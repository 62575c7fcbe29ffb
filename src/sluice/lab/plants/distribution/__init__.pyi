from .attacks import DistributionAttackKind
from .model import BUNDLED
from .plant import simulate

__all__ = ["BUNDLED", "DistributionAttackKind", "simulate"]
