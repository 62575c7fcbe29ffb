"""Files typed byte for byte as the plants' historians write them, with invented values."""

from collections.abc import Callable
from datetime import date, datetime, time
from pathlib import Path

import numpy as np
import pytest
import xlsxwriter  # type: ignore[import-untyped]

from sluice.telemetry.channel import Channel, Codes, Role
from sluice.telemetry.record import Label, Record
from sluice.telemetry.source import Source

Cell = str | float | datetime | date | time | None
Put = Callable[[str, bytes], Source]
Workbook = Callable[[str, list[list[Cell]]], Source]
Recorded = Callable[..., Record]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write bytes under a name and return them as a source."""

    def write(name: str, content: bytes) -> Source:
        path = tmp_path / name
        path.write_bytes(content)
        return Source(path)

    return write


@pytest.fixture
def workbook(tmp_path: Path) -> Workbook:
    """Write rows of cells to a workbook; dates and times become what Excel makes of them."""

    def write(name: str, rows: list[list[Cell]]) -> Source:
        path = tmp_path / name
        book = xlsxwriter.Workbook(path)
        sheet = book.add_worksheet("Dec2015")
        formats = {
            datetime: book.add_format({"num_format": "dd/mm/yyyy hh:mm:ss"}),
            date: book.add_format({"num_format": "dd/mm/yyyy"}),
            time: book.add_format({"num_format": "hh:mm:ss"}),
        }
        for at, row in enumerate(rows):
            for column, cell in enumerate(row):
                if isinstance(cell, datetime | date | time):
                    sheet.write_datetime(at, column, cell, formats[type(cell)])
                elif cell is not None:
                    sheet.write(at, column, cell)
        book.close()
        return Source(path)

    return write


@pytest.fixture
def recorded() -> Recorded:
    """Build a record with awkward readings: long fractions, tiny numbers, gaps, whole codes."""

    def build(
        names: tuple[str, ...],
        *,
        rows: int = 12,
        stride_s: float = 1.0,
        start: str = "2015-12-28T11:59:55",
    ) -> Record:
        draw = np.random.default_rng(7)
        values = draw.normal(1, 300, (rows, len(names))) * 10.0 ** draw.integers(-9, 9, (rows, 1))
        values[:, -1] = draw.integers(0, 3, rows)
        values[3, 0] = values[5, -1] = np.nan
        channels = [Channel(name=name, role=Role.FLOW) for name in names[:-1]]
        codes = Codes(off=1, on=(2,), moving=(0,))
        channels.append(Channel(name=names[-1], role=Role.ACTUATOR, codes=codes))
        steps = (np.arange(rows) * round(stride_s * 1e6)).astype("timedelta64[us]")
        labels = np.zeros(rows, np.int8)
        labels[4:6] = labels[8:11] = Label.ATTACK
        labels[6] = Label.UNLABELLED
        return Record(
            name="look-alike",
            channels=tuple(channels),
            values=values,
            times=np.datetime64(start, "us") + steps,
            stride_s=stride_s,
            labels=labels,
        )

    return build
