"""Seams: what ties one segment of a chain to the next, and what passes from one to the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sluice.attestation.systems.full.reference.columns import Column
from sluice.attestation.systems.full.reference.field import ORDER, Ext
from sluice.attestation.systems.full.reference.hashes import blake3_stream
from sluice.attestation.systems.full.reference.rows import Frame, total

__all__ = ["SEAM_REPETITIONS", "CellsRead", "Seam", "draw_weights", "state_seam"]

SEAM_REPETITIONS: Final = 3
"""How often a seam is proven, each time at weights of its own."""
WORD: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """The weights of the carried cells at both ends of a segment, by repetition."""

    carried: tuple[Column, ...]
    enters: list[list[int]] | None  # none: the segment begins the batch
    leaves: list[list[int]] | None  # none: the segment ends the batch


def draw_weights(cells: int, hashed: bytes, *, context: str) -> list[list[int]]:
    """Return weights for so many cells, uniform by rejection, from an endless hash."""
    stream = (byte for block in blake3_stream(hashed, context=context) for byte in block)
    weights: list[list[int]] = []
    for _ in range(SEAM_REPETITIONS):
        drawn: list[int] = []
        while len(drawn) < cells:
            word = int.from_bytes(bytes(next(stream) for _ in range(WORD)), "little")
            if word < ORDER:
                drawn.append(word)
        weights.append(drawn)
    return weights


def state_seam(seam: Seam, frame: Frame, values: Sequence[int], *, masks: Column) -> None:
    """State that a mask and the weighted cells of the outer rows come to the seams' values."""
    ends = (
        (seam.enters, frame.first_row(), values[:SEAM_REPETITIONS]),
        (seam.leaves, frame.last_row(), values[SEAM_REPETITIONS:]),
    )
    for repetitions, rows, wanted in ends:
        for at, weights in enumerate(repetitions or ()):
            cells = (rows.here[column] for column in seam.carried)
            found = total(cell * weight for cell, weight in zip(cells, weights, strict=True))
            rows.zero(-(rows.here[masks + at] + found) + wanted[at])


class CellsRead(Ext):
    """Stands for any value that is computed from cells: a bit for each cell."""

    __slots__ = ("cells",)

    def __init__(self, cells: int) -> None:
        super().__init__(1)
        self.cells = cells

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(self.cells)

    def __add__(self, other: "Ext | int") -> "Ext":
        return CellsRead(self.cells | other.cells) if isinstance(other, CellsRead) else self

    def __neg__(self) -> "Ext":
        return self

    def __mul__(self, other: "Ext | int") -> "Ext":
        if isinstance(other, CellsRead):
            return CellsRead(self.cells | other.cells)
        return Ext(0) if other in (0, Ext(0)) else self

    def __radd__(self, other: "Ext | int") -> "Ext":
        return self

    def __rsub__(self, other: "Ext | int") -> "Ext":
        return self

    def __rmul__(self, other: "Ext | int") -> "Ext":
        return self * other

    def __pow__(self, exponent: int) -> "Ext":
        return self
