"""What a statistic tells about a plant, in plain words, and the sign-off to share it.

A statistic leaves the plant only if an operator has signed it off: `sluice plant check` shows what
it tells, and `--sign-off NAME` writes who agreed. The commitment names this operator, so the log
keeps the name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import ConfigDict

from sluice.arrays import Floats
from sluice.attestation.messages import (
    STRICT,
    Hex32,
    Instant,
    Interval,
    Operator,
    StatisticLimits,
    instant,
)
from sluice.attestation.protocol import Registered
from sluice.attestation.systems.full import batch_statistic, statistic_settings
from sluice.detector import MomentStatistic
from sluice.errors import RefusedError, SettingError
from sluice.files import public_folder
from sluice.network.statistics import plant_statistic, untied_in
from sluice.network.terms import FederationTerms, read_document, write_document
from sluice.telemetry import Channel, Record

__all__ = ["Disclosure", "SignOff", "StatisticSharing", "disclosed", "statistic_sharing"]

FOLDER = "sign-offs"
STRONGEST = 5
"""Correlations that an operator is shown."""
LEAST_CORRELATION = 0.3
HOUR_S = 3_600.0
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOff:
    """An operator's agreement to share one statistic."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    statistic: Hex32
    operator: Operator
    time: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What a statistic tells, as sentences, and who has signed it off."""

    statistic: str  # its hash
    rows: int
    channels: int
    running: tuple[str, ...]  # hours in which actuators were on
    means: tuple[str, ...]
    correlations: tuple[str, ...]
    signed_off: str | None
    hidden: bool = False  # only the sum of a group is learnt


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticSharing:
    """Says whether a plant may share the statistic of a batch."""

    folder: Path
    plant: Registered
    terms: FederationTerms
    limits: StatisticLimits | None

    def signed_off(self, batch: Record) -> str:
        """Return who signed off the statistic of this batch; raise if it must not be shared."""
        self._demand_long_enough(batch)
        found = self._sign_off(self._statistic(batch).digest)
        if found is None:
            raise RefusedError(
                f"no operator has signed off the statistic of batch {batch.name!r}, so nothing is "
                "sent; see what it tells with 'sluice plant check FOLDER', and agree with "
                "'sluice plant check FOLDER --sign-off NAME'"
            )
        return found.operator

    def sign_off(self, batch: Record, operator: str, *, at: datetime) -> None:
        """Write that an operator agrees to share the statistic of this batch."""
        self._demand_long_enough(batch)
        printable = operator.isascii() and operator.isprintable() and operator == operator.strip()
        if not (printable and 2 <= len(operator) <= LONGEST_NAME):
            raise SettingError(
                f"a sign-off needs a name of 2 to {LONGEST_NAME} printable ASCII characters, "
                f"because every reader of the log sees it; got {operator[:40]!a}"
            )
        statistic = self._statistic(batch).digest
        public_folder(self.folder)
        signed = SignOff(statistic=statistic, operator=operator, time=instant(at))
        write_document(signed, self._path(statistic))

    def disclosure(self, batch: Record) -> Disclosure:
        """Return what the statistic of a batch tells."""
        statistic, rules = self._statistic(batch), self.plant.circuit.rules
        found = self._sign_off(statistic.digest)
        untied = untied_in(statistic.settings, rules)  # their sums are zeros
        channels = {each.name: each for each in rules.channels if each.name not in untied}
        hours = len(batch) * batch.stride_s / HOUR_S
        words = disclosed(
            statistic,
            channels,
            rows=len(batch),
            hours=hours,
            signed_off=None if found is None else found.operator,
        )
        return replace(words, hidden=self.terms.grouped)

    def _statistic(self, batch: Record) -> MomentStatistic:
        raw = batch_statistic(batch, self.plant.circuit)
        settings = statistic_settings(self.plant.circuit) if raw is not None else None
        if raw is None or settings is None:
            return plant_statistic(batch, self.terms, self.plant.circuit)
        return MomentStatistic.from_canonical(raw, settings)

    def _demand_long_enough(self, batch: Record) -> None:
        objection = self.limits.objection(len(batch), Interval.of(batch)) if self.limits else ""
        if objection:
            raise RefusedError(
                f"the statistic of batch {batch.name!r} must not be shared: {objection}; name more "
                "rows with 'sluice plant renew'"
            )

    def _path(self, statistic: str) -> Path:
        return self.folder / f"{statistic}.json"

    def _sign_off(self, statistic: str) -> SignOff | None:
        path = self._path(statistic)
        if not path.exists():
            return None
        found = read_document(SignOff, path)
        return found if found.statistic == statistic else None


def statistic_sharing(
    folder: Path, plant: Registered, terms: FederationTerms
) -> StatisticSharing | None:
    """Return the sign-offs of a plant's folder; None if it shares no statistic."""
    if terms.statistic is None:
        return None
    return StatisticSharing(
        folder=folder / FOLDER, plant=plant, terms=terms, limits=terms.statistic.limits
    )


def disclosed(
    statistic: MomentStatistic,
    channels: Mapping[str, Channel],
    *,
    rows: int,
    hours: float,
    signed_off: str | None,
) -> Disclosure:
    """Return in words what anyone can compute from a statistic about these channels."""
    settings = statistic.settings
    step = np.array([register.step for register in settings.registers])
    low = np.array([register.low for register in settings.registers])
    registers = statistic.sums / statistic.weight
    covariance = statistic.lagged[0] / statistic.weight - np.outer(registers, registers)
    means = low + step * registers
    running, others = [], []
    summed = [at for at, name in enumerate(settings.channels) if name in channels]
    for at in summed:
        name, known = settings.channels[at], channels[settings.channels[at]]
        if known.role.discrete:
            running.append(_running(known, float(means[at]), hours))
        else:
            others.append(f"{name} averages {means[at]:.4g}")
    return Disclosure(
        statistic=statistic.digest,
        rows=rows,
        channels=len(summed),
        running=tuple(running),
        means=tuple(others),
        correlations=_correlated(settings.channels, covariance),
        signed_off=signed_off,
    )


def _running(actuator: Channel, mean: float, hours: float) -> str:
    """Return how long an actuator was on; the mean of two codes gives it."""
    codes = actuator.codes
    if codes is None or len(codes.legal) != 2:
        return f"{actuator.name} has a mean code of {mean:.3g}"
    share = (mean - codes.off) / (codes.on[0] - codes.off)
    return f"{actuator.name} is on for about {share * hours:,.1f} of {hours:,.1f} h ({share:.0%})"


def _correlated(names: tuple[str, ...], covariance: Floats) -> tuple[str, ...]:
    """Return the strongest correlations of readings at the same time."""
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    moving = np.flatnonzero(spread > 0)
    pairs = [
        (float(covariance[one, other] / (spread[one] * spread[other])), names[one], names[other])
        for at, one in enumerate(moving)
        for other in moving[at + 1 :]
    ]
    strongest = sorted(pairs, key=lambda pair: -abs(pair[0]))[:STRONGEST]
    return tuple(
        f"{one} and {other}: {value:+.2f}"
        for value, one, other in strongest
        if abs(value) >= LEAST_CORRELATION
    )
