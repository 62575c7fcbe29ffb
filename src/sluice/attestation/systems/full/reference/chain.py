"""Chains of segments: how a batch is cut, what binds the segments, and the bytes of a chain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sluice.attestation.systems.full.reference.field import ORDER
from sluice.attestation.systems.full.reference.hashes import blake3
from sluice.attestation.systems.full.reference.parameters import LEAST_HEIGHT, MOST_HEIGHT
from sluice.attestation.systems.full.reference.seams import SEAM_REPETITIONS, draw_weights
from sluice.errors import VerificationError

__all__ = [
    "ChainParts",
    "chain_base",
    "chain_log_rows",
    "chain_plan",
    "read_chain",
    "seam_weights",
    "segment_root",
    "segment_seed",
]

MAGIC: Final = b"sluice-chain-1\0\0"
WORD: Final = 8
ROOT: Final = 32
NO_ROOT: Final = bytes(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainParts:
    """A chain taken apart."""

    values: list[list[int]]  # of each seam
    parts: list[bytes]  # the proof of each segment


def chain_log_rows(content: bytes) -> int | None:
    """Return the logarithm of the rows of a segment; None if the proof is not a chain."""
    if not content.startswith(MAGIC):
        return None
    return int.from_bytes(content[len(MAGIC) : len(MAGIC) + WORD], "little")


def chain_plan(rows: int, log_rows: int) -> list[range]:
    """Return the rows of each segment; neighbours share one, and the last one has padding."""
    least, most = LEAST_HEIGHT.bit_length() - 1, MOST_HEIGHT.bit_length() - 1
    if not least <= log_rows <= most or rows < 1 << log_rows:
        raise VerificationError("5.7", f"no chain has {rows} rows in segments of 2^{log_rows}")
    plan, start, full = [], 0, 1 << log_rows
    while rows - start >= full:
        plan.append(range(start, start + full))
        start += full - 1
    height = max(LEAST_HEIGHT, 1 << (rows - start).bit_length())
    return [*plan, range(start, start + height)]


def read_chain(content: bytes, segments: int) -> ChainParts:
    """Take a chain of so many segments apart; refuse any other bytes."""
    at = len(MAGIC) + WORD
    count = (segments - 1) * SEAM_REPETITIONS + segments
    words = [
        int.from_bytes(content[place : place + WORD], "little")
        for place in range(at, at + count * WORD, WORD)
    ]
    at += count * WORD
    flat, lengths = words[:-segments], words[-segments:]
    if at + sum(lengths) != len(content) or any(value >= ORDER for value in flat):
        raise VerificationError("5.7", "the chain does not have the shape of this batch")
    parts = []
    for length in lengths:
        parts.append(content[at : at + length])
        at += length
    values = [
        flat[place : place + SEAM_REPETITIONS] for place in range(0, len(flat), SEAM_REPETITIONS)
    ]
    return ChainParts(values=values, parts=parts)


def segment_root(part: bytes) -> bytes:
    """Return the root of a segment's trace: its proof begins with it, a list of one hash.

    The whole proof is read later, and refused if its first list is another.
    """
    if len(part) <= ROOT or part[0] != 1:
        raise VerificationError("5.7", "a segment of the chain has no root")
    return part[1 : 1 + ROOT]


def chain_base(identity: bytes, seed: bytes, log_rows: int) -> bytes:
    """Return what every segment is bound to: the circuit, the claim, and how it is cut."""
    return blake3(identity + _word(log_rows) + seed, context="sluice full chain 1")


def seam_weights(cells: int, base: bytes, at: int, roots: Sequence[bytes]) -> list[list[int]]:
    """Draw the weights of the seam after a segment, from the traces on both of its sides."""
    hashed = base + _word(at) + roots[at] + roots[at + 1]
    return draw_weights(cells, hashed, context="sluice full seam 1")


def segment_seed(base: bytes, at: int, roots: Sequence[bytes]) -> bytes:
    """Return what the transcript of a segment begins with."""
    beside = [NO_ROOT, *roots, NO_ROOT][at : at + 3]
    return blake3(base + _word(at) + b"".join(beside), context="sluice full segment 1")


def _word(value: int) -> bytes:
    return value.to_bytes(WORD, "little")
