"""Plant files: TOML in which an engineer declares how a record is read and corrects its channels.

[record]
time = "Timestamp"                 # column name and format, if not detected
time_format = "%d.%m.%Y %H:%M:%S"
time_zone = "Europe/Berlin"        # of times without an offset
stride_s = 5                       # for a file without a clock, and for resampling
label = "state"
normal_labels = ["ok"]
attack_labels = ["incident"]

[record.words]
Ein = 1
Aus = 0

[channels.FIT101]
role = "flow"
unit = "m3/h"
span = [0, 5]

[channels."WW0?/*/PV"]             # * and ? match parts of names
unit = "m"

[channels.MV101]
role = "actuator"
codes = { off = 1, on = [2], moving = [0] }

[channels.LIT101.point]            # this tag is a point of a federation's template
name = "tank1.level"
unit = "m"                         # of the point; readings become factor * reading + offset
factor = 0.001
offset = 0.0

[channels.PLANT_START]
ignore = true
"""

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path

import tomli_w

from sluice.arrays import Floats
from sluice.errors import PlantFileError, SettingChoice
from sluice.files import atomically, parse_toml, read_text
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Record

__all__ = [
    "DateOrder",
    "Declaration",
    "Duplicates",
    "Epoch",
    "Fold",
    "Placement",
    "PlantFile",
    "Resample",
    "Unsorted",
    "is_glob",
    "matches",
    "read_plant_file",
    "unmatched",
    "write_plant_file",
]

Toml = Mapping[str, object]
LARGEST = 1 << 20  # bytes
MOST_WORDS = 10_000
SHORTEST_S = 1e-6


class DateOrder(StrEnum):
    """The order of day, month and year in a date of numbers."""

    DMY = "dmy"
    MDY = "mdy"
    YMD = "ymd"


class Epoch(StrEnum):
    """The unit of times that are numbers: since 1970, or Excel's days since 1900."""

    S = "s"
    MS = "ms"
    US = "us"
    NS = "ns"
    EXCEL = "excel"


class Fold(StrEnum):
    """Which of two equal local times is meant, if only one of them is in the record."""

    FIRST = "first"  # daylight saving time
    SECOND = "second"  # standard time


class Duplicates(StrEnum):
    """What to do with several rows of the same time."""

    REFUSE = "refuse"
    FIRST = "keep-first"
    LAST = "keep-last"


class Unsorted(StrEnum):
    """What to do with rows that are not in the order of time."""

    REFUSE = "refuse"
    SORT = "sort"


