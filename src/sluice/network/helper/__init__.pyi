from .client import HelperClient
from .folder import HelpedFederation, HelperFolder
from .server import serve_helper

__all__ = [
    "HelpedFederation",
    "HelperClient",
    "HelperFolder",
    "serve_helper",
]
