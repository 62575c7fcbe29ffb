"""What to do with missing readings. The module is small, so that command lines load it quickly."""

from enum import StrEnum

__all__ = ["Fill"]


class Fill(StrEnum):
    """What to do with missing readings."""

    REFUSE = "refuse"  # leave them missing
    FFILL = "ffill"  # repeat the last reading; before the first reading, use the first
    LINEAR = "linear"  # interpolate between rows; repeat the nearest reading at the ends