class Resample(StrEnum):
    """How readings at irregular times become readings at a constant stride."""

    LAST = "last"  # the last reading, if it is not older than the maximum age
    MEAN = "mean"  # of the readings since the row before; states keep their last value


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The point of a template that a channel is, and how its readings become the point's.

    A reading of the point is `factor` times the channel's, plus `offset`.
    """

    name: str
    unit: str = ""
    factor: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not self.name or not 0 < self.factor < math.inf or not math.isfinite(self.offset):
            raise PlantFileError(
                f"a point needs a name, a factor above 0 and a finite offset; got {self.name!r}, "
                f"{self.factor} and {self.offset}"
            )

    def place(self, channel: Channel) -> Channel:
        """Return the channel as the point: its name, its unit, and its span and codes there."""
        span, codes = channel.span, channel.codes
        if span is not None:
            span = Span(low=self._at(span.low), high=self._at(span.high))
        if codes is not None:
            codes = Codes(
                off=self._code(channel, codes.off),
                on=tuple(self._code(channel, code) for code in codes.on),
                moving=tuple(self._code(channel, code) for code in codes.moving),
            )
        why = f"{channel.why}; tag {channel.name}" if channel.why else f"tag {channel.name}"
        return replace(channel, name=self.name, unit=self.unit, span=span, codes=codes, why=why)

    def readings(self, readings: Floats) -> Floats:
        """Return readings of the channel as readings of the point."""
        if self.factor == 1.0 and self.offset == 0.0:
            return readings
        placed: Floats = self.factor * readings + self.offset
        return placed

    def _at(self, reading: float) -> float:
        return self.factor * reading + self.offset

    def _code(self, channel: Channel, code: int) -> int:
        placed = self._at(code)
        if abs(placed - round(placed)) > 1e-9:
            raise PlantFileError(
                f"plant file, [channels.{channel.name}.point]: code {code} becomes {placed:g}, "
                "which is no whole number; give a factor and an offset that keep codes whole"
            )
        return round(placed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """An engineer's declaration of one channel; None keeps the inferred value."""

    role: Role | None = None
    unit: str | None = None
    codes: Codes | None = None
    span: Span | None = None
    point: Placement | None = None
    why: str = "plant file"  # where the role comes from

    def correct(self, inferred: Channel, codes_of_values: Codes) -> Channel:
        """Return the inferred channel with the declared values in place of the inferred ones."""
        role = self.role or (Role.ACTUATOR if self.codes else inferred.role)
        codes = self.codes or inferred.codes or codes_of_values
        try:
            return Channel(
                name=inferred.name,
                role=role,
                unit=inferred.unit if self.unit is None else self.unit,
                codes=codes if role.discrete or self.codes else None,
                span=self.span or inferred.span,
                why=self.why if self.role else inferred.why,
            )
        except PlantFileError as error:
            raise PlantFileError(f"plant file, [channels.{inferred.name}]: {error}") from None

    def over(self, other: "Declaration") -> "Declaration":
        """Return this declaration, with the values of another one where this one has none."""
        return Declaration(
            role=self.role or other.role,
            unit=other.unit if self.unit is None else self.unit,
            codes=self.codes or (None if self.role else other.codes),
            span=self.span or other.span,
            point=self.point or other.point,
            why=self.why if self.role else other.why,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantFile:
    """An engineer's declarations about a record; a field that is not declared is empty."""

    # The text or the workbook.
    encoding: str = ""
    delimiter: str = ""
    decimal: str = ""
    header_line: int = 0  # counted from 1
    sheet: str = ""
    # The clock.
    time: str = ""
    time_of_day: str = ""  # the column beside `time`, if that holds dates only
    time_format: str = ""
    date_order: str = ""
    epoch: str = ""
    time_zone: str = ""
    fold: str = ""
    unsorted: str = Unsorted.REFUSE
    duplicates: str = Duplicates.REFUSE
    # Readings in long form, and at irregular times.
    tag: str = ""
    value: str = ""
    stride_s: float = 0.0
    resample: str = ""
    max_age_s: float = 0.0
    # Cells.
    missing: tuple[str, ...] = ()
    words: Mapping[str, float] = field(default_factory=dict)
    quality: str = ""
    good_quality: tuple[str, ...] = ()
    # Labels.
    label: str = ""
    normal_labels: tuple[str, ...] = ()
    attack_labels: tuple[str, ...] = ()
    # Channels.
    prefix: str = ""
    channels: Mapping[str, Declaration] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[tuple[str, object], ...]:
        """What is declared about the record, without its channels: names and values in order."""
        return tuple(
            (each.name, getattr(self, each.name))
            for each in fields(self)
            if each.name not in ("channels", "ignored")
        )

    def declaration(self, name: str) -> Declaration | None:
        """Return what is declared about a channel: by its name, else by the first pattern."""
        if name in self.channels:
            return self.channels[name]
        for pattern, declared in self.channels.items():
            if is_glob(pattern) and matches(name, pattern):
                return declared
        return None

    @property
    def points(self) -> dict[str, Placement]:
        """The point of each channel that is one, by the channel's name."""
        return {name: declared.point for name, declared in self.channels.items() if declared.point}

    def as_point(self, name: str, reading: float) -> tuple[str, float]:
        """Return a channel's name and reading as those of its point, if it is one."""
        declared = self.channels.get(name)
        if declared is None or declared.point is None:
            return name, reading
        return declared.point.name, declared.point.factor * reading + declared.point.offset

    def ignores(self, name: str) -> bool:
        """Return whether a column is no channel; a declaration by name counts more."""
        return name not in self.channels and any(matches(name, each) for each in self.ignored)

    def having(self, choice: SettingChoice) -> "PlantFile":
        """Return these declarations with an answer added."""
        value: object = choice.value
        if choice.setting == "unit" and isinstance(value, dict):
            units = {name: Declaration(unit=str(unit)) for name, unit in value.items()}
            earlier = {name: self.declaration(name) or Declaration() for name in units}
            channels = {name: units[name].over(earlier[name]) for name in units}
            return replace(self, channels={**self.channels, **channels})
        if isinstance(value, tuple):
            value = (*getattr(self, choice.setting), *value)
        elif isinstance(value, dict):
            value = {**getattr(self, choice.setting), **value}
        settings: dict[str, object] = {choice.setting: value}
        return replace(self, **settings)  # type: ignore[arg-type]


def is_glob(pattern: str) -> bool:
    """Return whether a name is a pattern: a bracket is not, because tags contain brackets."""
    return "*" in pattern or "?" in pattern


def matches(name: str, pattern: str) -> bool:
    """Return whether a name is equal to a pattern, in which * and ? match any characters.

    It takes at most as many steps as both are long, multiplied; a regular expression can take more.
    """
    if not is_glob(pattern):
        return name == pattern
    at = step = 0
    star, resume = -1, 0
    while at < len(name):
        if step < len(pattern) and pattern[step] == "*":
            star, resume = step, at
            step += 1
        elif step < len(pattern) and pattern[step] in ("?", name[at]):
            at, step = at + 1, step + 1
        elif star >= 0:  # the last star takes one more character
            resume += 1
            at, step = resume, star + 1
        else:
            return False
    return not pattern[step:].strip("*")


# -- reading ----------------------------------------------------------------------------------

ALLOWED: Mapping[str, type[StrEnum]] = {
    "date_order": DateOrder,
    "epoch": Epoch,
    "fold": Fold,
    "unsorted": Unsorted,
    "duplicates": Duplicates,
    "resample": Resample,
}
MARKS = {"delimiter": (",", ";", "\t", "|"), "decimal": (".", ",")}
SECONDS = {"stride_s", "max_age_s"}
LISTS = {"missing", "good_quality", "normal_labels", "attack_labels"}


def read_plant_file(path: str | Path) -> PlantFile:
    """Read and check a plant file."""
    path = Path(path)
    text = read_text(path, "plant file", largest=LARGEST, error=PlantFileError)
    document = parse_toml(text, f"plant file {path}", error=PlantFileError)
    _refuse_unknown_keys(document, {"record", "channels"}, where=str(path))
    channels = _table(document, "channels", where=str(path))
    tables = {name: _table(channels, name, where=f"{path}: channels") for name in channels}
    settings = _settings(_table(document, "record", where=str(path)), where=f"{path}: [record]")
    declared = {
        name: _declaration(table, where=f"{path}: [channels.{name}]")
        for name, table in tables.items()
        if table.get("ignore") is not True
    }
    _refuse_shared_points(declared, where=str(path))
    settings["channels"] = declared
    settings["ignored"] = tuple(n for n, table in tables.items() if table.get("ignore") is True)
    return PlantFile(**settings)  # type: ignore[arg-type]


def _refuse_shared_points(channels: Mapping[str, Declaration], *, where: str) -> None:
    """Refuse two channels that are one point, and a pattern that is a point."""
    taken: dict[str, str] = {}
    for name, declared in channels.items():
        if declared.point is None:
            continue
        if is_glob(name):
            raise PlantFileError(
                f"{where}: [channels.{name}] matches several channels; a point is one channel"
            )
        point = declared.point.name
        if point in taken:
            raise PlantFileError(
                f"{where}: channels {taken[point]!r} and {name!r} are both point {point!r}; a "
                "point is one channel: remove one of them"
            )
        taken[point] = name


def _settings(table: Toml, *, where: str) -> dict[str, object]:
    """Return the fields of a `PlantFile` that a [record] table gives."""
    known = {name for name, _ in PlantFile().settings}
    _refuse_unknown_keys(table, known, where=where)
    settings: dict[str, object] = {}
    for key in table:
        if key in SECONDS:
            settings[key] = _seconds(table, key, where=where)
        elif key in LISTS:
            settings[key] = _strings(table, key, where=where)
        elif key == "words":
            settings[key] = _words(table[key], where=where)
        elif key == "header_line":
            settings[key] = _line(table[key], where=where)
        else:
            settings[key] = _string(table, key, where=where)
        allowed = MARKS.get(key) or tuple(ALLOWED.get(key, ()))
        if allowed and settings[key] not in allowed:
            shown = " or ".join(f'"{each}"' for each in allowed)
            raise PlantFileError(f"{where}: {key} is {settings[key]!r}; it must be {shown}")
    _refuse_contradictions(settings, where=where)
    return settings


def _refuse_contradictions(settings: Mapping[str, object], *, where: str) -> None:
    if "decimal" in settings and settings["decimal"] == settings.get("delimiter"):
        raise PlantFileError(f"{where}: decimal and delimiter are both {settings['decimal']!r}")
    if "resample" in settings and not settings.get("stride_s"):
        raise PlantFileError(
            f"{where}: resample needs stride_s, the seconds between two rows; add stride_s = 60"
        )
    if "max_age_s" in settings and "resample" not in settings:
        raise PlantFileError(f'{where}: max_age_s is for resampling; add resample = "last"')


def _seconds(table: Toml, key: str, *, where: str) -> float:
    value = table[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
        if math.isfinite(seconds) and (seconds == 0 or seconds >= SHORTEST_S):
            return seconds
    raise PlantFileError(f"{where}: {key} must be a positive number, got {value!r}")


def _line(value: object, *, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise PlantFileError(f"{where}: header_line counts from 1, got {value!r}")


def _words(value: object, *, where: str) -> dict[str, float]:
    if not isinstance(value, Mapping) or len(value) > MOST_WORDS:
        raise PlantFileError(f"{where}: words must be a table such as {{ Ein = 1, Aus = 0 }}")
    words = {}
    for word, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise PlantFileError(
                f"{where}: words.{word} must be a number, got {number!r}; a word for a missing "
                "reading belongs in missing = [...]"
            )
        words[str(word)] = float(number)
    return words


def _declaration(table: Toml, *, where: str) -> Declaration:
    known = {"role", "unit", "span", "codes", "ignore", "point"}
    _refuse_unknown_keys(table, known, where=where)
    role = _string(table, "role", where=where)
    if role and role not in set(Role):
        raise PlantFileError(
            f"{where}: role is {role!r}; it must be one of {', '.join(r.value for r in Role)}"
        )
    return Declaration(
        role=Role(role) if role else None,
        unit=_string(table, "unit", where=where) if "unit" in table else None,
        codes=_codes(table["codes"], where=where) if "codes" in table else None,
        span=_span(table["span"], where=where) if "span" in table else None,
        point=_placement(table["point"], where=where) if "point" in table else None,
    )


def _placement(value: object, *, where: str) -> Placement:
    if not isinstance(value, Mapping):
        raise PlantFileError(f"{where}: point must be a table with a name, got {value!r}")
    where = f"{where} point"
    _refuse_unknown_keys(value, {"name", "unit", "factor", "offset"}, where=where)
    numbers = {}
    for key, usual in (("factor", 1.0), ("offset", 0.0)):
        number = value.get(key, usual)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise PlantFileError(f"{where}: {key} must be a number, got {number!r}")
        numbers[key] = float(number)
    try:
        return Placement(
            name=_string(value, "name", where=where),
            unit=_string(value, "unit", where=where),
            factor=numbers["factor"],
            offset=numbers["offset"],
        )
    except PlantFileError as error:
        raise PlantFileError(f"{where}: {error}") from None


def _codes(value: object, *, where: str) -> Codes:
    if not isinstance(value, Mapping):
        raise PlantFileError(f"{where}: codes must be {{off = 0, on = [1]}}, got {value!r}")
    _refuse_unknown_keys(value, {"off", "on", "moving"}, where=f"{where} codes")
    match value.get("off"), value.get("on"), value.get("moving", []):
        case int(off), [*on], [*moving] if all(type(code) is int for code in (*on, *moving)):
            try:
                return Codes(off=off, on=tuple(on), moving=tuple(moving))
            except PlantFileError as error:
                raise PlantFileError(f"{where}: {error}") from None
    raise PlantFileError(f"{where}: codes are whole numbers {{off = 0, on = [1]}}, got {value!r}")


def _span(value: object, *, where: str) -> Span:
    match value:
        case [int() | float() as low, int() | float() as high] if low < high:
            return Span(low=float(low), high=float(high))
    raise PlantFileError(f"{where}: span must be [low, high] with low < high, got {value!r}")


def _refuse_unknown_keys(table: Toml, known: set[str], *, where: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known keys are {sorted(known)}"
            raise PlantFileError(f"{where}: unknown key {key!r}{hint}")


def _table(parent: Toml, key: str, *, where: str) -> Toml:
    value = parent.get(key, {})
    if not isinstance(value, Mapping):
        raise PlantFileError(f"{where}: {key} must be a table, got {value!r}")
    return value


def _string(table: Toml, key: str, *, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise PlantFileError(f"{where}: {key} must be a string, got {value!r}")
    return value


def _strings(table: Toml, key: str, *, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise PlantFileError(f"{where}: {key} must be a list of strings, got {value!r}")
    return tuple(value)


# -- writing ----------------------------------------------------------------------------------


def write_plant_file(record: Record, path: str | Path, *, plant: PlantFile | None = None) -> None:
    """Write a record's channels, and how it was read, as a plant file for an engineer to correct.

    `plant` has the settings under which the record was read; without it, only channels are written.
    """
    path = Path(path)
    declared = plant or PlantFile()
    document: dict[str, object] = {}
    settings = _settings_table(declared)
    if settings:
        document["record"] = settings
    tables = {name: {"ignore": True} for name in declared.ignored}
    points = declared.points
    document["channels"] = {
        **tables,
        **{c.name: _channel_table(c, points.get(c.name)) for c in record.channels},
    }
    with atomically(path) as draft:
        draft.write_text(tomli_w.dumps(document), encoding="utf-8")


def _settings_table(plant: PlantFile) -> dict[str, object]:
    unset = dict(PlantFile().settings)
    return {name: _toml(value) for name, value in plant.settings if value and value != unset[name]}


def _toml(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _channel_table(channel: Channel, point: Placement | None) -> dict[str, object]:
    table: dict[str, object] = {"role": channel.role.value}
    if channel.unit:
        table["unit"] = channel.unit
    if channel.span:
        table["span"] = [channel.span.low, channel.span.high]
    if channel.codes:
        codes = channel.codes
        table["codes"] = {"off": codes.off, "on": list(codes.on), "moving": list(codes.moving)}
    if point:
        table["point"] = asdict(point)
    return table


def unmatched(plant: PlantFile, names: Iterable[str]) -> str | None:
    """Return the first declared channel that is none of the names, or None."""
    names = tuple(names)
    for declared in plant.channels:
        if not any(matches(name, declared) for name in names):
            return declared
    return None
