from .alone import CLIENT, FEDERATION, commit, prove, prove_into, verify, write_proof
from .approving import approve_file, read_approver, read_order, save_approver
from .coordinator import (
    Agreement,
    Attested,
    LoggedPledge,
    Pledging,
    ProtocolCoordinator,
    ReceivedBatch,
    Revealing,
    declared_in,
)
from .key_folder import KeyFolder, Pinned
from .plant import (
    Committed,
    Proven,
    Registered,
    Unproven,
    explanation,
    shares_beside,
    statistic_beside,
    statistic_hash,
    under_way_beside,
)
from .step_words import step_in_words
from .together import Brought, attest_together, verify_together
from .verifier import NEED_A_LOG, Examined, Verification, Verifier, steps_before

__all__ = [
    "CLIENT",
    "FEDERATION",
    "NEED_A_LOG",
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
    "approve_file",
    "attest_together",
    "commit",
    "declared_in",
    "explanation",
    "prove",
    "prove_into",
    "read_approver",
    "read_order",
    "save_approver",
    "shares_beside",
    "statistic_beside",
    "statistic_hash",
    "step_in_words",
    "steps_before",
    "under_way_beside",
    "verify",
    "verify_together",
    "write_proof",
]
