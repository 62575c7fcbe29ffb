from .lending import plant_tail
from .ports import demand_free_port
from .terms import (
    ExportedAttestation,
    Invitation,
    JoinRequest,
    PlantCertificate,
    read_document,
    write_document,
)
from .training_rows import TrainingRows

__all__ = [
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
