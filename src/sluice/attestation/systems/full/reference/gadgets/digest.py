"""The digest: Poseidon2 over Goldilocks, of width twelve, chained over the rows.

`f(chain, row)` permutes eight lanes of the row together with the chain value, takes the last four
elements of the result, and adds the chain value to them. The first chain value is the salt.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from sluice.attestation.systems.full.reference.columns import Column, ColumnPlan, Last
from sluice.attestation.systems.full.reference.field import ORDER, Ext
from sluice.attestation.systems.full.reference.gadgets.channels import Channels, own_bound
from sluice.attestation.systems.full.reference.rows import RowPair, total
from sluice.attestation.systems.full.reference.statement import (
    ActuatorSource,
    PackedValue,
    RegisterSource,
    StatementDocument,
)

__all__ = ["CHAIN", "MASKS", "Digest"]

CHAIN: Final = 4
MASKS: Final = 3
WIDTH: Final = 12
RATE: Final = WIDTH - CHAIN
HALF_FULL_ROUNDS: Final = 4
PARTIAL_ROUNDS: Final = 22

State = list[Ext]


def _grain() -> Iterator[int]:
    """Yield field elements from the LFSR of the Poseidon papers, for these parameters."""
    described = ((1, 2), (0, 4), (64, 12), (WIDTH, 12), (2 * HALF_FULL_ROUNDS, 10),
                 (PARTIAL_ROUNDS, 10), ((1 << 30) - 1, 30))  # fmt: skip
    state = [int(bit) for value, width in described for bit in f"{value:0{width}b}"]

    def step() -> int:
        state.append(state[62] ^ state[51] ^ state[38] ^ state[23] ^ state[13] ^ state[0])
        del state[0]
        return state[-1]

    def bit() -> int:
        while not step():  # a bit counts if the bit before it is one
            step()
        return step()

    for _ in range(160):
        step()
    while True:
        value = int("".join(str(bit()) for _ in range(64)), 2)
        if value < ORDER:
            yield value


def _round_constants() -> tuple[list[list[int]], list[int], list[list[int]]]:
    grain = _grain()
    beginning = [[next(grain) for _ in range(WIDTH)] for _ in range(HALF_FULL_ROUNDS)]
    partial = [next(grain) for _ in range(PARTIAL_ROUNDS)]
    ending = [[next(grain) for _ in range(WIDTH)] for _ in range(HALF_FULL_ROUNDS)]
    return beginning, partial, ending


BEGINNING, PARTIAL, ENDING = _round_constants()
_HALF: Final = pow(2, -1, ORDER)
DIAGONAL: Final = (
    -2, 1, 2, _HALF, 3, 4, -_HALF, -3, -4, _HALF**2, -(_HALF**2), _HALF**3,
)  # fmt: skip
"""The inner matrix is this diagonal plus one in every place."""
BLOCK: Final = ((2, 3, 1, 1), (1, 2, 3, 1), (1, 1, 2, 3), (3, 1, 1, 2))


def _outer(state: State) -> State:
    """Multiply by the outer matrix: BLOCK in every place, twice on the diagonal."""
    groups = [
        [
            total(value * weight for value, weight in zip(state[at : at + 4], line, strict=True))
            for line in BLOCK
        ]
        for at in range(0, WIDTH, 4)
    ]
    sums = [total(column) for column in zip(*groups, strict=True)]
    return [value + sums[at] for group in groups for at, value in enumerate(group)]


def _inner(state: State) -> State:
    everything = total(state)
    return [value * weight + everything for value, weight in zip(state, DIAGONAL, strict=True)]


def _full_round(state: State, constants: Sequence[int]) -> State:
    return _outer([(cell + one) ** 7 for cell, one in zip(state, constants, strict=True)])


class _Permutation:
    """The columns of one permutation: the state after every round but the last."""

    def __init__(self, columns: ColumnPlan) -> None:
        self._beginning = [columns.cells(WIDTH) for _ in BEGINNING]
        self._partial = columns.cells(PARTIAL_ROUNDS)
        self._ending = [columns.cells(WIDTH) for _ in ENDING[:-1]]

    def apply(self, rows: RowPair, state: State) -> State:
        state = _outer(state)
        for columns, constants in zip(self._beginning, BEGINNING, strict=True):
            state = _kept(rows, columns, _full_round(state, constants))
        for column, constant in zip(self._partial, PARTIAL, strict=True):
            (first,) = _kept(rows, [column], [(state[0] + constant) ** 7])
            state = _inner([first, *state[1:]])
        for columns, constants in zip(self._ending, ENDING[:-1], strict=True):
            state = _kept(rows, columns, _full_round(state, constants))
        return _full_round(state, ENDING[-1])


def _kept(rows: RowPair, columns: Sequence[Column], state: State) -> State:
    """State that cells hold a state, and go on with the cells."""
    for column, value in zip(columns, state, strict=True):
        rows.holds(column, value)
    return [rows.here[column] for column in columns]


class Digest:
    """The chain over the rows; a row of more than eight lanes takes several steps."""

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        self._lanes, self._tops = statement.lanes, statement.tops()
        self._standing = [
            columns.cell() if _twofold(lane, statement) else None for lane in self._lanes
        ]
        steps = -(-len(self._lanes) // RATE)
        self._chain = columns.cells(CHAIN)
        self._between = [columns.cells(CHAIN) for _ in range(steps - 1)]
        self._permutations = [_Permutation(columns) for _ in range(steps)]
        self._last = columns.schedule(Last())

    def every(self, channels: Channels, rows: RowPair, digest: Sequence[int]) -> State:
        """A row is absorbed; after the batch's last row the chain is the public digest.

        Return the row's masks: outputs of its first permutation that the chain does not take.
        """
        lanes = []
        for lane, column in zip(self._lanes, self._standing, strict=True):
            value = self._lane(lane, channels, rows.here)
            lanes += [value] if column is None else _kept(rows, [column], [value])
        lanes += [Ext(0)] * (-len(lanes) % RATE)
        chain = [rows.here[column] for column in self._chain]
        masks: State = []
        for step, permutation in enumerate(self._permutations):
            if step:
                chain = _kept(rows, self._between[step - 1], chain)
            state = permutation.apply(rows, lanes[step * RATE : (step + 1) * RATE] + chain)
            masks = masks or state[:MASKS]
            chain = [value + added for value, added in zip(chain, state[-CHAIN:], strict=True)]
        for column, value, expected in zip(self._chain, chain, digest, strict=True):
            rows.leads_to(column, value)
            rows.zero(rows.public[self._last] * (value - expected))
        return masks

    def _lane(self, lane: Sequence[PackedValue], channels: Channels, cells: Sequence[Ext]) -> Ext:
        """Return the values of a lane in mixed radix."""
        value = Ext(0)
        for packed in lane:
            match packed.source:
                case RegisterSource(register=at):
                    part = channels.above_low(cells, at)
                case ActuatorSource(actuator=at):
                    part = channels.index(cells, at)
                case "guard":
                    tops = enumerate(self._tops)
                    part = total(channels.above_low(cells, top) * (1 << at) for at, top in tops)
                case _:
                    assert channels.start is not None
                    part = cells[channels.start]
            value = value + part * packed.weight
        return value


def _twofold(lane: Sequence[PackedValue], statement: StatementDocument) -> bool:
    """Whether a lane has a register whose weights depend on a flag, so that it needs a cell."""
    registers: list[int] = []
    for packed in lane:
        if isinstance(packed.source, RegisterSource):
            registers.append(packed.source.register)
        elif packed.source == "guard":
            registers += statement.tops()
    return any(own_bound(statement, register) is not None for register in registers)
