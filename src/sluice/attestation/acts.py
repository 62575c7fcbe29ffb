"""What operators do, in the log for everyone to see: each act is an entry of its own kind.

The gate can be put in shadow, a maintenance window can be waived, a plant can be removed. None of
it reaches beyond step 4: a signature, a copied commitment or a replay is refused as ever.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, StringConstraints

from sluice.attestation.context import Interval
from sluice.attestation.documents import STRICT, Commitment, Count, Form, Hex32, Instant, Name
from sluice.attestation.messages import Commit
from sluice.attestation.packing import digest
from sluice.attestation.signed import Signed, content_digest

__all__ = [
    "WAIVERS",
    "Act",
    "BatchExcused",
    "ClientRemoved",
    "GateSet",
    "Reason",
    "Waiver",
    "WaiverGranted",
    "unproven_id",
]

Reason = Annotated[str, StringConstraints(pattern=r"^[ -~]{4,200}$")]
"""Why an operator does something, in printable ASCII."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSet:
    """From here on the gate keeps plants out, or it is in shadow and only says whom it would."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["gate"] = "gate"
    enforced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A maintenance window: batches of this client within the interval need no proof.

    It waives step 4 and nothing else, and a batch takes part under it until it expires.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "waiver"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    interval: Interval  # on the plant's own clock, as batches have it
    expires: Instant
    reason: Reason


WAIVERS: Form[Signed[Waiver]] = Form.of(Signed[Waiver], "waiver", largest=4_096)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverGranted:
    """A waiver, signed by the coordinator."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["waiver"] = "waiver"
    waiver: Signed[Waiver]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchExcused:
    """A committed batch that takes part without a proof; enforced, step 4 would have refused it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["excused"] = "excused"
    client: Name
    commitment: Commitment
    attestation: Hex32  # what tokens name in the place of one
    step: Literal["4"] = "4"
    waiver: Hex32 | None  # its digest; none where the gate is in shadow


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRemoved:
    """A client found compromised: it has no part from here on, and rounds are given up.

    The next round is opened on the model that the federation had after round `model_of`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["removed"] = "removed"
    client: Name
    since: Count  # the first round in doubt
    model_of: Count  # 0: the model that the first round was opened on
    model: Hex32


Act = GateSet | WaiverGranted | BatchExcused | ClientRemoved


def unproven_id(commit: Commit) -> str:
    """Return what tokens name where a batch takes part without a proof; no proof has this name."""
    return digest("unproven", bytes.fromhex(content_digest(commit))).hex()
