"""The tables of the red team and of drift say what was counted."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.drift import Case, Counted
from benchmarks.drift import page as drift_page
from benchmarks.red_team.attempts import changed_readings
from benchmarks.red_team.page import Size, page
from benchmarks.red_team.store import Attempt, Damage, Key, Result, Store
from benchmarks.red_team.subjects import FIRST_KINDS, HARDENED
from sluice.admission import Gate, PaperPolicy
from sluice.invariants import Cause, CauseKind, Profile, RuleSet
from sluice.telemetry import Channel, Record, Role, Span


def record(values: list[list[float]]) -> Record:
    rows = len(values)
    return Record(
        name="tank",
        channels=tuple(Channel(name=f"L{at}", role=Role.LEVEL) for at in range(len(values[0]))),
        values=np.array(values),
        times=np.datetime64("2026-01-01", "us") + np.arange(rows) * np.timedelta64(1, "m"),
        stride_s=60.0,
        labels=np.zeros(rows, np.int8),
    )


def gate(*channels: Channel) -> Gate:
    rules = RuleSet(
        plant="tank",
        profile=Profile.PAPER_WIDE,
        stride_s=60.0,
        channels=channels,
        invariants=(),
    )
    return Gate(rules=rules, policy=PaperPolicy(), encoding=None)


def test_a_row_is_touched_if_a_channel_changes_by_more_than_a_little() -> None:
    own = record([[0.0, 5.0, 1.0], [2.0, 5.0, 3.0]])  # deviations 1, 0 and 1
    poisoned = record([[0.09, 5.0, 1.0], [5.0, 5.0, 3.0]])
    changed, size = changed_readings(own, poisoned, gate())
    assert changed.tolist() == [[False, False, False], [True, False, False]]
    assert size == pytest.approx(((0.09**2 + 3**2) / 2) ** 0.5)
    none, nothing = changed_readings(own, own, gate())
    assert not none.any()
    assert nothing == 0.0


def test_an_idle_channel_is_touched_beyond_a_thousandth_of_its_span() -> None:
    idle = Channel(name="L0", role=Role.LEVEL, span=Span(low=0.0, high=10.0))
    own = record([[5.0], [5.0]])
    changed, _ = changed_readings(own, record([[5.009], [5.011]]), gate(idle))
    assert changed.tolist() == [[False], [True]]


def test_rows_that_are_added_count_as_touched() -> None:
    changed, _ = changed_readings(record([[0.0], [1.0]]), record([[0.0], [1.0], [1.0]]), gate())
    assert changed.any(axis=1).tolist() == [False, False, True]


def result(
    attack: str,
    gate: str,
    *attempts: tuple[bool | None, float],
    seed: int = 100,
    after: float | None = None,
) -> Result:
    return Result(
        key=Key(plant="tank", seed=seed, gate=gate, rules="0", attack=attack),
        attempts=tuple(
            Attempt(
                client=f"plant-{at}",
                admitted=admitted,
                touched=touched,
                touched_read=touched / 2,
                channels=2,
                shift=0.5,
                reasons=() if admitted else ("L1 moves by nothing; clean rows move",),
            )
            for at, (admitted, touched) in enumerate(attempts)
        ),
        damages=()
        if after is None
        else (
            Damage(
                detector="subspace",
                admitted=1,
                targeted_before=0.4,
                targeted_after=after,
                precision_before=0.8,
                precision_after=0.7,
            ),
        ),
        seconds=1.0,
    )


SIZE = Size(seeds=(100, 101), clients=2, left_out=(), plants=("tank",))


def line_of(results: list[Result], start: str) -> str:
    return next(line for line in "\n".join(page(results, SIZE)).splitlines() if start in line)


def test_only_batches_that_touch_more_than_a_twentieth_must_be_refused() -> None:
    refused = [result("offset", HARDENED, (False, 1.0), (True, 0.05), (None, 0.0))]
    assert line_of(refused, "| offset |").startswith("| offset | 1 | 1 | 100% |")
    assert "| yes |" in line_of(refused, "| offset |")
    admitted = [result("offset", HARDENED, (False, 1.0), (True, 0.06))]
    assert line_of(admitted, "| offset |").startswith("| offset | 2 | 1 | 50% |")
    assert line_of(admitted, "| offset |").endswith("| **no** | tank | 1 of 1 |")
    assert "not run" in line_of(admitted, "| low-pass |")


def test_planted_rows_and_damage_are_compared_with_the_first_kinds() -> None:
    results = [
        result("ramp", FIRST_KINDS, (True, 0.8), (True, 0.8), after=0.1),
        result("ramp", HARDENED, (True, 0.8), (False, 0.8), after=0.3),
    ]
    row = line_of(results, "| tank | ramp |")
    assert row == (
        "| tank | ramp | 2 | 80% to 40% | yes | 0.50 to 0.50 | subspace | 30.0 to 10.0 | yes |"
    )
    unpaired = [*results, result("ramp", HARDENED, (True, 0.9), (True, 0.9), seed=101, after=0.1)]
    assert line_of(unpaired, "| tank | ramp |") == row
    worse = [results[0], result("ramp", HARDENED, (True, 0.9), (True, 0.9), after=0.1)]
    assert line_of(worse, "| tank | ramp |").count("**no**") == 2


def test_the_table_of_a_plant_describes_admitted_batches_alone() -> None:
    results = [
        result("ramp", HARDENED, (True, 0.4), (False, 0.9), seed=seed, after=after)
        for seed, after in ((100, 0.1), (101, 0.3))
    ]
    row = line_of(results, "| ramp |")
    assert "| 2 of 4 | 40% | 2 | 0.50 | 40% to 20% (10% to 30%), 0.800 to 0.700" in row
    assert row.endswith("| L1 moves by nothing |")


def test_a_run_is_continued_with_the_results_that_are_stored(tmp_path: Path) -> None:
    store = Store(tmp_path / "results" / "red-team.jsonl")
    first = result("ramp", HARDENED, (True, 0.4), (None, 0.0), after=0.1)
    store.add(first)
    again = Store(tmp_path / "results" / "red-team.jsonl")
    assert list(again) == [first]
    assert first.key in again
    assert replace(first.key, rules="1") not in again


def test_results_against_older_rules_are_not_shown(tmp_path: Path) -> None:
    store = Store(tmp_path / "red-team.jsonl")
    old = result("ramp", HARDENED, (True, 0.4))
    new = replace(old, key=replace(old.key, rules="1"))
    other = result("ramp", FIRST_KINDS, (True, 0.4))
    for each in (old, other, new):
        store.add(each)
    assert list(store.of_last_rules()) == [other, new]


def test_the_page_on_drift_names_the_plants_it_leaves_out() -> None:
    said = {"nothing": {"named": 0, "other": 1, "nothing": 3}}
    counted = Counted(plant="line", days=14, rules="0", seeds=(102, 103), said=said)
    lines = list(drift_page({"line": counted}))
    assert "| line | 102 to 103 | 14 | nothing | 4 |  | 1 | 3 |" in lines
    assert any(line.startswith("This run leaves out treatment, network:Net1") for line in lines)


@pytest.mark.parametrize(
    ("kind", "subject", "judged"),
    [(CauseKind.LEAK, "L1", "named"), (CauseKind.METER, "F1", "other"), (None, "", "nothing")],
)
def test_a_change_is_named_if_kind_and_channel_are_right(
    kind: CauseKind | None, subject: str, judged: str
) -> None:
    said = () if kind is None else (cause(kind, subject),)
    case = Case(what="leak", kind=CauseKind.LEAK, subject="L1", record=record([[1.0]]))
    assert case.judged(said) == judged


def cause(kind: CauseKind, subject: str) -> Cause:
    return Cause(
        kind=kind, subject=subject, size=1.0, unit="L/h", since_row=0, since="", sentence=""
    )
