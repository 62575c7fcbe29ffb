"""Random records, written in random styles of historians, are read back equal or are refused.

A refusal must name a setting. With the settings that the writer used, every record is read back
equal.
"""

import csv
import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from sluice.errors import UnclearRecordError
from sluice.telemetry import PlantFile, Record, read_record

TAGS = (
    "LIT101", "WW00/FT-000/PV", "Füllstand Behälter 1", "Tank1|Level", "P_7", "AIT_204", "A",
    "Débit (m3/h)", "10-PT-203.Value", "Niveau; bâche", "Flow, total", "7", "x y",
)  # fmt: skip
CHINESE = ("液位1", "流量1", "泵1状态")
STRIDES_S = (1, 5, 60, 900, 3_600, 86_400)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
MISSING = ("", "", "Bad Input", "[-11059]", "No Data", "I/O Timeout", "NaN")
WORDS = (("RUN", "STOP"), ("Ein", "Aus"), ("Open", "Closed"), ("marche", "arrêt"), ("1", "0"))


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A record to write: times in UTC, and readings with None where there is none."""

    times: list[datetime]
    columns: dict[str, list[float | None]]
    states: frozenset[str]


@st.composite
def truths(draw: st.DrawFn, tags: tuple[str, ...] = TAGS) -> Truth:
    start = draw(st.datetimes(datetime(1995, 1, 1), datetime(2037, 1, 1)))  # noqa: DTZ001
    if draw(st.booleans()):  # near the end of daylight saving time
        start = draw(st.sampled_from([datetime(2024, 10, 26, 22), datetime(2023, 11, 5, 3)]))  # noqa: DTZ001
    start = start.replace(microsecond=0, tzinfo=UTC)
    stride = timedelta(seconds=draw(st.sampled_from(STRIDES_S)))
    rows = draw(st.integers(3, 40))
    names = draw(st.lists(st.sampled_from(tags), min_size=1, max_size=5, unique=True))
    states = frozenset(name for name in names if draw(st.integers(0, 3)) == 0)
    columns: dict[str, list[float | None]] = {}
    for name in names:
        if name in states:
            readings = st.sampled_from([0.0, 1.0])
        else:
            places = draw(st.integers(0, 5))
            largest = draw(st.sampled_from([1, 10, 5_000, 2_000_000]))
            readings = st.floats(-largest, largest).map(lambda x, p=places: round(x, p) + 0.0)  # type: ignore[misc]
        values: list[float | None] = draw(
            st.lists(readings, min_size=rows, max_size=rows).map(list)
        )
        for row in draw(st.sets(st.integers(0, rows - 1), max_size=rows // 3)):
            values[row] = None
        columns[name] = values
    return Truth(
        times=[start + row * stride for row in range(rows)], columns=columns, states=states
    )


# -- styles of time ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """A style of time stamps, the zone it shows, and the settings that make it certain."""

    write: Callable[[datetime], str]
    utc: bool  # read back as UTC
    settings: PlantFile = field(default_factory=PlantFile)


def written(layout: str) -> Callable[[datetime], str]:
    return lambda time: time.strftime(layout)


STAMPS = {
    "iso": Stamp(write=written("%Y-%m-%d %H:%M:%S"), utc=True),
    "iso T": Stamp(write=written("%Y-%m-%dT%H:%M:%S"), utc=True),
    "iso Z": Stamp(write=written("%Y-%m-%dT%H:%M:%SZ"), utc=True),
    "offset": Stamp(
        write=lambda t: t.astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat(), utc=True
    ),
    "zone offsets": Stamp(
        write=lambda t: t.astimezone(ZoneInfo("Europe/Berlin")).isoformat(" "), utc=True
    ),
    "zone letters": Stamp(
        write=lambda t: t.astimezone(ZoneInfo("Europe/Berlin")).strftime("%Y-%m-%d %H:%M:%S %Z"),
        utc=True,
    ),
    "dotted": Stamp(write=written("%d.%m.%Y %H:%M:%S"), utc=True),
    "dotted short": Stamp(write=written("%d.%m.%y %H:%M:%S"), utc=True),
    "named": Stamp(write=written("%d-%b-%y %H:%M:%S"), utc=True),
    "us": Stamp(
        write=written("%m/%d/%Y %I:%M:%S %p"), utc=True, settings=PlantFile(date_order="mdy")
    ),
    "uk": Stamp(write=written("%d/%m/%Y %H:%M:%S"), utc=True, settings=PlantFile(date_order="dmy")),
    "short uk": Stamp(
        write=written("%d/%m/%y %H:%M:%S"), utc=True, settings=PlantFile(date_order="dmy")
    ),
    "short year first": Stamp(
        write=written("%y/%m/%d %H:%M:%S"), utc=True, settings=PlantFile(date_order="ymd")
    ),
    "dashes": Stamp(
        write=written("%d-%m-%Y %H:%M:%S"), utc=True, settings=PlantFile(date_order="dmy")
    ),
    "s": Stamp(write=lambda t: f"{t.timestamp():.0f}", utc=True),
    "ms": Stamp(write=lambda t: f"{t.timestamp() * 1e3:.0f}", utc=True),
    "us since 1970": Stamp(write=lambda t: f"{t.timestamp():.0f}000000", utc=True),
    "ns": Stamp(write=lambda t: f"{t.timestamp():.0f}000000000", utc=True),
    "excel": Stamp(
        write=lambda t: f"{25_569 + t.timestamp() / 86_400:.10f}",
        utc=True,
        settings=PlantFile(epoch="excel"),
    ),
    "compact": Stamp(write=written("%Y%m%d%H%M%S"), utc=True),
}


SPACED = ("iso", "dotted", "dotted short", "named", "us", "uk", "short uk", "dashes")
"""Styles with a blank between date and time."""


def local(zone: str, truth: Truth) -> Stamp:
    """Return local time of a zone without any sign of it; the fold is given if it is needed."""
    there = [time.astimezone(ZoneInfo(zone)) for time in truth.times]
    ambiguous = [
        time for time in there if time.utcoffset() != time.replace(fold=1 - time.fold).utcoffset()
    ]
    days = Counter(time.date() for time in ambiguous)
    passes = {day: {time.fold for time in ambiguous if time.date() == day} for day in days}
    alone = {next(iter(folds)) for folds in passes.values() if len(folds) == 1}
    fold = ("second" if alone == {1} else "first") if alone else ""
    return Stamp(
        write=lambda t: t.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S"),
        utc=True,
        settings=PlantFile(time_zone=zone, fold=fold),
    )


class Lines(Protocol):
    """What writes the lines of a CSV file."""

    def writerow(self, row: Iterable[str], /) -> object:
        """Write one line."""


# -- styles of files --------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file, and the settings under which its content is certain."""

    content: bytes
    suffix: str
    plant: PlantFile
    needed: PlantFile  # settings without which the file cannot be understood


