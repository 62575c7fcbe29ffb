"""What `sluice mine` used and found, and how its rules would treat the plant's own later rows."""

from collections.abc import Iterator

from sluice.cli.console import out, table
from sluice.invariants import RuleSet, duration
from sluice.invariants.mining import HonestRefusal, Mined
from sluice.telemetry import Record

__all__ = ["advice", "refusal_payload", "show_summary"]

MOST_NAMED = 5
WIDE = 0.025  # an interval that ends above this says little


def refusal_payload(honest: HonestRefusal) -> dict[str, object]:
    """Return the predicted refusal rate for `--json`."""
    worst = honest.worst
    return {
        "rate": worst.rate,
        "low": worst.low,
        "high": worst.high,
        "target": honest.target,
        "rows": worst.rows,
        "batches": worst.batches,
        "by_rows": [
            {
                "rows": share.rows,
                "batches": share.batches,
                "refused": share.refused,
                "rate": share.rate,
                "low": share.low,
                "high": share.high,
            }
            for share in honest.by_rows
        ],
        "blamed": [
            {"check": each.check, "rule": each.rule, "batches": each.batches}
            for each in honest.blamed
        ],
        "rows_missing": honest.rows_missing,
        "shown": honest.shown,
    }


def show_summary(mined: Mined, record: Record) -> None:
    """Print one table: what was used, found, dropped, and what is predicted."""
    rules = mined.rules
    summary = table("\nSummary", "", "")
    for name, value in _lines(mined, rules, record):
        summary.add_row(name, value)
    out.print(summary)


def _lines(mined: Mined, rules: RuleSet, record: Record) -> Iterator[tuple[str, str]]:
    used = sum(run.rows for run in mined.parts)
    length = duration(used * record.stride_s)
    stretches = f"{len(mined.parts)} stretches" if len(mined.parts) > 1 else "one stretch"
    yield "clean rows used", f"{used:,} of {len(record):,} ({length}), in {stretches}"
    kinds = dict.fromkeys(rule.kind for rule in rules.invariants)
    counts = ", ".join(f"{len(rules.of_kind(kind))} {kind.value}" for kind in kinds)
    yield "rules found", f"{len(rules.invariants)}: {counts}"
    yield "candidates dropped", str(len(rules.dropped))
    if rules.untied is not None:
        names = ", ".join(rules.untied) or "none"
        yield "untied channels", f"{len(rules.untied)} of {len(rules.channels)}: {names}"
    if mined.honest is not None:
        for share in mined.honest.by_rows:
            counted = f"{share.refused} of {share.batches} refused"
            interval = f"{share.rate:.1%} ({share.low:.1%} to {share.high:.1%})"
            yield f"honest batches of {share.rows:,} rows", f"{counted}: {interval}"
        yield "target", f"at most {mined.honest.target:.1%} refused"
        if mined.honest.kept and not mined.honest.shown:
            worst = mined.honest.worst
            said = f"none: with {worst.batches} batches, up to {worst.high:.1%} may stay unseen"
            yield "promise", said
        if mined.honest.worst.high > WIDE and mined.honest.rows_missing:
            missing = duration(mined.honest.rows_missing * rules.stride_s)
            rows = f"{mined.honest.rows_missing:,} more rows ({missing})"
            yield "more clean data", f"{rows} would show whether the rate is below {WIDE:.1%}"


def advice(honest: HonestRefusal, rules: RuleSet) -> Iterator[str]:
    """Yield why the target is not met or not shown, the rules to blame, and what to do."""
    worst = honest.worst
    if not worst.batches:
        yield (
            f"the clean rows are too few to try a batch of {worst.rows:,} rows, so no refusal rate "
            f"can be predicted; add {honest.rows_missing:,} rows "
            f"({duration(honest.rows_missing * rules.stride_s)})"
        )
        return
    if honest.kept:
        yield (
            f"{worst.batches} honest batches of {worst.rows:,} rows were tried, so up to "
            f"{worst.high:.1%} refused may stay unseen, and the target of {honest.target:.1%} is "
            f"not promised; add {honest.rows_missing:,} rows "
            f"({duration(honest.rows_missing * rules.stride_s)})"
        )
        return
    yield (
        f"the rules would refuse {worst.refused} of {worst.batches} honest batches of "
        f"{worst.rows:,} rows ({worst.rate:.1%}); the target is {honest.target:.1%}"
    )
    named = [each for each in honest.blamed if each.rule][:MOST_NAMED]
    for each in named:
        yield f"{each.rule} is to blame for {each.batches} of them ({each.check})"
    yield (
        "mine more days of clean data, drop these rules, or widen them and have the wider rules "
        "approved ('sluice rules seal', 'sluice rules approve --looser')"
    )
