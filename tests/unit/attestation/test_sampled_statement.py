"""The integers of `sampled`, against the reference set of the paper."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from sluice.attestation.systems.sampled.budgets import MOST_SILENT, silent_budgets
from sluice.attestation.systems.sampled.rows import SampledRows
from sluice.attestation.systems.sampled.statement import SampledStatement, derive_sampled
from sluice.errors import RefusedError, SettingError
from sluice.invariants.relations import (
    ActuatorState,
    Balance,
    Coupling,
    Evidence,
    Invariant,
    Term,
    Transition,
)
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry.channel import Channel, Codes, Role
from sluice.telemetry.record import Label, Record

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "sampled_swat.json").read_text(encoding="utf-8")
)
COUPLINGS = (
    ("MV101", "FIT101", 2.544863254450158, 0.2901499387476374),
    ("P101", "FIT201", 2.448772117096494, 1.8414072974997848),
    ("MV201", "FIT201", 2.448771567583478, 0.5729455538752142),
    ("P203", "FIT201", 2.450551677219479, 1.559826397499784),
    ("MV301", "FIT601", 1.535568435849057, 0.5615503992736334),
    ("P602", "FIT601", 1.5694242549450552, 1.1122348137363045),
)
BALANCES = (
    ("LIT101", 1.4711893827767586, 6.176890294237751, ("FIT601", 0.02297)),
    ("LIT301", -0.6516929918754931, 3.867791898444862, ("FIT601", 0.05286)),
    ("LIT401", -11.951052471879535, 4.24898809454745, ("FIT101", -0.01399)),
)


def coupling(actuator: str, flow: str, nominal: float, tolerance: float) -> Invariant:
    return Invariant(
        relation=Coupling(
            name=f"{actuator}~{flow}",
            actuator=actuator,
            flow=flow,
            off=1,
            states=(ActuatorState(code=2, nominal=nominal),),
            settle=1,
            transition=Transition.SILENT,
        ),
        tolerance=tolerance,
        evidence=Evidence(judged_rows=14_000),
    )


def balance(level: str, constant: float, tolerance: float, term: tuple[str, float]) -> Invariant:
    return Invariant(
        relation=Balance(
            name=level,
            level=level,
            terms=(Term(channel=term[0], coefficient=term[1]),),
            constant=constant,
            averaged=False,
        ),
        tolerance=tolerance,
    )


def channel(name: str) -> Channel:
    if name in VECTORS["actuators"]:
        moving = (0,) if name.startswith("MV") else ()
        return Channel(name=name, role=Role.ACTUATOR, codes=Codes(off=1, on=(2,), moving=moving))
    return Channel(name=name, role=Role.OTHER)


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    names = sorted((*VECTORS["readings"], *VECTORS["actuators"]))
    return RuleSet(
        plant="swat",
        profile=Profile.PAPER_WIDE,
        stride_s=5.0,
        channels=tuple(channel(name) for name in names),
        invariants=(*(coupling(*each) for each in COUPLINGS), *(balance(*b) for b in BALANCES)),
        calibration_rows=14_202,
    )


@pytest.fixture(scope="module")
def statement(rules: RuleSet) -> SampledStatement:
    return derive_sampled(rules, samples=32, rows_max=1_024)


def batch(statement: SampledStatement, rows: int = 3, **changes: float) -> Record:
    """Rows in which nothing moves, with changes in the last one."""
    names = (*statement.readings, *(found.channel for found in statement.actuators))
    values = np.zeros((rows, len(names)))
    values[:, len(statement.readings) :] = 1
    for name, value in changes.items():
        values[-1, names.index(name)] = value
    start = np.datetime64(datetime(2026, 1, 1), "us")  # noqa: DTZ001 - the plant's own clock
    return Record(
        name="three rows",
        channels=tuple(channel(name) for name in names),
        values=values,
        times=start + np.arange(rows) * np.timedelta64(timedelta(seconds=5)),
        stride_s=5.0,
        labels=np.full(rows, Label.UNLABELLED, np.int8),
    )


def test_the_integers_are_those_of_the_reference_set(statement: SampledStatement) -> None:
    found, known = json.loads(statement.content), VECTORS["statement"]
    assert statement.readings == tuple(VECTORS["readings"])
    assert tuple(each.channel for each in statement.actuators) == tuple(VECTORS["actuators"])
    for name in ("version", "samples", "depth", "readings", "actuators", "couplings"):
        assert found[name] == known[name], name
    for mine, theirs in zip(found["balances"], known["balances"], strict=True):
        assert mine["before"] == theirs["before"]
        assert (mine["constant"], mine["tolerance"]) == (theirs["constant"], theirs["tolerance"])
        assert all(term in theirs["now"] for term in mine["now"])


def test_readings_are_biased_fixed_point_within_thirty_two_bits(
    statement: SampledStatement,
) -> None:
    for reading, encoded in (
        (0.0, 2**31),
        (-62.0, 2_143_420_416),
        (-32_768.0, 0),
        (32_767.99999, 2**32 - 1),
        (0.5 / 65_536, 2**31),  # ties go to the even number
        (1.5 / 65_536, 2**31 + 2),
    ):
        rows = SampledRows.of(statement, batch(statement, LIT101=reading))
        at = 2 * len(statement.readings) + statement.readings.index("LIT101")
        assert np.frombuffer(rows.readings, "<u4")[at] == encoded


@pytest.mark.parametrize("reading", [32_768.0, -32_768.01, 1e9, np.nan])
def test_readings_that_thirty_two_bits_do_not_hold_are_refused(
    statement: SampledStatement, reading: float
) -> None:
    with pytest.raises(RefusedError, match=r"'LIT101' on row 2"):
        SampledRows.of(statement, batch(statement, LIT101=reading))


@pytest.mark.parametrize("code", [1.0001, 1.5, 0.0, 3.0, -1.0, np.nan])
def test_a_code_that_is_none_cannot_silence_a_rule(
    statement: SampledStatement, code: float
) -> None:
    with pytest.raises(RefusedError, match=r"'P101' on row 2; its codes are 1, 2"):
        SampledRows.of(statement, batch(statement, P101=code))


def test_a_time_jump_is_refused(statement: SampledStatement) -> None:
    whole = batch(statement, rows=6)
    times = whole.times.copy()
    times[3:] += np.timedelta64(1, "h")
    jumping = Record(
        name="jumping",
        channels=whole.channels,
        values=whole.values,
        times=times,
        stride_s=whole.stride_s,
        labels=whole.labels,
    )
    with pytest.raises(RefusedError, match="before row 3"):
        SampledRows.of(statement, jumping)


def test_rules_that_are_not_the_papers_are_refused(rules: RuleSet) -> None:
    averaged = Balance(name="LIT101", level="LIT101", terms=(), constant=0.0, averaged=True)
    other = RuleSet(
        plant="swat",
        profile=Profile.HARDENED,
        stride_s=5.0,
        channels=rules.channels,
        invariants=(Invariant(relation=averaged, tolerance=1.0),),
    )
    with pytest.raises(SettingError, match="the paper's couplings and balances"):
        derive_sampled(other, samples=32, rows_max=1_024)


def test_a_file_that_says_a_coupling_was_hardly_ever_judged_gets_no_budget_of_every_row(
    rules: RuleSet,
) -> None:
    """Its silent rows once became the budget: a coupling could be silent on all drawn rows."""
    with pytest.raises(SettingError, match="was silent on 100% of the calibration rows, more than"):
        silent(rules, 1)
    with pytest.raises(SettingError, match="was silent on 31% of the calibration rows"):
        silent(rules, 9_800)
    assert silent(rules, 10_000) < 32


def silent(rules: RuleSet, judged: int | None, *, calibrated: int = 14_202) -> int:
    """The budget of silent rows of one coupling, judged on so many of the calibration rows."""
    alone = replace(rules.invariants[0], evidence=Evidence(judged_rows=judged))
    stated = replace(rules, invariants=(alone,), calibration_rows=calibrated)
    (budget,) = silent_budgets(derive_sampled(stated, samples=32, rows_max=1_024))
    return budget


def test_a_coupling_was_judged_on_one_calibration_row_at_least_and_on_all_at_most(
    rules: RuleSet,
) -> None:
    assert silent(rules, 14_202) < silent(rules, 10_000)
    assert silent(rules, 1, calibrated=1) == 32
    for judged, calibrated in ((None, 14_202), (0, 14_202), (14_203, 14_202), (0, 0)):
        with pytest.raises(SettingError, match="does not say on how many calibration rows"):
            silent(rules, judged, calibrated=calibrated)


def test_a_coupling_may_be_silent_on_exactly_the_largest_share(rules: RuleSet) -> None:
    assert MOST_SILENT == 300 / 1_000
    assert silent(rules, 700, calibrated=1_000) < 32
    with pytest.raises(SettingError, match="was silent on 30% of the calibration rows, more than"):
        silent(rules, 699, calibrated=1_000)
