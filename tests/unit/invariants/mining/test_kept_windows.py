"""Windows that are kept from earlier rules have the facts that their budgets need."""

from dataclasses import replace

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy
from sluice.invariants.mining.renewal import keep_tolerances
from tests.unit.invariants.small_plant import (
    BALANCED,
    COUPLED,
    WINDOW,
    WINDOWED,
    quiet_day,
    record_of,
    rule,
    rules_of,
)


def test_a_kept_window_longer_than_the_new_rows_keeps_its_fact() -> None:
    """Judging a longer batch by such rules once ended in a `KeyError`."""
    long = rule(replace(WINDOW, name="dL1/32", rows=32), 12.0)
    old, new = rules_of(COUPLED, BALANCED, long), rules_of(COUPLED, BALANCED, WINDOWED)
    rules, kept = keep_tolerances(old, new, record_of(quiet_day()))
    assert "dL1/32" in {each.rule for each in kept}
    assert rules.clean is not None
    assert old.clean is not None
    facts = {fact.rule: fact.share for fact in rules.clean.anchors}
    (before,) = (fact.share for fact in old.clean.anchors if fact.rule == "dL1/32")
    assert facts["dL1/32"] == before
    batch = record_of({name: values * 3 for name, values in quiet_day().items()})
    verdict = Gate.of(rules, HardenedPolicy(rows_min=1)).judge(batch)
    assert "dL1/32" in {finding.name for finding in verdict.findings}
