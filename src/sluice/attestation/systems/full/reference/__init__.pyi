from .circuit import ReferenceCircuit
from .verify import ReferenceClaim, verify_claim

__all__ = ["ReferenceCircuit", "ReferenceClaim", "verify_claim"]
