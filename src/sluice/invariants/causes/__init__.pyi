from .cause import Cause, CauseKind
from .finding import causes

__all__ = ["Cause", "CauseKind", "causes"]