def number(value: float, decimal: str, group: str) -> str:
    text = format(value, ",") if group and abs(value) < 1e15 else repr(value)
    text = text.removesuffix(".0") if value == int(value) and not group else text
    return text.replace(",", "\0").replace(".", decimal).replace("\0", group)


@st.composite
def texts(draw: st.DrawFn) -> tuple[Truth, Written]:
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "gbk"]))
    truth = draw(truths(CHINESE if encoding == "gbk" else TAGS))
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    decimal = draw(st.sampled_from([".", ","]))
    group = draw(st.sampled_from(["", "", "." if decimal == "," else ",", " ", "'"]))
    zone = draw(st.sampled_from([*([""] * 4), *ZONES]))
    style = draw(st.sampled_from(sorted(STAMPS)))
    stamp = local(zone, truth) if zone else STAMPS[style]
    header = draw(
        st.sampled_from(["time", "Zeit", "Date/Time", "Timestamp", "horodatage", "t_stamp"])
    )
    on, off = draw(st.sampled_from(WORDS))
    if encoding == "gbk":
        on, off = "RUN", "STOP"
    nothing = draw(st.sampled_from(MISSING))

    def cell(name: str, value: float | None) -> str:
        if value is None:
            return nothing
        if name in truth.states:
            return on if value else off
        return number(value, decimal, group)

    out = io.StringIO()
    lines = csv.writer(
        out, delimiter=delimiter, lineterminator=draw(st.sampled_from(["\n", "\r\n"]))
    )
    for _ in range(draw(st.integers(0, 2))):
        lines.writerow(["Export of the plant"])
    if draw(st.booleans()):
        head, two = [header], style in SPACED and not zone and draw(st.booleans())
        if two:
            head = draw(
                st.sampled_from([["Datum", "Uhrzeit"], ["Date", "Time"], ["Fecha", "Hora"]])
            )
        units = draw(st.booleans()) and not truth.states
        _wide(lines, truth, stamp, head, cell, repeat=draw(st.booleans()), units=units)
    else:
        nothing = nothing if nothing not in ("", "NaN") else "No Data"
        _long(lines, truth, stamp, header, cell, by_tag=draw(st.booleans()))
    content = out.getvalue().encode(encoding)
    known = stamp.settings
    needed = PlantFile(time_zone=known.time_zone, fold=known.fold)
    return truth, Written(
        content=gzip.compress(content) if draw(st.booleans()) else content,
        suffix="csv",
        needed=needed,
        plant=PlantFile(
            encoding={"utf-8-sig": "", "utf-16": ""}.get(encoding, encoding),
            delimiter=delimiter,
            decimal=decimal,
            time_zone=known.time_zone,
            fold=known.fold,
            date_order=known.date_order,
            epoch=known.epoch,
        ),
    )


