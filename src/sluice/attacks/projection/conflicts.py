"""Rows that no readings can mend while the actuators stand: which, and which rules collide there.

Most collide on one reading: two couplings bind one flow, and the slabs do not meet. These are found
by intersecting slabs. What is left (a tank that would overflow, a rate against a balance) is found
by a linear programme with a slack for each violating group; its multipliers name the rules.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, vstack
from scipy.sparse.csgraph import connected_components

from sluice.arrays import Bools, Floats, Ints
from sluice.attacks.projection.assembly import Assembly
from sluice.attacks.projection.demands import Limits
from sluice.attacks.projection.outcome import Conflict
from sluice.attacks.projection.programme import Grade
from sluice.errors import SolverError

__all__ = ["Found", "collisions", "mended"]

SLACK = 1e-7  # in spreads
SUPPORT = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Groups that cannot be kept, with the grade they need, and what collides there."""

    grade: Ints
    conflicts: tuple[Conflict, ...]


# -- on one reading -------------------------------------------------------------------------------


def collisions(assembly: Assembly) -> Found:
    """Find the rows on which slabs of one reading do not meet, or nothing read can be moved."""
    grade = np.zeros(assembly.programme.groups, np.int64)
    named: dict[int, set[str]] = {}
    for limits, to in (
        (assembly.slabs.kept, Grade.SACRIFICED),
        (assembly.slabs.sacrificed, Grade.LET_GO),
    ):
        for row, column in np.argwhere(_no_room(assembly, limits)):
            grade[row] = to
            found = named.setdefault(int(row), set())
            if to is Grade.SACRIFICED:
                found |= _colliding(assembly, int(row), int(column))
    _stuck_links(assembly, grade, named)
    return Found(
        grade=grade,
        conflicts=tuple(
            Conflict(row=row, rules=_in_order(assembly, rules))
            for row, rules in sorted(named.items())
        ),
    )


def _no_room(assembly: Assembly, limits: Limits) -> Bools:
    readings = assembly.readings
    stuck = ~assembly.free & ((readings < limits.low) | (readings > limits.high))
    return np.asarray((limits.low > limits.high) | stuck)


def _colliding(assembly: Assembly, row: int, column: int) -> set[str]:
    """Name the rules whose slab misses another's, or a reading that cannot be moved."""
    slabs = [
        (slab.rule, float(slab.limits.low[row]), float(slab.limits.high[row]))
        for slab in assembly.demands.slabs
        if slab.channel == assembly.channels[column]
    ]
    if not assembly.free[row, column]:
        reading = float(assembly.readings[row, column])
        return {rule for rule, low, high in slabs if not low <= reading <= high}
    return {
        rule
        for rule, low, high in slabs
        if any(low > other_high or high < other_low for _, other_low, other_high in slabs)
    }


def _stuck_links(assembly: Assembly, grade: Ints, named: dict[int, set[str]]) -> None:
    links = assembly.programme.links
    stuck = np.diff(links.matrix.indptr) == 0
    for limits, to in (
        (links.limits.kept, Grade.SACRIFICED),
        (links.limits.sacrificed, Grade.LET_GO),
    ):
        for link in np.flatnonzero(stuck & limits.broken(np.zeros(len(links)), beyond=0.0)):
            grade[links.group[link]] = np.maximum(grade[links.group[link]], to)
            named.setdefault(int(links.row[link]), set()).add(links.rules[links.rule[link]])


# -- over several readings ------------------------------------------------------------------------


def mended(assembly: Assembly, grade: Ints, working: Bools) -> Found:
    """Find the least slack with which the shown links can hold; give up the groups that need it.

    Only groups that the record violates as it is get slack: with all of them given up, the record
    itself is within its limits.
    """
    programme = assembly.programme
    bounds = programme.bounds(grade)
    links, moves = np.flatnonzero(working), np.arange(len(programme.moves))
    nothing = np.zeros(len(moves))
    groups = np.flatnonzero(programme.broken_groups(nothing, bounds, beyond=0.0))
    system = _System(
        matrix=vstack([programme.links.matrix[links], eye_array(len(moves), format="csr")]).tocsr(),
        limits=Limits(
            low=np.concatenate([bounds.links.low[links], bounds.moves.low]),
            high=np.concatenate([bounds.links.high[links], bounds.moves.high]),
        ),
        group=np.concatenate([programme.links.group[links], programme.moves.row]),
        links=links,
    )
    slack, multipliers = _least_slack(system, groups)
    given_up = groups[slack > SLACK]
    if not given_up.size:
        raise SolverError(
            "the projection's solver found no moves, yet there are some; the rules may hold "
            "tolerances far below the spread of their channels"
        )
    raised = grade.copy()
    raised[given_up] += 1
    return Found(grade=raised, conflicts=_named(assembly, grade, system, multipliers, given_up))


