"""Orders: documents that change what the log accepts, each signed by the parties it needs.

Waiver        batches of a maintenance window need no proof; approvers sign an `Approval` of it
ShadowOrder   the gate logs refusals without enforcing them; approvers sign an `Approval` of it
Rotation      a new key in place of an old one; both keys sign it
Recovery      rounds that the coordinator has lost; plants sign a `Consent` to it
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, StringConstraints

from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.documents import STRICT, Count, Form, Hex32, Hex64, Instant, Name
from sluice.attestation.messages.signing import Signed, SigningKey, content_digest, sign

__all__ = [
    "APPROVALS",
    "CONSENTS",
    "RECOVERIES",
    "ROTATIONS",
    "SHADOW_ORDERS",
    "WAIVERS",
    "Approval",
    "ChannelReason",
    "Consent",
    "OperatorReason",
    "Recovery",
    "Rotation",
    "RotationSigned",
    "ShadowOrder",
    "Waiver",
    "approve",
    "rotate",
]

OperatorReason = Annotated[str, StringConstraints(pattern=r"^[ -~]{4,200}$")]
"""The reason for an act, in printable ASCII; every reader of the log sees it."""
Channel = Annotated[str, StringConstraints(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReason:
    """Why a channel has no rule, in an approver's words."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    channel: Channel
    reason: OperatorReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """An approver's consent to rules, to a waiver or to a shadow order. It is a file of its own.

    It registers a client once. The nonce makes a second approval of the same rules another one.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "approval"

    schema: Literal[2] = 2
    protocol: Literal[1] = 1
    approver: Hex32
    nonce: Hex32
    subject: Hex32  # the hash of the rules, or the digest of the order
    client: Name | None = None  # None: every client that registers these rules
    looser: bool = False  # the rules may be looser than the last accepted ones
    declared: tuple[ChannelReason, ...] = ()  # channels that need no rule

    @property
    def reasons(self) -> dict[str, str]:
        """The declarations, by channel."""
        return {each.channel: each.reason for each in self.declared}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A maintenance window: batches of this client within the interval need no proof.

    It waives step 4 only. A batch takes part under it until the waiver expires.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "waiver"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    interval: Interval  # on the plant's own clock, like a batch's interval
    expires: Instant
    reason: OperatorReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowOrder:
    """The gate may be in shadow until this time: it logs refusals without enforcing them."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "shadow order"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    until: Instant
    reason: OperatorReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """A new key of the coordinator, of an approver or of a client, in place of an old one."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "rotation"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    old: Hex32
    new: Hex32


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationSigned:
    """A rotation that the holder of both keys has signed with both."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    rotation: Rotation
    by_old: Hex64
    by_new: Hex64

    def verify(self, *, step: str) -> None:
        """Raise a `VerificationError` of the given step unless both keys have signed."""
        for key, signature in (
            (self.rotation.old, self.by_old),
            (self.rotation.new, self.by_new),
        ):
            Signed(content=self.rotation, signature=signature).verify(key, step=step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a coordinator restored from a backup has lost, and the model from which it continues."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "recovery"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    size: Count  # entries of the log that the recovery follows
    last: Hex32  # the digest of the last of them
    since: Count  # the first round whose model is lost
    model_of: Count  # the round whose model is used again; 0: the initial model
    model: Hex32


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """A plant agrees that the federation continues from a recovery."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "consent"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    recovery: Hex32  # its digest


APPROVALS: Form[Signed[Approval]] = Form.of(Signed[Approval], "approval", largest=16_384)
WAIVERS: Form[Waiver] = Form.of(Waiver, "waiver", largest=4_096)
SHADOW_ORDERS: Form[ShadowOrder] = Form.of(ShadowOrder, "shadow order", largest=4_096)
ROTATIONS: Form[RotationSigned] = Form.of(RotationSigned, "rotation", largest=4_096)
RECOVERIES: Form[Recovery] = Form.of(Recovery, "recovery", largest=4_096)
CONSENTS: Form[Signed[Consent]] = Form.of(Signed[Consent], "consent", largest=4_096)


def approve(
    subject: str | Waiver | ShadowOrder,
    key: SigningKey,
    *,
    client: str | None = None,
    looser: bool = False,
    declared: Iterable[tuple[str, str]] = (),
) -> Signed[Approval]:
    """Sign an approval of rules (by their hash), of a waiver or of a shadow order."""
    content = Approval(
        approver=key.public,
        nonce=secrets.token_hex(32),
        subject=subject if isinstance(subject, str) else content_digest(subject),
        client=client,
        looser=looser,
        declared=tuple(ChannelReason(channel=channel, reason=why) for channel, why in declared),
    )
    return sign(content, key)


def rotate(federation: str, old: SigningKey, new: SigningKey) -> RotationSigned:
    """Sign the replacement of a key with the old key and with the new one."""
    rotation = Rotation(federation=federation, old=old.public, new=new.public)
    by_old, by_new = sign(rotation, old).signature, sign(rotation, new).signature
    return RotationSigned(rotation=rotation, by_old=by_old, by_new=by_new)
