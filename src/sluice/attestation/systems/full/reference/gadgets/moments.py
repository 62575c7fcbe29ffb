"""The statistic: a form over the rows that must come to what the claimed sums say.

For drawn weights a, b, beta and alone, and public row weights w_t,

    sum_t w_t (a.x_t) (sum_k beta_k b.x_{t-k} + alone) = sum_k beta_k a^T C_k b + alone a.s

Each repetition has a filter, whose cells hold what earlier rows add to later ones, and a sum.

The sums of a masked statistic stay hidden. What is read instead is sealed: a header, and the
commitments to two shares. The running sums begin at the digest's masks of the first row, and the
proof begins with what they come to.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sluice.attestation.systems.full.reference.columns import ColumnPlan, Last
from sluice.attestation.systems.full.reference.field import ORDER, Ext
from sluice.attestation.systems.full.reference.gadgets.channels import Channels
from sluice.attestation.systems.full.reference.gadgets.digest import MASKS
from sluice.attestation.systems.full.reference.hashes import blake3_stream
from sluice.attestation.systems.full.reference.rows import RowPair, total
from sluice.attestation.systems.full.reference.statement import (
    REGISTER_TOP,
    StatedStatistic,
    SummedRegister,
)
from sluice.errors import VerificationError

__all__ = [
    "FormWeights",
    "MomentColumns",
    "RowWeights",
    "Sums",
    "demand_sealed",
    "draw_form",
    "form_totals",
    "read_sums",
    "split_totals",
]

REPETITIONS: Final = MASKS
RAMP: Final = 512
MAGIC: Final = b"sluice-moments-1"
SEALED: Final = b"sluice-sealed-01"
SHARES: Final = 64
WORD: Final = 8


@dataclass(frozen=True, slots=True)
class RowWeights:
    """The public column of row weights in a statistic of so many lags."""

    lags: int

    def on(self, row: int, rows: int) -> bool:
        """Its values are weights, not flags."""
        raise AssertionError((self, row, rows))

    def weight(self, row: int, rows: int) -> int:
        """Return nothing before a whole window and on padding, else a ramp, a plateau, a ramp."""
        windows, at = rows - self.lags + 1, row - self.lags + 1
        if not 0 <= at < windows:
            return 0
        return min(at + 1, windows - at, RAMP, (windows + 1) // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormWeights:
    """The weights of one repetition."""

    left: list[int]
    right: list[int]
    lags: list[int]
    alone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The integers of a statistic: one for each channel, and a square for each lag."""

    sums: list[int]
    lagged: list[list[list[int]]]


def draw_form(statistic: StatedStatistic, hashed: bytes, *, context: str) -> list[FormWeights]:
    """Draw the weights of every repetition: words of a hash below the order, one after another."""
    stream = _elements(blake3_stream(hashed, context=context))
    channels = len(statistic.channels)

    def many(count: int) -> list[int]:
        return [next(stream) for _ in range(count)]

    return [
        FormWeights(
            left=many(channels), right=many(channels), lags=many(statistic.lags), alone=many(1)[0]
        )
        for _ in range(REPETITIONS)
    ]


def _elements(stream: Iterator[bytes]) -> Iterator[int]:
    for block in stream:
        for at in range(0, len(block), WORD):
            word = int.from_bytes(block[at : at + WORD], "little")
            if word < ORDER:
                yield word


def read_sums(statistic: StatedStatistic, content: bytes, rows: int) -> Sums:
    """Read a statistic of so many rows; refuse any other bytes."""
    channels, lags = len(statistic.channels), statistic.lags
    body, weight = _body(statistic, content, rows, MAGIC)
    if len(body) != WORD * (channels + lags * channels**2):
        raise VerificationError("5.7", f"the statistic has {len(content)} bytes")
    found = [int.from_bytes(body[at : at + WORD], "little") for at in range(0, len(body), WORD)]
    sums, flat = found[:channels], found[channels:]
    lagged = [
        [flat[(lag * channels + row) * channels :][:channels] for row in range(channels)]
        for lag in range(lags)
    ]
    if max(sums) > REGISTER_TOP * weight or max(flat) > REGISTER_TOP**2 * weight:
        raise VerificationError("5.7", "the statistic holds an integer that no rows give")
    if [list(column) for column in zip(*lagged[0], strict=True)] != lagged[0]:
        raise VerificationError("5.7", "the statistic is not symmetric at lag 0")
    return Sums(sums=sums, lagged=lagged)


