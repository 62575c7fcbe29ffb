"""Facts about clean rows, from which a policy derives its budgets."""

from collections.abc import Sequence

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.invariants.budgets import SEVERE_KINDS, SUMMED_KINDS
from sluice.invariants.encoding import encode
from sluice.invariants.integers import Judged
from sluice.invariants.measure import Repeated, block_ranges, measure
from sluice.invariants.mining.tails import tail_of
from sluice.invariants.relations import Coupling, RelationKind
from sluice.invariants.ruleset import CleanFacts, CleanShare, Liveness, RuleSet
from sluice.telemetry import Record

__all__ = ["clean_facts", "liveness_of"]

SHORT_BATCH = 300  # rows: in a short batch, the share of rows in transition varies most
BATCH = 1_000
SMALLER = 0.5  # of the smallest range shown: no tail is trusted further
STRAY = 0.03  # of switches: a manual one lies outside every band
LEAP = 3.0  # times the smallest range over a block that is a fifth shorter
FEWEST_BLOCKS = 20
SHORTEST_BLOCK = 8
LONGEST_SECOND = 128  # rows of the block in which a level clearly moves
LIVELY = (0.4, 3.0)  # a block's smallest range, in multiples of the range of noise alone


def clean_facts(  # noqa: PLR0913 - what is known already
    rules: RuleSet,
    clean: Record,
    *,
    liveness: tuple[Liveness, ...],
    severe: tuple[CleanShare, ...] = (),
    jumps_per_row: float = 0.0,
    repeated: Repeated | None = None,
) -> CleanFacts:
    """Return the facts about clean rows under the rules; no batch is tried yet.

    `severe` states residuals that clean rows are predicted to reach; the largest residual in these
    rows counts where it is larger.
    """
    measured = measure(rules, clean, encoding=encode(rules), repeated=repeated)
    predicted = {fact.rule: fact.share for fact in severe}
    return CleanFacts(
        batch_rows=min(BATCH, len(clean)),
        batches=0,
        effective_batches=0.0,
        refused_share=1.0,
        refused_upper=1.0,
        violating_share=float(measured.violating.mean()),
        segments_per_row=jumps_per_row,
        severe=tuple(
            CleanShare(
                rule=found.rule.name, share=max(_excess(found), predicted.get(found.rule.name, 0.0))
            )
            for found in measured.judged
            if found.rule.kind in SEVERE_KINDS
        ),
        envelope=tuple(
            CleanShare(
                rule=found.rule.name,
                share=_largest_share(found.envelope, SHORT_BATCH, more=found.rule.relation.settle),
            )
            for found in measured.judged
            if isinstance(found.rule.relation, Coupling)
        ),
        anchors=_shares(measured.judged, *SUMMED_KINDS),
        switches=tuple(
            CleanShare(
                rule=found.rule.name,
                share=max(float(found.violating.mean()), STRAY * found.anchors.size / len(clean)),
            )
            for found in measured.judged
            if found.rule.kind is RelationKind.SWITCH_BAND
        ),
        blocks=_shares(measured.judged, RelationKind.SPECTRUM),
        liveness=liveness,
        repeats=tuple(
            CleanShare(rule=name, share=_largest_share(rows, BATCH))
            for name, rows in measured.repeated
        ),
    )


def _shares(judged: tuple[Judged, ...], *kinds: RelationKind) -> tuple[CleanShare, ...]:
    """Return the share of violating windows or blocks of each rule of these kinds.

    The joins between parts of a clean record are no violations of the plant.
    """
    return tuple(
        CleanShare(
            rule=found.rule.name,
            share=float(found.violating[found.anchors].mean()) if found.anchors.size else 0.0,
        )
        for found in judged
        if found.rule.kind in kinds
    )


def _excess(found: Judged) -> float:
    return float(found.excess.max(initial=0.0))


def _largest_share(marked: Bools, batch: int, *, more: int = 0) -> float:
    """Return the largest share of marked rows in any batch; `more` rows are marked at its start."""
    batch = min(batch, len(marked))
    total = np.concatenate(([0], np.cumsum(marked)))
    largest = int((total[batch:] - total[:-batch]).max()) + more
    return min(1.0, largest / batch)


def liveness_of(level: str, parts: Sequence[Record], *, share: float) -> tuple[Liveness, ...]:
    """Return the shortest blocks in which the level always moves, then clearly moves.

    The smallest range is the one that a share of all later blocks is expected to fall below.
    """
    readings = [part.column(level) for part in parts]
    noise = max(_noise(part) for part in readings)
    facts: list[Liveness] = []
    rows, before = SHORTEST_BLOCK, 0.0
    while sum(map(len, readings)) // rows >= FEWEST_BLOCKS and len(facts) < len(LIVELY):
        if facts and rows > LONGEST_SECOND:
            break
        ranges = [block_ranges(part, rows) for part in readings]
        smallest = _smallest(ranges, share * rows / 4)
        jitter = 2 * noise * np.sqrt(2 * np.log(rows))  # the range of noise alone over the block
        if np.isfinite(smallest) and smallest > max(0.0, LIVELY[len(facts)] * jitter):
            # A calm stretch longer than any in clean rows must not count as still, so a longer
            # block has to show only the range of this one.
            # Where the range leaps with the length of the block, the longest rest decides it; the
            # next record may show a longer one.
            longer = rows * 3 // 2 if smallest > LEAP * before > 0 else rows * 9 // 8
            facts.append(Liveness(level=level, rows=longer, smallest_range=smallest))
        rows, before = rows * 5 // 4, smallest
    return tuple(facts)


def _smallest(ranges: Sequence[Floats], share: float) -> float:
    """Return the range that a share of blocks is expected to fall below, by its logarithm."""
    shown = np.concatenate([*ranges, np.empty(0)])
    if not shown.size or not shown.min() > 0:
        return 0.0
    tail = tail_of([-np.log(part) for part in ranges], apart=4)
    smallest = float(shown.min())
    return min(smallest, max(float(np.exp(-tail.level(share))), SMALLER * smallest))


def _noise(readings: Floats) -> float:
    """Return the standard deviation of the sensor's noise, from second differences when calm."""
    bends = np.abs(np.diff(readings[~np.isnan(readings)], n=2))
    return float(np.quantile(bends, 0.2)) / (0.2533 * np.sqrt(6)) if bends.size else 0.0
