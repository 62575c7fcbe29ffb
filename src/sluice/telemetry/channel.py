"""What one column of a plant record measures or commands."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter

from sluice.errors import PlantFileError

__all__ = ["CHANNELS", "CHANNELS_KEY", "Channel", "Codes", "Role", "Span"]


class Role(StrEnum):
    """The role of a channel in the process."""

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
    """The codes of an actuator's states: one for off, some for on, and any for moving."""

    off: int
    on: tuple[int, ...]
    moving: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        codes = (self.off, *self.on, *self.moving)
        if not self.on or len(set(codes)) != len(codes):
            raise PlantFileError(
                f"actuator codes need one off, at least one on and no repeats; got off={self.off}, "
                f"on={list(self.on)}, moving={list(self.moving)}"
            )

    @property
    def legal(self) -> frozenset[int]:
        """Every code the actuator may show, including codes that no record contains."""
        return frozenset((self.off, *self.on, *self.moving))


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The measuring range of an instrument, in the channel's unit."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise PlantFileError(f"a span needs low < high, got {self.low} and {self.high}")

    @property
    def width(self) -> float:
        """From the lowest to the highest reading."""
        return self.high - self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One column: its name, role, unit and, where known, encoding and instrument span."""

    name: str
    role: Role
    unit: str = ""
    codes: Codes | None = None
    span: Span | None = None
    why: str = ""  # how the role was inferred, so that an engineer can correct it

    def __post_init__(self) -> None:
        if (self.codes is not None) != self.role.discrete:
            raise PlantFileError(
                f"channel {self.name!r} is {self.role.value!r} "
                f"{'without' if self.role.discrete else 'with'} actuator codes; "
                "an actuator needs codes, and no other role may have them"
            )


CHANNELS = TypeAdapter(tuple[Channel, ...])
CHANNELS_KEY = "sluice.channels"
"""The metadata key under which Sluice's own Parquet files store their channels."""
