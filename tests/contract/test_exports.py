"""Exports of historians, as plants write them: each is read as expected, or refused with its cure.

A case has the bytes of a file, the plant file if one is needed, and either the times and readings
that must come out or the sentence that must be printed. NaN is a missing reading.
"""

import gzip
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xlsxwriter  # type: ignore[import-untyped]

from sluice.errors import InputError, UnclearRecordError
from sluice.telemetry import (
    Label,
    PlantFile,
    Record,
    Role,
    read_plant_file,
    read_record,
    read_with_settings,
    write_plant_file,
)

NAN = float("nan")
Cell = str | float | datetime | None


@dataclass(frozen=True, kw_only=True)
class Export:
    """One export: its files, the plant file, and what must come of it."""

    name: str
    content: str | bytes | Mapping[str, str | bytes]
    file: str = "export.csv"
    plant: str = ""
    times: Sequence[str] = ()
    readings: Mapping[str, Sequence[float]] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()  # patterns
    attacks: int = 0  # rows
    sentence: str = ""  # pattern of the refusal
    cure: str = ""  # the setting that the refusal names


def book(**sheets: Sequence[Sequence[Cell]]) -> bytes:
    """Return a workbook."""
    out = io.BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True}) as workbook:
        date = workbook.add_format({"num_format": "dd/mm/yyyy hh:mm:ss"})
        for name, rows in sheets.items():
            sheet = workbook.add_worksheet(name)
            for row, cells in enumerate(rows):
                for column, cell in enumerate(cells):
                    if isinstance(cell, datetime):
                        sheet.write_datetime(row, column, cell, date)
                    elif cell is not None:
                        sheet.write(row, column, cell)
    return out.getvalue()


