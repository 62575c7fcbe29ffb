"""The fast evaluator on typed rows: its counts, its threads, and errors from inside a thread."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sluice.arrays import Bools
from sluice.errors import MissingChannelError
from sluice.invariants import rowcheck
from sluice.invariants.relations import Term, Transition
from sluice.invariants.rowcheck import RowCheck, violations
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import (
    BALANCE,
    BALANCED,
    COUPLED,
    COUPLING,
    EVERY_RULE,
    quiet_day,
    record_of,
    rule,
    rules_of,
)

NAN = float("nan")
SILENT = rule(replace(COUPLING, transition=Transition.SILENT), 6.0)


def rows(marked: Bools) -> list[int]:
    return [int(row) for row in np.flatnonzero(marked)]


@pytest.fixture(params=["reference", "fast", "threads"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Evaluate as for a short record, as for a long one, and as for one worth threads."""
    if request.param != "reference":
        monkeypatch.setattr(rowcheck, "SHORT_ROWS", 0)
        monkeypatch.setattr(rowcheck, "BLOCK_ROWS", 3)
        monkeypatch.setattr(rowcheck, "STRETCH_ROWS", 5)
    if request.param == "threads":
        monkeypatch.setattr(rowcheck, "LONG_ROWS", 0)
        monkeypatch.setattr(rowcheck, "THREADS", 2)
    return str(request.param)


def spoiled() -> Record:
    """The quiet day with a flow at rest, a leap of the level, and two missing readings."""
    columns = quiet_day()
    columns["F1"][2] = 6.1  # beyond the tolerance of 6 while the pump is off
    columns["F1"][4] = 900.0  # the row of a switch
    columns["F1"][8] = NAN
    columns["L1"][13] = 1_900.0
    columns["P1"][9] = NAN
    return record_of(columns)


def checked(*, jumps: tuple[int, ...] = ()) -> RowCheck:
    record = spoiled()
    if jumps:
        record = record_of({name: list(record.column(name)) for name in record.names}, jumps=jumps)
    return violations(rules_of(SILENT, BALANCED), record)


@pytest.mark.usefixtures("way")
def test_rows_are_counted_by_rule() -> None:
    coupling, balance = checked().rules
    assert rows(coupling.broken) == [2]
    assert coupling.violating_rows == 1
    # not judged: 0, 4 and 12 (switches), 8 (no flow), 9 (no state) and 10 (the state is back)
    assert coupling.applicable_rows == 10
    assert coupling.envelope_rows == 0
    assert rows(balance.broken) == [4, 13, 14]
    assert balance.applicable_rows == 14  # not the first row, and not the one without a flow


@pytest.mark.usefixtures("way")
def test_a_row_violates_if_it_breaks_any_rule() -> None:
    assert rows(checked().violating) == [2, 4, 13, 14]


@pytest.mark.usefixtures("way")
def test_a_time_jump_hides_the_step_over_it() -> None:
    check = checked(jumps=(14,))
    assert rows(check.rules[1].broken) == [4, 13]
    assert check.rules[1].applicable_rows == 13
    assert check.rules[0].applicable_rows == 9  # the row after the jump is not settled


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("flow", "broken"), [(6.0, []), (np.nextafter(6.0, 7.0), [1])])
def test_exactly_the_tolerance_is_allowed(flow: float, broken: list[int]) -> None:
    check = violations(rules_of(SILENT), record_of({"P1": [0, 0], "F1": [0, flow]}))
    assert rows(check.violating) == broken


@pytest.mark.usefixtures("way")
def test_a_balance_without_terms_expects_its_constant() -> None:
    still = rule(replace(BALANCE, terms=(), constant=-1.0), 0.5)
    check = violations(rules_of(still), record_of({"L1": [9.0, 8.0, 7.0, 7.0, 5.5]}))
    assert rows(check.violating) == [3]
    assert check.rules[0].applicable_rows == 4


@pytest.mark.usefixtures("way")
def test_terms_are_added_in_their_order() -> None:
    twice = rule(replace(BALANCE, terms=(*BALANCE.terms, Term(channel="P1", coefficient=-1))), 0.0)
    columns = {"P1": [0, 4, 2], "F1": [0, 10, 6], "L1": [50, 51, 52]}
    check = violations(rules_of(twice), record_of(columns))
    assert rows(check.violating) == []
    columns["L1"][2] = 53
    assert rows(violations(rules_of(twice), record_of(columns)).violating) == [2]


@pytest.mark.usefixtures("way")
def test_an_envelope_is_judged_as_the_reference_does() -> None:
    columns = quiet_day()
    columns["F1"][4] = 307.0
    check = violations(rules_of(COUPLED), record_of(columns))
    assert rows(check.violating) == [4]
    assert check.rules[0].envelope_rows == 3


def test_one_row_is_judged(way: str) -> None:
    check = violations(EVERY_RULE, record_of({"P1": [0], "F1": [0], "L1": [10]}))
    assert rows(check.violating) == [0], way  # below its range; nothing else applies


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_one_part_reaches_the_caller(threads: int) -> None:
    def fail() -> None:
        raise ZeroDivisionError("part")

    done: list[str] = []
    with pytest.raises(ZeroDivisionError, match="part"):
        rowcheck._run([partial(done.append, "first"), fail], threads=threads)
    assert done == ["first"]


def test_a_record_that_lacks_a_channel_is_refused_with_the_rule_that_reads_it(way: str) -> None:
    day = quiet_day()
    for name in sorted(
        {each for found in EVERY_RULE.invariants for each in found.relation.channels}
    ):
        rest = record_of({tag: readings for tag, readings in day.items() if tag != name})
        with pytest.raises(MissingChannelError, match=f"'{name}'.* rule '"):
            violations(EVERY_RULE, rest)
    assert way
