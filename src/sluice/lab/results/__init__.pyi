from .audited import (
    AuditedAttack,
    AuditedKind,
    AuditedProof,
    AuditedSet,
    Audits,
    load_audits,
    save_audits,
)
from .cell import Asked, CellResult, Score
from .export import export
from .owner import Owner
from .provenance import Provenance, provenance
from .reading import State, StoredCell, stored_cells, under_way
from .store import Store
from .work import Claim, Counts, GridFacts, Made, WorkRow

__all__ = [
    "Asked",
    "AuditedAttack",
    "AuditedKind",
    "AuditedProof",
    "AuditedSet",
    "Audits",
    "CellResult",
    "Claim",
    "Counts",
    "GridFacts",
    "Made",
    "Owner",
    "Provenance",
    "Score",
    "State",
    "Store",
    "StoredCell",
    "WorkRow",
    "export",
    "load_audits",
    "provenance",
    "save_audits",
    "stored_cells",
    "under_way",
]
