"""The feasible poison: a malicious client optimises its poison within the gate's rules.

1. Start: replays shaped to pass the gate, each spliced at other places. The attacker rehearses the
   federation with each and continues with the one that leaves most targets undetected.
2. Round: a few gradient steps in the planted sensors, which lower the targets' scores after
   training (the gradient goes through training itself); then the projection, so that every round
   ends within the rules; then another rehearsal.
3. The poison is the candidate, of all starts and rounds, that leaves most targets undetected.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Bools, Floats
from sluice.detector import Descent, Framing
from sluice.errors import SettingError, SolverError
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.makers import Replayed
from sluice.lab.attacks.poison import EXPOSURE, Poison, exposed
from sluice.lab.attacks.projection import project
from sluice.lab.attacks.rehearsal import Rehearsal, Rehearsed, RehearsedTraining
from sluice.lab.attacks.replay import Targets
from sluice.lab.attacks.shaping import Shaping, shape
from sluice.seeding import stream
from sluice.telemetry import Record, Scaler, Windows, feature_names

__all__ = ["Feasible", "Slope"]

AIMED = 128  # target windows per gradient: a fixed number, so that gradients compile once


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The attacker's gradient descent: number and size of steps, and unrolled training steps."""

    steps: int = 4  # each round
    size: float = 0.3  # root mean square over the planted sensors, in spreads
    momentum: float = 0.7
    unrolled: int = 8  # steps of training
    batch: int = 128  # windows a step
    midway: tuple[int, ...] = (2, 8)  # rounds of training after which gradients are taken

    def __post_init__(self) -> None:
        if min(self.steps, self.unrolled, self.batch, *self.midway) < 1 or not self.midway:
            raise SettingError(
                "a slope needs at least 1 step, unrolled step, window and round midway, got "
                f"{self.steps}, {self.unrolled}, {self.batch} and {self.midway}"
            )
        if not (0 < self.size < np.inf and 0 <= self.momentum < 1):
            raise SettingError(
                "a slope needs a step size above 0 and a momentum from 0 to below 1, got "
                f"{self.size} and {self.momentum}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """The most effective poison found that obeys the rules; at worst a projected replay.

    The attacker knows the rules, the policy, the attacks, the detector and how it is trained.
    """

    exposure: float = EXPOSURE
    restarts: int = 2
    rounds: int = 3
    slope: Slope = field(default_factory=Slope)
    training: RehearsedTraining = field(default_factory=RehearsedTraining)
    framing: Framing | None = None  # the federation's; None: scaled by the shard alone
    shaped: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.restarts < 1 or self.rounds < 0:
            raise SettingError(
                "a feasible poison needs at least 1 start and at least 0 rounds, got "
                f"{self.restarts} and {self.rounds}"
            )

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Return the best poison of all restarts and rounds, by the attacker's own rehearsal."""
        gate = known.require_gate("make a poison within them")
        rehearsal = self.rehearsal(shard, known.targets, seed=seed)
        candidates = [
            _Candidate(
                start.poison, start.admitted, rehearsal(start.poison, midway=self.slope.midway)
            )
            for start in self._starts(shard, known, gate, seed)
        ]
        current = max(candidates, key=_Candidate.rank)  # of equals, the first
        descent = _Descent(self.slope, rehearsal, current.poison.planted)
        for _ in range(self.rounds):
            try:
                down = descent.down(current.poison.trained, current.rehearsed)
                moved = project(down, gate.rules, gate.policy)
            except SolverError:
                break  # no certified projection: use the candidates so far
            poison = replace(current.poison, shown=moved.record, trained=moved.record)
            rehearsed = rehearsal(poison, midway=self.slope.midway)
            current = _Candidate(poison, moved.verdict.admitted, rehearsed)
            candidates.append(current)
        return max(candidates, key=_Candidate.rank).poison

    def _starts(self, shard: Record, known: Knowledge, gate: Gate, seed: int) -> Iterator[Shaping]:
        """Yield shaped replays; the first has the splices of the plain projected replay."""
        seeds = [seed]
        seeds += [
            int(stream(seed, "feasible", "restart", number).integers(2**31))
            for number in range(1, self.restarts)
        ]
        for each in seeds:
            replayed = Replayed(exposure=self.exposure)(shard, known, seed=each)
            yield shape(replayed, shard, gate, seed=each)

    def rehearsal(self, shard: Record, targets: Targets, *, seed: int) -> Rehearsal:
        """Return the attacker's own small federation."""
        scaler = Scaler.fit([shard], feature_names(shard))
        framing = self.framing or Framing(scaler=scaler, stride_s=shard.stride_s)
        return Rehearsal(
            clean=shard, targets=targets, framing=framing, training=self.training, seed=seed
        )


class _Candidate(NamedTuple):
    """A poison that was rehearsed."""

    poison: Poison
    admitted: bool
    rehearsed: Rehearsed

    def rank(self) -> tuple[bool, float, float]:
        """Refused poisons rank last; the others rank by their rehearsal."""
        return self.admitted, *self.rehearsed.rank


class _Descent:
    """Gradient steps with momentum."""

    def __init__(self, slope: Slope, rehearsal: Rehearsal, planted: Bools) -> None:
        self._slope = slope
        self._rehearsal = rehearsal
        self._planted = planted
        self._velocity: Floats | None = None
        self._taken = 0

    def down(self, record: Record, rehearsed: Rehearsed) -> Record:
        """Take one round's steps in the planted sensors."""
        scaler = self._rehearsal.framing.scaler
        columns = [record.index(name) for name in scaler.names]
        sensors = np.array([not record.channel(name).role.discrete for name in scaler.names])
        free: Bools = np.outer(self._planted, sensors) & ~record.missing[:, columns]
        cut = self._rehearsal.framing.windows(record)
        shift = np.zeros(cut.rows.shape)
        for _ in range(self._slope.steps):
            moved = replace(cut, rows=(cut.rows + shift).astype(np.float32))
            slope = np.where(free, self._towards(moved, rehearsed), 0.0)
            length = float(np.sqrt(np.mean(slope[free] ** 2)))
            slope = slope / length if length > 0 else slope
            keep = self._slope.momentum
            before = np.zeros_like(slope) if self._velocity is None else self._velocity
            self._velocity = keep * before + (1 - keep) * slope
            shift -= self._slope.size * self._velocity
        values = record.values.copy()
        values[:, columns] += np.where(free, shift * scaler.spread, 0.0)
        return record.with_values(values)

    def _towards(self, cut: Windows, rehearsed: Rehearsed) -> Floats:
        """Return the gradient, summed over the stages of training with equal weights."""
        from sluice.detector import batches  # noqa: PLC0415
        from sluice.lab.attacks.hypergradient import Aim, hypergradient  # noqa: PLC0415

        self._taken += 1
        total: Floats = np.zeros(cut.rows.shape)
        for stage, parameters in enumerate(rehearsed.midway):
            rng = stream(self._rehearsal.seed, "feasible", "slope", self._taken, stage)
            drawn = exposed(cut, self._planted, EXPOSURE, rng=rng)
            epochs = -(-self._slope.unrolled * self._slope.batch // len(drawn)) + 1
            dealt = batches(
                drawn.starts, Descent(epochs=epochs, batch=self._slope.batch), shuffle=rng
            )
            aim = Aim(
                windows=self._rehearsal.some_aims(AIMED, self._taken),
                threshold=self._rehearsal.threshold(parameters),
            )
            _, slope = hypergradient(parameters, cut, dealt.first(self._slope.unrolled), aim)
            size = float(np.sqrt(np.mean(slope.astype(np.float64) ** 2)))
            total += slope / size if size > 0 else 0.0
        return total
