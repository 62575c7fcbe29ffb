"""Assembles the demands on a record into one quadratic programme."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants import Balance, Coupling, RuleSet, SwitchBand, Tie, Window, held
from sluice.lab.attacks.projection.demands import Demands, Limits
from sluice.lab.attacks.projection.programme import Choice, Links, Moves, Programme
from sluice.telemetry import Record

__all__ = ["Assembly", "Cells", "assemble"]

QUIET_SHARE = 0.01
"""Share of its span: the smallest spread of a channel, so that a constant channel has a unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The readings that rules read, rows x channels, and their limits."""

    channels: tuple[str, ...]
    readings: Floats  # a missing one repeats the last
    spread: Floats  # per channel
    free: Bools  # may be moved
    slabs: Choice  # the intersection of all slabs, in plant units


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The programme, and the parts it is made of."""

    programme: Programme
    demands: Demands
    cells: Cells
    anchors: tuple[tuple[int, Ints], ...]  # per rule with its own budget: budget, groups


def assemble(
    record: Record, rules: RuleSet, demands: Demands, *, fixed: tuple[str, ...]
) -> Assembly:
    """Return the programme; actuators, `fixed` channels and rows with missing readings stay."""
    read = {slab.channel for slab in demands.slabs}
    read |= {part.channel for chain in demands.chains for part in chain.parts}
    channels = tuple(name for name in record.names if name in read)
    readings = np.empty((len(record), len(channels)))
    for column, name in enumerate(channels):
        readings[:, column] = held(record.column(name), empty=0.0)
    cells = Cells(
        channels=channels,
        readings=readings,
        spread=np.array([_spread(name, record, rules) for name in channels]),
        free=np.outer(_complete_rows(record, rules), _movable(channels, record, rules, fixed)),
        slabs=_slabs(demands, channels, record, readings),
    )
    matrix = _matrix(demands, channels, record)
    group, anchors = _groups(demands, len(record))
    moves = _moves(cells, matrix)
    programme = Programme(
        rows=len(record),
        groups=len(record) + sum(len(groups) for _, groups in anchors),
        moves=moves,
        links=_links(demands, matrix, readings, moves, group),
    )
    return Assembly(programme=programme, demands=demands, cells=cells, anchors=anchors)


def _spread(name: str, record: Record, rules: RuleSet) -> float:
    """Return a channel's standard deviation, or `QUIET_SHARE` of its span if that is larger."""
    readings = record.column(name)
    known = readings[~np.isnan(readings)]
    span = rules.channel(name).span or record.channel(name).span
    size = span.width if span else float(np.abs(known).max(initial=0.0))
    deviation = float(known.std()) if known.size else 0.0
    return max(deviation, QUIET_SHARE * size) or 1.0


def _complete_rows(record: Record, rules: RuleSet) -> Bools:
    read = sorted({name for rule in rules.invariants for name in rule.relation.channels})
    columns = [record.index(name) for name in read]
    return np.asarray(~record.missing[:, columns].any(axis=1))


def _movable(
    channels: tuple[str, ...], record: Record, rules: RuleSet, fixed: tuple[str, ...]
) -> Bools:
    """Return which channels may move: no states, because they decide where a rule applies."""
    states = set(fixed)
    for rule in rules.invariants:
        match rule.relation:
            case Coupling() as coupling:
                states |= {coupling.actuator, *(pump for pump, _ in coupling.standby)}
            case Balance() | Window() | Tie() as affine:
                states |= {term.channel for term in affine.terms if term.on}
            case SwitchBand() as band:
                states.add(band.actuator)
            case _:
                pass
    return np.array(
        [not record.channel(name).role.discrete and name not in states for name in channels], bool
    )


def _slabs(demands: Demands, channels: tuple[str, ...], record: Record, readings: Floats) -> Choice:
    """Return the intersection of all slabs for each reading.

    A missing reading is judged as the last one before it, so the limits of both rows apply to that.
    """
    rows = np.arange(len(record))
    kept = Limits.open((len(record), len(channels)))
    sacrificed = Limits.open((len(record), len(channels)))
    for slab in demands.slabs:
        column = channels.index(slab.channel)
        source = demands.source_rows[:, record.index(slab.channel)]
        own = source == rows
        for into, limits in ((kept, slab.limits), (sacrificed, slab.sacrificed)):
            low = np.where(own, limits.low, slab.sacrificed.low)
            high = np.where(own, limits.high, slab.sacrificed.high)
            np.maximum.at(into.low[:, column], source, low)
            np.minimum.at(into.high[:, column], source, high)
    let_go = Limits.open((len(record), len(channels)))
    for instrument in demands.shown:
        if instrument.channel not in channels:
            continue
        column = channels.index(instrument.channel)
        let_go.low[:, column], let_go.high[:, column] = instrument.low, instrument.high
        for into in (kept, sacrificed):  # a reading already beyond may stay
            low = np.minimum(instrument.low, readings[:, column])
            high = np.maximum(instrument.high, readings[:, column])
            np.maximum(into.low[:, column], low, out=into.low[:, column])
            np.minimum(into.high[:, column], high, out=into.high[:, column])
    return Choice(kept=kept, sacrificed=sacrificed, let_go=let_go)


