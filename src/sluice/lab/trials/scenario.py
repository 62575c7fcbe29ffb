"""A scenario: one clean record split among clients, the malicious clients and their targets."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from sluice.detector import Descent, DetectorKind, Framing, demand_detector, robust_scaler
from sluice.errors import SettingError
from sluice.invariants import RuleSet
from sluice.lab.attacks import Targets, choose_targets
from sluice.telemetry import Record, Scaler, Shares, Split, feature_names, split

__all__ = ["Scenario", "Setup", "client_names", "malicious_clients", "scenario"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The clients and the training settings of a federation; the defaults are the paper's."""

    clients: int = 10
    malicious: int = 3
    rounds: int = 25
    detector: str = DetectorKind.AUTOENCODER.value
    descent: Descent = field(default_factory=Descent)
    shares: Shares = field(default_factory=Shares)
    false_alarms_per_week: float = 1.0  # that a vote asks of each voter
    target_share: float = 0.25  # attack rows that a malicious client plants, as a share of a shard

    def __post_init__(self) -> None:
        demand_detector(self.detector)
        if not 0 <= self.malicious < self.clients:
            raise SettingError(
                f"a federation of {self.clients} clients cannot have {self.malicious} malicious "
                f"ones; at least one client must be honest, so give 0 to {self.clients - 1}"
            )
        if self.rounds < 1 or not 0 < self.target_share <= 1:
            raise SettingError(
                "a federation needs at least 1 round and a target share in (0, 1]; got "
                f"{self.rounds} rounds and {self.target_share}"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """Everything that a seed decides before training starts."""

    setup: Setup
    seed: int
    parts: Split
    shards: Mapping[str, Record]
    malicious: tuple[str, ...]
    labelled: Targets | None  # the record to measure on, and its attacks that clients try to hide
    framing: Framing

    @property
    def targets(self) -> Targets:
        """The attacks that malicious clients try to hide."""
        if self.labelled is None:
            raise SettingError(
                "attacks on training hide attacks of a labelled record, and detectors are measured "
                "on one; none was given"
            )
        return self.labelled

    @property
    def test(self) -> Record:
        """The labelled record to measure on."""
        return self.targets.labelled

    @property
    def honest(self) -> tuple[str, ...]:
        """The clients that never attack."""
        return tuple(client for client in self.shards if client not in self.malicious)

    def tied(self, rules: RuleSet) -> "Scenario":
        """Return the scenario with a detector that reads no channel which the rules leave untied.

        In an untied channel a client can report anything. Rules that do not list their untied
        channels, such as the paper's, change nothing.
        """
        scaler = self.framing.scaler.without(rules.untied or ())
        if not scaler.names:
            raise SettingError(
                f"the rules of {rules.plant!r} tie no channel of the record, so that a detector "
                "has nothing to read; mine more rows"
            )
        return replace(self, framing=replace(self.framing, scaler=scaler))


def scenario(record: Record, test: Record | None, *, setup: Setup, seed: int) -> Scenario:
    """Split a clean record and draw the malicious clients and targets as the paper's code does.

    Without a labelled record `test`, a federation trains as well, but nothing can be measured.

    Slices and shards do not depend on the seed (in the paper's text they do, in its code they do
    not). The malicious clients, their targets and all later draws do.
    """
    parts = split(record, clients=setup.clients, shares=setup.shares)
    shards = dict(zip(client_names(setup.clients), parts.shards, strict=True))
    names = feature_names(record)
    targets = None
    if test is not None:
        for name in names:
            test.index(name, needed_by="the detector")
        budget = round(len(parts.shards[0]) * setup.target_share)
        targets = choose_targets(test, rows=budget, seed=seed)
    return Scenario(
        setup=setup,
        seed=seed,
        parts=parts,
        shards=MappingProxyType(shards),
        malicious=malicious_clients(setup, seed=seed),
        labelled=targets,
        framing=Framing(scaler=_scaler(setup, parts, names), stride_s=record.stride_s),
    )


def _scaler(setup: Setup, parts: Split, names: tuple[str, ...]) -> Scaler:
    """Scale as the paper does by all clients' rows, or for `moments` by the receiver's alone.

    A vote is certified only if no voter depends on another member's rows.
    """
    if setup.detector == DetectorKind.MOMENTS:
        return robust_scaler(parts.validation, names)
    return Scaler.fit(parts.shards, names)


def client_names(clients: int) -> tuple[str, ...]:
    """Return `plant-0`, `plant-1`, ... with as many digits as the last number needs."""
    digits = len(str(clients - 1))
    return tuple(f"plant-{at:0{digits}d}" for at in range(clients))


def malicious_clients(setup: Setup, *, seed: int) -> tuple[str, ...]:
    """Draw the malicious clients with the paper's call, so that its seeds give the same clients."""
    drawn = np.random.default_rng(seed).choice(setup.clients, setup.malicious, replace=False)
    names = client_names(setup.clients)
    return tuple(names[at] for at in sorted(drawn.tolist()))
