from .again import verify_again
from .circuit import ReferenceCircuit
from .encoding import ProofParts, read_proof
from .field import Ext
from .hashes import blake3, blake3_stream
from .verify import ReferenceClaim, verify_claim

__all__ = [
    "Ext",
    "ProofParts",
    "ReferenceCircuit",
    "ReferenceClaim",
    "blake3",
    "blake3_stream",
    "read_proof",
    "verify_again",
    "verify_claim",
]
