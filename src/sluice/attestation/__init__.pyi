from .log.chain import Log, read_log
from .messages.context import Context, Interval
from .messages.signing import SigningKey
from .packing import digest
from .protocol.alone import commit, prove, prove_into, verify, write_proof
from .protocol.coordinator import (
    Agreement,
    Attested,
    Enrolled,
    Pledging,
    ProtocolCoordinator,
    ReceivedBatch,
    Revealed,
    Revealing,
)
from .protocol.key_folder import KeyFolder
from .protocol.plant import Committed, Pledged, Proven, Registered
from .protocol.together import Brought, attest_together, verify_together
from .protocol.verifier import Examined, Verification, Verifier
from .systems.registry import circuit_for, find_system
from .systems.sampled.system import poseidon
from .systems.system import Circuit, System

__all__ = [
    "Agreement",
    "Attested",
    "Brought",
    "Circuit",
    "Committed",
    "Context",
    "Enrolled",
    "Examined",
    "Interval",
    "KeyFolder",
    "Log",
    "Pledged",
    "Pledging",
    "ProtocolCoordinator",
    "Proven",
    "ReceivedBatch",
    "Registered",
    "Revealed",
    "Revealing",
    "SigningKey",
    "System",
    "Verification",
    "Verifier",
    "attest_together",
    "circuit_for",
    "commit",
    "digest",
    "find_system",
    "poseidon",
    "prove",
    "prove_into",
    "read_log",
    "verify",
    "verify_together",
    "write_proof",
]
