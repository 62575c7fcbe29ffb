"""Key folders and proofs, as `sluice attest` and `sluice check --prove` share them."""

import resource
import sys
from pathlib import Path

import typer

from sluice.admission import HardenedPolicy, Policy, policy_hash
from sluice.attestation.messages import PROOFS
from sluice.attestation.protocol import KeyFolder, Proven, Registered
from sluice.attestation.systems import DEFAULT_ROWS, SystemName, find_system
from sluice.cli.console import working
from sluice.cli.options import open_record, range_of
from sluice.errors import SettingError
from sluice.files import atomically
from sluice.invariants import RuleSet, rules_hash
from sluice.telemetry import Record
from sluice.telemetry.formats import Fill

__all__ = [
    "CLIENT",
    "FEDERATION",
    "PUBLIC",
    "open_keys",
    "peak_mb",
    "prove_into",
    "read_batch",
    "read_bounded",
    "warn_if_unsafe",
    "write_proof",
]

FEDERATION, CLIENT = "local", "plant"
PUBLIC = (
    "What it shows: that the batch keeps the rules, its number of rows and the time it covers; the "
    "rules and the policy are public too."
)


def open_keys(path: Path) -> KeyFolder:
    """Open a key folder whose circuit is the one this version derives."""
    folder = KeyFolder.open(path)
    warn_if_unsafe(folder.system.name)
    folder.demand_same_circuit()
    return folder


def write_proof(proven: Proven, path: Path) -> None:
    """Write a proof as its document."""
    with atomically(path) as draft:
        draft.write_bytes(PROOFS.write(proven.message))


def prove_into(folder: Path, batch: Record, rules: RuleSet, policy: Policy) -> None:
    """Write keys, commitment, opening (mode 0600) and proof of a batch into one folder.

    Keys that are there are used, if they are of these rules and this policy.
    """
    keys = folder / "keys"
    if keys.exists():
        held = open_keys(keys)
        if (held.pinned.rules, held.pinned.policy) != (rules_hash(rules), policy_hash(policy)):
            raise SettingError(
                f"{keys} is for other rules or another policy; choose another folder"
            )
    else:
        held = KeyFolder.create(
            keys, find_system(SystemName.FULL), rules, policy, rows_max=_largest(batch, policy)
        )
    registered = Registered(
        federation=FEDERATION,
        client=CLIENT,
        key=held.ensure_client_key(),
        system=held.system,
        circuit=held.circuit,
    )
    committed = registered.commit(batch)
    proven = committed.prove(batch)
    committed.save(folder / "commit.json")
    write_proof(proven, folder / "proof.json")


def read_batch(
    path: Path,
    rows: str | None,
    *,
    plant: Path | None,
    format_: str | None,
    fill: Fill | None,
    skip: float,
    every: int,
    quiet: bool,
) -> Record:
    """Read the rows of a record that the options of a command name."""
    with working(f"reading {path}", quiet=quiet):
        record = open_record(
            path, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        return record.rows(*range_of(rows, record, option="--rows")) if rows else record


def read_bounded(path: Path, most: int) -> bytes:
    """Read a document, and no more of it than shows that it is too long."""
    try:
        with path.open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None


def warn_if_unsafe(system: str) -> None:
    """Say aloud, whatever was asked to be quiet, that a system hides nothing."""
    if system == SystemName.UNSAFE:
        typer.echo(
            "sluice: WARNING: system 'unsafe' HIDES NOTHING: its proof shows every reading that "
            "the rules look at. It is for tests; use --system full.",
            err=True,
        )


def peak_mb() -> float:
    """Return the most memory this process, or one it waited for, has held."""
    unit = 1 if sys.platform == "darwin" else 1_024
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in whose) * unit / 1e6


def _largest(batch: Record, policy: Policy) -> int:
    """Return the largest batch to set up for: the usual one, or the power of two that fits."""
    rows = max(DEFAULT_ROWS, 1 << (len(batch) - 1).bit_length())
    return min(rows, policy.rows_max) if isinstance(policy, HardenedPolicy) else rows
