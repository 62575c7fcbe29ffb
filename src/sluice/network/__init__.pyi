from .terms import ExportedAttestation, Invitation, JoinRequest, read_document, write_document
from .training_rows import TrainingRows

__all__ = [
    "ExportedAttestation",
    "Invitation",
    "JoinRequest",
    "TrainingRows",
    "read_document",
    "write_document",
]
