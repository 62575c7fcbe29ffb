"""The predicted refusal rate: whole clean batches that rules mined without them would refuse."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from sluice.arrays import Bools
from sluice.invariants.budgets import Budgets, Margins, budgets_for
from sluice.invariants.encoding import encode
from sluice.invariants.integers import Judged
from sluice.invariants.measure import Measurement, Repeated, measure
from sluice.invariants.relations import Coupling
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Record

__all__ = [
    "BATCH_ROWS",
    "TARGET",
    "Blamed",
    "HonestRefusal",
    "RefusedShare",
    "RepeatedBatches",
    "exceeded",
    "tried",
]

BATCH_ROWS = (300, 600, 1_000, 4_000)
"""The lengths of the batches that are tried, where the record has them."""
TARGET = 0.005
"""The share of honest batches that may be refused."""
CONFIDENCE = 0.95
WORTH_KNOWING = 0.025  # the upper end of the interval that a record should be long enough for


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedShare:
    """How many clean batches of one length would be refused; no two of them overlap."""

    rows: int
    batches: int
    refused: int

    @property
    def rate(self) -> float:
        """The share of refused batches; 1 where none could be tried."""
        return self.refused / self.batches if self.batches else 1.0

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval (Clopper and Pearson)."""
        if not self.refused:
            return 0.0
        tail = (1 - CONFIDENCE) / 2
        return float(beta.ppf(tail, self.refused, self.batches - self.refused + 1))

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval."""
        if self.refused >= self.batches:
            return 1.0
        tail = (1 - CONFIDENCE) / 2
        return float(beta.isf(tail, self.refused + 1, self.batches - self.refused))


@dataclass(frozen=True, slots=True, kw_only=True)
class Blamed:
    """A check of a rule that refused clean batches."""

    check: str
    rule: str
    batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HonestRefusal:
    """The refusal rate of honest batches that the rules' own clean record predicts."""

    by_rows: tuple[RefusedShare, ...]
    blamed: tuple[Blamed, ...] = ()
    target: float = TARGET

    @property
    def worst(self) -> RefusedShare:
        """The batch length with the largest share; of equal shares, the one with most batches."""
        return max(self.by_rows, key=lambda share: (share.rate, share.batches))

    @property
    def kept(self) -> bool:
        """Whether the rate is at most the target."""
        return self.worst.rate <= self.target

    @property
    def shown(self) -> bool:
        """Whether enough batches were tried to tell a kept target from a rate of 2.5 %.

        A target that is kept on a dozen batches is no promise: a rate of a fifth may stay unseen.
        """
        return self.kept and max(share.batches for share in self.by_rows) >= _batches_needed()

    @property
    def rows_missing(self) -> int:
        """The clean rows to add until no refusal would mean a rate of at most 2.5 %."""
        return max(0, _batches_needed() - self.worst.batches) * self.worst.rows


def _batches_needed() -> int:
    """Return the batches of which none may be refused, so that the interval ends at 2.5 %."""
    return int(np.ceil(np.log((1 - CONFIDENCE) / 2) / np.log(1 - WORTH_KNOWING)))


RepeatedBatches = dict[tuple[int, int, int], Repeated]
"""The repeated rows of batches, by pair, first row and length; they do not depend on limits."""


def tried(
    pairs: Sequence[tuple[RuleSet, Record]],
    margins: Margins,
    target: float = TARGET,
    *,
    repeated: RepeatedBatches | None = None,
) -> HonestRefusal:
    """Judge clean batches by rules that do not know them, at every length the records have.

    `repeated` keeps what takes longest to find for the next trial of the same records.
    """
    known = {} if repeated is None else repeated
    rows_least = max(rules.rows_needed for rules, _ in pairs)
    longest = min(len(record) for _, record in pairs)
    lengths = [rows for rows in BATCH_ROWS if rows_least <= rows <= longest]
    if not lengths and longest >= rows_least:
        lengths = [longest]
    blamed: Counter[tuple[str, str]] = Counter()
    shares = []
    for rows in lengths:
        batches = refused = 0
        for at, (rules, record) in enumerate(pairs):
            encoding = encode(rules)
            assert rules.clean is not None
            budgets = budgets_for(rules, rules.clean, margins, rows=rows)
            for start in range(0, len(record) - rows + 1, rows):
                batch = record.rows(start, start + rows)
                measured = measure(
                    rules, batch, encoding=encoding, repeated=known.get((at, start, rows))
                )
                known[at, start, rows] = measured.repeated
                checks = set(exceeded(measured, budgets))
                blamed.update(checks)
                refused += bool(checks)
                batches += 1
        shares.append(RefusedShare(rows=rows, batches=batches, refused=refused))
    if not shares:
        shares = [RefusedShare(rows=rows_least, batches=0, refused=0)]
    return HonestRefusal(
        by_rows=tuple(shares),
        blamed=tuple(
            Blamed(check=check, rule=rule, batches=count)
            for (check, rule), count in blamed.most_common()
        ),
        target=target,
    )


def exceeded(measured: Measurement, budgets: Budgets) -> Iterator[tuple[str, str]]:
    """Yield each check of the hardened gate whose budget a measured batch exceeds, and its rule.

    A test compares it with the verdicts of the gate, which may not be imported here.
    """
    if measured.segments > budgets.segments:
        yield "time jumps", ""
    yield from _rows_exceeded(measured, budgets)
    own = budgets.own
    for found in measured.judged:
        name = found.rule.name
        if found.own_budget and np.count_nonzero(found.violating) > own[name]:
            yield "own budget", name
        coupled = isinstance(found.rule.relation, Coupling)
        if coupled and np.count_nonzero(found.envelope) > budgets.envelope_rows[name]:
            yield "rows in transition", name
    for fact, ranges in measured.quietest:
        if (ranges < budgets.quietest[fact.level, fact.rows]).any():
            yield "standing still", fact.level
    for level, rows in measured.repeated:
        if np.count_nonzero(rows) > budgets.repeated_rows[level]:
            yield "repeated readings", level


def _rows_exceeded(measured: Measurement, budgets: Budgets) -> Iterator[tuple[str, str]]:
    """Yield the budgets that all row rules share, with the rule that spends most of it."""
    by_row = [found for found in measured.judged if not found.own_budget]
    if np.count_nonzero(measured.violating) > budgets.violating_rows:
        yield "violating rows", _most([(found, found.violating) for found in by_row])
    beyond = [(found, found.size > budgets.severe[found.rule.name]) for found in by_row]
    severe = np.zeros(measured.rows, bool)
    for _, rows in beyond:
        severe |= rows
    if np.count_nonzero(severe) > budgets.severe_rows:
        yield "severe rows", _most(beyond)


def _most(found: Sequence[tuple[Judged, Bools]]) -> str:
    """Return the rule with most marked rows; empty if none has any."""
    rule, count = "", 0
    for judged, rows in found:
        if np.count_nonzero(rows) > count:
            rule, count = judged.rule.name, int(np.count_nonzero(rows))
    return rule
