"""Audit results of a grid's rule sets, stored in `audits.json` beside its cells."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sluice.errors import ResultsError
from sluice.files import atomically, read_bounded

__all__ = [
    "AuditedAttack",
    "AuditedKind",
    "AuditedProof",
    "AuditedSet",
    "Audits",
    "load_audits",
    "save_audits",
]

FILE = "audits.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedKind:
    """How the gate judges one kind of telemetry (appendix A, first protocol)."""

    kind: str
    mean_violating_share: float
    admitted_share: float
    batches: int
    low: float  # of admitted_share, Wilson, 95 %
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedAttack:
    """One labelled attack (appendix A, second protocol)."""

    index: int
    rows: int
    violating_rows: int
    covered: bool
    rule: str

    @property
    def share(self) -> float:
        """The share of its rows that are suspect under the rules."""
        return self.violating_rows / self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSet:
    """One rule set on one record."""

    record: str
    stand_in: str | None
    invariants: str
    couplings: int
    balances: int
    honest_share: float | None
    separation: tuple[AuditedKind, ...]
    attacks: tuple[AuditedAttack, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedProof:
    """The cost of proving one batch of a record under its hardened rules."""

    record: str
    stand_in: str | None
    system: str
    rows: int  # the proof checks all rows
    constraints: int
    proven_bits: int
    prove_s: float
    peak_mb: float
    verify_ms: float
    proof_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audits:
    """All audit results of a grid."""

    sets: tuple[AuditedSet, ...] = ()
    proofs: tuple[AuditedProof, ...] = ()


_AUDITS = TypeAdapter(Audits)
LARGEST = 16 << 20  # bytes


def load_audits(folder: Path) -> Audits:
    """Read the audits of a results folder; empty if it has none."""
    path = folder / FILE
    if not path.exists():
        return Audits()
    raw = read_bounded(path, "audits file", largest=LARGEST, error=ResultsError)
    try:
        return _AUDITS.validate_json(raw)
    except ValidationError:
        raise ResultsError(f"{path} is damaged; create it again with 'sluice lab audit'") from None


def save_audits(folder: Path, audits: Audits) -> None:
    """Write the audits of a results folder."""
    with atomically(folder / FILE) as draft:
        draft.write_bytes(_AUDITS.dump_json(audits, indent=1))