@dataclass(frozen=True, slots=True, kw_only=True)
class _System:
    """The shown links, then all moves, as rows of one matrix with their limits and groups."""

    matrix: csr_array
    limits: Limits
    group: Ints
    links: Ints  # which links come first


def _least_slack(system: _System, groups: Ints) -> tuple[Floats, Floats]:
    """Return each group's slack, shared by all its limits, and each limit's multiplier."""
    rows, moves = system.matrix.shape
    given = np.isin(system.group, groups)
    at = (np.flatnonzero(given), np.searchsorted(groups, system.group[given]))
    shares = csr_array((np.ones(len(at[0])), at), shape=(rows, len(groups)))
    up, down = np.isfinite(system.limits.high), np.isfinite(system.limits.low)
    found = linprog(
        np.concatenate([np.zeros(moves), np.ones(len(groups))]),
        A_ub=vstack(
            [
                hstack([system.matrix[up], -shares[up]]),
                hstack([-system.matrix[down], -shares[down]]),
            ]
        ).tocsr(),
        b_ub=np.concatenate([system.limits.high[up], -system.limits.low[down]]),
        bounds=[(None, None)] * moves + [(0, None)] * len(groups),
        method="highs-ds",
    )
    if found.status != 0:
        raise SolverError(f"the conflicts of the projection could not be found: {found.message}")
    multipliers = np.zeros(rows)
    multipliers[up] -= found.ineqlin.marginals[: np.count_nonzero(up)]
    multipliers[down] += found.ineqlin.marginals[np.count_nonzero(up) :]
    return found.x[moves:], multipliers


def _named(
    assembly: Assembly, grade: Ints, system: _System, multipliers: Floats, given_up: Ints
) -> tuple[Conflict, ...]:
    """Name the rules that prove it: those with multipliers that hang together with a group's."""
    proof = np.flatnonzero(np.abs(multipliers) > SUPPORT)
    joined = system.matrix[proof]
    _, part = connected_components(joined @ joined.T, directed=False)
    conflicts = []
    for group in given_up:
        parts = part[system.group[proof] == group]
        limits = proof[np.isin(part, parts)]
        rules = {_rule(assembly, grade, system, multipliers, int(limit)) for limit in limits}
        conflicts.append(Conflict(row=_row(assembly, int(group)), rules=_in_order(assembly, rules)))
    return tuple(conflicts)


def _rule(
    assembly: Assembly, grade: Ints, system: _System, multipliers: Floats, limit: int
) -> str:
    """Name the rule whose limit it is; of a reading, the one that reaches least far."""
    links, moves = assembly.programme.links, assembly.programme.moves
    if limit < len(system.links):
        return links.rules[links.rule[system.links[limit]]]
    move = limit - len(system.links)
    row, channel = moves.row[move], moves.channels[moves.channel[move]]
    slabs = [slab for slab in assembly.demands.slabs if slab.channel == channel]
    sides = [slab.limits if grade[row] == Grade.KEPT else slab.sacrificed for slab in slabs]
    if multipliers[limit] > 0:
        return slabs[int(np.argmin([side.high[row] for side in sides]))].rule
    return slabs[int(np.argmax([side.low[row] for side in sides]))].rule


def _row(assembly: Assembly, group: int) -> int:
    """Return the row of a group: itself, or its anchor."""
    links = assembly.programme.links
    return group if group < assembly.programme.rows else int(links.row[links.group == group][0])


def _in_order(assembly: Assembly, rules: set[str]) -> tuple[str, ...]:
    demands = assembly.demands
    known = [slab.rule for slab in demands.slabs] + [chain.rule for chain in demands.chains]
    return tuple(rule for rule in known if rule in rules)
