"""How many of a federation's points a plant has, and whether they measure what the points do."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sluice.errors import RefusedError
from sluice.telemetry import Channel, Role
from sluice.template.points import Point, Template
from sluice.template.units import Conversion, conversion, same_dimension

__all__ = ["Overlap", "demand_kinds", "overlap_of"]

MOST_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """The points of a federation that a plant has, and those that it lacks."""

    present: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        """The share of the federation's points that the plant has."""
        return len(self.present) / (len(self.present) + len(self.missing))

    def demand(self, least: float, *, plant: str) -> None:
        """Raise, with a table of what is missing, unless the plant shares enough points."""
        if self.share >= least and self.present:
            return
        count = len(self.present) + len(self.missing)
        shown = [f"  {name}" for name in self.missing[:MOST_SHOWN]]
        if len(self.missing) > MOST_SHOWN:
            shown.append(f"  and {len(self.missing) - MOST_SHOWN} more")
        raise RefusedError(
            f"plant {plant!r} has {len(self.present)} of the federation's {count} points "
            f"({self.share:.0%}); the federation needs {least:.0%}. Either its tags are not mapped "
            "('sluice plant map' proposes a mapping), or it is another kind of plant. Missing:\n"
            + "\n".join(shown)
        )


def overlap_of(names: Collection[str], points: Sequence[str]) -> Overlap:
    """Compare the channels of a plant with the points of a federation."""
    return Overlap(
        present=tuple(point for point in points if point in names),
        missing=tuple(point for point in points if point not in names),
    )


def demand_kinds(channels: Iterable[Channel], template: Template, *, plant: str) -> None:
    """Raise, with a table, if a channel has a point's name and not its role, unit or codes."""
    points = {point.name: point for point in template.points}
    differing = [
        f"  {channel.name}: {_kind(channel)}; the point is {_kind(points[channel.name])}"
        for channel in channels
        if channel.name in points and not _same_kind(channel, points[channel.name])
    ]
    if not differing:
        return
    shown = differing[:MOST_SHOWN]
    if len(differing) > MOST_SHOWN:
        shown.append(f"  and {len(differing) - MOST_SHOWN} more")
    raise RefusedError(
        f"plant {plant!r} has {len(differing)} channels that have the name of a point of template "
        f"{template.name!r} and do not measure the same. Declare role, unit and codes in the plant "
        "file, and map the tags ('sluice plant map' converts the readings), then mine the rules "
        "again:\n" + "\n".join(shown)
    )


def _same_kind(channel: Channel, point: Point) -> bool:
    measured = channel.role is Role.OTHER and not point.role.discrete
    if channel.role is not point.role and not measured:
        return False
    if channel.codes is not None and point.codes is not None:
        known = set(channel.codes.legal) <= set(point.codes.legal)
        return known and channel.codes.off == point.codes.off
    if channel.unit == point.unit:
        return True
    convertible = bool(same_dimension(channel.unit, point.unit))
    return convertible and conversion(channel.unit, point.unit) == Conversion(factor=1.0)


def _kind(described: Channel | Point) -> str:
    """Return role, unit and codes in words."""
    if described.codes is not None:
        codes = ", ".join(str(code) for code in described.codes.legal)
        return f"{described.role.value} with codes {codes}"
    return f"{described.role.value} in {described.unit or 'no unit'}"
