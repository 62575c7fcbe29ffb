from .app import serve

__all__ = ["serve"]
