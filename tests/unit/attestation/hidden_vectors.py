"""Makes tests/vectors/hidden.json, which the Rust tests read too.

Run it as `python -m tests.unit.attestation.hidden_vectors` from the root of the repository when a
statement, the form or the sealed statistic changes on purpose.
"""

import json
from pathlib import Path

from sluice import _attest
from sluice.attestation.hidden import ORDER, Draw, Shape, share_sums, vector_of
from sluice.attestation.systems.full import Statement, Witness, derive, settings_of, statistic_of
from sluice.detector import MomentStatistic

from .bound_vectors import CONTEXT, SALT, Case, cases, planes_of
from .full_plant import policy_of, rules_of, shown

VECTORS = Path(__file__).parents[2] / "vectors" / "hidden.json"
PROVENANCE = (
    "Batches of a small simulated plant whose statements hide their statistic. The totals are the "
    "masks plus the form of exact integer sums, computed in Python from the drawn weights; the "
    "identity is what the circuit's constraints hash to."
)
ENTROPY = bytes(range(64))


def hidden_statement(case: Case) -> Statement:
    """The statement of a case, with hidden sums."""
    rules, policy = rules_of(case.wiring), policy_of(case.wiring)
    return derive(rules, policy, statistic=settings_of, masked=True)


def vector(case: Case) -> dict[str, object]:
    """Encode a case."""
    statement = hidden_statement(case)
    assert statement.statistic is not None
    witness = Witness.of(statement, case.batch)
    core = _attest.FullCircuit(statement.content)
    planes = planes_of(witness)
    masks = tuple(core.masks(planes, SALT))
    sums = MomentStatistic.from_canonical(statistic_of(statement, case.batch), statement.statistic)
    sealed = share_sums(sums, masks, rows=witness.rows, entropy=ENTROPY).sealed.canonical()
    commitment = core.commit(planes, SALT)
    draw = Draw(identity=core.identity, commitment=commitment, context=CONTEXT, sealed=sealed)
    forms = draw.forms(Shape.of(statement.statistic), vector_of(sums))
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
        "commitment": commitment.hex(),
        "sealed": sealed.hex(),
        "masks": [str(mask) for mask in masks],
        "totals": [str((mask + form) % ORDER) for mask, form in zip(masks, forms, strict=True)],
    }


def document() -> str:
    """The whole file."""
    chosen = [case for case in cases() if case.name in NAMES]
    made = {"provenance": PROVENANCE, "vectors": [vector(case) for case in chosen]}
    return json.dumps(made, indent=1) + "\n"


NAMES = ("clean", "a row that violates", "every kind of rule", "256 rows", "257 rows")

if __name__ == "__main__":
    VECTORS.write_text(document(), encoding="utf-8")
