from .commands import COMMANDS

__all__ = ["COMMANDS"]
