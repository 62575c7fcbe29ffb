"""The context: everything a proof is about besides the readings. The proof absorbs its hash.

A proof verifies under one context only. It fails for another client, federation, rule set, policy,
circuit, batch, interval or protocol version.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import numpy as np
from pydantic import ConfigDict

from sluice.attestation.messages.documents import STRICT, Moment
from sluice.attestation.packing import digest, number, packed
from sluice.telemetry import Record

__all__ = ["PROTOCOL", "Context", "Interval"]

PROTOCOL = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The time a batch covers: its first and its last row, on the plant's own clock."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    start: Moment
    end: Moment

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise ValueError(
                f"an interval must not end before it starts, got {self.start} to {self.end}"
            )

    @classmethod
    def of(cls, batch: Record) -> "Interval":
        """Return the interval of a batch."""
        first, last = (np.datetime_as_string(batch.times[row], unit="us") for row in (0, -1))
        return cls(start=str(first), end=str(last))

    def overlaps(self, other: "Interval") -> bool:
        """Whether the intervals share a moment; both ends belong to an interval."""
        return self.start <= other.end and other.start <= self.end

    @property
    def microseconds(self) -> int:
        """Duration from the first row to the last."""
        duration = datetime.fromisoformat(self.end) - datetime.fromisoformat(self.start)
        return (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a batch attestation is about. It names no round: one proof serves many rounds."""

    system: str
    federation: str
    client_key: bytes
    rules: bytes  # their content hash
    policy: bytes
    circuit: bytes  # its identity
    parameters: tuple[tuple[str, int], ...]
    rows_max: int
    commitment: bytes
    rows: int
    interval: Interval
    nonce: bytes = b""  # for systems that sample rows; empty for the others
    statistic: bytes = b""  # the hash of the statistic; empty where none is bound
    protocol: int = PROTOCOL

    def digest(self) -> bytes:
        """Return the 32 bytes that the proof absorbs."""
        named = [packed(name.encode(), str(value).encode()) for name, value in self.parameters]
        return digest(
            "context",
            number(self.protocol),
            self.system.encode(),
            self.federation.encode(),
            self.client_key,
            self.rules,
            self.policy,
            self.circuit,
            packed(*named, number(self.rows_max)),
            self.commitment,
            number(self.rows),
            self.interval.start.encode(),
            self.interval.end.encode(),
            self.nonce,
            *((self.statistic,) if self.statistic else ()),
        )
