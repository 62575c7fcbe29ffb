"""The slow ramp: how far a level can drift from the truth before any rule sees it.

Channels that are tied to the level may follow it, so that the ties still hold; all other readings
stay unchanged. Then every rule limits weighted sums of the drift at some rows: balances and rates
its steps, ranges and switch bands its size, spectra the differences inside a block (by tangents).
A linear programme finds the drift that is farthest from the truth within these limits. At the end
of its range the level stands still, which a gate may see; then only the share of the drift that
the gate admits is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.admission import Gate, HardenedPolicy, Policy
from sluice.arrays import Bools, Floats, Ints
from sluice.errors import RecordError
from sluice.invariants import RuleSet, Tie, amount, encode
from sluice.invariants.mining import span_of
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.poison import EXPOSURE, Poison
from sluice.lab.attacks.projection import (
    Chain,
    Demands,
    Limits,
    SpectrumTangents,
    hardened_demands,
    paper_demands,
)
from sluice.lab.attacks.replay import Targets
from sluice.telemetry import Record, Role, Span

__all__ = ["Drift", "Ramp", "drift"]

BISECTIONS = 5
TANGENT_ROUNDS = 6
INSIDE = 1 - 1e-6  # of the drift: a programme's solution lies on the limits, up to rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drift:
    """A record in which one level drifts from the truth."""

    record: Record
    level: str
    away: Floats  # from the truth, per row, in the level's unit

    @property
    def reached(self) -> float:
        """The largest distance of the level from the truth, with its sign."""
        return float(self.away[np.abs(self.away).argmax()])

    @property
    def sentence(self) -> str:
        """The drift as a sentence."""
        unit = self.record.channel(self.level).unit
        return (
            f"{self.level} drifts {amount(abs(self.reached), unit)} "
            f"{'up' if self.reached > 0 else 'down'} over {len(self.away):,} rows before any rule "
            "sees it"
        )


def drift(  # noqa: PLR0913 - the gate, the level and where it shall go
    record: Record,
    rules: RuleSet,
    policy: Policy,
    *,
    level: str,
    up: bool = True,
    from_truth: bool = True,
) -> Drift:
    """Return the farthest drift of one level within every tolerance and the instrument's span.

    With `from_truth`, it begins at the true reading. Without it, a level may be wrong by the same
    amount on all rows: no difference shows that, and only the range limits it.
    """
    truth = record.values[:, record.index(level, needed_by="the ramp")]
    if np.isnan(truth).any():
        raise RecordError(f"{level} has missing readings; a ramp needs all of them")
    gate = Gate.of(rules, policy, allow_empty=True)
    alone = {level: 1.0}
    together = _followers(record, rules, level)
    found = [
        _drift(record, gate, level, moved, up=up, from_truth=from_truth)
        for moved in ([alone] if together == alone else [alone, together])
    ]
    return max(found, key=lambda drifting: abs(drifting.reached))  # of equals, the level alone


def _followers(record: Record, rules: RuleSet, level: str) -> dict[str, float]:
    """Return how far each channel moves with the level, so that the ties of followers hold."""
    moved = {level: 1.0}
    ties = [rule.relation for rule in rules.invariants if isinstance(rule.relation, Tie)]
    for _ in ties:
        for tie in ties:
            if tie.channel in moved or record.channel(tie.channel).role.discrete:
                continue
            factor = sum(
                term.coefficient * moved[term.channel]
                for term in tie.terms
                if not term.on and term.channel in moved
            )
            if factor and not np.isnan(record.column(tie.channel)).any():
                moved[tie.channel] = factor
    return moved


def _drift(  # noqa: PLR0913 - the gate, what moves and where it shall go
    record: Record,
    gate: Gate,
    level: str,
    moved: Mapping[str, float],
    *,
    up: bool,
    from_truth: bool,
) -> Drift:
    """Return the farthest drift with these followers, and the share of it that is admitted."""
    demands = demands_of(record, gate.rules, gate.policy)
    reach = _reach(record, gate.rules, demands, moved)
    if from_truth:
        reach.low[0] = reach.high[0] = 0.0
    sums = _sums(demands.chains, demands, record, moved)
    tangents = SpectrumTangents(gate)
    for _ in range(TANGENT_ROUNDS):
        bent = _sums(tangents.chains(), demands, record, moved)
        away = _farthest([*sums, *bent], reach, up=up)
        if not tangents.add(_moved(record, moved, away)):
            break
    return _admitted_part(record, level, moved, away, gate)


def _moved(record: Record, moved: Mapping[str, float], away: Floats) -> Record:
    values = record.values.copy()
    for name, factor in moved.items():
        values[:, record.index(name)] += factor * away
    return record.with_values(values)


def _admitted_part(
    record: Record, level: str, moved: Mapping[str, float], away: Floats, gate: Gate
) -> Drift:
    """Return the largest share of a drift that the gate admits, bisected to within 1/32."""

    def taken(share: float) -> Drift:
        drifting = _moved(record, moved, share * away)
        return Drift(record=drifting, level=level, away=share * away)

    whole = taken(1.0)
    if gate.judge(whole.record).admitted or not gate.judge(record).admitted:
        return whole
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if gate.judge(taken(middle).record).admitted else (low, middle)
    return taken(low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """Drift the level that the targets falsify most, in their direction, as far as it is admitted.

    The attacker knows the rules, the policy and the attacks. The planted rows, which the detector
    learns as normal, are those on which the level is at least half of its largest drift away.
    """

    exposure: float = EXPOSURE
    shaped: ClassVar[bool] = True

    def __call__(
        self,
        shard: Record,
        known: Knowledge,
        *,
        seed: int,  # noqa: ARG002 - as every maker
    ) -> Poison:
        """Return the drifting shard; the seed is not used."""
        gate = known.require_gate("stay under their tolerances")
        level, up = _most_falsified(shard, known.targets)
        drifting = drift(shard, gate.rules, gate.policy, level=level, up=up)
        planted: Bools = np.abs(drifting.away) >= abs(drifting.reached) / 2
        if not drifting.reached:
            raise RecordError(f"the rules leave {level} no room to drift in {shard.name!r}")
        return Poison(
            shown=drifting.record,
            trained=drifting.record,
            planted=planted,
            # Where most rows drift, too few windows are left to draw the others from.
            exposure=self.exposure if planted.mean() <= self.exposure else None,
        )


def _most_falsified(shard: Record, targets: Targets) -> tuple[str, bool]:
    """Return the level that lies farthest from its usual readings in the targets, and if above."""
    apart: dict[str, float] = {}
    for channel in shard.of_role(Role.LEVEL):
        usual = shard.column(channel.name)
        spread = float(np.nanstd(usual))
        attacked = targets.labelled.column(channel.name)[targets.rows]
        if spread > 0 and not np.isnan(usual).any() and np.isfinite(attacked).any():
            apart[channel.name] = float(np.nanmean(attacked) - np.mean(usual)) / spread
    if not apart:
        raise RecordError(f"record {shard.name!r} has no level that moves; there is none to ramp")
    level = max(apart, key=lambda name: abs(apart[name]))
    return level, apart[level] >= 0


def demands_of(record: Record, rules: RuleSet, policy: Policy) -> Demands:
    """Return what the gate demands of the record's readings."""
    if isinstance(policy, HardenedPolicy):
        return hardened_demands(rules, policy, record, encode(rules))
    return paper_demands(rules, policy, record)


