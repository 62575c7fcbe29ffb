"""The gate: one batch, one rule set, one policy, one verdict."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sluice.admission.evidence import finding_of, operator_sentence, worst_rows
from sluice.admission.policy import HardenedPolicy, PaperPolicy, Policy
from sluice.admission.verdict import Finding, LyingLevel, Verdict, WorstRow
from sluice.arrays import Bools
from sluice.errors import EmptyRulesError, RecordError, SettingError
from sluice.invariants import (
    Budgets,
    Encoding,
    Measurement,
    RuleRows,
    RuleSet,
    block_starts,
    budgets_for,
    encode,
    measure,
    residuals,
    violations,
)
from sluice.telemetry import Record

__all__ = ["EmptyRulesWarning", "Gate", "judge"]


WORST_ROWS_UP_TO = 100_000
"""In a longer batch finding the worst rows costs more than judging all of them."""


class EmptyRulesWarning(UserWarning):
    """The rule set holds no physics: whatever is in range is admitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A rule set and a policy, made ready once for many batches."""

    rules: RuleSet
    policy: Policy
    encoding: Encoding | None = None

    @classmethod
    def of(cls, rules: RuleSet, policy: Policy, *, allow_empty: bool = False) -> "Gate":
        """Prepare; rules without physics are refused unless allowed, and then said aloud."""
        if rules.empty:
            message = (
                f"the rules of {rules.plant!r} hold no coupling, balance or window: every batch in "
                "range would be admitted"
            )
            if not allow_empty:
                raise EmptyRulesError(f"{message}; mine other rows or go on with --allow-empty")
            warnings.warn(message, EmptyRulesWarning, stacklevel=2)
        hardened = isinstance(policy, HardenedPolicy)
        return cls(rules=rules, policy=policy, encoding=encode(rules) if hardened else None)

    def judge(self, batch: Record) -> Verdict:
        """Judge one batch."""
        if len(batch) == 0:
            raise RecordError(f"batch {batch.name!r} has no rows")
        if batch.stride_s != self.rules.stride_s:
            times = self.rules.stride_s / batch.stride_s
            remedy = f"keep every {times:g}-th row (--every {times:g})"
            if times < 1 or times != round(times):
                remedy = "mine rules at the batch's stride, or look whether it is another plant's"
            raise SettingError(
                f"batch {batch.name!r} has a stride of {batch.stride_s:g} s, the rules of "
                f"{self.rules.plant!r} one of {self.rules.stride_s:g} s; {remedy}"
            )
        self.rules.demand(batch)
        if isinstance(self.policy, PaperPolicy):
            return _by_paper(self.rules, self.policy, batch)
        return self._hardened(self.policy, batch)

    def _hardened(self, policy: HardenedPolicy, batch: Record) -> Verdict:
        if self.rules.clean is None or self.encoding is None:
            raise SettingError(
                f"the rules of {self.rules.plant!r} are of profile {self.rules.profile.value!r}, "
                "which says nothing of clean batches; judge them with --policy paper or mine "
                "with --profile hardened"
            )
        if not policy.rows_min <= len(batch) <= policy.rows_max:
            raise RecordError(
                f"batch {batch.name!r} has {len(batch)} rows; the policy takes "
                f"{policy.rows_min} to {policy.rows_max}"
            )
        measured = measure(self.rules, batch, encoding=self.encoding)
        budgets = budgets_for(self.rules, self.rules.clean, policy.margins, rows=len(batch))
        lying = (*_still(self.encoding, measured, budgets), *_repeated(measured, budgets, batch))
        reasons, suspect = _reasons(measured, budgets, batch)
        for level in lying:
            suspect |= level.rows
        reasons += tuple(level.sentence for level in lying)
        findings = tuple(
            finding_of(found, batch, budgets, policy.margins.alpha) for found in measured.judged
        )
        return Verdict(
            admitted=not reasons,
            rows=len(batch),
            violating_rows=int(measured.violating.sum()),
            reasons=reasons,
            findings=findings,
            violating=measured.violating,
            suspect=suspect,
            lying=lying,
        )


def judge(
    batch: Record, rules: RuleSet, policy: Policy | None = None, *, allow_empty: bool = False
) -> Verdict:
    """Judge one batch; by default as hard as the rules allow."""
    if policy is None:
        policy = HardenedPolicy() if rules.clean else PaperPolicy()
    return Gate.of(rules, policy, allow_empty=allow_empty).judge(batch)


def _by_paper(rules: RuleSet, policy: PaperPolicy, batch: Record) -> Verdict:
    """Equation 4: the share of rows that break an applicable relation."""
    check = violations(rules, batch)
    findings = tuple(_finding(found, batch, policy) for found in check.rules)
    rows = int(np.count_nonzero(check.violating))
    share = rows / len(batch)
    reason = f"{rows:,} of {len(batch):,} rows ({share:.2%}) break a rule; {policy.alpha:.2%} may"
    return Verdict(
        admitted=share <= policy.alpha,
        rows=len(batch),
        violating_rows=rows,
        reasons=() if share <= policy.alpha else (reason,),
        findings=findings,
        violating=check.violating,
        suspect=check.violating,
    )


def _finding(found: RuleRows, batch: Record, policy: PaperPolicy) -> Finding:
    rule, rows = found.rule, len(batch)
    worst: tuple[WorstRow, ...] = ()
    if found.violating_rows and rows <= WORST_ROWS_UP_TO:
        excess = np.abs(residuals(rule.relation, batch).values) / rule.tolerance
        worst = worst_rows(rule, batch, found.broken, np.nan_to_num(excess))
    return Finding(
        name=rule.name,
        kind=rule.kind,
        violating_rows=found.violating_rows,
        violating_share=found.violating_rows / rows,
        inapplicable_share=1 - found.applicable_rows / rows,
        envelope_share=found.envelope_rows / rows,
        limit=policy.alpha,
        sentence=operator_sentence(rule, batch, found.broken),
        worst=worst,
    )


def _reasons(
    measured: Measurement, budgets: Budgets, batch: Record
) -> tuple[tuple[str, ...], Bools]:
    """Hold what was measured against every budget, in the order of the hardened policy."""
    rows = measured.rows
    reasons: list[str] = []
    suspect = measured.violating.copy()
    if measured.segments > budgets.segments:
        reasons.append(
            f"{measured.segments - 1} time jumps in {rows:,} rows; {budgets.segments - 1} may be"
        )
    violating = int(measured.violating.sum())
    if violating > budgets.violating_rows:
        reasons.append(
            f"{violating:,} of {rows:,} rows ({violating / rows:.2%}) break a rule, miss a reading "
            f"or show an unknown code; {budgets.violating_rows:,} may"
        )
    severe = np.zeros(rows, bool)
    for found in measured.judged:
        name = found.rule.name
        if found.anchors.size:
            broken = found.anchors[found.violating[found.anchors]]
            suspect[broken] = True
            if broken.size > budgets.anchors[name]:
                reasons.append(
                    f"{name}: {broken.size} of {found.anchors.size} windows do not balance; "
                    f"{budgets.anchors[name]} may"
                )
            continue
        severe |= found.size > budgets.severe[name]
        waiting = int(found.envelope.sum())
        if name in budgets.envelope_rows and waiting > budgets.envelope_rows[name]:
            reasons.append(
                f"{name}: {waiting:,} of {rows:,} rows are in transition; "
                f"{budgets.envelope_rows[name]:,} may: it switches, or a standby runs, more than "
                "clean rows showed"
            )
    if severe.sum() > budgets.severe_rows:
        first = int(severe.argmax())
        reasons.append(
            f"{int(severe.sum())} rows are beyond what any plant does (first at "
            f"{_at(batch, first)}); {budgets.severe_rows} may"
        )
    return tuple(reasons), suspect


def _still(encoding: Encoding, measured: Measurement, budgets: Budgets) -> Iterator[LyingLevel]:
    """Find the levels that stood still for longer than they ever did."""
    for fact, ranges in measured.quietest:
        least = budgets.quietest[fact.level, fact.rows]
        dead = np.flatnonzero(ranges < least)
        if dead.size:
            rows = np.zeros(measured.rows, bool)
            for start in block_starts(measured.rows, fact.rows)[dead]:
                rows[start : start + fact.rows] = True
            shown = least * encoding.register(fact.level).step
            sentence = (
                f"{fact.level} moves by less than {shown:.3g} over {fact.rows} rows "
                f"({dead.size} blocks); clean rows always moved by {fact.smallest_range:.3g}"
            )
            yield LyingLevel(level=fact.level, sentence=sentence, rows=rows)


def _repeated(measured: Measurement, budgets: Budgets, batch: Record) -> Iterator[LyingLevel]:
    """Find the levels that show readings they have shown before."""
    for level, rows in measured.repeated:
        count, most = int(rows.sum()), budgets.repeated_rows.get(level, 0)
        if count > most:
            sentence = (
                f"{level} shows the same readings twice, digit by digit, on {count:,} rows (first "
                f"at {_at(batch, int(rows.argmax()))}); {most:,} may"
            )
            yield LyingLevel(level=level, sentence=sentence, rows=rows)


def _at(batch: Record, row: int) -> str:
    return str(batch.times[row].astype("datetime64[s]")).replace("T", " ")
