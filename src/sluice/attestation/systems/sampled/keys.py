"""The keys of `sampled` in a key folder, and what it means that one party made them.

keys/verifying.key   what verifying takes; the circuit's identity pins it, and it the other one
keys/proving.key     what proving takes; public too, but large
keys/SET-UP.txt      who has to be trusted
"""

from collections.abc import Mapping
from pathlib import Path

from sluice.admission import Policy
from sluice.attestation.systems.sampled.system import Sampled, Sampling, make_keys, statement_of
from sluice.errors import DocumentError, SettingError
from sluice.files import atomically
from sluice.invariants import RuleSet

__all__ = ["SINGLE_PARTY", "VERIFYING", "make_sampled", "open_sampled"]

VERIFYING, PROVING, NOTE = "verifying.key", "proving.key", "SET-UP.txt"
LARGEST_KEY = 1 << 20

SINGLE_PARTY = (
    "These Groth16 keys were made by one party, in one process. Whoever ran it could have kept the "
    "numbers with which a proof of anything can be forged, and nobody can check that they were "
    "forgotten. Let the coordinator make them, who would only deceive itself; a plant must never "
    "make the keys it is judged by. A plant, for its part, cannot check that keys which somebody "
    "else made do not weaken the hiding of its rows. The system 'full' needs no such trust."
)


def make_sampled(
    path: Path, rules: RuleSet, policy: Policy, sampling: Sampling, *, rows_max: int
) -> Sampled:
    """Make keys, alone, and write them; keys that are there are not written over."""
    if (path / VERIFYING).exists():
        raise SettingError(f"{path} holds keys already; choose an empty folder")
    statement = statement_of(rules, policy, sampling, rows_max=rows_max)
    proving, verifying = make_keys(statement)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {path}: {error.strerror}") from None
    for name, content in (
        (PROVING, proving),
        (NOTE, f"{SINGLE_PARTY}\n".encode()),
        (VERIFYING, verifying),
    ):
        with atomically(path / name) as draft:
            draft.write_bytes(content)
    return Sampled(sampling=sampling, verifying_key=verifying, proving_key=path / PROVING)


def open_sampled(path: Path, parameters: Mapping[str, int]) -> Sampled:
    """Read the verifying key and what circuit.json says of the sampling."""
    try:
        with (path / VERIFYING).open("rb") as opened:
            verifying = opened.read(LARGEST_KEY)
    except OSError as error:
        raise DocumentError(f"{path / VERIFYING} cannot be read: {error.strerror}") from None
    samples, violations = parameters.get("samples", 0), parameters.get("violating_max", 0)
    sampling = Sampling(samples=samples, violations=violations)
    return Sampled(sampling=sampling, verifying_key=verifying, proving_key=path / PROVING)