def _span(record: Record, rules: RuleSet, level: str) -> Span:
    """Return the instrument's range; if none is declared, the range that the miner assumes."""
    described = record.channel(level)
    known = {channel.name: channel.span for channel in rules.channels}
    span = described.span or known.get(level) or span_of(described, record)
    if span is None:
        raise RecordError(f"{level} never moves in record {record.name!r}; there is no drift in it")
    return span


def _reach(record: Record, rules: RuleSet, demands: Demands, moved: Mapping[str, float]) -> Limits:
    """Return how far the level may drift by the ranges alone; no drift is always allowed."""
    reach = Limits.open(len(record))
    for name, factor in moved.items():
        truth, span = record.column(name), _span(record, rules, name)
        low, high = span.low - truth, span.high - truth
        for slab in demands.slabs:
            if slab.channel == name:
                low = np.maximum(low, slab.limits.low - truth)
                high = np.minimum(high, slab.limits.high - truth)
        ends = np.minimum(low, 0.0) / factor, np.maximum(high, 0.0) / factor
        np.maximum(reach.low, np.minimum(*ends), out=reach.low)
        np.minimum(reach.high, np.maximum(*ends), out=reach.high)
    return reach


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """At some rows: weighted sums of the drift at these and earlier rows lie within limits."""

    at: Ints
    back: Ints
    weights: Floats
    limits: Limits


def _sums(
    chains: tuple[Chain, ...], demands: Demands, record: Record, moved: Mapping[str, float]
) -> list[_Sum]:
    sums = []
    for chain in chains:
        parts = [part for part in chain.parts if part.channel in moved]
        if not parts or not len(chain.at):
            continue
        now = _residual(chain, demands, record)
        weights = np.concatenate([moved[part.channel] * part.weights for part in parts])
        size = float(np.abs(weights).max())
        sums.append(
            _Sum(
                at=chain.at,
                back=np.concatenate([part.back for part in parts]),
                weights=weights / size,
                limits=Limits(
                    low=np.minimum(chain.limits.low - now, 0.0) / size,
                    high=np.maximum(chain.limits.high - now, 0.0) / size,
                ),
            )
        )
    return sums


def _residual(chain: Chain, demands: Demands, record: Record) -> Floats:
    total = chain.constant.copy()
    for part in chain.parts:
        column = record.index(part.channel)
        readings = record.values[demands.source_rows[:, column], column]
        for back, weight in zip(part.back, part.weights, strict=True):
            total += weight * readings[chain.at - back]
    return total


def _farthest(sums: list[_Sum], reach: Limits, *, up: bool) -> Floats:
    """Maximise (or minimise) the sum of all rows' drifts."""
    # Imported here because it takes half a second, and other attacks do not need it.
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415
    from scipy.sparse import coo_array, csr_array, vstack  # noqa: PLC0415

    rows = len(reach.low)
    blocks = []
    for one in sums:
        places = np.repeat(np.arange(len(one.at)), len(one.back))
        columns = (one.at[:, None] - one.back).ravel()
        weights = np.tile(one.weights, len(one.at))
        blocks.append(coo_array((weights, (places, columns)), shape=(len(one.at), rows)).tocsr())
    constraint = LinearConstraint(
        vstack(blocks) if blocks else csr_array((0, rows)),
        np.concatenate([one.limits.low for one in sums] or [np.empty(0)]),
        np.concatenate([one.limits.high for one in sums] or [np.empty(0)]),
    )
    solution = milp(
        np.full(rows, -1.0 if up else 1.0),
        constraints=constraint,
        bounds=Bounds(reach.low, reach.high),
    )
    assert solution.x is not None, solution.message  # no drift at all is always a solution
    return np.asarray(solution.x * INSIDE, dtype=np.float64)
