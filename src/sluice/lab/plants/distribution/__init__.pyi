from .attacks import AttackKind
from .model import BUNDLED
from .plant import simulate

__all__ = ["BUNDLED", "AttackKind", "simulate"]
