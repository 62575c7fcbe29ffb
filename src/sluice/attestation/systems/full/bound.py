"""The statistic that a proof of the system `full` ties to the committed rows.

Rules decide which channels it sums, never the plant that is to be bound: channels that are
committed to, that a rule ties to others, and that can change. Analysers drift and are left out, as
in the detector.
"""

from enum import StrEnum

import numpy as np

from sluice.attestation.systems.full.lanes import Actuator
from sluice.attestation.systems.full.sealed import SealedStatistic
from sluice.attestation.systems.full.statement import Statement
from sluice.attestation.systems.full.witness import Witness
from sluice.detector import MomentSettings, MomentStatistic, moment_statistic, trapezoid
from sluice.errors import RefusedError, SettingError
from sluice.invariants import (
    REGISTER_TOP,
    Encoding,
    IntegerConstant,
    Register,
    RuleSet,
    untied_channels,
)
from sluice.telemetry import Record, Role

__all__ = [
    "LARGEST_STATISTIC",
    "StatisticName",
    "demand_sums",
    "settings_of",
    "statistic_of",
]

MOST_CHANNELS = 256
LARGEST_STATISTIC = 1 << 26
"""The largest statistic, in bytes; a longer one is refused unread."""


class StatisticName(StrEnum):
    """The values of `--statistic`."""

    MOMENTS = "moments"
    HIDDEN = "hidden"  # the same sums, shared between the coordinator and a helper


def settings_of(
    rules: RuleSet, encoding: Encoding, actuators: tuple[Actuator, ...]
) -> MomentSettings:
    """Return which channels are summed, sorted by name, and how their readings become integers."""
    constant = {rule.channel for rule in encoding.rules if isinstance(rule, IntegerConstant)}
    left_out = {
        *untied_channels(rules),
        *constant,
        *(channel.name for channel in rules.channels if channel.role is Role.QUALITY),
    }
    registers = [*encoding.registers]
    for actuator in actuators:
        if actuator.read and all(0 <= code <= REGISTER_TOP for code in actuator.codes):
            registers.append(Register(channel=actuator.channel.name, low=0.0, step=1.0))
    chosen = sorted(
        (register for register in registers if register.channel not in left_out),
        key=lambda register: register.channel,
    )
    if not 1 <= len(chosen) <= MOST_CHANNELS:
        raise SettingError(
            f"the rules of {rules.plant!r} tie {len(chosen)} channels that can be summed; a "
            f"statistic has 1 to {MOST_CHANNELS}"
        )
    return MomentSettings(registers=tuple(chosen))


def statistic_of(statement: Statement, batch: Record) -> bytes:
    """Return the statistic of a batch in its canonical form.

    Raise `RefusedError` for a batch that has no statistic: it has a time jump, too few rows, a
    missing reading, or a code that the rules do not name.
    """
    settings = statement.statistic
    assert settings is not None
    if len(batch.segments) != 1 or len(batch) < settings.lags:
        raise RefusedError(
            f"batch {batch.name!r} has {len(batch.segments)} segments and {len(batch):,} rows; a "
            f"batch with a statistic is one segment of at least {settings.lags} rows: commit to "
            "rows without a time jump"
        )
    witness = Witness.of(statement, batch)
    codes = np.frombuffer(witness.codes, np.uint8).reshape(len(batch), len(statement.actuators))
    for at, actuator in enumerate(statement.actuators):
        unknown = np.flatnonzero(codes[:, at] == len(actuator.codes))
        if actuator.channel.name in settings.channels and unknown.size:
            raise RefusedError(
                f"batch {batch.name!r} shows a code of {actuator.channel.name!r} at row "
                f"{unknown[0]} that the rules do not name; a statistic needs known codes: leave "
                "such rows out"
            )
    return moment_statistic(batch, settings).canonical()


def demand_sums(statement: Statement, content: bytes, *, rows: int) -> None:
    """Raise a `SettingError` unless this is, in canonical form, a statistic of so many rows.

    Whether it is that of the committed rows is for the proof to show.
    """
    assert statement.statistic is not None
    if statement.masked:
        SealedStatistic.from_canonical(content, statement.statistic, rows=rows)
        return
    found = MomentStatistic.from_canonical(content, statement.statistic)
    windows = rows - statement.statistic.lags + 1
    if windows < 1 or (found.count, found.weight) != (windows, int(trapezoid(windows).sum())):
        raise SettingError(f"the statistic is not that of {rows:,} rows")
