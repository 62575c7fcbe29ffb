from .access import LOOPBACK
from .app import serve

__all__ = ["LOOPBACK", "serve"]
