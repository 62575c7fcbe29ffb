"""Plant files: a TOML page on which an engineer declares or corrects what a record's channels are.

[record]
time = "Timestamp"                 # column names and forms, where they are not found
time_format = "%d.%m.%Y %H:%M:%S"
stride_s = 5                       # for a file without a clock
label = "state"
normal_labels = ["ok"]
attack_labels = ["incident"]

[channels.FIT101]
role = "flow"
unit = "m3/h"
span = [0, 5]

[channels.MV101]
role = "actuator"
codes = { off = 1, on = [2], moving = [0] }

[channels.PLANT_START]
ignore = true
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tomli_w

from sluice.errors import PlantFileError
from sluice.files import atomically
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Record

__all__ = ["Declaration", "PlantFile", "read_plant_file", "write_plant_file"]

Toml = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What an engineer says of one channel; None where nothing is said and inference stands."""

    role: Role | None = None
    unit: str | None = None
    codes: Codes | None = None
    span: Span | None = None

    def correct(self, inferred: Channel, codes_of_values: Codes) -> Channel:
        """Return the inferred channel with what was said put in its place."""
        role = self.role or (Role.ACTUATOR if self.codes else inferred.role)
        codes = self.codes or inferred.codes or codes_of_values
        try:
            return Channel(
                name=inferred.name,
                role=role,
                unit=inferred.unit if self.unit is None else self.unit,
                codes=codes if role.discrete or self.codes else None,
                span=self.span or inferred.span,
                why="plant file" if self.role else inferred.why,
            )
        except PlantFileError as error:
            raise PlantFileError(f"plant file, [channels.{inferred.name}]: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantFile:
    """What an engineer says of a record; empty where nothing is said."""

    time: str = ""
    time_format: str = ""
    stride_s: float = 0.0
    label: str = ""
    normal_labels: tuple[str, ...] = ()
    attack_labels: tuple[str, ...] = ()
    channels: Mapping[str, Declaration] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def read_plant_file(path: Path) -> PlantFile:
    """Read and check a plant file."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PlantFileError(f"plant file {path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise PlantFileError(f"plant file {path} is not TOML: {error}") from None
    _only(document, {"record", "channels"}, where=str(path))
    about = _table(document, "record", where=str(path))
    channels = _table(document, "channels", where=str(path))
    pages = {name: _table(channels, name, where=f"{path}: channels") for name in channels}
    where = f"{path}: [record]"
    _only(
        about,
        {"time", "time_format", "stride_s", "label", "normal_labels", "attack_labels"},
        where=where,
    )
    stride_s = about.get("stride_s", 0.0)
    if not isinstance(stride_s, int | float) or isinstance(stride_s, bool) or stride_s < 0:
        raise PlantFileError(f"{where}: stride_s must be a positive number, got {stride_s!r}")
    return PlantFile(
        time=_string(about, "time", where=where),
        time_format=_string(about, "time_format", where=where),
        stride_s=float(stride_s),
        label=_string(about, "label", where=where),
        normal_labels=_strings(about, "normal_labels", where=where),
        attack_labels=_strings(about, "attack_labels", where=where),
        channels={
            name: _declaration(page, where=f"{path}: [channels.{name}]")
            for name, page in pages.items()
            if page.get("ignore") is not True
        },
        ignored=tuple(name for name, page in pages.items() if page.get("ignore") is True),
    )


def _declaration(page: Toml, *, where: str) -> Declaration:
    _only(page, {"role", "unit", "span", "codes", "ignore"}, where=where)
    role = _string(page, "role", where=where)
    if role and role not in set(Role):
        raise PlantFileError(
            f"{where}: role is {role!r}; it must be one of {', '.join(r.value for r in Role)}"
        )
    return Declaration(
        role=Role(role) if role else None,
        unit=_string(page, "unit", where=where) if "unit" in page else None,
        codes=_codes(page["codes"], where=where) if "codes" in page else None,
        span=_span(page["span"], where=where) if "span" in page else None,
    )


def _codes(value: object, *, where: str) -> Codes:
    if not isinstance(value, Mapping):
        raise PlantFileError(f"{where}: codes must be {{off = 0, on = [1]}}, got {value!r}")
    _only(value, {"off", "on", "moving"}, where=f"{where} codes")
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


def _only(page: Toml, known: set[str], *, where: str) -> None:
    for key in page:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {sorted(known)}"
            raise PlantFileError(f"{where}: unknown key {key!r}{hint}")


def _table(page: Toml, key: str, *, where: str) -> Toml:
    value = page.get(key, {})
    if not isinstance(value, Mapping):
        raise PlantFileError(f"{where}: {key} must be a table, got {value!r}")
    return value


def _string(page: Toml, key: str, *, where: str) -> str:
    value = page.get(key, "")
    if not isinstance(value, str):
        raise PlantFileError(f"{where}: {key} must be text, got {value!r}")
    return value


def _strings(page: Toml, key: str, *, where: str) -> tuple[str, ...]:
    value = page.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise PlantFileError(f"{where}: {key} must be a list of texts, got {value!r}")
    return tuple(value)


def write_plant_file(record: Record, path: Path) -> None:
    """Write what is known of a record's channels as a plant file, for a person to correct."""
    pages = {channel.name: _page(channel) for channel in record.channels}
    with atomically(path) as draft:
        draft.write_text(tomli_w.dumps({"channels": pages}), encoding="utf-8")


def _page(channel: Channel) -> dict[str, object]:
    page: dict[str, object] = {"role": channel.role.value}
    if channel.unit:
        page["unit"] = channel.unit
    if channel.span:
        page["span"] = [channel.span.low, channel.span.high]
    if channel.codes:
        codes = channel.codes
        page["codes"] = {"off": codes.off, "on": list(codes.on), "moving": list(codes.moving)}
    return page
