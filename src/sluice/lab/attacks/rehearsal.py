"""The attacker's own small federation: it shows what a poison would do before it is sent."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sluice.detector import Descent, Framing, Parameters, Threshold, initial, scores
from sluice.errors import SettingError
from sluice.lab.attacks.poison import Poison, exposed
from sluice.lab.attacks.replay import Targets
from sluice.seeding import stream
from sluice.telemetry import Record, Windows

__all__ = ["Rehearsal", "Rehearsed", "RehearsedTraining"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedTraining:
    """How the attacker believes the federation trains.

    `share` is the poisoned share of all windows if three of ten clients are malicious and draw half
    of their windows from poison.
    """

    share: float = 0.15
    rounds: int = 25
    descent: Descent = field(default_factory=lambda: Descent(batch=128))

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.rounds < 1:
            raise SettingError(
                "a rehearsal trains for at least 1 round on a share of poison above 0 and at most "
                f"1, got {self.rounds} and {self.share}"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rehearsed:
    """How well the trained copy of the detector overlooks the targets."""

    missed: float  # share of target windows that raise no alarm
    loss: float  # mean of log(1 + score / threshold) over them
    midway: tuple[Parameters, ...] = ()  # the copy's parameters after some of its rounds

    @property
    def rank(self) -> tuple[float, float]:
        """More missed targets rank higher; of equals, the lower loss ranks higher."""
        return self.missed, -self.loss


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """One model trained on one client's windows, with the share of poison of the whole federation.

    Its threshold comes from the attacker's own clean rows.
    """

    clean: Record
    targets: Targets
    framing: Framing
    training: RehearsedTraining
    seed: int

    def __call__(self, poison: Poison, *, midway: tuple[int, ...] = ()) -> Rehearsed:
        """Train on the poison and measure which targets raise an alarm."""
        # Imported here because jax takes a second, and other attacks do not need it.
        from sluice.detector import train_parameters  # noqa: PLC0415

        cut = self.framing.windows(poison.trained)
        mixed = exposed(cut, poison.planted, self.training.share, rng=self._stream("mixture"))
        parameters, snapshots = initial(self.framing.width, seed=self.seed), []
        for done in range(1, self.training.rounds + 1):
            shuffle = self._stream("shuffle", done)
            descent = self.training.descent
            parameters = train_parameters(parameters, mixed, descent=descent, shuffle=shuffle)
            if done in midway:
                snapshots.append(parameters)
        threshold = self.threshold(parameters)
        target_scores = scores(parameters, self.aims)
        return Rehearsed(
            missed=float(np.mean(target_scores <= threshold)),
            loss=float(np.mean(np.log1p(target_scores / threshold))),
            midway=tuple(snapshots),
        )

    def threshold(self, parameters: Parameters) -> float:
        """Return the score above which the copy would alarm."""
        return Threshold.from_clean(scores(parameters, self._clean_windows)).score

    @cached_property
    def aims(self) -> Windows:
        """The windows to be overlooked: all that touch a target row."""
        cut = self.framing.windows(self.targets.labelled)
        wanted = cut.touching(self.targets.rows)
        if not wanted.any():
            raise SettingError("no whole window of the labelled record holds a target row")
        return replace(cut, starts=cut.starts[wanted], labels=cut.labels[wanted])

    def some_aims(self, count: int, number: int) -> NDArray[np.float32]:
        """Draw `count` of these windows, flattened."""
        return self.aims.matrix(self._stream("aims", number).integers(0, len(self.aims), count))

    @cached_property
    def _clean_windows(self) -> Windows:
        return self.framing.windows(self.clean)

    def _stream(self, *purpose: str | int) -> np.random.Generator:
        return stream(self.seed, "rehearsal", *purpose)
