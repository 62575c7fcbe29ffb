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
from .federations import (
    Behaviour,
    TrainedFederation,
    TrainedFederations,
    difference,
    load_federations,
    save_federations,
)
from .owner import Owner
from .provenance import Provenance, provenance
from .reading import (
    GridState,
    StoredCell,
    settings_of,
    stored_cells,
    trained_federations,
    under_way,
)
from .store import ResultStore
from .work import Counts, GridFacts, Made, WorkClaim, WorkRow

__all__ = [
    "Asked",
    "AuditedAttack",
    "AuditedKind",
    "AuditedProof",
    "AuditedSet",
    "Audits",
    "Behaviour",
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
    "TrainedFederation",
    "TrainedFederations",
    "WorkClaim",
    "WorkRow",
    "difference",
    "export",
    "load_audits",
    "load_federations",
    "provenance",
    "save_audits",
    "save_federations",
    "settings_of",
    "stored_cells",
    "trained_federations",
    "under_way",
]
