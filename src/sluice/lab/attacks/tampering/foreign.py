"""Rows that no instrument measured: a simulator fitted to the attacker's own clean rows.

The attacker takes what its targets do (actuators, flows) and simulates what the plant would show:

    levels   steps are an affine function of flows and actuator states; they start where the
             attacker's own rows end, and the closing error is spread over the stretch
    others   an affine function of flows, states and levels, with AR(1) noise of the right size

The fitted plant keeps the rules well, because the rules were mined from such rows. What remains is
shaped as a replay is.
"""

from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Floats, Ints, Run
from sluice.errors import RecordError
from sluice.lab.attacks.poison import Poison
from sluice.lab.attacks.replay import Targets
from sluice.lab.attacks.tampering.replays import (
    SHARES,
    attack_rows,
    most_admitted,
    require_shares,
)
from sluice.seeding import stream
from sluice.telemetry import Record, Role

__all__ = ["ForeignSimulator"]

RIDGE = 1e-6  # of the features' variance: channels that never move leave the fit solvable


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSimulator:
    """Plant simulated rows that do what the targets do, as many as are admitted.

    The attacker knows the rules, the policy and the attacks.
    """

    labelled: Record
    gate: Gate
    targets: Targets | None = None
    shares: tuple[float, ...] = SHARES

    def __post_init__(self) -> None:
        require_shares(self.shares)

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with the largest share of simulated rows that is admitted."""
        return self.poison(record, seed=seed).shown

    def poison(self, record: Record, *, seed: int) -> Poison:
        """Return the same as a poison, which marks the planted rows."""
        attack = attack_rows(record, self.labelled, self.targets, seed=seed)
        simulator = _FittedPlant(record)

        def simulated(rows: Run) -> Floats:
            driven = np.resize(attack, (rows.rows, attack.shape[1]))
            return simulator.run(driven, rows, stream(seed, "foreign-simulator", rows.rows))

        return most_admitted(record, simulated, self.gate, shares=self.shares, seed=seed)


class _FittedPlant:
    """An affine model of a plant, fitted to its clean rows."""

    def __init__(self, own: Record) -> None:
        if not np.isfinite(own.values).all():
            raise RecordError(
                f"record {own.name!r} has missing readings; a simulator cannot be fitted to them"
            )
        by_role = [channel.role for channel in own.channels]
        self._own = own.values
        self._states = _columns(by_role, {Role.ACTUATOR})
        self._flows = _columns(by_role, {Role.FLOW})
        self._levels = _columns(by_role, {Role.LEVEL})
        known = {*self._states, *self._flows, *self._levels}
        self._others = np.array([at for at in range(len(by_role)) if at not in known], np.int64)
        self._codes = [np.unique(own.values[:, column]) for column in self._states]
        steps = np.diff(own.values[:, self._levels], axis=0)
        self._step = _Affine(self._drive(own.values)[1:], steps)
        self._other = _Affine(self._drive(own.values, levels=True), own.values[:, self._others])

    def run(self, driven: Floats, rows: Run, rng: np.random.Generator) -> Floats:
        """Return readings for the rows of a stretch, driven by these actuators and flows."""
        simulated = driven.copy()
        steps = self._step.predict(self._drive(driven))
        steps += rng.normal(size=steps.shape) * self._step.spread
        first = self._own[max(rows.start - 1, 0), self._levels]
        levels = first + np.cumsum(steps, axis=0)
        if rows.stop < len(self._own):
            closing = self._own[rows.stop, self._levels] - levels[-1]
            levels += np.linspace(0, 1, len(levels))[:, None] * closing
        low, high = (extreme(self._own[:, self._levels], axis=0) for extreme in (np.min, np.max))
        simulated[:, self._levels] = np.clip(levels, low, high)
        features = self._drive(simulated, levels=True)
        noise = self._other.noise(len(driven), rng)
        simulated[:, self._others] = self._other.predict(features) + noise
        return simulated

    def _drive(self, values: Floats, *, levels: bool = False) -> Floats:
        """Return the features: flows averaged over both rows (or now, with levels), states."""
        flows = values[:, self._flows]
        if not levels:
            flows = (flows + np.vstack([flows[:1], flows[:-1]])) / 2
        shown = [
            (values[:, column] == code)[:, None]
            for column, codes in zip(self._states, self._codes, strict=True)
            for code in codes[1:]
        ]
        parts = [np.ones((len(values), 1)), flows, *shown]
        if levels:
            parts.append(values[:, self._levels])
        return np.hstack(parts).astype(np.float64)


class _Affine:
    """Least squares with a little ridge, and the size and memory of what it leaves."""

    def __init__(self, features: Floats, outcomes: Floats) -> None:
        weights = features.T @ features
        weights += RIDGE * np.diag(np.maximum(np.diag(weights), 1.0))
        self._coefficients = np.linalg.solve(weights, features.T @ outcomes)
        left = outcomes - features @ self._coefficients
        self.spread: Floats = left.std(axis=0)
        variance = np.maximum((left**2).sum(axis=0), 1e-30)
        self._memory = np.clip((left[1:] * left[:-1]).sum(axis=0) / variance, 0.0, 0.999)

    def predict(self, features: Floats) -> Floats:
        """Return the expected outcomes."""
        return np.asarray(features @ self._coefficients)

    def noise(self, rows: int, rng: np.random.Generator) -> Floats:
        """Return AR(1) noise of the size and memory of the residuals."""
        shocks = rng.normal(size=(rows, len(self.spread))) * self.spread
        noise = shocks.copy()
        for row in range(1, rows):
            fresh = np.sqrt(1 - self._memory**2) * shocks[row]
            noise[row] = self._memory * noise[row - 1] + fresh
        return noise


def _columns(by_role: list[Role], wanted: set[Role]) -> Ints:
    return np.array([at for at, role in enumerate(by_role) if role in wanted], np.int64)
