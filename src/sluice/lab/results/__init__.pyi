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
from .reading import GridState, StoredCell, stored_cells, under_way
from .store import ResultStore
from .work import Counts, GridFacts, Made, WorkClaim, WorkRow

__all__ = [
    "Asked",
    "AuditedAttack",
    "AuditedKind",
    "AuditedProof",
    "AuditedSet",
    "Audits",
    "CellResult",
    "Counts",
    "GridFacts",
    "GridState",
    "Made",
    "Owner",
    "Provenance",
    "ResultStore",
    "Score",
    "StoredCell",
    "WorkClaim",
    "WorkRow",
    "export",
    "load_audits",
    "provenance",
    "save_audits",
    "stored_cells",
    "under_way",
]
