"""The keys of `sampled` in a key folder, and the trust that a set-up by one party needs.

keys/verifying.key   for verifying; the circuit's identity pins it, and it pins the proving key
keys/proving.key     for proving; also public, but large
keys/SET-UP.txt      who has to be trusted
"""

from collections.abc import Mapping
from pathlib import Path

from sluice.admission import Policy
from sluice.attestation.systems.sampled.system import Sampled, Sampling, make_keys, statement_of
from sluice.errors import DocumentError, SettingError
from sluice.files import atomically, public_folder, read_bounded
from sluice.invariants import RuleSet

__all__ = ["SINGLE_PARTY", "VERIFYING", "make_sampled", "open_sampled"]

VERIFYING, PROVING, NOTE = "verifying.key", "proving.key", "SET-UP.txt"
LARGEST_KEY = 1 << 20

SINGLE_PARTY = (
    "These Groth16 keys were made by one party, in one process. That party could have kept the "
    "numbers with which a proof of anything can be forged, and it is impossible to check that they "
    "were deleted. The coordinator should make the keys, because it would deceive only itself. A "
    "plant must never make the keys that judge it. A plant cannot check that keys made by another "
    "party do not weaken the hiding of its rows. The system 'full' needs no such trust."
)


def make_sampled(
    path: Path, rules: RuleSet, policy: Policy, sampling: Sampling, *, rows_max: int
) -> Sampled:
    """Make keys as a single party and write them; existing keys are not overwritten."""
    if (path / VERIFYING).exists():
        raise SettingError(f"{path} holds keys already; choose an empty folder")
    statement = statement_of(rules, policy, sampling, rows_max=rows_max)
    proving, verifying = make_keys(statement)
    public_folder(path)
    for name, content in (
        (PROVING, proving),
        (NOTE, f"{SINGLE_PARTY}\n".encode()),
        (VERIFYING, verifying),
    ):
        with atomically(path / name) as draft:
            draft.write_bytes(content)
    return Sampled(sampling=sampling, verifying_key=verifying, proving_key=path / PROVING)


def open_sampled(path: Path, parameters: Mapping[str, int]) -> Sampled:
    """Read the verifying key; `parameters` of circuit.json give the sampling."""
    verifying = read_bounded(
        path / VERIFYING, "verifying key", largest=LARGEST_KEY, error=DocumentError
    )
    samples, violations = parameters.get("samples", 0), parameters.get("violating_max", 0)
    sampling = Sampling(samples=samples, violations=violations)
    return Sampled(sampling=sampling, verifying_key=verifying, proving_key=path / PROVING)
