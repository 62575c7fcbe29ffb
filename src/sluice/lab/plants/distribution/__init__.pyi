from .attacks import DistributionAttackKind
from .model import BUNDLED
from .plant import IdleNetworkWarning, simulate

__all__ = ["BUNDLED", "DistributionAttackKind", "IdleNetworkWarning", "simulate"]
