"""The coordinator's questions to plants, and the plants' answers.

Questions are signed by the coordinator, whose key a plant pinned when it joined. Each carries the
part of the log that the plant has not seen: a plant answers only for what the log says. Answers
carry documents that the plant has signed: a commitment, a proof, a token, a head; the update is
bound to the plant by the hash in its token. All are canonical JSON of limited size; reading runs no
code.
"""

import re
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Discriminator, Field, StringConstraints

from sluice.aggregation import Vector, checked_vector
from sluice.attestation import digest
from sluice.attestation.messages import (
    STRICT,
    Blob,
    Count,
    Form,
    Hex32,
    Name,
    RotationSigned,
    Signed,
)
from sluice.detector import Parameters
from sluice.errors import DocumentError, SettingError
from sluice.network.wire.wire import LARGEST_MESSAGE

__all__ = [
    "ANSWERS",
    "PROTOCOLS",
    "QUESTIONS",
    "Answer",
    "Ask",
    "AskBatch",
    "AskLog",
    "AskModel",
    "AskToken",
    "AskUpdate",
    "Batch",
    "CommitOnly",
    "Declined",
    "LogPage",
    "LogSeen",
    "ModelTaken",
    "Payload",
    "Pledge",
    "Question",
    "Revelation",
    "model_hash",
    "packed_update",
    "read_parameters",
    "read_update",
    "spoken_protocol",
    "write_parameters",
]

LARGEST_TAIL = 1_024
_PROTOCOL = re.compile(rb'"protocol":(\d{1,9}),"schema":')


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBatch:
    """Asks for the attestation of the batch a plant will train on."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["batch"] = "batch"
    unproven: bool = False  # a commitment is enough: a waiver, or shadow mode


@dataclass(frozen=True, slots=True, kw_only=True)
class AskToken:
    """Opens a round: train from these weights, and pledge the update by its hash.

    Without weights, the plant pledges the statistic of its attested batch.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["token"] = "token"
    round: Count
    attestation: Hex32  # under which the plant was admitted
    parameters: Blob = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskUpdate:
    """Asks for the pledged update, after the log says that pledges are closed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["update"] = "update"
    round: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class AskLog:
    """Asks only to take the page of the log; a plant that is far behind gets many pages."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["log"] = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskModel:
    """Sends the model after a round, and says whether the federation is over."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["model"] = "model"
    round: Count
    over: bool
    parameters: Blob = field(repr=False)


Ask = AskBatch | AskToken | AskUpdate | AskLog | AskModel


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """Entries of the log as lines, and the coordinator's signed head after the last of them."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    start: Count  # the number of the first entry
    lines: tuple[Blob, ...] = field(repr=False)
    head: Blob
    rotations: tuple[RotationSigned, ...] = ()  # of the coordinator's key


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question to one plant."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "question"

    schema: Literal[1] = 1
    protocol: Literal[2] = 2
    federation: Name
    client: Name
    page: LogPage
    copied: bool = False  # two processes answer as this plant
    ask: Annotated[Ask, Discriminator("kind")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A commitment and its proof, as documents, with the statistic that the proof binds."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["batch"] = "batch"
    commit: Blob = field(repr=False)
    proof: Blob = field(repr=False)
    statistic: Annotated[Blob | None, Field(exclude_if=lambda sums: sums is None)] = field(
        default=None, repr=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOnly:
    """A commitment to a batch that the plant cannot prove; it answers `AskBatch(unproven=True)`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["commit"] = "commit"
    commit: Blob = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pledge:
    """A token, as a document."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["token"] = "token"
    token: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class Revelation:
    """The pledged update, and the log's head under the plant's signature."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["update"] = "update"
    update: Blob = field(repr=False)
    head: Blob
    renews: bool = False  # a new batch is ready to be attested


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSeen:
    """The plant has taken the page of the log, and nothing more was asked."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["log"] = "log"
    renews: Annotated[bool, Field(exclude_if=lambda renews: not renews)] = False  # as an update's


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTaken:
    """The plant has saved the model that it was handed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["model"] = "model"


Payload = Batch | CommitOnly | Pledge | Revelation | LogSeen | ModelTaken
"""A plant's answer when it does what it was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """The plant does not do what it was asked; the reason is only in its own output."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["declined"] = "declined"
    word: Annotated[str, StringConstraints(pattern=r"^[a-z ]{1,40}$")]
    head: Blob | None = None  # of the log that the plant follows, if it was shown another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a plant."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    protocol: Literal[2] = 2
    instance: Hex32  # drawn by each process that answers
    seen: Count  # entries of the log that the plant has verified
    answer: Annotated[Payload | Declined, Discriminator("kind")]


PROTOCOLS = (2,)
"""The versions of this exchange that this software speaks."""

QUESTIONS: Form[Signed[Question]] = Form.of(Signed[Question], "question", largest=LARGEST_MESSAGE)
ANSWERS: Form[Answer] = Form.of(Answer, "answer", largest=LARGEST_MESSAGE)


def spoken_protocol(raw: bytes) -> int | None:
    """Return the version that a question names, if it names one; nothing else of it is checked."""
    named = _PROTOCOL.search(raw[-LARGEST_TAIL:])
    return int(named[1]) if named else None


def write_parameters(parameters: Parameters) -> bytes:
    """Return weights as float32, little endian; statistics of members are bytes already."""
    if parameters.dtype == np.uint8:
        return parameters.tobytes()
    return parameters.astype("<f4").tobytes()


def read_parameters(raw: bytes, *, count: int) -> Parameters:
    """Read `count` weights; raise unless there are exactly so many finite numbers."""
    if len(raw) != 4 * count:
        raise DocumentError(f"got {len(raw):,} bytes of weights; this model has {4 * count:,}")
    weights = np.frombuffer(raw, dtype="<f4").astype(np.float32)
    if not np.isfinite(weights).all():
        raise DocumentError("the weights hold NaN or infinite numbers")
    return weights


def model_hash(parameters: Parameters) -> str:
    """Return the hash by which rounds and tokens name a model."""
    return digest("model", write_parameters(parameters)).hex()


def packed_update(vector: Vector) -> bytes:
    """Return an update as its weights: float32, little endian, and nothing else."""
    return vector.astype("<f4").tobytes()


def read_update(raw: bytes, *, client: str, count: int, largest: float) -> Vector:
    """Read a plant's update: exactly `count` finite weights, none larger than `largest`."""
    if len(raw) != 4 * count:
        raise DocumentError(
            f"the update of {client!r} has {len(raw):,} bytes; this model needs {4 * count:,}"
        )
    vector = np.frombuffer(raw, dtype="<f4").astype(np.float32)
    try:
        return checked_vector(vector, f"the update of {client!r}", largest=largest)
    except SettingError as error:
        raise DocumentError(str(error)) from None
