from .client import HelperClient
from .folder import CARDS, HelpedFederation, HelperCard, HelperFolder
from .server import serve_helper

__all__ = [
    "CARDS",
    "HelpedFederation",
    "HelperCard",
    "HelperClient",
    "HelperFolder",
    "serve_helper",
]
