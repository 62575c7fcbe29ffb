from .terms import Exported, Invitation, JoinRequest, read_document, write_document

__all__ = ["Exported", "Invitation", "JoinRequest", "read_document", "write_document"]
