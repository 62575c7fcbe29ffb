"""Check a proof a second time: from rules and policy to the verdict, without the Rust core."""

from functools import lru_cache

from sluice.admission import HardenedPolicy, policy_hash
from sluice.attestation.packing import digest, number, packed
from sluice.attestation.systems.full.bound import settings_of
from sluice.attestation.systems.full.reference.circuit import ReferenceCircuit
from sluice.attestation.systems.full.reference.parameters import NAMED
from sluice.attestation.systems.full.reference.verify import ReferenceClaim, verify_claim
from sluice.attestation.systems.full.statement import derive
from sluice.attestation.systems.system import Circuit, ProofClaim
from sluice.errors import SettingError, VerificationError
from sluice.invariants import rules_hash

__all__ = ["verify_again"]


def verify_again(circuit: Circuit, claim: ProofClaim) -> None:
    """Return if the second verifier accepts the proof; raise `VerificationError` otherwise.

    The statement and the budgets are derived from the circuit's rules and policy. The identity is
    computed from them and must be the circuit's: step "5.6" means that it is another one.
    """
    if circuit.system != "full" or not isinstance(circuit.policy, HardenedPolicy):
        raise SettingError(
            f"the second verifier checks proofs of the system 'full'; this circuit is of "
            f"{circuit.system!r}"
        )
    statement = derive(
        circuit.rules,
        circuit.policy,
        statistic=settings_of if circuit.statistic else None,
        masked=circuit.statistic == "hidden",
    )
    reference = _laid_out(statement.content)
    identity = digest(
        "full circuit",
        reference.identity,
        bytes.fromhex(rules_hash(circuit.rules)),
        bytes.fromhex(policy_hash(circuit.policy)),
        packed(*(packed(name.encode(), number(value)) for name, value in NAMED)),
        number(circuit.rows_max),
    )
    if identity.hex() != circuit.identity:
        raise VerificationError("5.6", "rules and policy do not lead to the circuit's identity")
    if claim.rows > circuit.rows_max:
        raise VerificationError("5.7", f"the circuit does not take {claim.rows:,} rows")
    if len(claim.context) != len(identity):
        raise VerificationError("5.7", f"a context has {len(claim.context)} bytes, not 32")
    verify_claim(
        reference,
        ReferenceClaim(
            budgets=statement.budget_content(claim.rows),
            rows=claim.rows,
            commitment=claim.commitment,
            context=claim.context,
            proof=claim.proof,
            statistic=claim.statistic,
        ),
    )


@lru_cache(maxsize=4)
def _laid_out(content: bytes) -> ReferenceCircuit:
    return ReferenceCircuit(content)
