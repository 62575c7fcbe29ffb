"""The four fabrications of the paper: right statistics, wrong physics.

    channel-roll   actuators rolled against sensors: every marginal stays the same
    permutation    actuator states permuted within operating regimes: marginals per regime stay
    scaling        flows multiplied, levels unchanged
    splicing       the record cut into pieces and reordered: every row is real, the joins are not

Random draws follow the paper's implementation call by call (`default_rng(seed)`, not a named
stream), so that its recorded figures reproduce.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from sluice.arrays import Ints
from sluice.errors import RecordError, SettingError
from sluice.lab.attacks.data_attack import DataAttack
from sluice.telemetry import Record, Role

__all__ = [
    "FABRICATIONS",
    "ChannelRoll",
    "ConservationScaling",
    "RegimePermutation",
    "RegimeSplicing",
    "RollLasting",
]

FLOW_PART = re.compile(r"F(IT|T|IC)?\d*Z?")
NOT_A_FLOW = ("CO", "SP")  # a controller's output and set-point carry its meter's tag


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRoll:
    """Roll every actuator cyclically against the sensors, by rows."""

    rows: int

    def __post_init__(self) -> None:
        if self.rows == 0:
            raise SettingError(
                f"a channel roll moves actuators by at least 1 row either way, got {self.rows}"
            )

    @classmethod
    def lasting(cls, seconds: float, *, stride_s: float, least_rows: int = 1) -> "ChannelRoll":
        """Return a roll by this many seconds of plant time, and by at least `least_rows` rows."""
        return cls(rows=max(least_rows, round(seconds / stride_s)))

    def __call__(self, record: Record, *, seed: int) -> Record:  # noqa: ARG002 - as every attack
        """Return the record with rolled actuators; the seed is not used."""
        actuators = _actuators(record)
        if len(record) <= self.rows:
            raise RecordError(
                f"record {record.name!r} has {len(record)} rows; rolling by {self.rows} needs more"
            )
        values = record.values.copy()
        values[:, actuators] = np.roll(values[:, actuators], self.rows, axis=0)
        return record.with_values(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollLasting:
    """Roll every actuator against the sensors, by a duration in plant time.

    The defaults are the paper's: five minutes, and at least the 7 rows it takes on hourly records.
    """

    seconds: float = 300.0
    least_rows: int = 7

    def __post_init__(self) -> None:
        if not (0 < self.seconds < np.inf and self.least_rows >= 1):
            raise SettingError(
                "a roll lasts more than 0 s and moves at least 1 row, got "
                f"{self.seconds} s and {self.least_rows}"
            )

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with rolled actuators; the seed is not used."""
        roll = ChannelRoll.lasting(
            self.seconds, stride_s=record.stride_s, least_rows=self.least_rows
        )
        return roll(record, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimePermutation:
    """Permute the actuators' states within each operating regime; a row's states stay together."""

    clusters: int = 4

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with states permuted among the rows of each regime."""
        actuators = _actuators(record)
        regimes = self._regimes(record, actuators, seed)
        random = np.random.default_rng(seed)
        values = record.values.copy()
        for regime in range(self.clusters):
            rows = np.flatnonzero(regimes == regime)
            values[np.ix_(rows, actuators)] = record.values[
                np.ix_(random.permutation(rows), actuators)
            ]
        return record.with_values(values)

    def _regimes(self, record: Record, actuators: Ints, seed: int) -> Ints:
        # Imported here because it takes a second, and other commands do not need it.
        from sklearn.cluster import KMeans  # noqa: PLC0415
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

        continuous = np.delete(record.values, actuators, axis=1)
        if continuous.shape[1] == 0 or len(record) < self.clusters:
            raise RecordError(
                f"record {record.name!r} has {len(record)} rows of {continuous.shape[1]} "
                f"continuous channels; {self.clusters} regimes cannot be distinguished in them"
            )
        known = continuous[:, ~np.isnan(continuous).all(axis=0)]
        scaled = np.nan_to_num(
            StandardScaler().fit_transform(known)
        )  # a missing reading becomes the mean
        with warnings.catch_warnings():
            # A plant with fewer regimes than clusters leaves some of them empty, which is harmless.
            warnings.simplefilter("ignore", ConvergenceWarning)
            regimes = KMeans(self.clusters, n_init=4, random_state=seed).fit_predict(scaled)
        return np.asarray(regimes, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConservationScaling:
    """Multiply the flows, keep the levels: mass balances fail by a fixed proportion."""

    factor: float = 1.3

    def __post_init__(self) -> None:
        if not np.isfinite(self.factor) or self.factor == 1:
            raise SettingError(f"flows are scaled by a factor other than 1, got {self.factor}")

    def __call__(self, record: Record, *, seed: int) -> Record:  # noqa: ARG002 - as every attack
        """Return the record with scaled flows; the seed is not used."""
        values = record.values.copy()
        values[:, _flows(record)] *= self.factor
        return record.with_values(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeSplicing:
    """Cut the record at random rows and reorder the pieces; the adversary rewrites the times."""

    pieces: int = 12

    def __post_init__(self) -> None:
        if self.pieces < 2:
            raise SettingError(f"a record is spliced from at least 2 pieces, got {self.pieces}")

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with its readings reordered; clock and labels stay the same."""
        if len(record) < self.pieces:
            raise RecordError(
                f"record {record.name!r} has {len(record)} rows; {self.pieces} pieces need more"
            )
        random = np.random.default_rng(seed)
        places = np.arange(1, len(record))
        cuts = np.sort(random.choice(places, self.pieces - 1, replace=False))
        pieces = np.split(np.arange(len(record)), cuts)
        order = np.concatenate([pieces[at] for at in random.permutation(self.pieces)])
        return record.with_values(record.values[order])


FABRICATIONS: Mapping[str, DataAttack] = MappingProxyType(
    {
        "channel-roll": ChannelRoll(rows=7),
        "permutation": RegimePermutation(),
        "scaling": ConservationScaling(),
        "splicing": RegimeSplicing(),
    }
)
"""The fabrications by command-line name, with the paper's settings for hourly records."""


def _actuators(record: Record) -> Ints:
    columns = [at for at, channel in enumerate(record.channels) if channel.role is Role.ACTUATOR]
    if not columns:
        raise RecordError(
            f"record {record.name!r} has no actuator to desynchronise; declare one in a plant file"
        )
    return np.array(columns, dtype=np.int64)


def _flows(record: Record) -> Ints:
    """Return the channels that the paper reads as flows by tag; if none, those of flow role."""
    named = [at for at, name in enumerate(record.names) if _named_flow(name)]
    of_role = [at for at, channel in enumerate(record.channels) if channel.role is Role.FLOW]
    if not named and not of_role:
        raise RecordError(
            f"record {record.name!r} has no flow to scale; declare one in a plant file"
        )
    return np.array(named or of_role, dtype=np.int64)


def _named_flow(name: str) -> bool:
    return not name.endswith(NOT_A_FLOW) and any(
        FLOW_PART.fullmatch(part) for part in name.split("_")
    )
