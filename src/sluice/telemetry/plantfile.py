"""Plant files: TOML in which an engineer declares or corrects the channels of a record.

[record]
time = "Timestamp"                 # column name and format, if not detected
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
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tomli_w

from sluice.errors import PlantFileError
from sluice.files import atomically, parse_toml, read_text
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Record

__all__ = ["Declaration", "PlantFile", "read_plant_file", "write_plant_file"]

Toml = Mapping[str, object]
LARGEST = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """An engineer's declaration of one channel; None keeps the inferred value."""

    role: Role | None = None
    unit: str | None = None
    codes: Codes | None = None
    span: Span | None = None

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
                why="plant file" if self.role else inferred.why,
            )
        except PlantFileError as error:
            raise PlantFileError(f"plant file, [channels.{inferred.name}]: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantFile:
    """An engineer's declarations about a record; a field that is not declared is empty."""

    time: str = ""
    time_format: str = ""
    stride_s: float = 0.0
    label: str = ""
    normal_labels: tuple[str, ...] = ()
    attack_labels: tuple[str, ...] = ()
    channels: Mapping[str, Declaration] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def read_plant_file(path: str | Path) -> PlantFile:
    """Read and check a plant file."""
    path = Path(path)
    text = read_text(path, "plant file", largest=LARGEST, error=PlantFileError)
    document = parse_toml(text, f"plant file {path}", error=PlantFileError)
    _refuse_unknown_keys(document, {"record", "channels"}, where=str(path))
    settings = _table(document, "record", where=str(path))
    channels = _table(document, "channels", where=str(path))
    tables = {name: _table(channels, name, where=f"{path}: channels") for name in channels}
    where = f"{path}: [record]"
    _refuse_unknown_keys(
        settings,
        {"time", "time_format", "stride_s", "label", "normal_labels", "attack_labels"},
        where=where,
    )
    stride_s = settings.get("stride_s", 0.0)
    if not isinstance(stride_s, int | float) or isinstance(stride_s, bool) or stride_s < 0:
        raise PlantFileError(f"{where}: stride_s must be a positive number, got {stride_s!r}")
    return PlantFile(
        time=_string(settings, "time", where=where),
        time_format=_string(settings, "time_format", where=where),
        stride_s=float(stride_s),
        label=_string(settings, "label", where=where),
        normal_labels=_strings(settings, "normal_labels", where=where),
        attack_labels=_strings(settings, "attack_labels", where=where),
        channels={
            name: _declaration(table, where=f"{path}: [channels.{name}]")
            for name, table in tables.items()
            if table.get("ignore") is not True
        },
        ignored=tuple(name for name, table in tables.items() if table.get("ignore") is True),
    )


def _declaration(table: Toml, *, where: str) -> Declaration:
    _refuse_unknown_keys(table, {"role", "unit", "span", "codes", "ignore"}, where=where)
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
    )


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


def write_plant_file(record: Record, path: str | Path) -> None:
    """Write a record's channels as a plant file, for an engineer to correct."""
    path = Path(path)
    tables = {channel.name: _channel_table(channel) for channel in record.channels}
    with atomically(path) as draft:
        draft.write_text(tomli_w.dumps({"channels": tables}), encoding="utf-8")


def _channel_table(channel: Channel) -> dict[str, object]:
    table: dict[str, object] = {"role": channel.role.value}
    if channel.unit:
        table["unit"] = channel.unit
    if channel.span:
        table["span"] = [channel.span.low, channel.span.high]
    if channel.codes:
        codes = channel.codes
        table["codes"] = {"off": codes.off, "on": list(codes.on), "moving": list(codes.moving)}
    return table
