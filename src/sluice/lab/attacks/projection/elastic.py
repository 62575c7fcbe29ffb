"""Rows that cannot all be repaired, found over many readings: a tank that would overflow.

Every violating group gets a slack at a high price. Groups that need slack are given up. They
collide with the rules whose multipliers press against theirs.
"""

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from sluice.arrays import Floats, Ints
from sluice.errors import SolverError
from sluice.lab.attacks.projection.assembly import Assembly
from sluice.lab.attacks.projection.collisions import Grading, in_order
from sluice.lab.attacks.projection.demands import Limits
from sluice.lab.attacks.projection.engine import SolverTask, minimise
from sluice.lab.attacks.projection.outcome import Conflict
from sluice.lab.attacks.projection.programme import Bounds, Grade

__all__ = ["give_up_groups"]

CHEAP = 1e-4
"""Price of moves next to slack: a row is given up only if the moves to repair it are enormous."""

DEARER = 100.0
"""Price factor of groups without slack in the pass before, so that few groups get slack."""

PASSES = 3
ACCURACY = 1e-8
SLACK = 1e-8  # in spreads: less is the solver's rounding
PRESSING = 1e-3  # of the largest multiplier around a group


def give_up_groups(assembly: Assembly, grade: Ints) -> Grading:
    """Give up few groups, so that there are moves within the limits of all others.

    Only groups that the record violates get slack: if all of them are given up, nothing must move.
    """
    programme = assembly.programme
    elastic = _Elastic(assembly, programme.bounds(grade))
    moves, slack = elastic.solve(np.ones(len(elastic.groups)))
    for _ in range(PASSES - 1):
        price = 1 / (slack / max(float(slack.max(initial=0.0)), SLACK) + 1 / DEARER)
        try:
            moves, slack = elastic.solve(price)
        except SolverError:
            break  # the pass before is good enough
    given_up = elastic.groups[slack > SLACK]
    if not given_up.size:
        raise SolverError(
            "the projection's solver found no moves although there are some; the rules may hold "
            "tolerances far below the spread of their channels"
        )
    raised = grade.copy()
    raised[given_up] = np.maximum(grade[given_up], Grade.SACRIFICED)
    beyond = programme.broken_groups(moves, programme.bounds(raised), beyond=SLACK)
    raised[given_up[beyond[given_up]]] = Grade.LET_GO
    if np.array_equal(raised, grade):  # by rounding alone
        raised[given_up] = Grade.LET_GO
    conflicts = tuple(
        Conflict(row=elastic.row(int(group)), rules=elastic.pressing(int(group)))
        for group in given_up
    )
    return Grading(grade=raised, conflicts=conflicts)