def _wide(
    lines: Lines,
    truth: Truth,
    stamp: Stamp,
    head: list[str],
    cell: Callable[[str, float | None], str],
    *,
    repeat: bool,
    units: bool,
) -> None:
    """Write a column per tag; two names of the clock are a date and a time of day."""
    names = list(truth.columns)
    lines.writerow([*head, *names])
    if units:
        lines.writerow([*[""] * len(head), *["m3/h"] * len(names)])
    for row, time in enumerate(truth.times):
        if repeat and row == len(truth.times) // 2:
            lines.writerow([*head, *names])
        clock = stamp.write(time).split(" ", len(head) - 1)
        lines.writerow([*clock, *(cell(n, truth.columns[n][row]) for n in names)])


def _long(
    lines: Lines,
    truth: Truth,
    stamp: Stamp,
    header: str,
    cell: Callable[[str, float | None], str],
    *,
    by_tag: bool,
) -> None:
    lines.writerow(["TagName", header, "Value", "Quality"])
    cells = [(name, row) for row in range(len(truth.times)) for name in truth.columns]
    if by_tag:
        cells.sort(key=lambda each: list(truth.columns).index(each[0]))
    for name, row in cells:
        value = truth.columns[name][row]
        quality = "Bad" if value is None else "Good"
        lines.writerow([name, stamp.write(truth.times[row]), cell(name, value), quality])


@st.composite
def books(draw: st.DrawFn) -> tuple[Truth, Written]:
    truth = draw(truths())
    nothing = draw(st.sampled_from(MISSING))
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
        date = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        if draw(st.booleans()):
            book.add_worksheet("Info").write(0, 0, "made by a historian")
        sheet = book.add_worksheet("Data")
        above, left = draw(st.integers(0, 3)), draw(st.integers(0, 2))
        if above:
            sheet.write(0, left, "Report")
        for column, name in enumerate(("Zeit", *truth.columns)):
            sheet.write_string(above, left + column, name)
        for row, time in enumerate(truth.times, 1):
            sheet.write_datetime(above + row, left, time.replace(tzinfo=None), date)
            for column, (name, values) in enumerate(truth.columns.items(), 1):
                value = values[row - 1]
                if value is None:
                    sheet.write_string(above + row, left + column, nothing)
                elif name in truth.states:
                    sheet.write_string(above + row, left + column, "Ein" if value else "Aus")
                else:
                    sheet.write_number(above + row, left + column, value)
    plant = PlantFile(sheet="Data", decimal=".")
    return truth, Written(content=out.getvalue(), suffix="xlsx", plant=plant, needed=PlantFile())