def parquet(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


THREE = ("2024-03-01T10:00:00", "2024-03-01T10:00:05", "2024-03-01T10:00:10")
LEVEL = {"LIT101": (0.5, 0.75, 1.25)}
BOTH = {"LIT101": (0.5, 0.75, 1.25), "FIT101": (12.0, 12.5, 13.0)}
ISO = "time,LIT101,FIT101\n" + "".join(
    f"{time.replace('T', ' ')},{level},{flow}\n"
    for time, level, flow in zip(THREE, BOTH["LIT101"], BOTH["FIT101"], strict=True)
)
GERMAN = (
    "Zeit;LIT101;FIT101\n"
    "01.03.2024 10:00:00;0,5;12,0\n01.03.2024 10:00:05;0,75;12,5\n01.03.2024 10:00:10;1,25;13,0\n"
)


def clocked(*stamps: str, header: str = "time", mark: str = ",") -> str:
    """Return a table of one level with these time stamps."""
    rows = zip(stamps, LEVEL["LIT101"], strict=False)
    return f"{header}{mark}LIT101\n" + "".join(f"{time}{mark}{level}\n" for time, level in rows)


DIALECTS = (
    Export(name="plain ISO", content=ISO, times=THREE, readings=BOTH),
    Export(name="semicolon with decimal comma", content=GERMAN, times=THREE, readings=BOTH),
    Export(
        name="tab with decimal comma", content=GERMAN.replace(";", "\t"), times=THREE, readings=BOTH
    ),
    Export(
        name="bar with decimal comma", content=GERMAN.replace(";", "|"), times=THREE, readings=BOTH
    ),
    Export(
        name="comma with quoted decimal comma",
        content=re.sub(r"(\d+,\d+)", r'"\1"', GERMAN).replace(";", ","),
        times=THREE,
        readings=BOTH,
    ),
    Export(
        name="thousands points beside decimal commas",
        content=GERMAN.replace("12,0", "1.234,5").replace("13,0", "12.345"),
        times=THREE,
        readings={**LEVEL, "FIT101": (1234.5, 12.5, 12345.0)},
    ),
    Export(
        name="thousands commas beside decimal points",
        content=ISO.replace(",12.0", ',"1,234.5"').replace(",13.0", ',"12,345"'),
        times=THREE,
        readings={**LEVEL, "FIT101": (1234.5, 12.5, 12345.0)},
    ),
    Export(
        name="thousands apostrophes and blanks",
        content=GERMAN.replace("12,0", "1'234,5").replace("13,0", "12\u202f345,5"),
        times=THREE,
        readings={**LEVEL, "FIT101": (1234.5, 12.5, 12345.5)},
    ),
    Export(
        name="one mark that can be decimal or thousands",
        content="time;FIT101\n2024-03-01 10:00:00;1,234\n2024-03-01 10:00:05;2,345\n",
        sentence=r"'1,234' in column 'FIT101' can be 1\.234 or 1234",
        cure="[record] decimal",
    ),
    Export(
        name="the same with the decimal mark declared",
        content="time;FIT101\n2024-03-01 10:00:00;1,234\n2024-03-01 10:00:05;2,345\n",
        plant='[record]\ndecimal = ","',
        times=THREE[:2],
        readings={"FIT101": (1.234, 2.345)},
    ),
    Export(
        name="the same with a declared decimal point",
        content="time;FIT101\n2024-03-01 10:00:00;1,234\n2024-03-01 10:00:05;2,345\n",
        plant='[record]\ndecimal = "."',
        times=THREE[:2],
        readings={"FIT101": (1234, 2345)},
    ),
    Export(
        name="points that can be thousands in a semicolon file",
        content="time;FIT101\n2024-03-01 10:00:00;950\n2024-03-01 10:00:05;1.234\n",
        sentence=r"'1\.234' in column 'FIT101' can be 1\.234 or 1234",
        cure="[record] decimal",
    ),
    Export(
        name="thousands that come after many small numbers",
        content="time;FIT101\n"
        + "".join(f"2024-03-01 10:{row // 60:02}:{row % 60:02};950\n" for row in range(200))
        + "2024-03-01 10:03:20;1.234\n",
        sentence="can be 1.234 or 1234",
        cure="[record] decimal",
    ),
    Export(
        name="a dotted date decides for the decimal comma",
        content="Zeit;FIT101\n01.03.2024 10:00:00;1,234\n01.03.2024 10:00:05;2,345\n",
        times=THREE[:2],
        readings={"FIT101": (1.234, 2.345)},
    ),
    Export(
        name="two decimal marks in one file",
        content=GERMAN.replace("12,5", "12.5"),
        sentence=r"decimal comma \('0,5' in 'LIT101'\) and cells with a decimal point \('12.5'",
    ),
    Export(
        name="a byte order mark and Windows line ends",
        content="\ufeff".encode() + GERMAN.replace("\n", "\r\n").encode(),
        times=THREE,
        readings=BOTH,
    ),
    Export(
        name="cp1252 text",
        content=GERMAN.replace("LIT101", "Füllstand").encode("cp1252"),
        times=THREE,
        readings={"Füllstand": BOTH["LIT101"], "FIT101": BOTH["FIT101"]},
        roles={"Füllstand": Role.LEVEL},
        notes=("read as cp1252",),
    ),
    Export(
        name="GBK text",
        content=GERMAN.replace("Zeit", "时间").replace("LIT101", "清水池液位").encode("gbk"),
        times=THREE,
        readings={"清水池液位": BOTH["LIT101"], "FIT101": BOTH["FIT101"]},
        roles={"清水池液位": Role.LEVEL},
    ),
    Export(name="UTF-16", content=GERMAN.encode("utf-16"), times=THREE, readings=BOTH),
    Export(
        name="UTF-16 without a mark", content=GERMAN.encode("utf-16-le"), times=THREE, readings=BOTH
    ),
    Export(name="gzip", content=gzip.compress(GERMAN.encode()), times=THREE, readings=BOTH),
    Export(
        name="preamble",
        content="Export of server PI01\nCreated;01.04.2024 08:00\n\n" + GERMAN,
        times=THREE,
        readings=BOTH,
        notes=(r"3 line\(s\) above the header skipped",),
    ),
    Export(
        name="padded preamble with a date in it",
        content="Report;;\nFrom;01.03.2024 00:00:00;\n" + GERMAN,
        times=THREE,
        readings=BOTH,
    ),
    Export(
        name="units row",
        content=GERMAN.replace("FIT101\n", "FIT101\n;m;m³/h\n"),
        times=THREE,
        readings=BOTH,
        units={"LIT101": "m", "FIT101": "m3/h"},
    ),
    Export(
        name="units in brackets behind the names",
        content=GERMAN.replace("LIT101", "LIT101 [m]"),
        times=THREE,
        readings={"LIT101 [m]": BOTH["LIT101"], "FIT101": BOTH["FIT101"]},
        units={"LIT101 [m]": "m"},
        roles={"LIT101 [m]": Role.LEVEL},
    ),
    Export(
        name="description and units rows",
        content=GERMAN.replace("FIT101\n", "FIT101\n;Tank 1 level;Inflow\n;m;m3/h\n"),
        times=THREE,
        readings=BOTH,
        units={"FIT101": "m3/h"},
        notes=(r"1 line\(s\) below the header skipped",),
    ),
    Export(
        name="repeated header and units",
        content=GERMAN.replace("FIT101\n", "FIT101\n;m;m3/h\n").replace(
            "01.03.2024 10:00:10", "Zeit;LIT101;FIT101\n;m;m3/h\n01.03.2024 10:00:10"
        ),
        times=THREE,
        readings=BOTH,
        notes=("repeated header lines dropped",),
    ),
    Export(
        name="readings that end with a delimiter",
        content=GERMAN.replace("0\n", "0;\n").replace("5\n", "5;\n"),
        times=THREE,
        readings=BOTH,
    ),
    Export(
        name="no header",
        content=ISO.split("\n", 1)[1],
        sentence="has no header: its first line holds readings",
    ),
    Export(
        name="two lines that can be the header",
        content="A1,A2,A3\nB1,B2,B3\n" + ISO.split("\n", 1)[1],
        sentence="lines 1, 2 can all be the header",
        cure="[record] header_line",
    ),
    Export(
        name="two lines that can be the header, decided",
        content="A1,A2,A3\nB1,B2,B3\n" + ISO.split("\n", 1)[1],
        plant="[record]\nheader_line = 1",
        times=THREE,
        readings={"A2": BOTH["LIT101"], "A3": BOTH["FIT101"]},
    ),
    Export(
        name="row numbers",
        content="Row,time,LIT101\n"
        + "".join(f"{row},{time},{row / 2}\n" for row, time in enumerate(THREE, 7)),
        times=THREE,
        readings={"LIT101": (3.5, 4, 4.5)},
    ),
)

FOLD = (
    "2024-10-27 01:30:00", "2024-10-27 02:00:00", "2024-10-27 02:30:00",
    "2024-10-27 02:00:00", "2024-10-27 02:30:00", "2024-10-27 03:00:00",
)  # fmt: skip
FOLD_UTC = (
    "2024-10-26T23:30", "2024-10-27T00:00", "2024-10-27T00:30",
    "2024-10-27T01:00", "2024-10-27T01:30", "2024-10-27T02:00",
)  # fmt: skip


def numbered(stamps: Sequence[str], header: str = "time") -> str:
    rows = "".join(f"{time},{row}.5\n" for row, time in enumerate(stamps))
    return f"{header},LIT101\n{rows}"


def numbers(count: int) -> dict[str, tuple[float, ...]]:
    return {"LIT101": tuple(row + 0.5 for row in range(count))}


BERLIN = '[record]\ntime_zone = "Europe/Berlin"'
CLOCKS = (
    *(
        Export(name=f"clock {name}", content=clocked(*stamps), times=THREE, readings=LEVEL)
        for name, stamps in {
            "ISO with Z": [f"{time}Z" for time in THREE],
            "ISO with an offset": [f"{time.replace('T10', 'T12')}+02:00" for time in THREE],
            "ISO with a short offset": [f"{time.replace('T10', 'T12')}+02" for time in THREE],
            "ISO with a fraction and offset": [
                f"{t.replace('T10', 'T05')}.000-0500" for t in THREE
            ],
            "ISO with an offset and a zone": [
                f"{time.replace('T10', 'T11')}+01:00[Europe/Berlin]" for time in THREE
            ],
            "ISO with UTC": [f"{time} UTC" for time in THREE],
            "ISO with CET": [f"{time.replace('T10', ' 11')} CET" for time in THREE],
            "ISO with a zone": [f"{time.replace('T10', ' 11')} Europe/Berlin" for time in THREE],
            "US am and pm": [f"03/13/2024 {time[11:]} AM" for time in THREE],
            "month names": [f"01-Mar-24 {time[11:]}" for time in THREE],
            "long month names": [f"1 March 2024 {time[11:]}" for time in THREE],
            "German month names": [f"01. März 2024 {time[11:]}" for time in THREE],
            "French month names": [f"01-mars-2024 {time[11:]}" for time in THREE],
            "year first with slashes": [f"2024/03/01 {time[11:]}" for time in THREE],
            "Chinese dates": [f"2024年3月1日 {time[11:]}" for time in THREE],
            "compact": [f"20240301{time[11:].replace(':', '')}" for time in THREE],
            "compact with T": [f"20240301T{time[11:].replace(':', '')}" for time in THREE],
            "epoch s": ["1709287200", "1709287205", "1709287210"],
            "epoch s with a fraction": ["1709287200.0", "1709287205.0", "1709287210.0"],
            "epoch ms": ["1709287200000", "1709287205000", "1709287210000"],
            "epoch us": ["1709287200000000", "1709287205000000", "1709287210000000"],
            "epoch ns": ["1709287200000000001", "1709287205000000001", "1709287210000000001"],
            "Excel days": ["45352.4166666667", "45352.4167245370", "45352.4167824074"],
            "short dotted year": [f"01.03.24 {time[11:]}" for time in THREE],
            "weekday": [f"Fr 01.03.2024 {time[11:]}" for time in THREE],
        }.items()
        if name != "US am and pm"
    ),
    Export(
        name="US am and pm",
        content=clocked("3/13/2024 11:59:55 AM", "3/13/2024 12:00:00 PM", "3/13/2024 12:00:05 PM"),
        times=("2024-03-13T11:59:55", "2024-03-13T12:00:00", "2024-03-13T12:00:05"),
        readings=LEVEL,
    ),
    *(
        Export(
            name=f"time column {header}",
            content=clocked(*THREE, header=header),
            times=THREE,
            readings=LEVEL,
        )
        for header in (
            "Zeit",
            "Zeitstempel",
            "Date/Time",
            "Datum",
            "Timestamp",
            "TimeStamp (UTC)",
            "horodatage",
            "Date et heure",
            "fecha",
            "Fecha y hora",
            "tijd",
            "Tijdstip",
            "时间",
            "日期时间",
            "t_stamp",
            "Sample Time",
            "",
        )
    ),
    *(
        Export(
            name=f"two columns {date} and {hour}",
            content=f"{date},{hour},LIT101\n"
            + "".join(
                f"01.03.2024,{time[11:]},{level}\n"
                for time, level in zip(THREE, LEVEL["LIT101"], strict=True)
            ),
            times=THREE,
            readings=LEVEL,
        )
        for date, hour in (
            ("Date", "Time"),
            ("Datum", "Uhrzeit"),
            ("Datum", "Zeit"),
            ("Date", "Heure"),
            ("Fecha", "Hora"),
            ("Datum", "Tijd"),
            ("日期", "时间"),
            ("Tag", "Uhrzeit"),
        )
    ),
    Export(
        name="two columns that the plant file names",
        content="A,B,LIT101\n" + "".join(f"2024-03-01,{t[11:]},1\n" for t in THREE),
        plant='[record]\ntime = "A"\ntime_of_day = "B"',
        times=THREE,
        readings={"LIT101": (1, 1, 1)},
    ),
    Export(
        name="a date that can be January or February",
        content=clocked("01/02/2014 10:00:00", "01/02/2014 10:00:05", "01/02/2014 10:00:10"),
        sentence=r"the date '01/02/2014 10:00:00' can be 2014-02-01 or 2014-01-02",
        cure='[record] date_order = "dmy" or date_order = "mdy"',
    ),
    Export(
        name="the same with the order declared",
        content=clocked("01/02/2014 10:00:00", "01/02/2014 10:00:05", "01/02/2014 10:00:10"),
        plant='[record]\ndate_order = "mdy"',
        times=("2014-01-02T10:00:00", "2014-01-02T10:00:05", "2014-01-02T10:00:10"),
        readings=LEVEL,
    ),
    Export(
        name="a later row decides the order",
        content=numbered(["06/01/2014 00:00"] + [f"{day:02}/01/2014 00:00" for day in (7, 13)]),
        times=("2014-01-06", "2014-01-07", "2014-01-13"),
        readings=numbers(3),
    ),
    Export(
        name="midnight decides the order, hours only, two-digit year",
        content=numbered(["06/01/14 22", "06/01/14 23", "07/01/14 00", "07/01/14 01"]),
        times=("2014-01-06T22", "2014-01-06T23", "2014-01-07T00", "2014-01-07T01"),
        readings=numbers(4),
    ),
    Export(
        name="midnight decides for year first",
        content=numbered(["24/03/01 22:00", "24/03/01 23:00", "24/03/02 00:00"]),
        times=("2024-03-01T22", "2024-03-01T23", "2024-03-02T00"),
        readings=numbers(3),
    ),
    Export(
        name="the hour 24 is the next midnight",
        content=numbered(["01.03.2024 23:00", "01.03.2024 24:00", "02.03.2024 01:00"]),
        times=("2024-03-01T23", "2024-03-02T00", "2024-03-02T01"),
        readings=numbers(3),
    ),
    Export(
        name="midnight without a time",
        content=numbered(["01.03.2024 23:00:00", "02.03.2024", "02.03.2024 01:00:00"]),
        times=("2024-03-01T23", "2024-03-02T00", "2024-03-02T01"),
        readings=numbers(3),
    ),
    Export(
        name="whole days that can be Excel's or seconds",
        content=clocked("45352", "45353", "45354"),
        sentence="'time' are numbers such as 45352, whose unit is unclear",
        cure='[record] epoch = "excel" or epoch = "s"',
    ),
    Export(
        name="whole days that are Excel's",
        content=clocked("45352", "45353", "45354"),
        plant='[record]\nepoch = "excel"',
        times=("2024-03-01", "2024-03-02", "2024-03-03"),
        readings=LEVEL,
    ),
    Export(
        name="hours that can be seconds since 1970",
        content=clocked("2024030110", "2024030111", "2024030112"),
        sentence="can be seconds since 1970 or year, month, day and hour",
        cure='time_format = "%Y%m%d%H"',
    ),
    Export(
        name="hours by a declared format",
        content=clocked("2024030110", "2024030111", "2024030112"),
        plant='[record]\ntime_format = "%Y%m%d%H"',
        times=("2024-03-01T10", "2024-03-01T11", "2024-03-01T12"),
        readings=LEVEL,
    ),
    Export(
        name="local time over the end of daylight saving time, with a zone",
        content=numbered(FOLD),
        plant=BERLIN,
        times=FOLD_UTC,
        readings=numbers(6),
    ),
    Export(
        name="local time over the end of daylight saving time, without a zone",
        content=numbered(FOLD),
        sentence=r"the clock goes backward at row 3",
        cure="time_zone",
    ),
    Export(
        name="offsets over the end of daylight saving time",
        content=numbered(
            [f"{time}{'+02:00' if row < 3 else '+01:00'}" for row, time in enumerate(FOLD)]
        ),
        times=FOLD_UTC,
        readings=numbers(6),
    ),
    Export(
        name="CEST and CET over the end of daylight saving time",
        content=numbered(
            [f"{time} {'CEST' if row < 3 else 'CET'}" for row, time in enumerate(FOLD)]
        ),
        times=FOLD_UTC,
        readings=numbers(6),
    ),
    Export(
        name="EDT and EST with a zone",
        content=numbered(["2024-11-03 01:00 EDT", "2024-11-03 01:30 EDT", "2024-11-03 01:00 EST"]),
        plant='[record]\ntime_zone = "America/New_York"',
        times=("2024-11-03T05:00", "2024-11-03T05:30", "2024-11-03T06:00"),
        readings=numbers(3),
    ),
    Export(
        name="EST without a zone",
        content=numbered(["2024-11-03 01:00 EST", "2024-11-03 01:30 EST"]),
        sentence="the time zone 'EST' in .* has several meanings",
        cure="[record] time_zone",
    ),
    Export(
        name="an hour that comes twice, of which one is there",
        content=numbered([FOLD[0], FOLD[1], FOLD[2], FOLD[5]]),
        plant=BERLIN,
        sentence="comes twice in Europe/Berlin, and the rows do not show which",
        cure='[record] fold = "first" or fold = "second"',
    ),
    Export(
        name="an hour that comes twice, decided",
        content=numbered([FOLD[0], FOLD[1], FOLD[2], FOLD[5]]),
        plant=f'{BERLIN}\nfold = "second"',
        times=(FOLD_UTC[0], FOLD_UTC[3], FOLD_UTC[4], FOLD_UTC[5]),
        readings=numbers(4),
    ),
    Export(
        name="the start of daylight saving time",
        content=numbered(["2024-03-31 01:30", "2024-03-31 03:00", "2024-03-31 03:30"]),
        plant=BERLIN,
        times=("2024-03-31T00:30", "2024-03-31T01:00", "2024-03-31T01:30"),
        readings=numbers(3),
    ),
    Export(
        name="a local time that does not exist",
        content=numbered(["2024-03-31 01:30", "2024-03-31 02:00", "2024-03-31 02:30"]),
        plant=BERLIN,
        sentence="which Europe/Berlin skips when daylight saving time begins",
        cure="[record] time_zone",
    ),
    Export(
        name="standard time all year as an offset",
        content=numbered(["2024-03-31 01:30", "2024-03-31 02:00", "2024-03-31 02:30"]),
        plant='[record]\ntime_zone = "+01:00"',
        times=("2024-03-31T00:30", "2024-03-31T01:00", "2024-03-31T01:30"),
        readings=numbers(3),
    ),
    Export(
        name="an unknown zone",
        content=numbered(["2024-03-31 01:30", "2024-03-31 02:00"]),
        plant='[record]\ntime_zone = "Mars/Olympus"',
        sentence="the time zone 'Mars/Olympus' is unknown",
        cure="[record] time_zone",
    ),
    Export(
        name="two columns of times",
        content="Timestamp,Server time,Zeit,LIT101\n"
        + "".join(f"{time},{time},{time},1\n" for time in THREE),
        sentence=r"2 columns hold times|3 columns hold times",
        cure="[record] time =",
    ),
    Export(
        name="unsorted rows",
        content=numbered([THREE[0], THREE[2], THREE[1]]),
        sentence="the clock goes backward at row 2",
        cure='[record] unsorted = "sort"',
    ),
    Export(
        name="unsorted rows, sorted",
        content=numbered([THREE[2], THREE[0], THREE[1]]),
        plant='[record]\nunsorted = "sort"',
        times=THREE,
        readings={"LIT101": (1.5, 2.5, 0.5)},
        notes=("rows sorted by time",),
    ),
    Export(
        name="duplicate rows",
        content=numbered([THREE[0], THREE[1], THREE[1], THREE[2]]),
        sentence="the clock repeats at row 2",
        cure='[record] duplicates = "keep-last"',
    ),
    Export(
        name="duplicate rows, last kept",
        content=numbered([THREE[0], THREE[1], THREE[1], THREE[1], THREE[2]]),
        plant='[record]\nduplicates = "keep-last"',
        times=THREE,
        readings={"LIT101": (0.5, 3.5, 4.5)},
        notes=("the last one kept",),
    ),
    Export(
        name="duplicate rows, first kept",
        content=numbered([THREE[0], THREE[1], THREE[1], THREE[1], THREE[2]]),
        plant='[record]\nduplicates = "keep-first"',
        times=THREE,
        readings={"LIT101": (0.5, 1.5, 4.5)},
    ),
)


def cells(*values: str, header: str = "LIT101") -> str:
    rows = zip(THREE, values, strict=False)
    return f"time,{header}\n" + "".join(f"{time},{value}\n" for time, value in rows)


STATUS_WORDS = (
    "Pt Created", "Scan Off", "Bad Input", "I/O Timeout", "No Data", "Shutdown", "[-11059]",
    "[-11059] No Good Data For Calculation", "Bad", "Comm Fail", "Intf Shut", "Calc Failed",
    "#N/A", "#VALUE!", "1.#QNAN", "No Result",
)  # fmt: skip
STATE_PAIRS = (
    ("RUN", "STOP"), ("Ein", "Aus"), ("Open", "Closed"), ("Auf", "Zu"), ("marche", "arrêt"),
    ("ON", "OFF"), ("Running", "Stopped"), ("ouvert", "fermé"), ("encendido", "apagado"),
    ("abierto", "cerrado"), ("aan", "uit"), ("open", "dicht"), ("运行", "停止"), ("开", "关"),
    ("true", "false"),
)  # fmt: skip
VALUES = (
    *(
        Export(
            name=f"status {word}",
            content=cells("0.5", word, "1.25"),
            times=THREE,
            readings={"LIT101": (0.5, NAN, 1.25)},
            notes=()
            if word in ("#N/A", "1.#QNAN")
            else (f"{re.escape(repr(word))} read as missing",),
        )
        for word in STATUS_WORDS
    ),
    *(
        Export(
            name=f"states {on} and {off}",
            content=cells(on, off, on, header="XS7"),
            times=THREE,
            readings={"XS7": (1, 0, 1)},
            roles={"XS7": Role.ACTUATOR},
        )
        for on, off in STATE_PAIRS
    ),
    Export(
        name="a tag without a single good reading",
        content="time,LIT101,PIT7\n" + "".join(f"{time},1.5,Pt Created\n" for time in THREE),
        times=THREE,
        readings={"LIT101": (1.5, 1.5, 1.5)},
        notes=("dropped: no reading at all",),
    ),
    Export(
        name="a valve that moves",
        content=cells("Open", "Opening", "Closed", header="MV7"),
        times=THREE,
        readings={"MV7": (1, 2, 0)},
        roles={"MV7": Role.ACTUATOR},
    ),
    Export(
        name="a pump whose state is lost for a while",
        content=cells("RUN", "Bad Input", "STOP", header="P7"),
        times=THREE,
        readings={"P7": (1, NAN, 0)},
    ),
    Export(
        name="a fault among states means what only the plant knows",
        content=cells("RUN", "Fault", "STOP", header="P7"),
        sentence="channel 'P7' holds 'Fault' at row 1",
        cure="[record.words]",
    ),
    Export(
        name="a fault among states, declared",
        content=cells("RUN", "Fault", "STOP", header="P7"),
        plant="[record.words]\nFault = 0\nRUN = 1\nSTOP = 0",
        times=THREE,
        readings={"P7": (1, 0, 0)},
    ),
    Export(
        name="a word of the plant's own for missing",
        content=cells("0.5", "gestört 7", "1.25"),
        plant='[record]\nmissing = ["gestört 7"]',
        times=THREE,
        readings={"LIT101": (0.5, NAN, 1.25)},
    ),
    Export(
        name="an unknown word",
        content=cells("0.5", "high", "1.25"),
        sentence="channel 'LIT101' holds 'high' at row 1",
        cure='[record] missing = ["high"] or [record.words]',
    ),
    Export(
        name="words and numbers in one column",
        content=cells("0.5", "Open", "1.25"),
        sentence="channel 'LIT101' holds both 'Open' and numbers",
        cure="[record.words]",
    ),
    Export(
        name="values with units",
        content=cells("0.5 m", "0.75 m", "1.25 m"),
        times=THREE,
        readings=LEVEL,
        units={"LIT101": "m"},
    ),
    Export(
        name="values with units and decimal commas",
        content=cells("0,5 m³/h", "0,75 m³/h", "1,25 m³/h")
        .replace(",0", ";0")
        .replace(",1", ";1")
        .replace("time,", "time;"),
        times=THREE,
        readings=LEVEL,
        units={"LIT101": "m3/h"},
    ),
    Export(
        name="percent without a blank",
        content=cells("50%", "75%", "100%", header="LCV7"),
        times=THREE,
        readings={"LCV7": (50, 75, 100)},
        units={"LCV7": "%"},
    ),
    Export(
        name="two units in one column",
        content=cells("0.5 m", "750 mm", "1.25 m"),
        sentence="channel 'LIT101' holds readings in m, mm",
        cure='[channels."LIT101"] unit =',
    ),
    Export(
        name="two units in one column, converted",
        content=cells("0.5 m", "750 mm", "1.25 m"),
        plant='[channels.LIT101]\nunit = "m"',
        times=THREE,
        readings=LEVEL,
        units={"LIT101": "m"},
    ),
    Export(
        name="two units of different kinds",
        content=cells("0.5 m", "750 kPa", "1.25 m"),
        plant='[channels.LIT101]\nunit = "m"',
        sentence="'kPa', which is no multiple of it",
    ),
    Export(
        name="an unnatural minus",
        content=cells("\u22120.5", "-0.75", "+1.25"),
        times=THREE,
        readings={"LIT101": (-0.5, -0.75, 1.25)},
    ),
)

LONG = "Timestamp,TagName,Value,Quality\n" + "".join(
    f"{time},LIT101,{level},Good\n{time},FIT101,{flow},Good\n"
    for time, level, flow in zip(THREE, BOTH["LIT101"], BOTH["FIT101"], strict=True)
)
EVENTS = (
    "Timestamp,Tag,Value\n"
    "2024-03-01 10:00:01,LIT101,0.5\n2024-03-01 10:00:03,P7,RUN\n2024-03-01 10:00:12,LIT101,1.5\n"
    "2024-03-01 10:00:14,LIT101,2.5\n2024-03-01 10:00:26,P7,STOP\n2024-03-01 10:00:40,LIT101,3\n"
)
TENS = tuple(f"2024-03-01T10:00:{second:02}" for second in (10, 20, 30, 40))
INFLUX = (
    "#group,false,false,true,true,false,false,true,true\n"
    "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string\n"
    "#default,_result,,,,,,,\n"
    ",result,table,_start,_stop,_time,_value,_field,_measurement\n"
    + "".join(
        f",,0,2024-03-01T00:00:00Z,2024-03-02T00:00:00Z,{time}Z,{level},LIT101,plant\n"
        for time, level in zip(THREE, BOTH["LIT101"], strict=True)
    )
    + "\n#group,false,false,true,true,false,false,true,true\n"
    "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string\n"
    "#default,_result,,,,,,,\n"
    ",result,table,_start,_stop,_time,_value,_field,_measurement\n"
    + "".join(
        f",,1,2024-03-01T00:00:00Z,2024-03-02T00:00:00Z,{time}Z,{flow},FIT101,plant\n"
        for time, flow in zip(THREE, BOTH["FIT101"], strict=True)
    )
)
SHAPES = (
    Export(name="long with quality", content=LONG, times=THREE, readings=BOTH),
    Export(
        name="long sorted by tag",
        content="Zeit;Messstelle;Wert\n"
        + "".join(
            f"01.03.2024 {time[11:]};{tag};{str(value).replace('.', ',')}\n"
            for tag, values in BOTH.items()
            for time, value in zip(THREE, values, strict=True)
        ),
        times=THREE,
        readings=BOTH,
    ),
    Export(
        name="long with a bad reading",
        content=LONG.replace("0.75,Good", "999,Bad"),
        times=THREE,
        readings={**BOTH, "LIT101": (0.5, NAN, 1.25)},
        notes=("bad quality by 'Quality'",),
    ),
    Export(
        name="Wonderware history",
        content="DateTime,TagName,Value,vValue,Quality,QualityDetail,OPCQuality,wwTagKey\n"
        + "".join(
            f"{time},LIT101,{level},{level},{0 if row != 1 else 1},{192 if row != 1 else 24},"
            f"{192 if row != 1 else 0},17\n"
            for row, (time, level) in enumerate(zip(THREE, BOTH["LIT101"], strict=True))
        ),
        times=THREE,
        readings={"LIT101": (0.5, NAN, 1.25)},
        notes=("bad quality by 'OPCQuality'",),
    ),
    Export(
        name="Wonderware history with its own quality alone",
        content="DateTime,TagName,Value,Quality\n"
        + "".join(f"{time},LIT101,1.5,{row % 2}\n" for row, time in enumerate(THREE)),
        sentence="quality column 'Quality' holds '0', which means neither good nor bad here",
        cure='[record] good_quality = ["0"]',
    ),
    Export(
        name="Wonderware history with its quality declared",
        content="DateTime,TagName,Value,Quality\n"
        + "".join(f"{time},LIT101,1.5,{row % 2}\n" for row, time in enumerate(THREE)),
        plant='[record]\ngood_quality = ["0"]',
        times=THREE,
        readings={"LIT101": (1.5, NAN, 1.5)},
    ),
    Export(
        name="Wonderware wide",
        content="DateTime,WW00/FT-000/PV,WW00/LT-001/PV\n"
        + "".join(
            f"{time},{flow},{level}\n"
            for time, level, flow in zip(THREE, *BOTH.values(), strict=True)
        ),
        times=THREE,
        readings={"WW00/FT-000/PV": BOTH["FIT101"], "WW00/LT-001/PV": BOTH["LIT101"]},
        roles={"WW00/FT-000/PV": Role.FLOW, "WW00/LT-001/PV": Role.LEVEL},
    ),
    Export(
        name="Ignition tag history table",
        content="tagid,intvalue,floatvalue,stringvalue,datestring,dataintegrity,t_stamp\n"
        + "".join(
            f"7,,{level},,,192,{1709287200000 + 5000 * row}\n"
            f"8,{row % 2},,,,192,{1709287200000 + 5000 * row}\n"
            for row, level in enumerate(BOTH["LIT101"])
        ),
        times=THREE,
        readings={"7": BOTH["LIT101"], "8": (0, 1, 0)},
    ),
    Export(
        name="Ignition wide",
        content="t_stamp,Plant/Tank1/LIT101,Plant/Tank1/LIT101_quality\n"
        + "".join(
            f"{time.replace('T', ' ')},{level},{quality}\n"
            for time, level, quality in zip(
                THREE, BOTH["LIT101"], ("Good", "Bad_Stale", "Good"), strict=True
            )
        ),
        times=THREE,
        readings={"Plant/Tank1/LIT101": (0.5, NAN, 1.25)},
        roles={"Plant/Tank1/LIT101": Role.LEVEL},
    ),
    Export(
        name="PI DataLink sampled",
        content="Timestamp,LIT101,FIT101\n"
        "01-Mar-24 10:00:00,0.5,12\n01-Mar-24 10:00:05,Bad Input,12.5\n"
        "01-Mar-24 10:00:10,1.25,[-11059] No Good Data For Calculation\n",
        times=THREE,
        readings={"LIT101": (0.5, NAN, 1.25), "FIT101": (12, 12.5, NAN)},
        notes=("'Bad Input' read as missing",),
    ),
    Export(
        name="PI DataLink with a status behind each tag",
        content="Timestamp,LIT101,Status,FIT101,Status\n"
        + "".join(
            f"{time},{level},{'Good' if row else 'Bad'},{flow},Good\n"
            for row, (time, level, flow) in enumerate(zip(THREE, *BOTH.values(), strict=True))
        ),
        times=THREE,
        readings={**BOTH, "LIT101": (NAN, 0.75, 1.25)},
    ),
    Export(
        name="PI DataLink compressed, pairs of columns",
        content="LIT101,,FIT101,\n"
        + "".join(
            f"{time},{level},{time},{flow}\n"
            for time, level, flow in zip(THREE, *BOTH.values(), strict=True)
        )
        + "2024-03-01T10:00:15,2.5,,\n",
        times=(*THREE, "2024-03-01T10:00:15"),
        readings={"LIT101": (0.5, 0.75, 1.25, 2.5), "FIT101": (12, 12.5, 13, NAN)},
    ),
    Export(
        name="PI pairs below a line of tags",
        content="LIT101,,FIT101,\nTime,Value,Time,Value\n"
        + "".join(
            f"{time},{level},{time},{flow}\n"
            for time, level, flow in zip(THREE, *BOTH.values(), strict=True)
        ),
        times=THREE,
        readings=BOTH,
    ),
    Export(
        name="ProcessBook with AF paths",
        content="Time,\\\\AF\\Water\\Tank1|Level,\\\\AF\\Water\\Tank1|Flow\n"
        + "".join(
            f"{time},{level},{flow}\n"
            for time, level, flow in zip(THREE, *BOTH.values(), strict=True)
        ),
        times=THREE,
        readings={
            "\\\\AF\\Water\\Tank1|Level": BOTH["LIT101"],
            "\\\\AF\\Water\\Tank1|Flow": BOTH["FIT101"],
        },
        roles={"\\\\AF\\Water\\Tank1|Level": Role.LEVEL, "\\\\AF\\Water\\Tank1|Flow": Role.FLOW},
    ),
    Export(
        name="long AF export whose tags hold bars",
        content="Time,Tag,Value\n"
        + "".join(
            f"{time},Tank1|LIT101,{level}\n"
            for time, level in zip(THREE, BOTH["LIT101"], strict=True)
        ),
        times=THREE,
        readings={"Tank1|LIT101": BOTH["LIT101"]},
    ),
    Export(name="InfluxDB annotated CSV", content=INFLUX, times=THREE, readings=BOTH),
    Export(
        name="InfluxDB without annotations, several measurements",
        content="name,time,_field,_measurement,_value\n"
        + "".join(
            f"x,{time}Z,level,{tank},{row}\n"
            for row, time in enumerate(THREE)
            for tank in ("T1", "T2")
        ),
        times=THREE,
        readings={"T1/level": (0, 1, 2), "T2/level": (0, 1, 2)},
    ),
    Export(
        name="long with units",
        content="time,tag,value,unit\n"
        + "".join(
            f"{time},LIT101,{level},m\n" for time, level in zip(THREE, BOTH["LIT101"], strict=True)
        ),
        times=THREE,
        readings=LEVEL,
        units={"LIT101": "m"},
    ),
    Export(
        name="long with a value given twice",
        content="time,tag,value\n" + f"{THREE[0]},LIT101,1\n" * 2 + f"{THREE[1]},LIT101,2\n",
        sentence="tag 'LIT101' has more than one value",
        cure='[record] duplicates = "keep-last"',
    ),
    Export(
        name="long with a value given twice, last kept",
        content="time,tag,value\n"
        + "".join(
            f"{time},LIT101,{value}\n"
            for time, value in ((THREE[0], 1), (THREE[0], 2), (THREE[1], 3))
        ),
        plant='[record]\nduplicates = "keep-last"',
        times=THREE[:2],
        readings={"LIT101": (2, 3)},
    ),
    Export(
        name="long over the end of daylight saving time, by tag",
        content="time,tag,value\n"
        + "".join(
            f"{time},{tag},{row}\n" for tag in ("LIT101", "FIT101") for row, time in enumerate(FOLD)
        ),
        plant=BERLIN,
        times=FOLD_UTC,
        readings={"LIT101": range(6), "FIT101": range(6)},
    ),
    Export(
        name="events",
        content=EVENTS,
        sentence="has readings at times that differ from tag to tag",
        cure='[record] resample = "last"',
    ),
    Export(
        name="events, last value",
        content=EVENTS,
        plant='[record]\nresample = "last"\nstride_s = 10',
        times=TENS,
        readings={"LIT101": (0.5, 2.5, 2.5, 3), "P7": (1, 1, 0, 0)},
        notes=("resampled to 10 s",),
    ),
    Export(
        name="events, last value not too old",
        content=EVENTS,
        plant='[record]\nresample = "last"\nstride_s = 10\nmax_age_s = 10',
        times=TENS,
        readings={"LIT101": (0.5, 2.5, NAN, 3), "P7": (1, NAN, 0, NAN)},
    ),
    Export(
        name="events, mean; states keep their last value",
        content=EVENTS,
        plant='[record]\nresample = "mean"\nstride_s = 10',
        times=TENS,
        readings={"LIT101": (0.5, 2.0, NAN, 3), "P7": (1, 1, 0, 0)},
    ),
    Export(
        name="a bad event ends the value before it",
        content=EVENTS.replace("10:00:14,LIT101,2.5", "10:00:14,LIT101,Bad Input"),
        plant='[record]\nresample = "last"\nstride_s = 10',
        times=TENS,
        readings={"LIT101": (0.5, NAN, NAN, 3), "P7": (1, 1, 0, 0)},
    ),
    Export(
        name="a status column of a pump is no quality",
        content="time,P101,P101 Status\n"
        + "".join(f"{time},{row}.5,{'RUN' if row else 'STOP'}\n" for row, time in enumerate(THREE)),
        times=THREE,
        readings={"P101": (0.5, 1.5, 2.5), "P101 Status": (0, 1, 1)},
    ),
    Export(
        name="a flow called Q is no quality",
        content="time,FIT101,FIT101_Q\n" + "".join(f"{time},1.5,80.5\n" for time in THREE),
        sentence="quality column 'FIT101_Q' holds '80.5', which means neither good nor bad",
        cure="[record] good_quality",
    ),
    Export(
        name="a column of remarks, ignored",
        content="time,LIT101,Remark\n" + "".join(f"{time},1.5,all is well\n" for time in THREE),
        plant="[channels.Remark]\nignore = true",
        times=THREE,
        readings={"LIT101": (1.5, 1.5, 1.5)},
    ),
    Export(
        name="a column of remarks",
        content="time,LIT101,Remark\n" + "".join(f"{time},1.5,all is well\n" for time in THREE),
        sentence="channel 'Remark' holds 'all is well' at row 0",
        cure='[channels."Remark"] ignore = true',
    ),
    Export(
        name="an attack between two rows is kept when events are resampled",
        content="time,LIT101,label\n"
        + "".join(f"{time},{row},{row % 2}\n" for row, time in enumerate(THREE)),
        plant='[record]\nresample = "last"\nstride_s = 10',
        times=(THREE[0], THREE[2]),
        readings={"LIT101": (0, 2)},
        attacks=1,
    ),
    Export(
        name="one status for the row",
        content="time,LIT101,FIT101,Status\n"
        + "".join(f"{time},1.5,2.5,{'Bad' if row else 'Good'}\n" for row, time in enumerate(THREE)),
        times=THREE[:3],
        readings={"LIT101": (1.5, NAN, NAN), "FIT101": (2.5, NAN, NAN)},
    ),
    Export(
        name="a label of unknown meaning",
        content="time,LIT101,label\n" + "".join(f"{time},1.5,quiet\n" for time in THREE),
        sentence="label column 'label' holds 'quiet', which means neither normal nor attack here",
        cure='[record] normal_labels = ["quiet"]',
    ),
    Export(
        name="a clock of an unknown form",
        content="time,LIT101\n" + "".join(f"day {row} of 9,1.5\n" for row in range(3)),
        sentence="cannot read the time stamp 'day 0 of 9'",
        cure="[record] time_format",
    ),
    Export(
        name="a label that could become a channel",
        content="time,LIT101,Attack type\n" + "".join(f"{time},1.5,0\n" for time in THREE),
        sentence="column 'Attack type' can be a label of attacks or a reading",
        cure="[record] label",
    ),
)

DATES = [at(time) for time in THREE]
BOOK_ROWS: list[list[Cell]] = [
    ["Zeit", "LIT101", "FIT101"],
    *[[when, *both] for when, *both in zip(DATES, *BOTH.values(), strict=True)],
]
HOURS: list[list[Cell]] = [["Datum", "Uhrzeit", "LIT101"]]
HOURS += [
    [at("2024-03-01 00:00"), time[11:], level]
    for time, level in zip(THREE, LEVEL["LIT101"], strict=True)
]
CONTAINERS = (
    Export(
        name="workbook", file="export.xlsx", content=book(S=BOOK_ROWS), times=THREE, readings=BOTH
    ),
    Export(
        name="workbook with a title, units and a chart sheet's text",
        file="export.xlsx",
        content=book(
            Info=[["made by PI DataLink"]],
            Data=[["Report"], [], BOOK_ROWS[0], [None, "m", "m3/h"], *BOOK_ROWS[1:]],
        ),
        times=THREE,
        readings=BOTH,
        units={"LIT101": "m"},
        notes=("sheet 'Data' read",),
    ),
    Export(
        name="workbook that starts in a far cell",
        file="export.xlsx",
        content=book(S=[[], [], *[[None, None, *row] for row in BOOK_ROWS]]),
        times=THREE,
        readings=BOTH,
    ),
    Export(
        name="workbook with two sheets of readings",
        file="export.xlsx",
        content=book(North=BOOK_ROWS, South=BOOK_ROWS),
        sentence="2 sheets hold readings \\('North', 'South'\\)",
        cure='[record] sheet = "North"',
    ),
    Export(
        name="workbook with two sheets, one chosen",
        file="export.xlsx",
        content=book(North=BOOK_ROWS, South=[*BOOK_ROWS[:3]]),
        plant='[record]\nsheet = "South"',
        times=THREE[:2],
        readings={name: values[:2] for name, values in BOTH.items()},
    ),
    Export(
        name="workbook with status words and text times",
        file="export.xlsx",
        content=book(
            S=[
                ["Date/Time", "LIT101", "P7"],
                ["01-Mar-24 10:00:00", 1.234, "RUN"],
                ["01-Mar-24 10:00:05", "Bad Input", "STOP"],
                ["01-Mar-24 10:00:10", 1.25, "RUN"],
            ]
        ),
        times=THREE,
        readings={"LIT101": (1.234, NAN, 1.25), "P7": (1, 0, 1)},
    ),
    Export(
        name="workbook whose dates Excel has half swapped",
        file="export.xlsx",
        content=book(
            S=[["Zeit", "LIT101"], [at("2024-01-12 00:00"), 1.5], ["13/01/2024 00:00:00", 2.5]]
        ),
        sentence="row 1 has the time stamp '13/01/2024 00:00:00'",
    ),
    Export(
        name="workbook with dates and hours in two columns",
        file="export.xlsx",
        content=book(S=HOURS),
        times=THREE,
        readings=LEVEL,
    ),
    Export(
        name="workbook with numbers as texts",
        file="export.xlsx",
        content=book(S=[["Zeit", "A"], [DATES[0], "1.234"], [DATES[1], "2.345"]]),
        sentence=r"'1\.234' in column 'A' can be 1\.234 or 1234",
        cure="[record] decimal",
    ),
    Export(
        name="workbook with decimal commas as texts",
        file="export.xlsx",
        content=book(S=[["Zeit", "A"], [DATES[0], "1.234,5"], [DATES[1], "0,25"]]),
        times=THREE[:2],
        readings={"A": (1234.5, 0.25)},
    ),
    Export(
        name="workbook without a clock",
        file="export.xlsx",
        content=book(S=[["a", "b"], [1, 2], [3, 4]]),
        sentence="no sheet has a time column",
        cure="[record] sheet",
    ),
    Export(
        name="Parquet with a zone",
        file="export.parquet",
        content=parquet(
            pl.DataFrame({"time": DATES, "LIT101": LEVEL["LIT101"]}).with_columns(
                pl.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
            )
        ),
        times=THREE,
        readings=LEVEL,
        notes=("times of zone Europe/Berlin converted to UTC",),
    ),
    Export(
        name="Parquet with a second column of times",
        file="export.parquet",
        content=parquet(
            pl.DataFrame({"time": DATES, "Last service": DATES, "LIT101": LEVEL["LIT101"]})
        ),
        sentence="column 'Last service' holds times, which are no readings",
        cure='[channels."Last service"] ignore = true',
    ),
    Export(
        name="Parquet with local times",
        file="export.parquet",
        content=parquet(pl.DataFrame({"Zeit": [at(t) for t in FOLD], "LIT101": range(6)})),
        plant=BERLIN,
        times=FOLD_UTC,
        readings={"LIT101": range(6)},
    ),
    Export(
        name="Parquet with words, long",
        file="export.parquet",
        content=parquet(
            pl.DataFrame(
                {"ts": DATES, "tag": ["P7"] * 3, "value": ["Ein", "Aus", "Ein"]},
                schema_overrides={"tag": pl.Categorical},
            )
        ),
        times=THREE,
        readings={"P7": (1, 0, 1)},
    ),
    Export(
        name="files of a folder that follow each other",
        file="export",
        content={"b.csv": ISO.replace("10:00", "11:00"), "a.csv": ISO},
        times=(*THREE, *(time.replace("T10", "T11") for time in THREE)),
        readings={name: (*values, *values) for name, values in BOTH.items()},
        notes=("2 files read as one record",),
    ),
    Export(
        name="files of a folder with a tag each",
        file="export",
        content={
            f"{tag}.csv": f"time,{tag}\n"
            + "".join(f"{time},{value}\n" for time, value in zip(THREE, values, strict=True))
            for tag, values in BOTH.items()
        },
        times=THREE,
        readings=dict(sorted(BOTH.items())),
        notes=("files joined by time",),
    ),
    Export(
        name="files of a folder that overlap",
        file="export",
        content={"b.csv": ISO, "a.csv": ISO},
        sentence=r"holds 2 records \(a.csv, b.csv\); name one of them.*repeats at row",
        cure="[record] duplicates",
    ),
    Export(
        name="files of a folder that overlap, last kept",
        file="export",
        content={"b.csv": ISO.replace("0.75", "7.5"), "a.csv": ISO},
        plant='[record]\nunsorted = "sort"\nduplicates = "keep-last"',
        times=THREE,
        readings={**BOTH, "LIT101": (0.5, 7.5, 1.25)},
    ),
    Export(
        name="events in files of a folder, held over their border",
        file="export",
        content={
            "a.csv": EVENTS[: EVENTS.index("2024-03-01 10:00:26")],
            "b.csv": "Timestamp,Tag,Value\n" + EVENTS[EVENTS.index("2024-03-01 10:00:26") :],
        },
        plant='[record]\nresample = "last"\nstride_s = 10',
        times=TENS,
        readings={"LIT101": (0.5, 2.5, 2.5, 3), "P7": (1, 1, 0, 0)},
    ),
)

KNOWN = (
    Export(
        name="BATADAL's tags with semicolons and decimal commas",
        content="DATETIME;L_T1;S_PU1;ATT_FLAG\n"
        + "".join(
            f"{day:02}/01/14 {hour:02};{hour},5;1;0\n" for day in (6, 7) for hour in range(24)
        ),
        times=[f"2014-01-{day:02}T{hour:02}" for day in (6, 7) for hour in range(24)],
        readings={"L_T1": [hour + 0.5 for _ in (6, 7) for hour in range(24)], "S_PU1": [1] * 48},
        notes=(r"not BATADAL \(C-Town\) although its tags are",),
        roles={"L_T1": Role.LEVEL, "S_PU1": Role.ACTUATOR},
    ),
    Export(
        name="SWaT's tags with another clock",
        content="Timestamp;FIT101;LIT301;FIT601\n"
        + "".join(f"01.03.2024 {time[11:]};0,5;900;0,25\n" for time in THREE),
        times=THREE,
        readings={"FIT101": [0.5] * 3, "LIT301": [900] * 3, "FIT601": [0.25] * 3},
        notes=(r"not SWaT \(December 2015\) although its tags are",),
    ),
    Export(
        name="HAI's tags with epoch milliseconds",
        content="time,P1_B2004,P1_B2016,P1_FT01\n"
        + "".join(f"{1709287200000 + 5000 * row},0.5,1,2\n" for row in range(3)),
        times=THREE,
        readings={"P1_B2004": [0.5] * 3, "P1_B2016": [1] * 3, "P1_FT01": [2] * 3},
    ),
    Export(
        name="WADI's label with a value of its own is not lost",
        content="Row,Date,Time,1_FIT_001_PV,Attack LABLE (1:No Attack, -1:Attack)\n".replace(
            "k, -", "k -"
        )
        + "".join(f"{row},9/25/17,6:00:0{row}.000 PM,1.5,7\n" for row in range(1, 4)),
        sentence="label column 'Attack LABLE|can be a label of attacks or a reading",
    ),
)

TAGS = (
    Export(
        name="roles of German, French, Spanish, Dutch and Chinese names",
        content="time,Füllstand Behälter 1,Durchfluss Zulauf,Druck Netz,Drehzahl P1,"
        "Pumpe 1 Betrieb,Niveau bâche,Débit entrée,Pression réseau,Vanne V1,Nivel tanque,"
        "Caudal entrada,Presión red,Bomba 1,Waterstand,Debiet inlaat,Toerental,Pomp 2,"
        "液位1,流量1,压力1,泵1\n"
        + "".join(
            f"{time},{row}.1,{row}.2,{row}.3,{row}.4,{row % 2},{row}.1,{row}.2,{row}.3,{row % 2},"
            f"{row}.1,{row}.2,{row}.3,{row % 2},{row}.1,{row}.2,{row}.3,{row % 2},"
            f"{row}.1,{row}.2,{row}.3,{row % 2}\n"
            for row, time in enumerate(THREE)
        ),
        times=THREE,
        roles=dict(
            zip(
                (
                    "Füllstand Behälter 1",
                    "Durchfluss Zulauf",
                    "Druck Netz",
                    "Drehzahl P1",
                    "Pumpe 1 Betrieb",
                    "Niveau bâche",
                    "Débit entrée",
                    "Pression réseau",
                    "Vanne V1",
                    "Nivel tanque",
                    "Caudal entrada",
                    "Presión red",
                    "Bomba 1",
                    "Waterstand",
                    "Debiet inlaat",
                    "Toerental",
                    "Pomp 2",
                    "液位1",
                    "流量1",
                    "压力1",
                    "泵1",
                ),
                (
                    Role.LEVEL,
                    Role.FLOW,
                    Role.PRESSURE,
                    Role.SPEED,
                    Role.ACTUATOR,
                    Role.LEVEL,
                    Role.FLOW,
                    Role.PRESSURE,
                    Role.ACTUATOR,
                    Role.LEVEL,
                    Role.FLOW,
                    Role.PRESSURE,
                    Role.ACTUATOR,
                    Role.LEVEL,
                    Role.FLOW,
                    Role.SPEED,
                    Role.ACTUATOR,
                    Role.LEVEL,
                    Role.FLOW,
                    Role.PRESSURE,
                    Role.ACTUATOR,
                ),
                strict=True,
            )
        ),
    ),
    Export(
        name="roles of ISA tags in paths",
        content="time,WW00/FT-000/PV,Area1.LIC-101.MEAS,[plc]10-PT-203/Value,A|AIT_204,X/XV-17/ZSO,"
        "Area1.LIC-101.SP,U2:P-101A:RUN,TIC-7.PV\n"
        + "".join(
            f"{time},{row}.1,{row}.2,{row}.3,{row}.4,{row % 2},{row}.5,{row % 2},{row}.5\n"
            for row, time in enumerate(THREE)
        ),
        times=THREE,
        roles={
            "WW00/FT-000/PV": Role.FLOW,
            "Area1.LIC-101.MEAS": Role.LEVEL,
            "[plc]10-PT-203/Value": Role.PRESSURE,
            "A|AIT_204": Role.QUALITY,
            "X/XV-17/ZSO": Role.ACTUATOR,
            "Area1.LIC-101.SP": Role.OTHER,
            "U2:P-101A:RUN": Role.ACTUATOR,
            "TIC-7.PV": Role.OTHER,
        },
    ),
    Export(
        name="globs and a prefix in the plant file",
        content="time,WW00/FT-000/PV,WW00/FT-001/PV,WW00/FT-001/Alarm\n"
        + "".join(f"{time},{row}.1,{row}.2,x\n" for row, time in enumerate(THREE)),
        plant='[record]\nprefix = "WW00/"\n[channels."*/PV"]\nunit = "L/s"\n[channels."FT-001/P?"]'
        '\nrole = "other"\n[channels."*/Alarm"]\nignore = true',
        times=THREE,
        readings={"FT-000/PV": (0.1, 1.1, 2.1), "FT-001/PV": (0.2, 1.2, 2.2)},
        units={"FT-000/PV": "L/s"},
    ),
    Export(
        name="a glob that matches nothing",
        content=ISO,
        plant='[channels."PT*"]\nunit = "m"',
        sentence=r"declares 'PT\*', which record 'export' does not have",
    ),
)

EXPORTS = (*DIALECTS, *CLOCKS, *VALUES, *SHAPES, *CONTAINERS, *KNOWN, *TAGS)


def put(export: Export, folder: Path) -> Path:
    """Write the files of an export."""
    path = folder / export.file
    contents = export.content
    if isinstance(contents, Mapping):
        path.mkdir()
        for name, content in contents.items():
            _write(path / name, content)
    else:
        _write(path, contents)
    return path


def _write(path: Path, content: str | bytes) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def ids(export: Export) -> str:
    return export.name


def test_there_are_enough_exports() -> None:
    assert len(EXPORTS) >= 60
    assert len({export.name for export in EXPORTS}) == len(EXPORTS)


@pytest.mark.parametrize("export", [e for e in EXPORTS if not e.sentence], ids=ids)
def test_an_export_is_read_as_it_is_meant(export: Export, tmp_path: Path) -> None:
    path = put(export, tmp_path)
    plant = tmp_path / "plant.toml"
    plant.write_text(export.plant, encoding="utf-8")
    record = read_record(path, plant=read_plant_file(plant))
    expected = np.array([np.datetime64(time, "us") for time in export.times])
    assert record.times.tolist() == expected.tolist()
    if export.readings:
        assert record.names == tuple(export.readings)
    for name, values in export.readings.items():
        np.testing.assert_array_equal(record.column(name), np.array(values, np.float64), name)
    assert {name: record.channel(name).role for name in export.roles} == dict(export.roles)
    assert {name: record.channel(name).unit for name in export.units} == dict(export.units)
    if export.attacks:
        assert (record.labels == Label.ATTACK).sum() == export.attacks
    for pattern in export.notes:
        assert any(re.search(pattern, note.what) for note in record.notes), record.notes


@pytest.mark.parametrize("export", [e for e in EXPORTS if e.sentence], ids=ids)
def test_an_unclear_export_is_refused_with_its_cure(export: Export, tmp_path: Path) -> None:
    path = put(export, tmp_path)
    plant = tmp_path / "plant.toml"
    plant.write_text(export.plant, encoding="utf-8")
    with pytest.raises(InputError, match=export.sentence) as refused:
        read_record(path, plant=read_plant_file(plant))
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert export.cure in sentence
    if isinstance(refused.value, UnclearRecordError):
        assert "sluice data inspect --fix" in sentence
        assert refused.value.choices


def same(one: Record, other: Record) -> None:
    """Assert that two records are equal, apart from notes and reasons."""
    assert one.names == other.names
    assert one.times.tolist() == other.times.tolist()
    np.testing.assert_array_equal(one.values, other.values)
    assert one.labels.tolist() == other.labels.tolist()
    facts = [[(c.role, c.unit, c.codes, c.span) for c in each.channels] for each in (one, other)]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("export", [e for e in EXPORTS if not e.sentence], ids=ids)
def test_a_written_plant_file_keeps_everything_that_was_read(
    export: Export, tmp_path: Path
) -> None:
    path = put(export, tmp_path)
    plant = tmp_path / "plant.toml"
    plant.write_text(export.plant, encoding="utf-8")
    first = read_with_settings(path, plant=read_plant_file(plant))
    write_plant_file(first.record, tmp_path / "written.toml", plant=first.plant)
    again = read_with_settings(path, plant=read_plant_file(tmp_path / "written.toml"))
    same(first.record, again.record)
    assert dict(again.plant.settings) == dict(first.plant.settings)


def complaint(path: Path, plant: PlantFile) -> InputError | None:
    try:
        read_record(path, plant=plant)
    except InputError as refused:
        return refused
    return None


@pytest.mark.parametrize("export", [e for e in EXPORTS if e.sentence], ids=ids)
def test_every_proposed_answer_settles_its_question(export: Export, tmp_path: Path) -> None:
    path = put(export, tmp_path)
    plant = tmp_path / "plant.toml"
    plant.write_text(export.plant, encoding="utf-8")
    declared = read_plant_file(plant)
    refused = complaint(path, declared)
    if isinstance(refused, UnclearRecordError):
        for choice in refused.choices:
            further = complaint(path, declared.having(choice))
            assert further is None or str(further) != str(refused), choice


HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "read-an-export.md"


def test_every_plant_file_of_the_how_to_is_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        path = tmp_path / "plant.toml"
        path.write_text(block, encoding="utf-8")
        assert read_plant_file(path) != PlantFile()


def test_the_reference_lists_every_setting() -> None:
    page = (HOW_TO.parents[1] / "reference" / "records.md").read_text(encoding="utf-8")
    for name, _ in PlantFile().settings:
        assert f"`{name}`" in page, name
