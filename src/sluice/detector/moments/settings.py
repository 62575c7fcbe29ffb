"""What a statistic sums: which channels, how readings become integers, and how many lags.

Settings are public and agreed before any row is summed. Plants that use the same settings produce
statistics that can be added.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace

import numpy as np
import rfc8785

from sluice.arrays import Ints
from sluice.errors import RecordError, SettingError
from sluice.invariants import REGISTER_TOP, Register, RuleSet, register_of
from sluice.telemetry import WINDOW_ROWS, Channel, Record, Span, feature_names

__all__ = ["LAGS", "MomentSettings", "moment_settings"]

LAGS = WINDOW_ROWS
MOST_LAGS = 1_000
ROOM = 0.5  # of the clean range, on either side, where no span is declared
MOST_CHANNELS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentSettings:
    """The channels of a statistic as 16-bit registers, and its number of lags."""

    registers: tuple[Register, ...]
    lags: int = LAGS

    def __post_init__(self) -> None:
        if not 1 <= self.lags <= MOST_LAGS:
            raise SettingError(f"a statistic has 1 to {MOST_LAGS} lags, got {self.lags}")
        if not 1 <= len(self.registers) <= MOST_CHANNELS:
            raise SettingError(
                f"a statistic has 1 to {MOST_CHANNELS:,} channels, got {len(self.registers)}; "
                "give a record in which a channel changes"
            )
        twice = [name for name, count in Counter(self.channels).items() if count > 1]
        if twice:
            raise SettingError(f"a statistic names each channel once; it names {twice[0]!r} twice")
        for register in self.registers:
            if not (math.isfinite(register.low) and 0 < register.step < math.inf):
                raise SettingError(
                    f"channel {register.channel!r} cannot become integers from {register.low} in "
                    f"steps of {register.step}; give a finite start and a step above 0"
                )

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels in the order of the sums."""
        return tuple(register.channel for register in self.registers)

    @property
    def digest(self) -> str:
        """The hash that names these settings: statistics of other settings cannot be added."""
        return hashlib.sha256(rfc8785.dumps(asdict(self))).hexdigest()

    def only(self, channels: Collection[str]) -> "MomentSettings":
        """Return the settings of those channels that are among these, in the same order."""
        chosen = tuple(each for each in self.registers if each.channel in channels)
        return self if chosen == self.registers else replace(self, registers=chosen)

    def integers(self, record: Record) -> Ints:
        """Return the record's registers, rows x channels; refuse a missing reading."""
        columns = [record.index(name, needed_by="the statistic") for name in self.channels]
        missing = record.missing[:, columns]
        if missing.any():
            row, column = (int(at) for at in np.argwhere(missing)[0])
            raise RecordError(
                f"record {record.name!r} has no reading of {self.channels[column]!r} at row {row} "
                f"({int(missing.any(axis=1).sum()):,} such rows); a statistic sums whole rows: "
                "leave these rows out, or fill them"
            )
        readings = np.empty((len(record), len(columns)), np.int64)
        for at, (register, column) in enumerate(zip(self.registers, columns, strict=True)):
            readings[:, at] = register.quantise(record.values[:, column])
        return readings


def moment_settings(
    clean: Record,
    *,
    rules: RuleSet | None = None,
    untied: Collection[str] = (),
    lags: int = LAGS,
) -> MomentSettings:
    """Choose the channels of a plant from its clean rows, and the registers of each.

    Left out are analysers, which drift; channels that do not change in these rows; and `untied`
    channels, which no rule ties to others, so that a plant could report anything in them. A
    measured channel uses the register of the rules, if given, so that a proof reads the same
    integers. A discrete channel is its own code.
    """
    ruled = {channel.name: channel for channel in (rules.channels if rules else ())}
    chosen = [name for name in feature_names(clean) if name not in untied and _changes(clean, name)]
    described = (_described(clean.channel(name), ruled.get(name), clean) for name in chosen)
    return MomentSettings(registers=tuple(map(_register, described)), lags=lags)


def _described(channel: Channel, ruled: Channel | None, clean: Record) -> Channel:
    """Return the channel with a span: that of the rules, its own, or the clean range with room."""
    if channel.role.discrete:
        return channel
    span = ruled.span if ruled else channel.span
    if span is None:
        readings = clean.column(channel.name)
        low, high = float(np.fmin.reduce(readings)), float(np.fmax.reduce(readings))
        span = Span(low=low - ROOM * (high - low), high=high + ROOM * (high - low))
    return replace(channel, span=span)


def _changes(record: Record, name: str) -> bool:
    readings = record.column(name)
    return bool(np.fmin.reduce(readings) < np.fmax.reduce(readings))


def _register(channel: Channel) -> Register:
    if not channel.role.discrete:
        return register_of(channel)
    assert channel.codes is not None
    if not all(0 <= code <= REGISTER_TOP for code in channel.codes.legal):
        raise SettingError(
            f"actuator {channel.name!r} has codes {sorted(channel.codes.legal)}; a register holds "
            f"0 to {REGISTER_TOP:,}: declare other codes in the plant file"
        )
    return Register(channel=channel.name, low=0.0, step=1.0)