def demand_sealed(statistic: StatedStatistic, content: bytes, rows: int) -> None:
    """Refuse anything but a sealed statistic of so many rows."""
    body, _ = _body(statistic, content, rows, SEALED)
    if len(body) != SHARES:
        raise VerificationError("5.7", f"the statistic has {len(content)} bytes")


def _body(statistic: StatedStatistic, content: bytes, rows: int, magic: bytes) -> tuple[bytes, int]:
    """Return what follows the header, and the sum of all row weights."""
    lags, column = statistic.lags, RowWeights(statistic.lags)
    weight = sum(column.weight(row, rows) for row in range(rows))
    words = [max(rows - lags + 1, 0), weight, lags]
    header = magic + bytes.fromhex(statistic.settings)
    header += b"".join(word.to_bytes(WORD, "little") for word in words)
    if not weight or not content.startswith(header):
        raise VerificationError("5.7", f"the statistic is not that of {rows} rows and this circuit")
    return content[len(header) :], weight


def split_totals(proof: bytes) -> tuple[list[int], bytes]:
    """Split a proof of hidden sums into what the form comes to, masks included, and the rest."""
    size = WORD * REPETITIONS
    totals = [
        int.from_bytes(proof[at : at + WORD], "little")
        for at in range(0, min(size, len(proof)), WORD)
    ]
    if len(proof) < size or max(totals) >= ORDER:
        raise VerificationError("5.7", "the proof does not begin with canonical totals")
    return totals, proof[size:]


def form_totals(form: Sequence[FormWeights], sums: Sums) -> list[int]:
    """Return what each repetition of the form must come to."""
    totals = []
    for weights in form:
        value = weights.alone * _dot(weights.left, sums.sums)
        for beta, block in zip(weights.lags, sums.lagged, strict=True):
            value += beta * _dot(weights.left, [_dot(weights.right, row) for row in block])
        totals.append(value % ORDER)
    return totals


def _dot(weights: Sequence[int], values: Sequence[int]) -> int:
    return sum(weight * value for weight, value in zip(weights, values, strict=True)) % ORDER


class MomentColumns:
    """The columns of a statistic."""

    def __init__(self, statistic: StatedStatistic, columns: ColumnPlan) -> None:
        self.statistic = statistic
        self._carried = [columns.cells(statistic.lags - 1) for _ in range(REPETITIONS)]
        self._so_far = columns.cells(REPETITIONS)
        self._weight = columns.schedule(RowWeights(statistic.lags))
        self._last = columns.schedule(Last())

    def first(self, rows: RowPair) -> None:
        """Nothing is carried yet, and nothing is summed unless masks are."""
        summed = [] if self.statistic.masked else self._so_far
        for column in [*(cell for cells in self._carried for cell in cells), *summed]:
            rows.holds(column, Ext(0))

    def mask(self, rows: RowPair, masks: Sequence[Ext]) -> None:
        """On the first row the sums begin at the row's masks, if they are masked."""
        if self.statistic.masked:
            for column, mask in zip(self._so_far, masks, strict=True):
                rows.holds(column, mask)

    def every(
        self, channels: Channels, rows: RowPair, form: Sequence[FormWeights], totals: Sequence[int]
    ) -> None:
        """A row is filtered and added; on the batch's last row the form comes to its total."""
        values = [self._value(channels, rows.here, at) for at in range(len(form[0].left))]
        weight, last = rows.public[self._weight], rows.public[self._last]
        for at, weights in enumerate(form):
            left, right = (
                total(value * one for value, one in zip(values, side, strict=True))
                for side in (weights.left, weights.right)
            )
            carried = self._carried[at]
            earlier = [*(rows.here[column] for column in carried), Ext(0)]
            filtered = earlier[0] + right * weights.lags[0] + weights.alone
            so_far = rows.here[self._so_far[at]] + weight * left * filtered
            rows.zero(last * (so_far - totals[at]))
            rows.leads_to(self._so_far[at], so_far)
            for lag, column in enumerate(carried, start=1):
                rows.leads_to(column, earlier[lag] + right * weights.lags[lag])

    def following(self, channels: Channels, rows: RowPair) -> None:
        """The batch is one segment."""
        if channels.start is not None:
            rows.zero(rows.here[channels.start])

    def _value(self, channels: Channels, cells: Sequence[Ext], at: int) -> Ext:
        summed = self.statistic.channels[at]
        if isinstance(summed, SummedRegister):
            return channels.register(cells, summed.register)
        actuator = summed.actuator
        return total(
            channels.shows(cells, actuator.actuator, index) * code
            for index, code in enumerate(actuator.codes)
        )
