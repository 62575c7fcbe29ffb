"""A cause of drift: what changed in the plant, by how much and since when."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Cause", "CauseKind"]


class CauseKind(StrEnum):
    """What may have changed in a plant."""

    LEAK = "leak"  # a tank loses water that no meter measures
    INFLOW = "inflow"  # a tank gains water that no meter measures
    METER = "meter"  # a flow meter reads too much or too little
    PUMP = "pump"  # an actuator's flow is not what it was, and the meter is not to blame
    SET_POINT = "set-point"  # an actuator switches at another level


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One change, with the evidence for it in words."""

    kind: CauseKind
    subject: str  # the channel: a level, a flow meter or an actuator
    size: float  # in `unit`: lost or gained flow; a share for meters and pumps; the new set-point
    unit: str
    since_row: int  # of the record; 0 if the record begins with it
    since: str  # the time of that row
    sentence: str
