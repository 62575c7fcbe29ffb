"""The poison inside the rules: what a liar makes who minds the gate while it optimises.

1. Start: projected replays, each spliced elsewhere. The attacker trains its own copy of the
   detector on each, as a federation with its share of liars would, and goes on with the one that
   leaves most targets unseen.
2. Round: a few steps down the slope of the targets' scores after training, in the planted sensors
   (the slope goes through training itself, `sluice.detector.hypergradient`); then the projection,
   so that every round ends within the rules; then the copy is trained again.
3. Of all that was met, what leaves most targets unseen is the poison.

What the attacker knows: the rules, the policy, the attacks, the detector and how it is trained.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sluice.admission import Policy
from sluice.arrays import Bools, Floats
from sluice.attacks.makers import PhysicsAware, Replayed
from sluice.attacks.poison import EXPOSURE, Poison, exposed
from sluice.attacks.projection import project
from sluice.attacks.replay import Targets
from sluice.detector import Descent, Framing, Threshold
from sluice.detector.autoencoder import Parameters, initial, scores
from sluice.errors import SettingError
from sluice.invariants import RuleSet
from sluice.seeding import stream
from sluice.telemetry import Record, Scaler, Windows, feature_names

__all__ = ["Feasible", "Rehearsal", "Success"]

AIMED = 128  # target windows a slope is taken for; one number, so that all compile once
MOMENTUM = 0.7
LEFT_OUT = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """How well the attacker's copy of the detector overlooks the targets; more is better."""

    missed: float  # share of target windows that raise no alarm
    loss: float  # mean of log(1 + score / threshold) over them

    @property
    def rank(self) -> tuple[float, float]:
        """Unseen targets first; among equals, those that come nearest."""
        return self.missed, -self.loss


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The attacker's own federation in miniature: one model, its windows mixed as all clients' are.

    The threshold comes from the attacker's clean rows.
    """

    clean: Record
    targets: Targets
    framing: Framing
    share: float  # of all training windows in the federation that touch planted rows
    rounds: int
    descent: Descent
    seed: int

    def train(self, poison: Poison, *, rounds: int | None = None) -> Parameters:
        """Train as the federation would, for all rounds or the first few."""
        # Imported here because jax takes a second, which every other attack would wait for.
        from sluice.detector.training import train  # noqa: PLC0415

        cut = self.framing.windows(poison.trained)
        mixed = exposed(cut, poison.planted, self.share, rng=self._stream("mixture"))
        parameters = initial(self.framing.width, seed=self.seed)
        for number in range(self.rounds if rounds is None else rounds):
            shuffle = self._stream("shuffle", number)
            parameters = train(parameters, mixed, descent=self.descent, shuffle=shuffle)
        return parameters

    def threshold(self, parameters: Parameters) -> float:
        """Return the score above which the copy would alarm."""
        own = scores(parameters, self.framing.windows(self.clean))
        return Threshold.from_clean(own).score

    def success(self, poison: Poison) -> Success:
        """Train on the poison and see which targets raise an alarm."""
        parameters = self.train(poison)
        alarm = self.threshold(parameters)
        found = scores(parameters, self._aimed())
        return Success(
            missed=float(np.mean(found <= alarm)), loss=float(np.mean(np.log1p(found / alarm)))
        )

    def aimed(self, number: int) -> NDArray[np.float32]:
        """Draw flattened target windows for one slope."""
        of = self._aimed()
        return of.matrix(self._stream("aim", number).integers(0, len(of), AIMED))

    def _aimed(self) -> Windows:
        cut = self.framing.windows(self.targets.labelled)
        wanted = cut.touching(self.targets.rows)
        if not wanted.any():
            raise SettingError("no whole window of the labelled record holds a target row")
        return replace(cut, starts=cut.starts[wanted], labels=cut.labels[wanted])

    def _stream(self, *purpose: str | int) -> np.random.Generator:
        return stream(self.seed, "feasible", *purpose)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """The most effective poison found that obeys the rules; a projected replay is the least.

    `share` is what the attacker believes half of three liars' windows in ten to be of all windows.
    """

    exposure: float = EXPOSURE
    share: float = 0.15
    restarts: int = 2
    rounds: int = 3
    steps: int = 4  # down the slope, each round
    size: float = 0.3  # of a step: root mean square over the planted sensors, in spreads
    unrolled: int = 8  # steps of training a slope goes through
    unrolled_batch: int = 128
    after: tuple[int, ...] = (2, 8)  # rounds of training after which slopes are taken
    training_rounds: int = 25
    descent: Descent = field(default_factory=lambda: Descent(batch=128))
    framing: Framing | None = None  # the federation's; without it the shard's own scaling
    shaped: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if min(self.restarts, self.steps, self.unrolled, self.unrolled_batch) < 1:
            raise SettingError("a feasible poison takes at least 1 start, step and unrolled step")
        if not (self.after and min(self.after) >= 1 and self.size > 0 and self.rounds >= 0):
            raise SettingError(
                "slopes are taken after at least 1 round of training and steps have a size above "
                f"0; got rounds {self.after} and size {self.size}"
            )

    def __call__(
        self,
        shard: Record,
        *,
        targets: Targets,
        rules: RuleSet | None,
        policy: Policy | None,
        seed: int,
    ) -> Poison:
        """Return the best of restarts and rounds by the attacker's own rehearsal."""
        if rules is None:
            raise SettingError("a feasible poison lies within rules; give it some")
        rehearsal = self.rehearsal(shard, targets, seed=seed)
        replay = PhysicsAware(of=Replayed(exposure=self.exposure))
        seeds = (seed, *(_other(seed, number) for number in range(1, self.restarts)))
        starts = [
            replay(shard, targets=targets, rules=rules, policy=policy, seed=each) for each in seeds
        ]
        best, success = _better([(each, rehearsal.success(each)) for each in starts])
        current, pace = best, np.zeros(0)
        for number in range(self.rounds):
            moved, pace = self._descended(current, rehearsal, number, pace)
            record = project(moved, rules, policy).record
            current = replace(current, shown=record, trained=record)
            found = rehearsal.success(current)
            best, success = _better([(best, success), (current, found)])
        return best

    def rehearsal(self, shard: Record, targets: Targets, *, seed: int) -> Rehearsal:
        """Set up the attacker's own federation."""
        framing = self.framing or Framing(
            scaler=Scaler.fit([shard], feature_names(shard)), stride_s=shard.stride_s
        )
        return Rehearsal(
            clean=shard,
            targets=targets,
            framing=framing,
            share=self.share,
            rounds=self.training_rounds,
            descent=self.descent,
            seed=seed,
        )

    def _descended(
        self, poison: Poison, rehearsal: Rehearsal, number: int, pace: Floats
    ) -> tuple[Record, Floats]:
        """Take one round's steps in the planted sensors; return where they lead and how fast."""
        framing = rehearsal.framing
        free = _free(poison, framing)
        models = [rehearsal.train(poison, rounds=rounds) for rounds in self.after]
        cut = framing.windows(poison.trained)
        rows = cut.rows.astype(np.float64)
        pace = pace if pace.shape == rows.shape else np.zeros_like(rows)
        for step in range(self.steps):
            at = number * self.steps + step
            slope = self._slope(replace(cut, rows=rows.astype(np.float32)), poison, models, rehearsal, at)
            slope = np.where(free, slope, 0.0)
            length = float(np.sqrt(np.mean(slope[free] ** 2)))
            pace = MOMENTUM * pace + (1 - MOMENTUM) * slope / max(length, LEFT_OUT)
            rows = rows - self.size * pace
        values = poison.trained.values.copy()
        columns = [poison.trained.index(name) for name in framing.scaler.names]
        shift = (rows - cut.rows) * framing.scaler.spread
        values[:, columns] += np.where(free, shift, 0.0)
        return poison.trained.with_values(values), pace
