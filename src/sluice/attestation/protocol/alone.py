"""Commit, prove and verify one batch with a key folder, outside a federation."""

from pathlib import Path

from sluice.admission import Verdict, policy_hash
from sluice.attestation.log import Ledger
from sluice.attestation.messages import CHALLENGES, COMMITS, PROOFS
from sluice.attestation.protocol.key_folder import KeyFolder
from sluice.attestation.protocol.plant import Committed, Proven, Registered
from sluice.attestation.protocol.verifier import Verification, Verifier
from sluice.attestation.systems import DEFAULT_ROWS, SystemName, find_system
from sluice.errors import SettingError
from sluice.files import atomically
from sluice.invariants import rules_hash
from sluice.telemetry import Record

__all__ = ["CLIENT", "FEDERATION", "commit", "prove", "prove_into", "verify", "write_proof"]

FEDERATION, CLIENT = "local", "plant"


def commit(
    batch: Record, keys: KeyFolder, *, federation: str = FEDERATION, client: str = CLIENT
) -> Committed:
    """Commit to a batch: a hiding commitment to its rows, signed with its time and its length.

    The first commitment creates the plant's signing key in the key folder. `Committed.save` writes
    the commitment and, beside it, the private opening that proving needs.
    """
    keys.demand_same_circuit()
    registered = Registered(
        federation=federation,
        client=client,
        key=keys.ensure_client_key(),
        system=keys.system,
        circuit=keys.circuit,
    )
    return registered.commit(batch)


def prove(
    batch: Record,
    committed: Committed,
    *,
    challenge: bytes | None = None,
    verdict: Verdict | None = None,
) -> Proven:
    """Prove that a committed batch obeys the rules; raise `RefusedError` if it does not.

    `challenge` is the coordinator's document, for a system that draws rows. A `verdict` on this
    batch that the caller already has saves judging it again.
    """
    if challenge is None:
        return committed.prove(batch, verdict=verdict)
    return committed.challenged(CHALLENGES.read(challenge)).prove(batch, verdict=verdict)


def verify(  # noqa: PLR0913 - the documents, and how far to check them
    proof: bytes | Proven,
    commitment: bytes | Committed,
    keys: KeyFolder,
    *,
    challenge: bytes | None = None,
    ledger: Ledger | None = None,
    reference: bool = False,
    statistic: bytes | None = None,
) -> Verification:
    """Verify a proof document against its commitment document, or raise `VerificationError`.

    Only the public part of the key folder is used. Without a log's `ledger`, steps 5.2 to 5.4 of
    docs/protocol.md are not checked; `Verification.steps_unchecked` names them. With `reference`,
    the second verifier of the system `full` must accept the proof too; it takes seconds. Keys that
    bind a statistic need it (`statistic.bin` beside the commitment).
    """
    verifier = Verifier(system=keys.system, circuit=keys.circuit, pinned=keys.pinned, ledger=ledger)
    if isinstance(proof, Proven):
        proof = PROOFS.write(proof.message)
    if isinstance(commitment, Committed):
        statistic = commitment.statistic if statistic is None else statistic
        commitment = COMMITS.write(commitment.message)
    check = verifier.verify_twice if reference else verifier.verify
    return check(proof, commitment, challenge, statistic=statistic)


def prove_into(folder: str | Path, verdict: Verdict) -> Proven:
    """Prove the batch of a verdict; write keys, commitment, opening (mode 0600) and proof.

    Keys already in the folder are used if they belong to these rules and this policy. The batch
    is not measured again.
    """
    folder = Path(folder)
    batch, rules, policy = verdict.measured.record, verdict.measured.rules, verdict.policy
    path = folder / "keys"
    if path.exists():
        keys = KeyFolder.open(path)
        if (keys.pinned.rules, keys.pinned.policy) != (rules_hash(rules), policy_hash(policy)):
            raise SettingError(
                f"{path} is for other rules or another policy; choose another folder"
            )
    else:
        largest = max(DEFAULT_ROWS, 1 << (len(batch) - 1).bit_length())
        system, most = find_system(SystemName.FULL), min(largest, policy.rows_max)
        keys = KeyFolder.create(path, system, rules, policy, rows_max=most)
    committed = commit(batch, keys)
    proven = prove(batch, committed, verdict=verdict)
    committed.save(folder / "commit.json")
    write_proof(proven, folder / "proof.json")
    return proven


def write_proof(proven: Proven, path: str | Path) -> None:
    """Write a proof as its document."""
    path = Path(path)
    with atomically(path) as draft:
        draft.write_bytes(PROOFS.write(proven.message))
