"""Separation: honest batches pass, fabricated ones do not, and the table says how sure that is."""

import pytest

from sluice.admission.gate import Gate
from sluice.errors import RecordError, SettingError
from sluice.invariants.relations import RelationKind
from sluice.lab.audits.ablation import subset
from sluice.lab.audits.separation import SeparationTable, separation
from sluice.telemetry.channel import Role
from sluice.telemetry.record import Record

KINDS = (
    "honest",
    "channel-roll",
    "permutation",
    "scaling",
    "splicing-record",
    "splicing-batch",
)


@pytest.fixture(scope="module")
def table(unseen: Record, paper: Gate) -> SeparationTable:
    return separation(unseen, paper, batches=20, size=400, roll_rows=30)


def test_every_kind_is_there_in_the_papers_order(table: SeparationTable) -> None:
    assert tuple(row.kind for row in table.rows) == KINDS
    assert {row.batches for row in table.rows} == {20}
    assert table.skipped == ()


def test_honest_batches_pass_and_contradictions_do_not(table: SeparationTable) -> None:
    assert table.of("honest").admitted_share == 1
    for kind in ("channel-roll", "scaling"):
        assert table.of(kind).admitted_share == 0
        assert table.of(kind).mean_violating_share > 0.05


def test_the_interval_is_wilsons(table: SeparationTable) -> None:
    # Wilson, 20 of 20 at 95 %: 20 / (20 + 1.959964^2)
    honest = table.of("honest")
    assert honest.low == pytest.approx(20 / (20 + 1.959963984540054**2))
    assert honest.high == 1
    for row in table.rows:
        assert 0 <= row.low <= row.admitted_share <= row.high <= 1


def test_cutting_every_batch_makes_more_joins_than_cutting_the_record(
    table: SeparationTable,
) -> None:
    whole, each = table.of("splicing-record"), table.of("splicing-batch")
    assert each.mean_violating_share > whole.mean_violating_share


def test_the_hardened_gate_refuses_a_batch_of_twelve_pieces(unseen: Record, hardened: Gate) -> None:
    table = separation(unseen, hardened, batches=10, size=400)
    assert table.of("honest").admitted_share == 1
    assert table.of("splicing-batch").admitted_share == 0


def test_the_same_seed_gives_the_same_table(unseen: Record, paper: Gate) -> None:
    one, same, other = (
        separation(unseen, paper, batches=5, size=300, seed=seed) for seed in (1, 1, 2)
    )
    assert one == same != other


def test_a_roll_lasts_five_minutes_or_seven_rows(unseen: Record, paper: Gate) -> None:
    by_default = separation(unseen, paper, batches=5, size=300)
    seven = separation(unseen, paper, batches=5, size=300, roll_rows=7)
    assert unseen.stride_s == 60  # five minutes are five rows
    assert by_default == seven


def test_progress_runs_from_nothing_to_all(unseen: Record, paper: Gate) -> None:
    told: list[float] = []
    separation(unseen, paper, batches=3, size=300, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1)


def test_a_plant_without_room_for_a_fabrication_says_so(unseen: Record, paper: Gate) -> None:
    balances = subset(paper.rules, frozenset({RelationKind.BALANCE}))
    assert not balances.empty
    actuators = [channel.name for channel in unseen.of_role(Role.ACTUATOR)]
    gate = Gate.of(balances, paper.policy)
    table = separation(unseen.without(*actuators), gate, batches=3, size=300)
    assert [skipped.kind for skipped in table.skipped] == ["channel-roll", "permutation"]
    assert "no actuator" in table.skipped[0].why
    assert len(table.rows) == 4


def test_a_record_as_long_as_one_batch_is_enough_and_a_shorter_one_is_not(
    unseen: Record, paper: Gate
) -> None:
    short = unseen.rows(0, 300)
    assert separation(short, paper, batches=2, size=300).of("honest").batches == 2
    with pytest.raises(RecordError, match="300 rows, fewer than one batch of 1,000"):
        separation(short, paper)


def test_a_record_with_attacks_is_not_honest(labelled: Record, paper: Gate) -> None:
    with pytest.raises(RecordError, match="attack rows, so its batches are not honest"):
        separation(labelled, paper)


@pytest.mark.parametrize(("batches", "size"), [(0, 300), (5, 11)])
def test_no_batches_or_batches_too_small_to_cut_are_refused(
    unseen: Record, paper: Gate, batches: int, size: int
) -> None:
    with pytest.raises(SettingError, match="at least 1 batch of at least 12 rows"):
        separation(unseen, paper, batches=batches, size=size)