def _moves(cells: Cells, matrix: csr_array) -> Moves:
    """Return the readings that a rule reads and that may be moved."""
    used = cells.slabs.kept.finite
    used.ravel()[matrix.indices] = True
    row, channel = np.nonzero(used & cells.free)
    start, unit = cells.readings[row, channel], cells.spread[channel]

    def in_spreads(limits: Limits) -> Limits:
        return Limits(
            low=(limits.low[row, channel] - start) / unit,
            high=(limits.high[row, channel] - start) / unit,
        )

    slabs = cells.slabs
    return Moves(
        channels=cells.channels,
        row=row,
        channel=channel,
        spread=unit,
        limits=Choice(
            kept=in_spreads(slabs.kept),
            sacrificed=in_spreads(slabs.sacrificed),
            let_go=in_spreads(slabs.let_go),
        ),
    )


def _matrix(demands: Demands, channels: tuple[str, ...], record: Record) -> csr_array:
    """Return the chains' weights: links x cells (row by row), in plant units."""
    links, cells, weights, before = [], [], [], 0
    for chain in demands.chains:
        numbers = before + np.arange(len(chain.at))
        before += len(chain.at)
        for part in chain.parts:
            read = demands.source_rows[:, record.index(part.channel)]
            rows = read[chain.at[:, None] - part.back]
            cells.append((rows * len(channels) + channels.index(part.channel)).ravel())
            links.append(np.repeat(numbers, len(part.back)))
            weights.append(np.broadcast_to(part.weights, rows.shape).ravel())
    shape = (before, len(record) * len(channels))
    if not before:
        return csr_array(shape)
    at = (np.concatenate(links), np.concatenate(cells))
    return coo_array((np.concatenate(weights), at), shape=shape).tocsr()


def _groups(demands: Demands, rows: int) -> tuple[Ints, tuple[tuple[int, Ints], ...]]:
    """Return each link's group, and the groups of each rule that has its own budget.

    All chains of such a rule at one row share a group: a block is broken once, by either sum.
    """
    groups, taken = [np.empty(0, np.int64)], rows
    own: dict[str, dict[int, int]] = {rule: {} for rule, _ in demands.anchors}
    for chain in demands.chains:
        if not chain.anchored:
            groups.append(chain.at)
            continue
        of_rule = own[chain.rule]
        for row in chain.at.tolist():
            if row not in of_rule:
                of_rule[row], taken = taken, taken + 1
        groups.append(np.array([of_rule[row] for row in chain.at.tolist()], np.int64))
    anchors = tuple(
        (budget, np.array(list(own[rule].values()), np.int64)) for rule, budget in demands.anchors
    )
    return np.concatenate(groups), anchors


def _links(
    demands: Demands, matrix: csr_array, readings: Floats, moves: Moves, group: Ints
) -> Links:
    chains = demands.chains
    start = matrix @ readings.ravel() + _joined([chain.constant for chain in chains])
    scaled = matrix[:, moves.row * readings.shape[1] + moves.channel].copy()
    scaled.data *= moves.spread[scaled.indices]
    norm = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    norm[norm == 0] = 1.0  # no reading of the link can be moved
    scaled.data /= np.repeat(norm, np.diff(scaled.indptr))

    def limits(of: list[Limits]) -> Limits:
        return Limits(
            low=(_joined([each.low for each in of]) - start) / norm,
            high=(_joined([each.high for each in of]) - start) / norm,
        )

    return Links(
        matrix=scaled,
        rules=tuple(chain.rule for chain in chains),
        rule=np.repeat(np.arange(len(chains)), [len(chain.at) for chain in chains]),
        row=_joined([chain.at for chain in chains]).astype(np.int64),
        group=group,
        limits=Choice(
            kept=limits([chain.limits for chain in chains]),
            sacrificed=limits([chain.sacrificed for chain in chains]),
            let_go=Limits.open(len(start)),
        ),
    )


def _joined(parts: Sequence[Floats | Ints]) -> Floats:
    return np.concatenate([np.empty(0), *parts])
