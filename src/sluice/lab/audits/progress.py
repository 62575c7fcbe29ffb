"""Progress reports of an audit."""

from collections.abc import Callable

__all__ = ["Progress", "ignore_progress"]

Progress = Callable[[float], None]
"""Called with the share that is done, from 0 to 1."""


def ignore_progress(share: float) -> None:
    """Discard progress reports."""
