"""The optimised perturbation: sensors moved to where the attacker's own model errs most.

1. The attacker trains a surrogate, the federation's autoencoder, on its own shard: 300 steps of
   Adam at a rate of 0.001 in batches of 256 windows, standardised by the shard itself.
2. It moves every sensor by up to 2.5 standard deviations so as to maximise the surrogate's mean
   squared error: 200 steps of Adam at a rate of 0.05, clipped to that reach after each step.

Actuators stay unchanged. There is no target: no attack is hidden, the model only becomes worse.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Floats
from sluice.detector import Autoencoder, Descent, Framing, initial
from sluice.errors import RecordError, SettingError
from sluice.seeding import stream
from sluice.telemetry import Record, Scaler, Windows, feature_names

__all__ = ["OptimisedPerturbation", "Surrogate"]

# Adam's own constants, as in Kingma and Ba.
DECAY_MEAN = 0.9
DECAY_SQUARE = 0.999
EPSILON = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Surrogate:
    """The attacker's substitute for the federation's model, and how it reads the shard."""

    model: Autoencoder
    framing: Framing

    def mean_score(self, record: Record) -> float:
        """Return the mean squared error over a record's windows."""
        return float(self.model.scores(self.framing.windows(record)).mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimisedPerturbation:
    """Move sensors against a surrogate; the defaults are the paper's."""

    sigmas: float = 2.5
    steps: int = 200
    rate: float = 0.05
    surrogate_steps: int = 300
    surrogate_batch: int = 256

    def __post_init__(self) -> None:
        if not (0 < self.sigmas < np.inf and 0 < self.rate < np.inf):
            raise SettingError(
                "a perturbation needs a reach and a rate above 0, got "
                f"{self.sigmas} sigma and {self.rate}"
            )
        if min(self.steps, self.surrogate_steps, self.surrogate_batch) < 1:
            raise SettingError(
                "a perturbation needs at least 1 step, 1 surrogate step and 1 window a batch, got "
                f"{self.steps}, {self.surrogate_steps} and {self.surrogate_batch}"
            )

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with its sensors moved."""
        names = _readable(record)
        reach = self._reach(record, names)
        surrogate = self.surrogate(record, seed=seed)
        scaler = surrogate.framing.scaler
        shift = self._climb(surrogate, surrogate.framing.windows(record), reach / scaler.spread)
        values = record.values.copy()
        values[:, [record.index(name) for name in names]] += shift * scaler.spread
        return record.with_values(values)

    def surrogate(self, record: Record, *, seed: int) -> Surrogate:
        """Train the attacker's own model on its shard."""
        # Imported here because jax takes a second, and other attacks do not need it.
        from sluice.detector import train_parameters  # noqa: PLC0415

        scaler = Scaler.fit([record], _readable(record))
        framing = Framing(scaler=scaler, stride_s=record.stride_s)
        cut = framing.windows(record)
        steps_an_epoch = -(-len(cut) // self.surrogate_batch)
        descent = Descent(
            epochs=-(-self.surrogate_steps // steps_an_epoch), batch=self.surrogate_batch
        )
        trained = train_parameters(
            initial(framing.width, seed=seed),
            cut,
            descent=descent,
            shuffle=stream(seed, "perturbation", "surrogate"),
            steps=self.surrogate_steps,
        )
        return Surrogate(model=Autoencoder(trained), framing=framing)

    def _reach(self, record: Record, names: tuple[str, ...]) -> Floats:
        """Return how far a channel may move, in its unit; 0 for actuators and constant sensors."""
        continuous = [not record.channel(name).role.discrete for name in names]
        columns = record.values[:, [record.index(name) for name in names]]
        reach: Floats = self.sigmas * np.nanstd(columns, axis=0) * continuous
        if not reach.any():
            raise RecordError(
                f"record {record.name!r} has no sensor that moves; there is nothing to perturb"
            )
        return reach

    def _climb(self, surrogate: Surrogate, cut: Windows, reach: Floats) -> NDArray[np.float32]:
        from sluice.lab.attacks.score_gradient import score_gradient  # noqa: PLC0415 - jax

        limit = reach.astype(np.float32)
        shift, mean, square = (np.zeros_like(cut.rows) for _ in range(3))
        for step in range(1, self.steps + 1):
            moved = replace(cut, rows=cut.rows + shift)
            _, slope = score_gradient(surrogate.model.parameters, moved)
            slope = slope * len(cut)  # of the sum, so that epsilon weighs no more in a long shard
            mean = DECAY_MEAN * mean + (1 - DECAY_MEAN) * slope
            square = DECAY_SQUARE * square + (1 - DECAY_SQUARE) * slope**2
            unbiased, scale = mean / (1 - DECAY_MEAN**step), square / (1 - DECAY_SQUARE**step)
            shift = shift + self.rate * unbiased / (np.sqrt(scale) + EPSILON)
            shift = np.clip(shift, -limit, limit)
        return shift


def _readable(record: Record) -> tuple[str, ...]:
    """Return the channels a detector reads, without those that have no reading at all."""
    empty = np.asarray(record.missing.all(axis=0))
    return tuple(name for name in feature_names(record) if not empty[record.index(name)])
