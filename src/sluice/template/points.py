"""The template: named points with role, unit, span and statistics, as a JSON file.

A template describes one kind of plant. The coordinator derives it from a clean reference record.
It holds no row of that record: per point a few quantiles and the shape of its course, and per pair
of points how they move together.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import rfc8785
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from sluice.errors import DocumentError, SettingError
from sluice.files import atomically, parse_json, read_text
from sluice.telemetry import Codes, Record, Role, Span
from sluice.template.profile import GRAPHS, SHAPES, RecordProfile, profile_of, twins_in

__all__ = [
    "Point",
    "Template",
    "derive_template",
    "parse_template",
    "read_template",
    "write_template",
]

LARGEST = 16 * 1024 * 1024
MOST_POINTS = 1_000
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)

Name = Annotated[str, Field(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One named point: what it measures, its unit and span, and its usual course."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    role: Role
    unit: str = ""
    span: Span | None = None
    codes: Codes | None = None
    resolution: float  # the smallest usual step, in the unit; 0: it never changed
    usual: tuple[float, float, float]  # quantiles of clean readings: 2.5 %, half, 97.5 %
    shape: tuple[float, ...]  # numbers without a unit that describe its course
    connects: tuple[Name, ...] = ()  # points that a rule of the reference ties to it
    twins: tuple[Name, ...] = ()  # points that nothing in the reference tells from it

    def __post_init__(self) -> None:
        if (self.codes is not None) != self.role.discrete:
            raise SettingError(
                f"point {self.name!r} is {self.role.value!r}; an actuator has codes, and no other "
                "role has them"
            )
        low, middle, high = self.usual
        if not low <= middle <= high or self.resolution < 0 or len(self.shape) != len(SHAPES):
            raise SettingError(
                f"point {self.name!r} needs three usual readings in ascending order, a resolution "
                f"of at least 0 and {len(SHAPES)} numbers of shape"
            )

    @property
    def still(self) -> bool:
        """Whether it never changed in the reference, so that nothing tells it from its like."""
        return self.resolution == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The points of one kind of plant, and how they move together."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    name: Name
    stride_s: float
    points: tuple[Point, ...]
    graphs: tuple[tuple[tuple[float, ...], ...], ...]  # a matrix of all pairs for each of GRAPHS

    def __post_init__(self) -> None:
        count = len(self.points)
        if not 1 <= count <= MOST_POINTS or not 0 < self.stride_s < math.inf:
            raise SettingError(
                f"a template has 1 to {MOST_POINTS:,} points and a stride above 0 s, got {count} "
                f"points at {self.stride_s} s"
            )
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise SettingError(f"a template names each point once; it names {twice[0]!r} twice")
        named = {name for point in self.points for name in (*point.connects, *point.twins)}
        if strangers := named - set(self.names):
            raise SettingError(
                f"a point connects to, or is the twin of, {min(strangers)!r}, which the template "
                "does not name"
            )
        pairs = {(point.name, twin) for point in self.points for twin in point.twins}
        if any(one == other or (other, one) not in pairs for one, other in pairs):
            raise SettingError("twins are other points that name each other")
        rows = [len(matrix) for matrix in self.graphs]
        widths = {len(row) for matrix in self.graphs for row in matrix}
        if rows != [count] * len(GRAPHS) or widths != {count}:
            raise SettingError(
                f"a template of {count} points has {len(GRAPHS)} matrices of {count} x {count}"
            )
        if any(abs(value) > 1 for matrix in self.graphs for row in matrix for value in row):
            raise SettingError("a correlation lies between -1 and 1")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the points, in order."""
        return tuple(point.name for point in self.points)

    @property
    def digest(self) -> str:
        """The hash of the template's content."""
        return hashlib.sha256(rfc8785.dumps(_ADAPTER.dump_python(self, mode="json"))).hexdigest()

    def point(self, name: str) -> Point:
        """Return a point by its name."""
        for point in self.points:
            if point.name == name:
                return point
        raise SettingError(
            f"template {self.name!r} has no point {name!r}; it has {', '.join(self.names[:8])}, ..."
        )

    @property
    def profile(self) -> RecordProfile:
        """The statistics of the points, to be compared with those of a plant."""
        return RecordProfile(
            usual=np.array([point.usual for point in self.points]),
            shapes=np.array([point.shape for point in self.points]),
            moving=np.array([not point.still for point in self.points]),
            graphs=np.array(self.graphs),
        )


_ADAPTER = TypeAdapter(Template)


def derive_template(
    reference: Record, *, name: str | None = None, ties: Iterable[Iterable[str]] = ()
) -> Template:
    """Derive a template from a clean record; its channels' names become the points' names.

    `ties` are sets of channels that rules of the reference plant tie to each other: its topology,
    as far as it is known.
    """
    profile = profile_of(reference)
    twins = {name: group for group in twins_in(reference) for name in group}
    connects: dict[str, set[str]] = {each: set() for each in reference.names}
    for tied in ties:
        known = [each for each in tied if each in connects]
        for each in known:
            connects[each] |= set(known) - {each}
    points = tuple(
        Point(
            name=channel.name,
            role=channel.role,
            unit=channel.unit,
            span=channel.span,
            codes=channel.codes,
            resolution=_resolution(reference, channel.name) if profile.moving[at] else 0.0,
            usual=_three(profile.usual[at]),
            shape=tuple(profile.shapes[at].tolist()),
            connects=tuple(sorted(connects[channel.name])),
            twins=tuple(name for name in twins.get(channel.name, ()) if name != channel.name),
        )
        for at, channel in enumerate(reference.channels)
    )
    return Template(
        name=name or reference.name,
        stride_s=reference.stride_s,
        points=points,
        graphs=tuple(
            tuple(tuple(row) for row in np.round(matrix, 4).tolist()) for matrix in profile.graphs
        ),
    )


def _three(usual: np.ndarray) -> tuple[float, float, float]:
    low, middle, high = (float(each) for each in usual)
    return low, middle, high


def _resolution(record: Record, name: str) -> float:
    steps = np.abs(np.diff(record.column(name)))
    steps = steps[np.isfinite(steps) & (steps > 0)]
    return float(np.quantile(steps, 0.05))


def parse_template(text: str, *, where: str) -> Template:
    """Read a template from text; refuse unknown keys, missing keys and impossible values."""
    parse_json(text, where, error=DocumentError)  # it refuses text that nests too deeply
    try:
        template: Template = _ADAPTER.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        at = ".".join(str(part) for part in first["loc"])
        raise DocumentError(f"{where} is not a valid template: {at}: {first['msg']}") from None
    except SettingError as error:
        raise DocumentError(f"{where} is not a valid template: {error}") from None
    return template


def read_template(path: str | Path) -> Template:
    """Read a template file."""
    path = Path(path)
    text = read_text(path, "template", largest=LARGEST, error=DocumentError)
    return parse_template(text, where=str(path))


def write_template(template: Template, path: str | Path) -> None:
    """Write a template as JSON."""
    content = _ADAPTER.dump_python(template, mode="json")
    with atomically(Path(path)) as draft:
        draft.write_text(json.dumps(content, allow_nan=False) + "\n", encoding="utf-8")