@st.composite
def parquets(draw: st.DrawFn) -> tuple[Truth, Written]:
    truth = draw(truths())
    zone = draw(st.sampled_from(["UTC", *ZONES]))
    unit = draw(st.sampled_from(["ms", "us", "ns"]))
    times = pl.Series("Zeit", [t.replace(tzinfo=None) for t in truth.times], pl.Datetime(unit))  # type: ignore[arg-type]
    frame = pl.DataFrame({"Zeit": times, **truth.columns})
    if draw(st.booleans()):
        aware = pl.col("Zeit").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        frame = frame.with_columns(aware)
    out = io.BytesIO()
    frame.write_parquet(out)
    plant = PlantFile()
    return truth, Written(content=out.getvalue(), suffix="parquet", plant=plant, needed=plant)


# -- the property -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exports")


def demand_equal(record: Record, truth: Truth) -> None:
    expected = [np.datetime64(time.replace(tzinfo=None), "us") for time in truth.times]
    assert record.times.tolist() == [time.astype(object) for time in expected]
    kept = [name for name, values in truth.columns.items() if any(v is not None for v in values)]
    assert set(record.names) == set(kept)
    for name in kept:
        values = np.array([np.nan if v is None else v for v in truth.columns[name]], np.float64)
        np.testing.assert_array_equal(record.column(name), values, name)


def outcome(path: Path, plant: PlantFile) -> Record | UnclearRecordError:
    try:
        return read_record(path, plant=plant)
    except UnclearRecordError as refused:
        return refused


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(made=st.one_of(texts(), texts(), texts(), books(), parquets()))
def test_a_random_export_is_read_back_equal_or_refused_with_a_setting(
    folder: Path, made: tuple[Truth, Written]
) -> None:
    truth, file = made
    if not any(any(v is not None for v in values) for values in truth.columns.values()):
        return
    path = folder / f"export.{file.suffix}"
    path.write_bytes(file.content)
    demand_equal(read_record(path, plant=file.plant), truth)
    found = outcome(path, file.needed)
    event("read" if isinstance(found, Record) else "refused")
    if isinstance(found, Record):
        demand_equal(found, truth)
    else:
        assert found.choices
        assert "[record]" in str(found)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(truth=truths(), cuts=st.lists(st.integers(1, 39), max_size=3), by_tag=st.booleans())
def test_a_record_cut_into_files_is_read_back_whole(
    folder: Path, truth: Truth, cuts: list[int], *, by_tag: bool
) -> None:
    if not any(any(v is not None for v in values) for values in truth.columns.values()):
        return
    edges = sorted({0, len(truth.times), *(cut for cut in cuts if cut < len(truth.times))})
    groups = [[name] for name in truth.columns] if by_tag else [list(truth.columns)]
    paths = []
    for part, (start, stop) in enumerate(pairwise(edges)):
        for number, names in enumerate(groups):
            frame = pl.DataFrame(
                {
                    "Zeit": [time.replace(tzinfo=None) for time in truth.times[start:stop]],
                    **{name: truth.columns[name][start:stop] for name in names},
                },
                schema_overrides=dict.fromkeys(names, pl.Float64),
            )
            paths.append(folder / f"part-{part}-{number}.parquet")
            frame.write_parquet(paths[-1])
    demand_equal(read_record(paths[::-1]), truth)
