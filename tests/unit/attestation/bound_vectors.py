"""Makes tests/vectors/moments.json, which the Rust tests read too.

Run it as `python -m tests.unit.attestation.bound_vectors` from the root of the repository when a
statement, the statistic's form or the cases change on purpose.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sluice import _attest
from sluice.attestation.systems.full import Statement, Witness, derive, settings_of, statistic_of
from sluice.telemetry import Record

from .full_plant import Wiring, clean_batch, policy_of, rules_of, shown, with_cell

VECTORS = Path(__file__).parents[2] / "vectors" / "moments.json"
PROVENANCE = (
    "Batches of a small simulated plant whose statements bind a statistic. The statistic is the "
    "canonical form of exact integer sums (sluice.detector.moments) of the same rows; the "
    "identity is what the circuit's constraints hash to."
)
SALT, CONTEXT = bytes(range(32)), bytes([9]) * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A batch of one segment under a statement with a statistic."""

    name: str
    wiring: Wiring
    batch: Record


def cases() -> Iterator[Case]:
    """Batches around a power of two, with violations, and under a policy that allows jumps."""
    plain = Wiring()
    jumping = Wiring(jumps=True, settle=1)
    own = Wiring(tied=True, idle=True, bands=(True, False), spectra=(("Q", 8, 0), ("L", 8, 5)))
    clean = clean_batch(80, 1)
    pushed = with_cell(clean, 60, "F", float(clean.column("F")[60]) + 0.45)
    yield Case(name="clean", wiring=plain, batch=clean)
    yield Case(name="a row that violates", wiring=plain, batch=with_cell(pushed, 50, "S", 0.0))
    yield Case(name="jumps are allowed", wiring=jumping, batch=clean)
    yield Case(name="every kind of rule", wiring=own, batch=with_cell(clean, 30, "R", 1.0))
    quiet = Wiring(standby=(("P", 0), ("R", 0)), windows=(4, 8, 16), blocks=(24,))
    for rows in (255, 256, 257):
        yield Case(name=f"{rows} rows", wiring=quiet, batch=clean_batch(rows, 3))


def bound_statement(wiring: Wiring) -> Statement:
    """The statement of a wiring, with a statistic."""
    return derive(rules_of(wiring), policy_of(wiring), statistic=settings_of)


def planes_of(witness: Witness) -> _attest.FullBatch:
    """A batch as the core takes it."""
    return _attest.FullBatch(
        witness.rows, witness.registers, witness.codes, witness.starts, witness.flagged
    )


def vector(case: Case) -> dict[str, object]:
    """Encode a case."""
    statement = bound_statement(case.wiring)
    witness = Witness.of(statement, case.batch)
    core = _attest.FullCircuit(statement.content)
    budgets = shown(rules_of(case.wiring), policy_of(case.wiring), case.batch).document()
    return {
        "name": case.name,
        "statement": statement.content.decode(),
        "budgets": json.dumps(budgets),
        "rows": witness.rows,
        "registers": witness.registers.hex(),
        "codes": witness.codes.hex(),
        "starts": witness.starts.hex(),
        "flagged": witness.flagged.hex(),
        "salt": SALT.hex(),
        "context": CONTEXT.hex(),
        "identity": core.identity.hex(),
        "commitment": core.commit(planes_of(witness), SALT).hex(),
        "statistic": statistic_of(statement, case.batch).hex(),
    }


def document() -> str:
    """The whole file."""
    made = {"provenance": PROVENANCE, "vectors": [vector(case) for case in cases()]}
    return json.dumps(made, indent=1) + "\n"


if __name__ == "__main__":
    VECTORS.write_text(document(), encoding="utf-8")
