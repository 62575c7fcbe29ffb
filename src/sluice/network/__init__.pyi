from .lending import plant_tail
from .ports import demand_free_port
from .terms import (
    MEMBERS_MIN,
    ExportedAttestation,
    Invitation,
    JoinRequest,
    PlantCertificate,
    read_document,
    write_document,
)
from .training_rows import TrainingRows

__all__ = [
    "MEMBERS_MIN",
    "ExportedAttestation",
    "Invitation",
    "JoinRequest",
    "PlantCertificate",
    "TrainingRows",
    "demand_free_port",
    "plant_tail",
    "read_document",
    "write_document",
]
