"""The tables of the red team and of drift say what was counted."""

import numpy as np
import pytest

from benchmarks.drift import Case
from benchmarks.red_team import Attempt, _change, _described
from benchmarks.red_team_damage import Damage, damage_table
from sluice.invariants import Cause, CauseKind
from sluice.telemetry import Channel, Record, Role


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


def test_a_change_counts_channels_and_its_size_in_standard_deviations() -> None:
    own = record([[0.0, 5.0, 1.0], [2.0, 5.0, 3.0]])  # deviations 1, 0 and 1
    poisoned = record([[0.0, 6.0, 1.0], [5.0, 5.0, 3.0]])
    channels, size = _change(own, poisoned)
    assert channels == 2
    assert size == pytest.approx(3.0)
    assert _change(own, own) == (0, 0.0)


def test_only_admitted_batches_of_the_hardened_gate_are_described() -> None:
    def attempt(gate: str, planted: float, *, admitted: bool) -> Attempt:
        return Attempt(
            attack="offset",
            gate=gate,
            admitted=admitted,
            planted=planted,
            channels=2,
            shift=0.5,
            reason="",
        )

    tried = [
        attempt("paper", 1.0, admitted=True),
        attempt("hardened", 0.4, admitted=True),
        attempt("hardened", 0.9, admitted=False),
    ]
    assert _described(tried) == ("40%", "2", "0.50")
    assert _described(tried[:1]) == ("", "", "")


def test_damage_goes_from_without_to_with_and_shows_the_range_over_seeds() -> None:
    found = [
        Damage(
            attack="ramp",
            detector="subspace",
            seed=seed,
            admitted=2,
            targeted_before=0.4,
            targeted_after=after,
            precision_before=0.8,
            precision_after=0.7,
        )
        for seed, after in ((100, 0.1), (101, 0.3))
    ]
    row = list(damage_table(found))[-1]
    assert row.startswith("| ramp | 2 | ")
    assert "40% to 20% (10% to 30%)" in row
    assert "0.800 to 0.700" in row


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
