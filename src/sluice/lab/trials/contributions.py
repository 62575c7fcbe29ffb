"""The batches and training windows of a scenario's clients; each is made once and reused."""

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
"""The update-aware attack: mix poison into a clean update, as much as the rule overlooks."""
BLENDED = "attest-clean"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGate:
    """A gate and its name in results."""

    name: str
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contribution:
    """The batch that a client shows to the gate and the windows that it trains on."""

    batch: Record
    windows: Windows
    falsified_by: str | None = None  # the attack on its update, if any

    @property
    def key(self) -> str:
        """A digest of the training windows and the batch's length, and the attack on the update.

        The batch's length weighs the client's updates.
        """
        digest = hashlib.blake2b(self.windows.rows.tobytes(), digest_size=12)
        digest.update(self.windows.starts.tobytes())
        digest.update(len(self.batch).to_bytes(8, "big"))
        return digest.hexdigest() + (f"+{self.falsified_by}" if self.falsified_by else "")


class Contributions:
    """The contributions of one scenario's clients.

    `own` is the gate that honest clients apply to their own rows before training: windows that
    touch a violating row are dropped, in every mode. Malicious clients keep their planted rows.
    Poison is read from `cache` if it is stored there.
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
        return self._once((client,), lambda: self._clean(client))

    def malicious(
        self, client: str, attack: str, *, onto: NamedGate | None, project: bool
    ) -> Contribution:
        """Return the contribution of a malicious client under an attack.

        `onto` is the gate that the client knows. With `project` it projects a non-adaptive attack
        onto the rules of that gate.
        """
        if attack in UPDATE_ATTACKS:
            return replace(self.honest(client), falsified_by=attack)
        if attack == BLEND:
            poisoned = self.malicious(client, BLENDED, onto=None, project=False)
            return replace(poisoned, batch=self.honest(client).batch, falsified_by=attack)
        if attack not in POISONS:
            names = ", ".join((*POISONS, *UPDATE_ATTACKS, BLEND))
            raise SettingError(f"unknown attack {attack!r}; choose one of {names}")
        maker = POISONS[attack]
        if isinstance(maker, Feasible):
            maker = self._rehearsed(maker)
        if project:
            maker = projected(maker)
        known_gate = onto if maker.shaped else None

        def make() -> Contribution:
            poison = self._poison(client, attack, maker, known_gate)
            rng = stream(self.scenario.seed, "exposure", client)
            windows = self.scenario.framing.windows(poison.trained)
            return Contribution(batch=poison.shown, windows=poison.windows(windows, rng=rng))

        return self._once((client, attack, known_gate.name if known_gate else ""), make)

    def poison(self, client: str, attack: str) -> Record:
        """Return the rows that a malicious client would train on if no gate were there."""
        return self._poison(client, attack, POISONS[attack], None).trained

    def _poison(
        self, client: str, attack: str, maker: PoisonMaker, known_gate: NamedGate | None
    ) -> Poison:
        """Read a malicious client's poison from the cache, or make it."""
        shard, targets = self.scenario.shards[client], self.scenario.targets
        knowledge = Knowledge(targets=targets, gate=known_gate.gate if known_gate else None)
        seed = int(stream(self.scenario.seed, "poison", client).integers(2**31))
        # The cache knows the code of Sluice, not that of an installed package.
        if self._cache is None or attack not in POISONS.built_in:
            return maker(shard, knowledge, seed=seed)
        key = (
            attack,
            content_of(shard),
            content_of(targets.labelled),
            targets.stretches,
            (rules_hash(known_gate.gate.rules), known_gate.gate.policy) if known_gate else None,
            # A rehearsed attack simulates this federation, so its poison depends on the setup.
            self.scenario.setup if isinstance(maker, Feasible) else None,
            seed,
        )
        return self._cache.poison(key, lambda: maker(shard, knowledge, seed=seed))

    def _rehearsed(self, maker: Feasible) -> Feasible:
        """Give a rehearsed attack the training settings of this scenario's federation."""
        setup = self.scenario.setup
        training = RehearsedTraining(
            share=maker.exposure * setup.malicious / setup.clients,
            rounds=setup.rounds,
            descent=setup.descent,
        )
        return replace(maker, framing=self.scenario.framing, training=training)

    def _clean(self, client: str) -> Contribution:
        shard = self.scenario.shards[client]
        windows = self.scenario.framing.windows(shard)
        if self._own is not None:
            windows = windows.take(~windows.touching(self._own.judge(shard).violating))
        return Contribution(batch=shard, windows=windows)

    def _once(self, name: tuple[str, ...], make: Callable[[], Contribution]) -> Contribution:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


def pooled(contributions: Mapping[str, Contribution]) -> Contribution:
    """Join all clients' windows into one client; its batch is the first one and is not judged."""
    parts = list(contributions.values())
    windows = Windows.joined([part.windows for part in parts])
    return Contribution(batch=parts[0].batch, windows=windows)
