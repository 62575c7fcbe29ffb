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
    "read_document",
    "write_document",
]
