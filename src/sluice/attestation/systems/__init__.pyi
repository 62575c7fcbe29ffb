from .registry import DEFAULT_ROWS, SystemName, circuit_for, find_system, resumable
from .system import SALT_BYTES, Circuit, ProofClaim, System

__all__ = [
    "DEFAULT_ROWS",
    "SALT_BYTES",
    "Circuit",
    "ProofClaim",
    "System",
    "SystemName",
    "circuit_for",
    "find_system",
    "resumable",
]
