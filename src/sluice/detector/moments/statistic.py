"""The statistic: exact integer sums over a plant's rows.

For registers x_t and public weights w_t,

    C_k = sum_t w_t x_t x_{t-k}^T  for k = 0 .. lags - 1,   s = sum_t w_t x_t,   w = sum_t w_t

A row counts for all lags or for none: rows t-lags+1 .. t lie in one segment. The weights of a
segment rise from 1 in steps of 1, stay, and fall to 1 again. Without these ramps, differences of
the C_k would show the first and last rows of a segment.

Exactness. A register is below 2^16 and a weight at most 2^9, so a term is below 2^41. In a block of
at most 2^12 rows, every partial sum is an integer below 2^53, which a float64 holds exactly, in
whatever order a BLAS adds. Blocks are added as 64-bit integers: no entry of C_k exceeds
(2^16 - 1)^2 w, so total weights below 2^31 cannot overflow. A larger total is refused.
"""

import hashlib
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Floats, Ints, frozen
from sluice.detector.moments.settings import MomentSettings
from sluice.errors import RecordError, SettingError
from sluice.invariants import REGISTER_TOP
from sluice.telemetry import Record

__all__ = [
    "MomentStatistic",
    "moment_statistic",
    "shared_sum",
    "statistic_bytes",
    "sum_windows",
    "trapezoid",
]

RAMP_ROWS = 512
BLOCK_ROWS = 1 << 12
WEIGHT_LIMIT = 1 << 31
MAGIC = b"sluice-moments-1"
HEADER = struct.Struct("<16s32sQQQ")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MomentStatistic:
    """The sums of some rows, under public settings."""

    settings: MomentSettings
    count: int  # windows: rows that end a whole window
    weight: int  # the sum of their weights
    sums: Ints  # channels
    lagged: Ints  # lags x channels x channels: C_0, C_1, ...

    def __post_init__(self) -> None:
        channels, lags = len(self.settings.registers), self.settings.lags
        shapes = (self.sums.shape, self.lagged.shape)
        if shapes != ((channels,), (lags, channels, channels)):
            raise SettingError(
                f"a statistic of {channels} channels and {lags} lags has one sum per channel and "
                f"{lags} blocks of {channels} x {channels}; these have the shapes {shapes}"
            )
        if self.sums.dtype != np.int64 or self.lagged.dtype != np.int64:
            raise SettingError(
                f"a statistic holds 64-bit integers, not {self.sums.dtype} and {self.lagged.dtype}"
            )
        if not 0 <= self.count <= self.weight < WEIGHT_LIMIT:
            raise SettingError(
                f"a statistic of {self.count:,} windows has a total weight of {self.weight:,}; it "
                f"must be at least the number of windows and below {WEIGHT_LIMIT:,}: sum fewer rows"
            )
        self._refuse_impossible()
        object.__setattr__(self, "sums", frozen(self.sums))
        object.__setattr__(self, "lagged", frozen(self.lagged))

    def _refuse_impossible(self) -> None:
        """Refuse sums that no registers give."""
        for what, entries, largest in (
            ("sum", self.sums, REGISTER_TOP * self.weight),
            ("lagged sum", self.lagged, REGISTER_TOP**2 * self.weight),
        ):
            if entries.size and not (entries.min() >= 0 and entries.max() <= largest):
                worst = int(entries.min()) if entries.min() < 0 else int(entries.max())
                raise SettingError(
                    f"a {what} of {worst:,} cannot come from registers with a total weight of "
                    f"{self.weight:,}; it must lie between 0 and {largest:,}"
                )
        if not np.array_equal(self.lagged[0], self.lagged[0].T):
            raise SettingError("the sums at lag 0 are not symmetric, so no registers give them")

    def __add__(self, other: "MomentStatistic") -> "MomentStatistic":
        """Return the statistic of both sets of rows."""
        if self.settings != other.settings:
            raise SettingError(
                "two statistics of other settings cannot be added "
                f"({self.settings.digest[:12]}... and {other.settings.digest[:12]}...); all plants "
                "need the same channels, registers and lags"
            )
        if self.weight + other.weight >= WEIGHT_LIMIT:
            raise SettingError(
                f"two statistics weigh {self.weight + other.weight:,} together; sums stay exact "
                f"below {WEIGHT_LIMIT:,}: add fewer rows"
            )
        return MomentStatistic(
            settings=self.settings,
            count=self.count + other.count,
            weight=self.weight + other.weight,
            sums=self.sums + other.sums,
            lagged=self.lagged + other.lagged,
        )

    def only(self, channels: Collection[str]) -> "MomentStatistic":
        """Return the sums of some channels: those that their rows alone would give."""
        settings = self.settings.only(channels)
        if settings is self.settings:
            return self
        names = self.settings.channels
        at = np.array([names.index(name) for name in settings.channels])
        return MomentStatistic(
            settings=settings,
            count=self.count,
            weight=self.weight,
            sums=self.sums[at],
            lagged=self.lagged[:, at][:, :, at],
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MomentStatistic) and self.canonical() == other.canonical()

    def __hash__(self) -> int:
        return hash(self.canonical())

    def without(self, channels: Collection[str]) -> "MomentStatistic":
        """Return the sums with zeros for some channels, which a detector then does not read."""
        left_out = np.isin(self.settings.channels, tuple(channels))
        sums, lagged = self.sums.copy(), self.lagged.copy()
        sums[left_out] = 0
        lagged[:, left_out] = 0
        lagged[:, :, left_out] = 0
        return replace(self, sums=sums, lagged=lagged)

    @property
    def summed(self) -> tuple[str, ...]:
        """The channels with a sum or a lagged sum other than zero."""
        used = (self.sums != 0) | self.lagged.any(axis=(0, 1)) | self.lagged.any(axis=(0, 2))
        return tuple(
            name for name, is_used in zip(self.settings.channels, used, strict=True) if is_used
        )

    def canonical(self) -> bytes:
        """Return the one encoding of these sums: a header, then little-endian 64-bit integers."""
        header = HEADER.pack(
            MAGIC, bytes.fromhex(self.settings.digest), self.count, self.weight, self.settings.lags
        )
        return header + b"".join(part.astype("<i8").tobytes() for part in (self.sums, self.lagged))

    @property
    def digest(self) -> str:
        """The hash of the canonical form."""
        return hashlib.sha256(self.canonical()).hexdigest()

    @classmethod
    def from_canonical(cls, content: bytes, settings: MomentSettings) -> "MomentStatistic":
        """Read the canonical form of sums under known settings; refuse any other."""
        channels, lags = len(settings.registers), settings.lags
        expected = statistic_bytes(settings)
        if len(content) != expected:
            raise SettingError(
                f"a statistic of {channels} channels and {lags} lags has {expected:,} bytes, got "
                f"{len(content):,}"
            )
        magic, digest, count, weight, stated = HEADER.unpack_from(content)
        if magic != MAGIC or digest.hex() != settings.digest or stated != lags:
            raise SettingError(
                f"these sums are of other settings than {settings.digest[:12]}...; ask for a "
                "statistic under the settings of the federation"
            )
        numbers = np.frombuffer(content, "<i8", offset=HEADER.size).astype(np.int64)
        return cls(
            settings=settings,
            count=count,
            weight=weight,
            sums=numbers[:channels],
            lagged=numbers[channels:].reshape(lags, channels, channels),
        )


