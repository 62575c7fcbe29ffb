"""Makes tests/vectors/full.json, which the Rust tests read too.

Run it as `python -m tests.unit.attestation.full_vectors` from the root of the repository when a
statement, the commitment or the cases change on purpose.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sluice import _attest
from sluice.attestation.systems.full.statement import derive
from sluice.attestation.systems.full.witness import Witness
from sluice.telemetry.record import Record

from .full_plant import Wiring, clean_batch, policy_of, rules_of, shown, with_cell, with_jump

VECTORS = Path(__file__).parents[2] / "vectors" / "full.json"
PROVENANCE = (
    "Batches of a small simulated plant with one rule of every kind, encoded by "
    "sluice.attestation.systems.full. `admitted` is what the integer evaluator "
    "(sluice.invariants.measure) says of the batch under the budgets; the commitment is what the "
    "circuit's digest gives under the salt."
)
SALT = bytes(range(32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A batch and the budgets it is held to: what it shows, less what is taken away."""

    name: str
    wiring: Wiring
    batch: Record
    less: str = ""  # the budget that is one too small


def cases() -> Iterator[Case]:
    """Batches of every kind, each just within its budgets, and each just beyond one of them."""
    plain, jumping, severe = Wiring(), Wiring(jumps=True, settle=1), Wiring(severe_rows=3, settle=4)
    brisk = Wiring(jumps=True, settle=0, windows=(4,))
    odd = Wiring(windows=(7, 5), blocks=(40,), settle=0, averaged=False, severe_multiple=1.7)
    quiet = Wiring(standby=(("P", 0), ("R", 0)), windows=(4, 8, 16), blocks=(24,))
    own = Wiring(tied=True, idle=True, bands=(True, False), spectra=(("Q", 8, 0), ("L", 8, 5)))
    ticking = replace(own, jumps=True, bands=(False,), spectra=(("Q", 5, 2), ("L", 6, 0)))
    all_kinds = replace(
        jumping,
        settle=4,
        severe_rows=9,
        standby=quiet.standby,
        tied=True,
        idle=True,
        flow_range=False,
        bands=(True, False),
        spectra=(("Q", 8, 0), ("L", 8, 5), ("Q", 6, 3)),
    )
    clean = clean_batch(80, 1)
    long = clean_batch(110, 7)
    # A pump that never ran and a meter that never moved, each alone on a row and both together.
    awake = with_cell(with_cell(long, 37, "R", 1.0), 50, "R", 1.0)
    awake = with_cell(with_cell(awake, 70, "G", 0.11), 72, "G", -0.1)
    pushed = float(clean.column("F")[60]) + 0.45  # beyond the tolerance, short of severe
    lying = with_cell(with_cell(clean, 60, "F", pushed), 50, "S", 0.0)
    spiked = with_cell(clean, 44, "L", 5.0)
    beyond = with_cell(with_cell(clean, 30, "Q", 97.0), 55, "F", -0.45)  # of both bounds, each way
    for name, wiring, batch in (
        ("clean", plain, clean),
        ("a flow off its nominal and a moving valve", plain, lying),
        ("a missing reading and an unknown code", plain, with_cell(clean, 20, "S", 7.0)),
        ("a time jump", jumping, with_jump(clean, 33)),
        ("a time jump and nothing settles", brisk, with_jump(clean_batch(60, 4), 21)),
        ("severe rows", severe, spiked),
        ("readings beyond their bounds", severe, beyond),
        ("odd windows and bounds that only flag", odd, clean_batch(70, 5, averaged=False)),
        ("every gadget", all_kinds, with_jump(awake, 61)),
        ("ties, constants, switch bands and spectra", own, with_cell(clean, 30, "R", 1.0)),
        ("spectra with a time jump", ticking, with_jump(clean, 33)),
        ("two standby pumps", quiet, with_cell(clean_batch(250, 3), 100, "R", 1.0)),
    ):
        yield Case(name=name, wiring=wiring, batch=batch)
        found = shown(rules_of(wiring), policy_of(wiring), batch).document()
        for budget, count in found.items():
            counts = count if isinstance(count, list) else [count]
            exempt = budget == "segments" and not wiring.jumps
            if any(counts) and not exempt:
                yield Case(name=f"{name}, {budget}", wiring=wiring, batch=batch, less=budget)
    frozen = clean.values.copy()
    frozen[30:55, clean.index("L")] = frozen[30, clean.index("L")]
    yield Case(name="a frozen level", wiring=plain, batch=clean.with_values(frozen))
    yield Case(name="a severe row where none may be", wiring=plain, batch=spiked)


def vector(case: Case) -> dict[str, object]:
    """Encode a case."""
    rules, policy = rules_of(case.wiring), policy_of(case.wiring)
    statement = derive(rules, policy)
    witness = Witness.of(statement, case.batch)
    planes = _attest.FullBatch(
        witness.rows, witness.registers, witness.codes, witness.starts, witness.flagged
    )
    found = shown(rules, policy, case.batch)
    budgets = found.document()
    if case.less:
        count = budgets[case.less]
        budgets[case.less] = (
            [_less(each) for each in count] if isinstance(count, list) else (_less(int(str(count))))
        )
    severe = case.wiring.severe_rows > 0 or found.severe == 0
    return {
        "name": case.name,
        "statement": str(case.wiring),
        "budgets": json.dumps(budgets),
        "rows": witness.rows,
        "registers": witness.registers.hex(),
        "codes": witness.codes.hex(),
        "starts": witness.starts.hex(),
        "flagged": witness.flagged.hex(),
        "salt": SALT.hex(),
        "commitment": _attest.FullCircuit(statement.content).commit(planes, SALT).hex(),
        "admitted": not case.less and severe and not found.still,
    }


def _less(count: int) -> int:
    return max(count - 1, 0)


def document() -> str:
    """The whole file."""
    statements = {
        str(case.wiring): derive(rules_of(case.wiring), policy_of(case.wiring)).content.decode()
        for case in cases()
    }
    made = {
        "provenance": PROVENANCE,
        "statements": statements,
        "vectors": [vector(case) for case in cases()],
    }
    return json.dumps(made, indent=1) + "\n"


if __name__ == "__main__":
    VECTORS.write_text(document(), encoding="utf-8")
