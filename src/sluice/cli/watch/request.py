"""The options that a watch itself needs."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["WatchRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """How a watch reads, keeps and reports."""

    source: str
    page: str
    html: Path | None
    state: Path | None
    health: Path | None
    heartbeat_s: float
    self_contained: bool
    plant: Path | None
    format_name: str | None
    nodes: Path | None
    max_age_s: float | None
    from_end: bool
    idle_s: float | None
    json: bool
    quiet: bool
    pace: float | None
