"""The federation runs rounds: who may take part, what goes out, what comes back, what is kept."""

from sluice.federation.checkpoints import CheckpointFile
from sluice.federation.door import Decision, Door, OpenDoor, PhysicsGate
from sluice.federation.drawn import DrawnRows, LoggedGate
from sluice.federation.messages import Attestation, Reply, Request, Show, Shown, Train, Trained
from sluice.federation.proofs import Attestor, Keyless, ProofGate, Proofs
from sluice.federation.root import RootSlice
from sluice.federation.rounds import (
    Checkpoint,
    Keeper,
    RootTrainer,
    admit,
    begin,
    run,
    take_round,
)
from sluice.federation.transport import InProcess, Transport

__all__ = [
    "Attestation",
    "Attestor",
    "Checkpoint",
    "CheckpointFile",
    "Decision",
    "Door",
    "DrawnRows",
    "InProcess",
    "Keeper",
    "Keyless",
    "LoggedGate",
    "OpenDoor",
    "PhysicsGate",
    "ProofGate",
    "Proofs",
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
    "run",
    "take_round",
]
