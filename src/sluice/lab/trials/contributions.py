"""What each client of a scenario brings to a federation, made once however often it is used."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sluice.admission import Gate
from sluice.errors import SettingError
from sluice.invariants import rules_hash
from sluice.lab.attacks import (
    POISONS,
    UPDATE_ATTACKS,
    Feasible,
    Knowledge,
    Poison,
    PoisonMaker,
    RehearsedTraining,
    projected,
)
from sluice.lab.trials.artifact_cache import ArtifactCache, content_of
from sluice.lab.trials.scenario import Scenario
from sluice.seeding import stream
from sluice.telemetry import Record, Windows

__all__ = ["BLEND", "Contribution", "Contributions", "NamedGate", "pooled"]

BLEND = "blend"
"""The update-aware attack: poison mixed into a clean update as far as the rule does not notice."""
BLENDED = "attest-clean"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGate:
    """A gate and the name results know it by."""

    name: str
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contribution:
    """What a client shows and what it trains on, however it came by it."""

    batch: Record
    windows: Windows
    falsified_by: str | None = None  # the attack on its update, if one

    @property
    def key(self) -> str:
        """A name that only equal training data share."""
        digest = hashlib.blake2b(self.windows.rows.tobytes(), digest_size=12)
        digest.update(self.windows.starts.tobytes())
        return digest.hexdigest() + (f"+{self.falsified_by}" if self.falsified_by else "")


class Contributions:
    """The contributions of one scenario's clients.

    `own` is the gate by which faithful plants look at their own rows before training: windows that
    touch a row it finds violating are dropped, in every mode alike. Liars keep what they planted.
    Poison that is on the `cache` is taken from there.
    """

    def __init__(
        self, scenario: Scenario, *, own: Gate | None = None, cache: ArtifactCache | None = None
    ) -> None:
        self.scenario = scenario
        self._own = own
        self._cache = cache
        self._made: dict[tuple[str, ...], Contribution] = {}

    def honest(self, client: str) -> Contribution:
        """Return a client's own rows, each window once."""
        return self._kept((client,), lambda: self._clean(client))

    def lying(
        self, client: str, attack: str, *, onto: NamedGate | None, project: bool
    ) -> Contribution:
        """Return what a liar brings under an attack.

        `onto` is the gate the liar knows; with `project` it moves a heedless attack onto its rules.
        """
        if attack in UPDATE_ATTACKS:
            return replace(self.honest(client), falsified_by=attack)
        if attack == BLEND:
            poisoned = self.lying(client, BLENDED, onto=None, project=False)
            return replace(poisoned, batch=self.honest(client).batch, falsified_by=attack)
        if attack not in POISONS:
            names = ", ".join((*POISONS, *UPDATE_ATTACKS, BLEND))
            raise SettingError(f"unknown attack {attack!r}; known are {names}")
        maker = POISONS[attack]
        if isinstance(maker, Feasible):
            maker = self._rehearsed(maker)
        if project:
            maker = projected(maker)
        minded = onto if maker.shaped else None

        def make() -> Contribution:
            poison = self._poison(client, attack, maker, minded)
            drawn = stream(self.scenario.seed, "exposure", client)
            cut = self.scenario.framing.windows(poison.trained)
            return Contribution(batch=poison.shown, windows=poison.windows(cut, rng=drawn))

        return self._kept((client, attack, minded.name if minded else ""), make)

    def _poison(
        self, client: str, attack: str, maker: PoisonMaker, minded: NamedGate | None
    ) -> Poison:
        """Take a liar's poison from the shelf, or make it."""
        shard, targets = self.scenario.shards[client], self.scenario.targets
        known = Knowledge(targets=targets, gate=minded.gate if minded else None)
        seed = int(stream(self.scenario.seed, "poison", client).integers(2**31))
        if self._cache is None:
            return maker(shard, known, seed=seed)
        told = (
            attack,
            content_of(shard),
            content_of(targets.labelled),
            targets.stretches,
            (rules_hash(minded.gate.rules), minded.gate.policy) if minded else None,
            # Who rehearses does so in this very federation.
            self.scenario.setup if isinstance(maker, Feasible) else None,
            seed,
        )
        return self._cache.poison(told, lambda: maker(shard, known, seed=seed))

    def _rehearsed(self, maker: Feasible) -> Feasible:
        """Let a liar who rehearses do so with the very federation it takes part in."""
        setup = self.scenario.setup
        training = RehearsedTraining(
            share=maker.exposure * setup.liars / setup.clients,
            rounds=setup.rounds,
            descent=setup.descent,
        )
        return replace(maker, framing=self.scenario.framing, training=training)

    def _clean(self, client: str) -> Contribution:
        shard = self.scenario.shards[client]
        cut = self.scenario.framing.windows(shard)
        if self._own is not None:
            cut = cut.take(~cut.touching(self._own.judge(shard).violating))
        return Contribution(batch=shard, windows=cut)

    def _kept(self, name: tuple[str, ...], make: Callable[[], Contribution]) -> Contribution:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


def pooled(brought: Mapping[str, Contribution]) -> Contribution:
    """Return all clients' windows as one client's; it shows the first batch, to an open door."""
    parts = list(brought.values())
    windows = Windows.joined([part.windows for part in parts])
    return Contribution(batch=parts[0].batch, windows=windows)
