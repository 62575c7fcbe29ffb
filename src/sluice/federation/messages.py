"""Requests of a federation's server to its clients, and their replies."""

from dataclasses import dataclass, field
from typing import Any

from sluice.aggregation import Vector
from sluice.detector import Parameters
from sluice.telemetry import Record

__all__ = [
    "Attestation",
    "CommitmentOnly",
    "Contributed",
    "NothingShown",
    "Reply",
    "Request",
    "Show",
    "Shown",
    "Train",
    "Trained",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """Asks for the batch a client will train on, or for its attestation if proofs are used."""

    round: int = 0  # before which round; 0 is before the first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shown:
    """The batch a client says it will train on."""

    batch: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """A commitment to that batch and the proof that it obeys the rules, as documents."""

    commit: bytes = field(repr=False)
    proof: bytes = field(repr=False)
    statistic: bytes | None = field(default=None, repr=False)  # of a circuit that binds one


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentOnly:
    """A commitment without a proof, from a client that the log excuses from proving."""

    commit: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class NothingShown:
    """A reply without a batch, commitment or attestation."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Train:
    """Opens a round: its number, counted from 1, and the model that it is opened on."""

    round: int
    parameters: Parameters


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trained:
    """A client's update of the round: its weights after training minus those it received.

    The vector is as the client sent it and has not been checked. The client cannot give its weight:
    `take_round` weighs an update by the rows of the client's admitted batch.
    """

    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributed:
    """A client's statistic, with the batch and the round that it belongs to, checked."""

    member: Any


Request = Show | Train
Reply = Attestation | CommitmentOnly | Contributed | NothingShown | Shown | Trained
