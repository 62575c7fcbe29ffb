"""What a plant tells its own people when a batch cannot be proven. None of it is ever sent."""

from sluice.admission import Verdict, judge
from sluice.attestation.system import Circuit
from sluice.errors import RefusedError
from sluice.telemetry import Record

__all__ = ["explanation", "refuse_unless_admitted"]


def refuse_unless_admitted(batch: Record, circuit: Circuit) -> None:
    """Raise a `RefusedError`, in the plant's words, where the gate does not admit the batch."""
    verdict = judge(batch, circuit.rules, circuit.policy)
    if not verdict.admitted:
        raise RefusedError(
            f"batch {batch.name!r} does not satisfy the rules of {circuit.rules.plant!r}, and what "
            f"does not hold cannot be proven. {explanation(verdict)} Only you see these reasons: "
            "the coordinator sees that no proof comes."
        )


def explanation(verdict: Verdict) -> str:
    """Say why a batch is refused: the budgets it breaks, then what the rules found."""
    found = sorted(
        (finding for finding in verdict.findings if finding.sentence),
        key=lambda finding: -finding.violating_rows,
    )
    sentences = [*verdict.reasons, *(finding.sentence for finding in found)]
    return " ".join(f"{sentence}." for sentence in sentences)
