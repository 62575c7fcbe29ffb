"""A scenario: one clean record shared out to plants, some of whom will lie, and what they hide."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from sluice.detector import Descent, DetectorKind, Framing
from sluice.errors import SettingError
from sluice.lab.attacks import Targets, choose_targets
from sluice.telemetry import Record, Scaler, Shares, Split, feature_names, split

__all__ = ["Scenario", "Setup", "client_names", "malicious_clients", "scenario"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a federation is laid out and trained; the defaults are the paper's."""

    clients: int = 10
    liars: int = 3
    rounds: int = 25
    detector: DetectorKind = DetectorKind.AUTOENCODER
    descent: Descent = field(default_factory=Descent)
    shares: Shares = field(default_factory=Shares)
    target_share: float = 0.25  # of a shard's rows: how much attack a liar splices in

    def __post_init__(self) -> None:
        if not 0 <= self.liars < self.clients:
            raise SettingError(
                f"{self.liars} of {self.clients} clients cannot lie; at least one must be left "
                "to compare with"
            )
        if self.rounds < 1 or not 0 < self.target_share <= 1:
            raise SettingError(
                "a federation takes at least 1 round and a target share in (0, 1]; got "
                f"{self.rounds} rounds and {self.target_share}"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scenario:
    """Everything a seed decides before anybody trains."""

    setup: Setup
    seed: int
    parts: Split
    shards: Mapping[str, Record]
    liars: tuple[str, ...]
    targets: Targets
    test: Record
    framing: Framing

    @property
    def honest(self) -> tuple[str, ...]:
        """The clients that do as agreed in every mode."""
        return tuple(client for client in self.shards if client not in self.liars)


def scenario(record: Record, test: Record, *, setup: Setup, seed: int) -> Scenario:
    """Share a clean record out and draw, as the paper's code does, who lies and about what.

    Slices and shards do not move with the seed (the paper's text says they do, its code does not);
    the liars, their targets and all that follows do.
    """
    parts = split(record, clients=setup.clients, shares=setup.shares)
    shards = dict(zip(client_names(setup.clients), parts.shards, strict=True))
    names = feature_names(record)
    for name in names:
        test.index(name, needed_by="the detector")
    budget = round(len(parts.shards[0]) * setup.target_share)
    return Scenario(
        setup=setup,
        seed=seed,
        parts=parts,
        shards=MappingProxyType(shards),
        liars=malicious_clients(setup, seed=seed),
        targets=choose_targets(test, rows=budget, seed=seed),
        test=test,
        framing=Framing(scaler=Scaler.fit(parts.shards, names), stride_s=record.stride_s),
    )


def client_names(clients: int) -> tuple[str, ...]:
    """Return `plant-0`, `plant-1`, ... with as many digits as the last one takes."""
    digits = len(str(clients - 1))
    return tuple(f"plant-{at:0{digits}d}" for at in range(clients))


def malicious_clients(setup: Setup, *, seed: int) -> tuple[str, ...]:
    """Draw who lies, by the paper's own call, so that its seeds name the same clients."""
    drawn = np.random.default_rng(seed).choice(setup.clients, setup.liars, replace=False)
    names = client_names(setup.clients)
    return tuple(names[at] for at in sorted(drawn.tolist()))
