"""The bytes of a proof.

Lengths are little-endian groups of seven bits (as few as possible), elements of the field are eight
bytes below the order, hashes are 32 bytes, an option is one byte and its content. There is exactly
one encoding of a proof: what is not it is refused.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from sluice.attestation.systems.full.reference.field import DEGREE, ORDER, Ext
from sluice.errors import VerificationError

__all__ = [
    "BatchOpening",
    "FoldOpening",
    "Fri",
    "OpenedValues",
    "ProofParts",
    "TreeOpening",
    "read_proof",
]

T = TypeVar("T")
Row = tuple[int, ...]
ExtRow = tuple[Ext, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeOpening:
    """What shows that opened rows are leaves: a salt for each row of each query, and nodes."""

    salts: tuple[tuple[Row, ...], ...]
    siblings: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOpening:
    """The rows of the matrices under one commitment, for each query."""

    rows: tuple[tuple[Row, ...], ...]
    tree: TreeOpening


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOpening:
    """The other values of the group that a query is folded with."""

    siblings: tuple[ExtRow, ...]
    tree: TreeOpening


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedValues:
    """Values of the committed polynomials at the point outside the trace, and one row after it."""

    here: ExtRow
    next: ExtRow | None
    preprocessed: ExtRow | None
    quotients: tuple[ExtRow, ...]
    random: ExtRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fri:
    """The test that committed words are close to polynomials of low degree."""

    batch_work: int
    roots: tuple[bytes, ...]
    fold_work: Row
    inputs: tuple[BatchOpening, ...]
    folds: tuple[FoldOpening, ...]
    last: ExtRow
    query_work: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofParts:
    """A proof, field by field."""

    trace: bytes = field(repr=False)
    quotient: bytes = field(repr=False)
    random: bytes | None = field(repr=False)
    opened: OpenedValues = field(repr=False)
    masks: tuple[tuple[tuple[ExtRow, ...], ...], ...] = field(repr=False)
    fri: Fri = field(repr=False)
    log_height: int
    point_work: int


class _Reader:
    """Takes a proof apart from the front."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            _refuse("it ends early")
        self._at += count
        return taken

    def number(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if value >= 1 << 64 or (byte == 0 and shift):
                _refuse("a number is too large or has another encoding")
            if byte < 0x80:
                return value
            shift += 7

    def items(self, item: Callable[[], T]) -> tuple[T, ...]:
        count = self.number()
        if count > len(self._data) - self._at:
            _refuse("a list is longer than the rest")
        return tuple(item() for _ in range(count))

    def option(self, item: Callable[[], T]) -> T | None:
        marked = self.take(1)
        if marked > b"\1":
            _refuse("an option is neither there nor absent")
        return item() if marked == b"\1" else None

    def row(self) -> Row:
        return self._elements(self.number())

    def element(self) -> int:
        return self._elements(1)[0]

    def ext_row(self) -> ExtRow:
        flat = self._elements(DEGREE * self.number())
        return tuple(Ext(*flat[at : at + DEGREE]) for at in range(0, len(flat), DEGREE))

    def _elements(self, count: int) -> Row:
        found = struct.unpack(f"<{count}Q", self.take(8 * count))
        if found and max(found) >= ORDER:
            _refuse("an element is not below the order of the field")
        return found

    def root(self) -> bytes:
        roots = self.items(self.hash)
        if len(roots) != 1:
            _refuse("a commitment is not one hash")
        return roots[0]

    def hash(self) -> bytes:
        return self.take(32)

    def tree(self) -> TreeOpening:
        return TreeOpening(
            salts=self.items(lambda: self.items(self.row)), siblings=self.items(self.hash)
        )

    def end(self) -> None:
        if self._at != len(self._data):
            _refuse("something follows it")


def _refuse(why: str) -> NoReturn:
    raise VerificationError("5.7", f"the proof cannot be read: {why}")


def read_proof(data: bytes, *, largest: int) -> ProofParts:
    """Read a proof; anything that is not the one encoding of a proof is refused."""
    if len(data) > largest:
        raise VerificationError(
            "5.7", f"the proof has {len(data)} bytes; none of this circuit has more than {largest}"
        )
    reader = _Reader(data)
    proof = ProofParts(
        trace=reader.root(),
        quotient=reader.root(),
        random=reader.option(reader.root),
        opened=_opened(reader),
        masks=reader.items(lambda: reader.items(lambda: reader.items(reader.ext_row))),
        fri=_fri(reader),
        log_height=reader.number(),
        point_work=reader.element(),
    )
    reader.end()
    return proof


def _opened(reader: _Reader) -> OpenedValues:
    here, following = reader.ext_row(), reader.option(reader.ext_row)
    before, after = reader.option(reader.ext_row), reader.option(reader.ext_row)
    if before is None and after is not None:
        _refuse("a fixed column is opened on the next row only")
    if before is not None and (not before or (after is not None and len(after) != len(before))):
        _refuse("fixed columns are opened on rows of different widths")
    return OpenedValues(
        here=here,
        next=following,
        preprocessed=before,
        quotients=reader.items(reader.ext_row),
        random=reader.option(reader.ext_row),
    )


def _fri(reader: _Reader) -> Fri:
    return Fri(
        batch_work=reader.element(),
        roots=reader.items(reader.root),
        fold_work=reader.row(),
        inputs=reader.items(
            lambda: BatchOpening(
                rows=reader.items(lambda: reader.items(reader.row)), tree=reader.tree()
            )
        ),
        folds=reader.items(
            lambda: FoldOpening(siblings=reader.items(reader.ext_row), tree=reader.tree())
        ),
        last=reader.ext_row(),
        query_work=reader.element(),
    )
