"""Heads of the log. Plants sign them each round, so that all plants see the same log."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import ConfigDict

from sluice.attestation.messages import STRICT, Count, Form, Hex32, Name, Signed
from sluice.errors import VerificationError

__all__ = ["COORDINATOR", "EMPTY_LOG", "HEADS", "Head", "refuse_fork"]

COORDINATOR = "coordinator"
"""The name under which the coordinator signs heads; no client may have it."""
EMPTY_LOG = "0" * 64
"""The head of a log without entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The length of a federation's log and the hash of its last entry, as `signer` saw them."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "head"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    signer: Name  # a client, or the coordinator
    size: Count
    last: Hex32


HEADS: Form[Signed[Head]] = Form.of(Signed[Head], "head", largest=2_048)


def refuse_fork(one: Head, other: Head) -> None:
    """Raise a `VerificationError` if two heads of equal length differ: the log is forked.

    Heads of different lengths are compared by the entries between them (`compare_logs`).
    """
    if one.federation != other.federation:
        raise VerificationError(
            "7", f"the heads are of two federations, {one.federation!r} and {other.federation!r}"
        )
    if one.size == other.size and one.last != other.last:
        raise VerificationError(
            "7",
            f"the log of {one.federation!r} is forked: its entry {one.size - 1} is "
            f"{one.last[:12]}... for {one.signer!r} and {other.last[:12]}... for {other.signer!r}",
        )
