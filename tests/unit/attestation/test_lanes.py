"""Channels packed into lanes: no two rows have the same lanes, and rows take few steps."""

from itertools import product

import pytest

from sluice.attestation.systems.full.lanes import FIELD, FULL, MOST_FULL, WHOLE, Packed, pack
from sluice.seeding import stream

CODES = [2, 3, 4, 3, 2, 5]


def of_row(lanes: list[list[Packed]], values: list[int]) -> tuple[int, ...]:
    """Return the lanes of a row, with the guard after its values if a lane is full."""
    tops = [lane[-1].value for lane in lanes if len(lane) == FULL and _whole(lane)]
    row = [*values, sum(values[top] << at for at, top in enumerate(tops))]
    return tuple(sum(row[each.value] * each.weight for each in lane) % FIELD for lane in lanes)


def _whole(lane: list[Packed]) -> bool:
    return [each.weight for each in lane] == [WHOLE**place for place in range(FULL)]


@pytest.mark.parametrize(
    ("registers", "lanes", "guarded"),
    [(3, 2, False), (24, 8, False), (25, 8, True), (28, 8, True), (48, 16, False), (49, 14, True)],
)
def test_full_lanes_are_used_where_they_save_a_step(
    registers: int, lanes: int, *, guarded: bool
) -> None:
    radices = [WHOLE] * registers + CODES
    packed = pack(radices, registers)
    found = sorted(each.value for lane in packed for each in lane)
    assert found == list(range(len(radices) + guarded))
    assert len(packed) <= lanes


def test_rows_that_wrap_have_other_lanes() -> None:
    radices = [WHOLE] * 25 + CODES
    packed = pack(radices, 25)
    rng = stream(3, "rows that wrap")
    values = [int(rng.integers(radix)) for radix in radices]
    seen = {}
    # Every full lane shows a row or the row that wraps round to the same lane.
    for sides in product((0, 1), repeat=6):
        row = list(values)
        for lane, side in zip(packed, sides, strict=False):
            first, second, third, last = (each.value for each in lane)
            row[third] = row[last] = 0 if side else WHOLE - 1
            row[first], row[second] = (4, 7) if side else (5, 7)
        seen[of_row(packed, row)] = row
    assert len({lanes[:6] for lanes in seen}) == 1, "the full lanes are all alike"
    assert len(seen) == 2**6, "and the guard tells the rows apart"


def test_registers_of_fewer_values_are_packed_without_a_guard() -> None:
    radices = [40_000] * 25 + CODES
    packed = pack(radices, 25)
    assert max(each.value for lane in packed for each in lane) == len(radices) - 1
    for lane in packed:
        top = lane[-1]
        assert top.weight * radices[top.value] < FIELD


@pytest.mark.parametrize("registers", [163, 164, 200, 400])
def test_a_plant_of_very_many_registers_has_as_many_full_lanes_as_a_guard_can_tell_apart(
    registers: int,
) -> None:
    radices = [WHOLE] * registers + CODES
    packed = pack(radices, registers)
    assert sorted(each.value for lane in packed for each in lane) == [*range(len(radices) + 1)]
    assert sum(_whole(lane) for lane in packed if len(lane) == FULL) == MOST_FULL
