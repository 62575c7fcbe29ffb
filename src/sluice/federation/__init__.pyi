from .admission_check import AdmissionCheck, AdmitAll, Decision, PhysicsGate
from .checkpoints import CheckpointFile
from .drawn import DrawnRows, LoggedGate
from .federate import Federated, FederationSettings, Recipe, demand_rule, federate
from .messages import (
    Attestation,
    CommitmentOnly,
    NothingShown,
    Reply,
    Request,
    Show,
    Shown,
    Train,
    Trained,
)
from .proofs import Attestor, Keyless, ProofGate, Proofs
from .root import RootSlice
from .rounds import (
    NOT_FINITE,
    OUT_OF_SCALE,
    UPDATE_MAX,
    Checkpoint,
    Keeper,
    RootTrainer,
    admit,
    begin,
    run,
    take_round,
)
from .trainer import Fleet
from .transport import InProcess, Transport
from .vote import (
    ANY_OF_SUBSETS,
    VOTE_RULES,
    VoteSettings,
    ballots_of,
    certificate_of,
    hold_vote,
    votes_needed,
)

__all__ = [
    "ANY_OF_SUBSETS",
    "NOT_FINITE",
    "OUT_OF_SCALE",
    "UPDATE_MAX",
    "VOTE_RULES",
    "AdmissionCheck",
    "AdmitAll",
    "Attestation",
    "Attestor",
    "Checkpoint",
    "CheckpointFile",
    "CommitmentOnly",
    "Decision",
    "DrawnRows",
    "Federated",
    "FederationSettings",
    "Fleet",
    "InProcess",
    "Keeper",
    "Keyless",
    "LoggedGate",
    "NothingShown",
    "PhysicsGate",
    "ProofGate",
    "Proofs",
    "Recipe",
    "Reply",
    "Request",
    "RootSlice",
    "RootTrainer",
    "Show",
    "Shown",
    "Train",
    "Trained",
    "Transport",
    "VoteSettings",
    "admit",
    "ballots_of",
    "begin",
    "certificate_of",
    "demand_rule",
    "federate",
    "hold_vote",
    "run",
    "take_round",
    "votes_needed",
]
