"""A federation's terms, agreed before its first round, and the documents by which plants join.

The terms are public. An invitation adds a single-use secret, by which the coordinator recognises
the plant that answers it.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from sluice.attestation.messages import STRICT, Count, Hex32, Name, read_private
from sluice.detector import Descent, Framing, parameter_count
from sluice.errors import DocumentError, SettingError
from sluice.files import atomically
from sluice.telemetry import Scaler

__all__ = [
    "ExportedAttestation",
    "FederationTerms",
    "Invitation",
    "JoinRequest",
    "PlantCertificate",
    "read_document",
    "write_document",
]

Document = TypeVar("Document")
LARGEST_DOCUMENT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationTerms:
    """One federation: its coordinator and address, its model, and its requirements on plants."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    federation: Name
    coordinator: Hex32  # its public key
    host: str
    port: Count
    system: Name
    rows_max: Count
    policy: str  # the policy file's text
    channels: tuple[str, ...]
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    stride_s: float
    window_rows: Count
    epochs: Count
    batch: Count
    learning_rate: float
    seed: Count
    rule: str
    rounds: Count
    batch_deadline_s: float
    round_deadline_s: float
    suspend_after: Count  # consecutive failed rounds

    @property
    def framing(self) -> Framing:
        """How a record becomes the windows of the shared model."""
        scaler = Scaler(names=self.channels, mean=np.array(self.mean), spread=np.array(self.spread))
        return Framing(scaler=scaler, stride_s=self.stride_s, window_rows=self.window_rows)

    @property
    def descent(self) -> Descent:
        """How plants train in a round."""
        return Descent(epochs=self.epochs, batch=self.batch, learning_rate=self.learning_rate)

    @property
    def weights(self) -> int:
        """How many weights the shared model has."""
        return parameter_count(self.framing.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """What a plant needs to join: the terms, its certificate and a single-use secret."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    plant: Name
    secret: Hex32 = field(repr=False)
    authority: str  # the authorities that plants trust, PEM
    certificate: str = ""  # by which the proxy recognises the plant, PEM; earlier versions: none
    certificate_key: str = field(default="", repr=False)
    terms: FederationTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantCertificate:
    """A new certificate for a plant that has joined, and the authorities that it trusts now."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    plant: Name
    authority: str
    certificate: str
    certificate_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A plant's answer to an invitation: its keys, its rules, and the secret."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    plant: Name
    secret: Hex32 = field(repr=False)
    node_key: str  # public key of its Flower node, PEM
    registration: str  # the signed document of step 1
    rules: str  # the rules file's text


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedAttestation:
    """A batch attestation as a file, for transfer through a one-way gateway."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    plant: Name
    commit: str  # the documents of steps 2 and 4
    proof: str = field(repr=False)


def write_document(document: object, path: Path, *, private: bool = False) -> None:
    """Write one of these documents as JSON; `private` sets mode 0600."""
    content = TypeAdapter(type(document)).dump_python(document, mode="json")
    with atomically(path, private=private) as draft:
        draft.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_document(kind: type[Document], path: Path, *, private: bool = False) -> Document:
    """Read one of these documents; only the owner may have access to a `private` file."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        raw = read_private(path, _title(kind)) if private else _bounded(path, LARGEST_DOCUMENT)
        document: Document = adapter.validate_json(raw, strict=True)
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DocumentError(
            f"{path} is not a valid {_title(kind)}: {where}: {first['msg']}"
        ) from None
    return document


def _title(kind: type[object]) -> str:
    """Return a document's name in words: "join request" for `JoinRequest`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__).lower()


def _bounded(path: Path, most: int) -> bytes:
    with path.open("rb") as opened:
        raw = opened.read(most + 1)
    if len(raw) > most:
        raise DocumentError(f"{path} has more than {most:,} bytes; check that it is the right file")
    return raw
