from .admission_check import AdmissionCheck, AdmitAll, Decision, PhysicsGate
from .checkpoints import CheckpointFile
from .drawn import DrawnRows, LoggedGate
from .federate import Federated, FederationSettings, Recipe, federate
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

__all__ = [
    "NOT_FINITE",
    "OUT_OF_SCALE",
    "UPDATE_MAX",
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
    "admit",
    "begin",
    "federate",
    "run",
    "take_round",
]
