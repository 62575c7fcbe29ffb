from .coordinator import (
    Agreement,
    Attested,
    LoggedPledge,
    Pledging,
    ProtocolCoordinator,
    ReceivedBatch,
    Revealing,
)
from .key_folder import KeyFolder, Pinned
from .plant import Committed, Proven, Registered, Unproven, explanation
from .together import Brought, attest_together, verify_together
from .verifier import Examined, Verification, Verifier, steps_before

__all__ = [
    "Agreement",
    "Attested",
    "Brought",
    "Committed",
    "Examined",
    "KeyFolder",
    "LoggedPledge",
    "Pinned",
    "Pledging",
    "ProtocolCoordinator",
    "Proven",
    "ReceivedBatch",
    "Registered",
    "Revealing",
    "Unproven",
    "Verification",
    "Verifier",
    "attest_together",
    "explanation",
    "steps_before",
    "verify_together",
]
