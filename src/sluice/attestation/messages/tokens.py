"""Round tokens: a client commits by hash to its update before any update is revealed."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, StringConstraints

from sluice.attestation.messages.documents import STRICT, Count, Form, Hex32, Name
from sluice.attestation.messages.signing import Signed
from sluice.attestation.packing import digest, number

__all__ = ["TOKENS", "Token", "update_digest"]

TAIL_BYTES = 56
LentHex = Annotated[
    Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{{2 * TAIL_BYTES}}}$")] | None,
    Field(exclude_if=lambda tail: tail is None),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One client in one round: the model it starts from, its attestation, the hash of its update.

    It does not prove that the update was computed from the attested batch. Only a bound statistic
    is tied to it: its token pledges the hash that the attested commitment names.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "token"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    round: Count
    model: Hex32
    attestation: Hex32
    update: Hex32
    tail: LentHex = None  # the tail of its own scores that the client lends, encoded


TOKENS: Form[Signed[Token]] = Form.of(Signed[Token], "token", largest=4_096)


def update_digest(federation: str, client: str, round_: int, update: bytes) -> str:
    """Return the hash of an update.

    It covers the client and the round. Otherwise a client could pledge another client's hash and
    send the same update after that client reveals it.
    """
    return digest("update", federation.encode(), client.encode(), number(round_), update).hex()
