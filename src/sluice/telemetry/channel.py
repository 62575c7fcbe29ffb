"""What one column of a plant record measures or commands."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter

from sluice.errors import PlantFileError

__all__ = ["CHANNELS", "CHANNELS_KEY", "Channel", "Codes", "Role", "Span"]


class Role(StrEnum):
    """What a channel stands for in the process."""

    LEVEL = "level"
    FLOW = "flow"
    PRESSURE = "pressure"
    QUALITY = "quality"  # chemical analysers
    SPEED = "speed"
    POSITION = "position"
    ACTUATOR = "actuator"  # discrete states
    OTHER = "other"

    @property
    def discrete(self) -> bool:
        """Whether readings are codes rather than quantities."""
        return self is Role.ACTUATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """How an actuator's states are written: off, one or more on states, and moving between them."""

    off: int
    on: tuple[int, ...]
    moving: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        everything = (self.off, *self.on, *self.moving)
        if not self.on or len(set(everything)) != len(everything):
            raise PlantFileError(
                f"actuator codes need one off, at least one on and no repeats; got off={self.off}, "
                f"on={list(self.on)}, moving={list(self.moving)}"
            )

    @property
    def legal(self) -> frozenset[int]:
        """Every code the actuator may show, whether or not a record ever showed it."""
        return frozenset((self.off, *self.on, *self.moving))


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The range an instrument can show, in the channel's unit."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise PlantFileError(f"a span needs low < high, got {self.low} and {self.high}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One column: its name, role, unit and, where known, encoding and instrument span."""

    name: str
    role: Role
    unit: str = ""
    codes: Codes | None = None
    span: Span | None = None
    why: str = ""  # how the role was found, so that a person can correct it

    def __post_init__(self) -> None:
        if (self.codes is not None) != self.role.discrete:
            raise PlantFileError(
                f"channel {self.name!r} is {self.role.value!r} "
                f"{'without' if self.role.discrete else 'with'} actuator codes; "
                "exactly the actuators have codes"
            )


CHANNELS = TypeAdapter(tuple[Channel, ...])
CHANNELS_KEY = "sluice.channels"
"""Where Sluice's own Parquet files keep what their channels are."""
