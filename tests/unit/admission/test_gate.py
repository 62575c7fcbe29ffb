"""What a gate refuses before it judges: a batch that its rules cannot read."""

from dataclasses import replace

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.errors import EmptyRulesError, MissingChannelError, RecordError, SettingError
from tests.unit.invariants.small_plant import BALANCED, FLOWS, STATES, record_of, rules_of

GATE = Gate.of(rules_of(BALANCED), PaperPolicy())
COLUMNS = {"P1": STATES, "F1": FLOWS, "L1": FLOWS}
BATCH = record_of(COLUMNS)


def test_a_batch_that_fits_the_rules_is_measured() -> None:
    assert GATE.measure(BATCH).record == BATCH


def test_a_batch_without_a_channel_that_a_rule_reads_is_refused_whatever_its_length() -> None:
    with pytest.raises(MissingChannelError, match="F1"):
        GATE.measure(BATCH.without("F1"))


def test_a_batch_of_another_stride_is_refused() -> None:
    with pytest.raises(SettingError, match="has a stride of"):
        GATE.measure(record_of(COLUMNS, stride_s=20.0))


def test_a_batch_without_rows_is_refused() -> None:
    empty = replace(BATCH, values=BATCH.values[:0], times=BATCH.times[:0], labels=BATCH.labels[:0])
    with pytest.raises(RecordError, match="has no rows"):
        GATE.measure(empty)


def test_rules_that_hold_nothing_make_no_gate() -> None:
    with pytest.raises(EmptyRulesError, match="pass --allow-empty"):
        Gate.of(rules_of(), PaperPolicy())