def shared_sum(statistics: Sequence[MomentStatistic]) -> MomentStatistic:
    """Return the sum of statistics on the channels that all of them have."""
    common = set(statistics[0].settings.channels)
    for each in statistics[1:]:
        common &= set(each.settings.channels)
    total = statistics[0].only(common)
    for each in statistics[1:]:
        total = total + each.only(common)
    return total


def statistic_bytes(settings: MomentSettings) -> int:
    """Return the length of the canonical form of every statistic under these settings."""
    channels = len(settings.registers)
    return HEADER.size + 8 * (channels + settings.lags * channels**2)


def moment_statistic(record: Record, settings: MomentSettings) -> MomentStatistic:
    """Sum a record's rows, segment by segment, each with the public weights.

    A segment that is shorter than the number of lags is not summed. A missing reading is refused.
    """
    registers = settings.integers(record)
    weights = np.zeros(len(record), np.int64)
    for segment in record.segments:
        windows = segment.rows - settings.lags + 1
        if windows > 0:
            weights[segment.start + settings.lags - 1 : segment.stop] = trapezoid(windows)
    if not weights.any():
        raise RecordError(
            f"record {record.name!r} has no {settings.lags} consecutive rows; a statistic sums "
            "whole windows: give a longer record"
        )
    return sum_windows(registers, weights, settings)


def trapezoid(windows: int) -> Ints:
    """Return the weights of a segment's windows: a ramp up, a plateau, a ramp down."""
    ramp = min(RAMP_ROWS, (windows + 1) // 2)
    at = np.arange(windows)
    return np.minimum(np.minimum(at + 1, windows - at), ramp)


def sum_windows(registers: Ints, weights: Ints, settings: MomentSettings) -> MomentStatistic:
    """Sum registers (rows x channels) with one weight for each row that ends a window."""
    total = sum(int(weight) for weight in np.add.reduceat(weights, range(0, len(weights), 1 << 16)))
    if total >= WEIGHT_LIMIT or (weights > RAMP_ROWS).any():
        raise SettingError(
            f"{np.count_nonzero(weights):,} windows have a total weight of {total:,} and a largest "
            f"of {int(weights.max())}; sums stay exact below {WEIGHT_LIMIT:,} and up to "
            f"{RAMP_ROWS}: sum fewer rows"
        )
    lags, channels = settings.lags, registers.shape[1]
    sums = np.zeros(channels, np.int64)
    lagged = np.zeros((lags, channels, channels), np.int64)
    for start in range(lags - 1, len(registers), BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, len(registers))
        block, counted = registers[start - lags + 1 : stop].astype(np.float64), weights[start:stop]
        if counted.any():
            _add_block(block, counted.astype(np.float64), sums, lagged)
    return MomentStatistic(
        settings=settings,
        count=int(np.count_nonzero(weights)),
        weight=total,
        sums=sums,
        lagged=lagged,
    )


def _add_block(block: Floats, weights: Floats, sums: Ints, lagged: Ints) -> None:
    """Add the sums of one block; `block` begins `lags - 1` rows before the first weight."""
    first = len(lagged) - 1
    weighted = block[first:].T * weights
    sums += weighted.sum(axis=1).astype(np.int64)
    for lag in range(len(lagged)):
        earlier = block[first - lag : first - lag + len(weights)]
        lagged[lag] += (weighted @ earlier).astype(np.int64)
