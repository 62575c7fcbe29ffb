"""What both sides know about a batch besides the statement: its rows, its budgets, its digest."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from operator import mul

from sluice.attestation.systems.full.reference.circuit import ReferenceCircuit
from sluice.attestation.systems.full.reference.field import (
    ORDER,
    Ext,
    inverses,
    root_of_unity,
)
from sluice.attestation.systems.full.reference.gadgets import (
    Anchor,
    Counted,
    RowWeights,
    SlackWeights,
)
from sluice.attestation.systems.full.reference.hashes import blake3
from sluice.attestation.systems.full.reference.parameters import BASE, LEAST_HEIGHT, MOST_ROWS
from sluice.attestation.systems.full.reference.statement import BudgetList
from sluice.errors import VerificationError

__all__ = ["Public", "digest_of", "public_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Public:
    """What follows from the number of rows and the budgets."""

    rows: int
    height: int  # of the trace
    totals: list[int]  # at which the shared counts end
    slack: dict[int, dict[int, int]]  # by shared count: the weight of slack on each row
    start: int = 0  # the row of the batch on which the trace begins

    @property
    def log_height(self) -> int:
        """The logarithm of the height."""
        return self.height.bit_length() - 1


def public_of(circuit: ReferenceCircuit, rows: int, budgets: BudgetList) -> Public:
    """Work out what is public; refuse rows and budgets that fit no trace."""
    if not 2 <= rows <= MOST_ROWS:
        raise VerificationError("5.7", f"{rows} rows are not 2 to {MOST_ROWS}")
    statement = circuit.statement
    pairs = (
        (budgets.unsteady, statement.couplings),
        (budgets.windows, statement.windows),
        (budgets.switches, statement.switches),
        (budgets.blocks, statement.spectra),
    )
    if any(len(budget) != len(rules) for budget, rules in pairs):
        raise VerificationError("5.7", "there is not one budget for each rule")
    height = max(LEAST_HEIGHT, 1 << (rows - 1).bit_length())
    totals: list[int] = []
    slack: dict[int, dict[int, int]] = {}
    row = 0
    for at, count in enumerate(circuit.counts.shared):
        limits = [_budget(circuit, budgets, rows, counted) for counted in count.counted]
        totals.append(sum(limit * BASE**digit for digit, limit in enumerate(limits)) % ORDER)
        if count.slack is not None:
            slack[at] = {}
            for digit, limit in enumerate(limits):  # a row of its own for every bit
                for bit in range(limit.bit_length()):
                    slack[at][row] = BASE**digit << bit
                    row += 1
    if row > rows:
        raise VerificationError("5.7", f"{rows} rows are too few for {row} bits of slack")
    return Public(rows=rows, height=height, totals=totals, slack=slack)


def _budget(circuit: ReferenceCircuit, budgets: BudgetList, rows: int, counted: Counted) -> int:
    """Return a budget, but not more than there is to count."""
    given = {
        "violating": [budgets.violating],
        "severe": [min(budgets.severe, budgets.violating)],
        "segments": [budgets.segments],
        "unsteady": budgets.unsteady,
        "window": budgets.windows,
        "switch": budgets.switches,
        "block": budgets.blocks,
    }
    budget, statement = given[counted.kind][counted.rule], circuit.statement
    match counted.kind:
        case "window":
            anchor = Anchor(statement.windows[counted.rule].rows)
            return min(budget, sum(anchor.on(row, rows) for row in range(rows)))
        case "block":
            spectrum = statement.spectra[counted.rule]
            whole = max(0, rows - spectrum.offset) // spectrum.rows
            early = 1 <= spectrum.offset <= rows  # rows before the first block end like one
            return min(budget, whole) + early
        case _:
            return min(budget, rows)


def columns_at(circuit: ReferenceCircuit, public: Public, point: Ext) -> list[Ext]:
    """Return the public columns, as polynomials, at a point outside the trace.

    A column with value v_i on row i is the sum of v_i L_i, where L_i is one on row i and zero on
    the others: L_i(x) = (x^n - 1) / n * g^i / (x - g^i).
    """
    span = range(public.start, public.start + public.height)
    places = list(_subgroup(public.log_height))
    distances = inverses([point - place for place in places])
    scale = (point**public.height - 1) * pow(public.height, -1, ORDER)
    basis = [distance * place for distance, place in zip(distances, places, strict=True)]
    coordinates = list(zip(*(each.coordinates for each in basis), strict=True))
    found = []
    for schedule in circuit.columns.schedules:
        if isinstance(schedule, SlackWeights):
            weights = public.slack[schedule.count]
            values = [weights.get(row, 0) for row in span]
            sums = [sum(map(mul, each, values)) for each in coordinates]
        elif isinstance(schedule, RowWeights):
            values = [schedule.weight(row, public.rows) for row in span]
            sums = [sum(map(mul, each, values)) for each in coordinates]
        else:
            marked = [schedule.on(row, public.rows) for row in span]
            sums = [sum(compress(each, marked)) for each in coordinates]
        found.append(Ext(*sums) * scale)
    return found


def _subgroup(log_size: int) -> Iterator[int]:
    generator, place = root_of_unity(log_size), 1
    for _ in range(1 << log_size):
        yield place
        place = place * generator % ORDER


def digest_of(circuit: ReferenceCircuit, commitment: bytes, rows: int) -> list[int]:
    """Return the digest: the commitment less a hash of the packing and the number of rows."""
    hashed = circuit.statement.packing() + rows.to_bytes(8, "little")
    tweak = blake3(hashed, context="sluice full commitment 1")
    words = [
        tuple(int.from_bytes(each[at : at + 8], "little") for each in (commitment, tweak))
        for at in range(0, 32, 8)
    ]
    if len(commitment) != len(tweak) or any(value >= ORDER for value, _ in words):
        raise VerificationError("5.7", "the commitment is not canonical")
    return [(value - added) % ORDER for value, added in words]
