"""Vectors over the circuit's field, and the form that ties sums to rows.

A vector holds the integers of a statistic in the order of its canonical form: one sum for each
channel, then the squares of each lag, row after row.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sluice.attestation.packing import packed
from sluice.attestation.systems.full.reference import blake3, blake3_stream
from sluice.detector import MomentSettings, MomentStatistic

__all__ = [
    "ORDER",
    "REPETITIONS",
    "Draw",
    "Elements",
    "Shape",
    "added",
    "element_bytes",
    "expand",
    "negated",
    "read_elements",
    "vector_of",
]

ORDER = (1 << 64) - (1 << 32) + 1
REPETITIONS = 3
WORD = 8

Elements = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How many channels and lags a statistic has."""

    channels: int
    lags: int

    @classmethod
    def of(cls, settings: MomentSettings) -> "Shape":
        """Return the shape of the statistics of these settings."""
        return cls(channels=len(settings.registers), lags=settings.lags)

    @property
    def size(self) -> int:
        """How many integers a statistic holds."""
        return self.channels + self.lags * self.channels**2


def expand(seed: bytes, what: str, count: int) -> Elements:
    """Return uniform elements of the field from a seed: words of SHAKE-256 below the order."""
    stream = hashlib.shake_256(packed(b"sluice hidden sums 1", what.encode(), seed))
    spare = 0
    while True:
        spare += 16
        words = np.frombuffer(stream.digest(WORD * (count + spare)), "<u8").astype(np.uint64)
        found = words[words < ORDER]
        if len(found) >= count:
            return found[:count].copy()


def added(one: Elements, other: Elements) -> Elements:
    """Add vectors in the field."""
    total = one + other  # modulo 2^64
    wrapped = total < one
    total = np.where(wrapped, total + np.uint64((1 << 64) - ORDER), total)
    return np.where(~wrapped & (total >= ORDER), total - np.uint64(ORDER), total)


def negated(values: Elements) -> Elements:
    """Return what adds up to zero with a vector."""
    return np.where(values == 0, values, np.uint64(ORDER) - values)


def element_bytes(values: Sequence[int] | Elements) -> bytes:
    """Return elements as little-endian words."""
    return np.array(values, dtype="<u8").tobytes()


def read_elements(content: bytes) -> Elements:
    """Read little-endian words; refuse words that are no elements, with a `ValueError`."""
    if len(content) % WORD:
        raise ValueError(f"{len(content):,} bytes are no whole number of field elements")
    values = np.frombuffer(content, "<u8").astype(np.uint64)
    if (values >= ORDER).any():
        raise ValueError("a word is not below the order of the field")
    return values


def vector_of(statistic: MomentStatistic) -> Elements:
    """Return a statistic's integers as a vector."""
    parts = (statistic.sums, statistic.lagged.ravel())
    return np.concatenate(parts).astype(np.uint64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Everything that is fixed before the weights are drawn, and so decides them."""

    identity: bytes  # of the circuit's constraints
    commitment: bytes  # to the batch
    context: bytes
    sealed: bytes  # the sealed statistic

    def forms(self, shape: Shape, values: Elements) -> tuple[int, ...]:
        """Return the form of a vector for each repetition: it is linear in the vector."""
        hashed = self.identity + self.commitment + self.context + blake3(self.sealed)
        words = _words(blake3_stream(hashed, context="sluice full moments 1"))
        totals = []
        for _ in range(REPETITIONS):
            left, right, lags, (alone,) = (
                [next(words) for _ in range(count)]
                for count in (shape.channels, shape.channels, shape.lags, 1)
            )
            totals.append(_form(values.tolist(), left, right, lags, alone))
        return tuple(totals)


def _words(stream: Iterator[bytes]) -> Iterator[int]:
    for block in stream:
        for at in range(0, len(block), WORD):
            word = int.from_bytes(block[at : at + WORD], "little")
            if word < ORDER:
                yield word


def _form(values: list[int], left: list[int], right: list[int], lags: list[int], alone: int) -> int:
    channels = len(left)
    total = alone * _dot(left, values[:channels])
    for lag, beta in enumerate(lags):
        begins = channels + lag * channels**2
        rows = [
            _dot(right, values[begins + row * channels :][:channels]) for row in range(channels)
        ]
        total += beta * _dot(left, rows)
    return total % ORDER


def _dot(weights: list[int], values: list[int]) -> int:
    return sum(weight * value for weight, value in zip(weights, values, strict=True)) % ORDER
