"""How an audit tells how far it has come."""

from collections.abc import Callable

__all__ = ["Progress", "nobody"]

Progress = Callable[[float], None]
"""Called with the share that is done, from 0 to 1."""


def nobody(share: float) -> None:
    """Tell nobody."""