class _Elastic:
    """The programme with a slack for each violating group, shared by all limits of the group."""

    def __init__(self, assembly: Assembly, bounds: Bounds) -> None:
        programme = assembly.programme
        links, moves = programme.links, programme.moves
        no_moves = np.zeros(len(moves))
        self.groups = np.flatnonzero(programme.broken_groups(no_moves, bounds, beyond=0.0))
        self._assembly = assembly
        soft = np.isin(moves.row, self.groups)
        self._own = Limits(
            low=np.where(soft, moves.limits.let_go.low, bounds.moves.low),
            high=np.where(soft, moves.limits.let_go.high, bounds.moves.high),
        )
        # Links, then the limits of moves in violating rows, as one table.
        self._links = np.flatnonzero(bounds.links.finite)
        self._moves = np.flatnonzero(bounds.moves.finite & soft)
        unit = eye_array(len(moves), format="csr")
        self._matrix = vstack([links.matrix[self._links], unit[self._moves]]).tocsr()
        self._group = np.concatenate([links.group[self._links], moves.row[self._moves]])
        self._limits = Limits(
            low=np.concatenate([bounds.links.low[self._links], bounds.moves.low[self._moves]]),
            high=np.concatenate([bounds.links.high[self._links], bounds.moves.high[self._moves]]),
        )
        self._on_links: Floats = np.zeros(len(links))
        self._on_moves: Floats = np.zeros(len(moves))

    def solve(self, price: Floats) -> tuple[Floats, Floats]:
        """Return moves and each group's slack, and store the multipliers."""
        soft = np.isin(self._group, self.groups)
        firm = np.flatnonzero(~soft)
        up = np.flatnonzero(soft & np.isfinite(self._limits.high))
        down = np.flatnonzero(soft & np.isfinite(self._limits.low))
        minimum = minimise(self._task(price, firm, up, down), accuracy=ACCURACY)
        if minimum is None:
            raise SolverError(
                "the projection's solver could not find which rows collide; the rules may hold "
                "tolerances far below the spread of their channels"
            )
        rows, size = self._matrix.shape
        on = np.zeros(rows)
        np.add.at(on, np.concatenate([firm, up, down]), minimum.on_links)
        self._on_links[self._links] = on[: len(self._links)]
        self._on_moves = minimum.on_moves[:size].copy()
        self._on_moves[self._moves] = on[len(self._links) :]
        return minimum.moves[:size], minimum.moves[size:]

    def _task(self, price: Floats, firm: Ints, up: Ints, down: Ints) -> SolverTask:
        """Return the task with slack in the upper and lower limits, and none in the firm ones."""
        rows, size = self._matrix.shape
        count, matrix = len(self.groups), self._matrix
        given = np.union1d(up, down)
        at = (given, np.searchsorted(self.groups, self._group[given]))
        share = csr_array((np.ones(len(given)), at), shape=(rows, count))
        low, high = self._limits.low, self._limits.high
        return SolverTask(
            squares=np.concatenate([np.full(size, CHEAP), np.zeros(count)]),
            prices=np.concatenate([np.zeros(size), price]),
            moves=Limits(
                low=np.concatenate([self._own.low, np.zeros(count)]),
                high=np.concatenate([self._own.high, np.full(count, np.inf)]),
            ),
            matrix=vstack(
                [
                    hstack([matrix[firm], share[firm]]),
                    hstack([matrix[up], -share[up]]),
                    hstack([matrix[down], share[down]]),
                ]
            ).tocsc(),
            links=Limits(
                low=np.concatenate([low[firm], np.full(len(up), -np.inf), low[down]]),
                high=np.concatenate([high[firm], high[up], np.full(len(down), np.inf)]),
            ),
        )

    def row(self, group: int) -> int:
        """Return the row of a group: the group itself, or its anchor."""
        links = self._assembly.programme.links
        if group < self._assembly.programme.rows:
            return group
        return int(links.row[links.group == group][0])

    def pressing(self, group: int) -> tuple[str, ...]:
        """Return the rules that press on the group's readings, including its own."""
        links, moves = self._assembly.programme.links, self._assembly.programme.moves
        own = np.flatnonzero((links.group == group) & (self._on_links != 0))
        touched = np.union1d(links.matrix[own].indices, np.flatnonzero(moves.row == group))
        near = np.unique(links.matrix[:, touched].tocoo().row)
        most = max(
            float(np.abs(self._on_links[near]).max(initial=0.0)),
            float(np.abs(self._on_moves[touched]).max(initial=0.0)),
        )
        by_link = near[np.abs(self._on_links[near]) > PRESSING * most]
        by_move = touched[np.abs(self._on_moves[touched]) > PRESSING * most]
        rules = {links.rules[rule] for rule in links.rule[by_link]}
        rules |= {self._tightest(int(move)) for move in by_move}
        return in_order(self._assembly.demands, rules)

    def _tightest(self, move: int) -> str:
        """Return the rule whose slab limits a move; empty if the instrument's range does."""
        moves = self._assembly.programme.moves
        row, channel = moves.row[move], moves.channels[moves.channel[move]]
        high = self._on_moves[move] > 0
        tightest, room = "", np.inf
        for slab in self._assembly.demands.slabs:
            if slab.channel == channel:
                left = float(slab.limits.high[row] if high else -slab.limits.low[row])
                tightest, room = (slab.rule, left) if left < room else (tightest, room)
        return tightest
