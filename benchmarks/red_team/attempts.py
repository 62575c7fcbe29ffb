"""Malicious clients at a gate, and the federations that take in those who are admitted."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmarks.evidence.study import Study
from benchmarks.red_team.store import Attempt, Damage
from sluice.admission import Gate
from sluice.arrays import Bools
from sluice.errors import SluiceError
from sluice.federation import Decision
from sluice.lab.attacks import (
    POISONS,
    Feasible,
    Knowledge,
    Poison,
    PoisonMaker,
    RehearsedTraining,
    projected,
)
from sluice.lab.results import Score
from sluice.lab.trials import (
    MODES,
    Contribution,
    Contributions,
    NamedGate,
    Scenario,
    Trial,
    TrialPlan,
    run_cell,
    scenario,
)
from sluice.seeding import stream
from sluice.telemetry import Record

__all__ = ["PROJECTED", "SMALL", "SMALL_IDLE", "Attackers", "changed_readings", "names_of"]

SMALL = 0.1  # standard deviations of a channel: a smaller change does not count as touching a row
SMALL_IDLE = 0.001  # of the instrument's span: the same, for a channel that never moves
PROJECTED = ", projected"


def names_of(attack: str) -> tuple[str, ...]:
    """Return the names under which an attack is tried: as it is and, unless shaped, projected."""
    return (attack,) if POISONS[attack].shaped else (attack, attack + PROJECTED)


@dataclass(frozen=True)
class Attackers:
    """The malicious clients of one seed at one gate."""

    study: Study
    seed: int
    gate: NamedGate
    clients: int  # malicious clients that try
    detectors: tuple[str, ...]

    @cached_property
    def shared(self) -> Scenario:
        """The scenario in which poison is made."""
        shared = scenario(self.study.clean, self.study.test, setup=self.study.setup, seed=self.seed)
        return shared.tied(self.gate.gate.rules)

    def attempt(self, name: str) -> tuple[tuple[Attempt, ...], tuple[Damage, ...], float]:
        """Let the clients try an attack; return the attempts, the damage and the seconds."""
        began = time.monotonic()
        made = {client: self._poison(name, client) for client in self._trying}
        attempts, admitted = [], {}
        for client, poison in made.items():
            attempts.append(self._judged(client, poison))
            if attempts[-1].admitted and isinstance(poison, Poison):
                admitted[client] = poison
        damages = tuple(self._damages(admitted)) if admitted else ()
        return tuple(attempts), damages, time.monotonic() - began

    @property
    def _trying(self) -> tuple[str, ...]:
        return self.shared.malicious[: self.clients]

    def _poison(self, name: str, client: str) -> Poison | SluiceError:
        attack = name.removesuffix(PROJECTED)
        maker: PoisonMaker = POISONS[attack]
        if isinstance(maker, Feasible):
            maker = self._rehearsed(maker)
        if name != attack:
            maker = projected(maker)
        known = Knowledge(targets=self.shared.targets, gate=self.gate.gate)
        seed = int(stream(self.seed, "poison", client).integers(2**31))
        try:
            return maker(self.shared.shards[client], known, seed=seed)
        except SluiceError as error:
            return error

    def _rehearsed(self, maker: Feasible) -> Feasible:
        """Give the attack the training settings of the federation."""
        setup = self.shared.setup
        training = RehearsedTraining(
            share=maker.exposure * setup.malicious / setup.clients,
            rounds=setup.rounds,
            descent=setup.descent,
        )
        return replace(maker, framing=self.shared.framing, training=training)

    def _judged(self, client: str, poison: Poison | SluiceError) -> Attempt:
        if isinstance(poison, SluiceError):
            return Attempt(
                client=client,
                admitted=None,
                touched=0.0,
                touched_read=0.0,
                channels=0,
                shift=0.0,
                reasons=(str(poison),),
            )
        own = self.shared.shards[client]
        changed, shift = changed_readings(own, poison.trained, self.gate.gate)
        read = [own.index(name) for name in self.shared.framing.scaler.names]
        verdict = self.gate.gate.judge(poison.shown)
        return Attempt(
            client=client,
            admitted=verdict.admitted,
            touched=float(changed.any(axis=1).mean()),
            touched_read=float(changed[:, read].any(axis=1).mean()),
            channels=int(changed.any(axis=0).sum()),
            shift=shift,
            reasons=verdict.sentences[:3],
        )

    def _damages(self, admitted: dict[str, Poison]) -> Iterator[Damage]:
        """Train with the admitted clients as they are and as they would be with their own rows.

        A federation without them would have fewer rows, which alone changes what it detects.
        """
        for detector in self.detectors:
            trial = self._trial(detector)
            before = self._honest(detector, tuple(admitted))
            shared = trial.scenario
            poisoned = {}
            for client, poison in admitted.items():
                windows = shared.framing.windows(poison.trained)
                rng = stream(self.seed, "exposure", client)
                poisoned[client] = Contribution(
                    batch=poison.shown, windows=poison.windows(windows, rng=rng)
                )
            after = _score(trial, poisoned)
            yield Damage(
                detector=detector,
                admitted=len(admitted),
                targeted_before=before.targeted_recall or 0.0,
                targeted_after=after.targeted_recall or 0.0,
                precision_before=before.auc_pr,
                precision_after=after.auc_pr,
            )

    def _honest(self, detector: str, joined: tuple[str, ...]) -> Score:
        """Return what a federation detects in which these clients train on their own rows."""
        key = detector, joined
        if key not in self._scores:
            trial = self._trial(detector)
            own = {client: trial.contributions.honest(client) for client in joined}
            self._scores[key] = _score(trial, own)
        return self._scores[key]

    def _trial(self, detector: str) -> Trial:
        if detector not in self._trials:
            setup = replace(self.study.setup, detector=detector)
            shared = scenario(self.study.clean, self.study.test, setup=setup, seed=self.seed)
            shared = shared.tied(self.gate.gate.rules)
            self._trials[detector] = Trial(
                contributions=Contributions(shared, own=self.gate.gate), gate=self.gate
            )
        return self._trials[detector]

    @cached_property
    def _trials(self) -> dict[str, Trial]:
        return {}

    @cached_property
    def _scores(self) -> dict[tuple[str, tuple[str, ...]], Score]:
        return {}


def _score(trial: Trial, joined: Mapping[str, Contribution]) -> Score:
    """Return the score of a federation of the honest clients and those that joined."""
    shared = trial.scenario
    invited = {client: trial.contributions.honest(client) for client in shared.honest}
    invited |= joined
    plan = TrialPlan(
        mode=MODES["gated"],
        attack="replay",  # only named in the result; the rows are those of `invited`
        invited=invited,
        decisions={
            client: Decision(admitted=True, rows=len(brought.batch))
            for client, brought in invited.items()
        },
    )
    return run_cell(trial, plan, "fedavg").score


def changed_readings(own: Record, poisoned: Record, gate: Gate) -> tuple[Bools, float]:
    """Mark the readings that differ by more than a little, and return the size of all changes.

    A little is `SMALL` standard deviations, or `SMALL_IDLE` of the span of an idle channel. Rows
    that are added to the client's own count as changed.
    """
    rows = min(len(own), len(poisoned))
    spread = np.nanstd(own.values, axis=0)
    apart = np.abs(np.nan_to_num(poisoned.values[:rows] - own.values[:rows]))
    spans = {channel.name: channel.span for channel in gate.rules.channels}
    idle = [
        SMALL_IDLE * (span.high - span.low) if (span := spans.get(name)) else 0.0
        for name in own.names
    ]
    little = np.where(spread > 0, SMALL * spread, idle)
    changed: Bools = np.ones(poisoned.values.shape, bool)
    changed[:rows] = apart > little
    relative = (apart / np.where(spread > 0, spread, np.inf))[apart > 0]
    shift = float(np.sqrt(np.mean(relative**2))) if relative.size else 0.0
    return changed, shift
