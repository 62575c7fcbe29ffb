"""How many of a federation's points a plant has."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sluice.errors import RefusedError

__all__ = ["Overlap", "overlap_of"]

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
