"""Rows from text, pipes, growing files and messages."""

import gzip
import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from sluice.errors import RecordError, SettingError, UnclearRecordError
from sluice.telemetry import Declaration, Placement, PlantFile
from sluice.telemetry.record import Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from sluice.watch import StreamRows, Subject
from sluice.watch.broker import broker_of
from sluice.watch.opening import opened_source
from sluice.watch.sources import (
    GrowingFiles,
    HistorySource,
    PipeSource,
    Sampler,
    SourceState,
    TextReader,
    mqtt,
)
from sluice.watch.sources.messages import Reading, RowMessage, parsed_message

from .conftest import Ground, rows_of, text_of, without_channel


@pytest.fixture
def subject(ground: Ground) -> Subject:
    return ground.by_rules


def expected(ground: Ground, start: int, stop: int) -> StreamRows:
    return rows_of(ground.later.rows(start, stop), ground.by_rules)


def same(found: StreamRows, wanted: StreamRows) -> None:
    assert found.times.tolist() == wanted.times.tolist()
    np.testing.assert_array_equal(found.values, wanted.values)


def joined(parts: list[StreamRows]) -> StreamRows:
    return StreamRows(
        times=np.concatenate([part.times for part in parts]),
        values=np.concatenate([part.values for part in parts]),
    )


def drained(source: GrowingFiles | PipeSource) -> StreamRows:
    parts = []
    while len(part := source.take(0.0)):
        parts.append(part)
    return joined(parts) if parts else part


# -- text -------------------------------------------------------------------------------------


@pytest.fixture
def text(subject: Subject) -> Iterator[TextReader]:
    made = TextReader("rows.csv", subject, plant=PlantFile(), format_name=None)
    yield made
    made.close()


@pytest.mark.parametrize("step", [1, 17, 400, 100_000])
def test_bytes_cut_anywhere_give_the_same_rows(ground: Ground, text: TextReader, step: int) -> None:
    data = "".join(text_of(ground.later, slice(0, 12))).encode()
    found = []
    for start in range(0, len(data), step):
        text.feed(data[start : start + step])
        if step > 1 or start % 500 == 0:
            found.append(text.rows())
    text.end()
    found.append(text.rows(final=True))
    same(joined(found), expected(ground, 0, 12))


def test_an_incomplete_last_line_waits(ground: Ground, text: TextReader) -> None:
    data = "".join(text_of(ground.later, slice(0, 6))).encode()
    text.feed(data[:-30])
    assert len(text.rows()) == 5
    text.feed(data[-30:])
    assert len(text.rows()) == 1


def test_semicolons_and_decimal_commas_are_learned_from_the_opening(
    ground: Ground, text: TextReader
) -> None:
    lines = text_of(ground.later, slice(0, 8))
    data = "".join(line.replace(",", ";").replace(".", ",") for line in lines).encode()
    text.feed(data)
    found = [text.rows()]
    text.feed(b"".join(data.splitlines(keepends=True)[-1:]))  # one line alone is not ambiguous
    found.append(text.rows())
    same(found[0], expected(ground, 0, 8))
    assert found[1].values.tolist() == found[0].values[-1:].tolist()


def test_a_damaged_line_is_counted_and_the_others_are_read(
    ground: Ground, text: TextReader
) -> None:
    lines = text_of(ground.later, slice(0, 40))
    text.feed("".join(lines[:11]).encode())
    assert len(text.rows()) == 10
    lines[20] = "2024-99-99 garbage,\x00\x01\n"
    text.feed("".join(lines[11:]).encode())
    assert len(text.rows()) == 29
    assert text.unreadable == 1


def test_an_opening_that_can_be_read_in_two_ways_asks_for_the_plant_file(
    ground: Ground, text: TextReader
) -> None:
    lines = text_of(ground.later, slice(0, 5))
    lines[1:] = [f"0{n}/02/2024 00:00{line[19:]}" for n, line in enumerate(lines[1:], 1)]
    text.feed("".join(lines).encode())
    with pytest.raises(UnclearRecordError, match="date_order"):
        text.rows()


def test_text_without_line_feeds_is_refused(text: TextReader) -> None:
    with pytest.raises(RecordError, match="a line of more than"):
        text.feed(b"x" * 1_100_000)


# -- a pipe -----------------------------------------------------------------------------------


def test_a_pipe_gives_rows_as_they_are_written_and_is_over_when_it_is_closed(
    ground: Ground, subject: Subject
) -> None:
    lines = [line.encode() for line in text_of(ground.later, slice(0, 9))]
    readable, writable = os.pipe()
    pipe = PipeSource(readable, subject, plant=PlantFile())
    assert len(pipe.take(0.0)) == 0
    os.write(writable, b"".join(lines[:7]))
    assert len(pipe.take(1.0)) == 6
    os.write(writable, b"".join(lines[7:])[:-1])  # no line feed at the end
    assert len(pipe.take(1.0)) == 2
    states = [pipe.state]
    os.close(writable)
    assert len(pipe.take(1.0)) == 1
    assert [*states, pipe.state] == [SourceState.READING, SourceState.OVER]
    pipe.close()
    os.close(readable)


# -- files ------------------------------------------------------------------------------------


Following = Callable[..., GrowingFiles]


@pytest.fixture
def following(subject: Subject) -> Iterator[Following]:
    made: list[GrowingFiles] = []

    def follow(path: Path, *, position: str = "", from_end: bool = False) -> GrowingFiles:
        made.append(
            GrowingFiles(path, subject, plant=PlantFile(), position=position, from_end=from_end)
        )
        return made[-1]

    yield follow
    for source in made:
        source.close()


def append(path: Path, lines: list[str]) -> None:
    with path.open("a") as file:
        file.write("".join(lines))


def test_appended_rows(ground: Ground, following: Following, tmp_path: Path) -> None:
    lines, path = text_of(ground.later, slice(0, 30)), tmp_path / "rows.csv"
    append(path, lines[:11])
    source = following(path)
    same(drained(source), expected(ground, 0, 10))
    append(path, [*lines[11:20], lines[20][:9]])
    same(drained(source), expected(ground, 10, 19))
    append(path, [lines[20][9:], *lines[21:]])
    same(drained(source), expected(ground, 19, 30))


def test_a_file_that_appears_later(ground: Ground, following: Following, tmp_path: Path) -> None:
    source = following(tmp_path / "rows.csv")
    assert len(source.take(0.0)) == 0
    append(tmp_path / "rows.csv", text_of(ground.later, slice(0, 5)))
    assert len(source.take(1.0)) == 5


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    lines, path = text_of(ground.later, slice(0, 30)), tmp_path / "rows.csv"
    append(path, lines[:11])
    source = following(path)
    drained(source)
    append(path, lines[11:16])
    path.rename(tmp_path / "rows.csv.1")
    append(path, [lines[0], *lines[16:]])
    same(drained(source), expected(ground, 10, 30))


def test_a_truncated_file_begins_anew(ground: Ground, following: Following, tmp_path: Path) -> None:
    lines, path = text_of(ground.later, slice(0, 30)), tmp_path / "rows.csv"
    append(path, lines[:21])
    source = following(path)
    drained(source)
    path.write_text("".join([lines[0], *lines[21:]]))
    same(drained(source), expected(ground, 20, 30))


def test_a_restart_continues_at_the_position(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    lines, path = text_of(ground.later, slice(0, 30)), tmp_path / "rows.csv"
    append(path, [*lines[:11], lines[11][:7]])
    first = following(path)
    position = first.take(0.0).position
    append(path, [lines[11][7:], *lines[12:]])
    same(drained(following(path, position=position)), expected(ground, 10, 30))


def test_a_restart_finds_a_file_that_was_rotated_meanwhile(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    lines, path = text_of(ground.later, slice(0, 30)), tmp_path / "rows.csv"
    append(path, lines[:11])
    first = following(path)
    position = first.take(0.0).position
    append(path, lines[11:16])
    path.rename(tmp_path / "rows.csv.1")
    append(path, [lines[0], *lines[16:]])
    same(drained(following(path, position=position)), expected(ground, 10, 30))


def test_another_file_with_the_same_number_is_read_from_its_start(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    lines, path = text_of(ground.later, slice(0, 30)), tmp_path / "rows.csv"
    append(path, lines[:11])
    first = following(path)
    position = first.take(0.0).position
    path.write_text("".join([lines[0], *lines[11:]]))  # the same inode, and longer
    same(drained(following(path, position=position)), expected(ground, 10, 30))


def test_from_end_leaves_out_what_is_there(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    lines, path = text_of(ground.later, slice(0, 30)), tmp_path / "rows.csv"
    append(path, lines[:21])
    source = following(path, from_end=True)
    append(path, lines[21:])
    same(drained(source), expected(ground, 20, 30))


def test_a_folder_of_new_files_text_and_parquet(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    source = following(tmp_path)
    append(tmp_path / "1.csv", text_of(ground.later, slice(0, 10)))
    same(drained(source), expected(ground, 0, 10))
    write(ground.later.rows(10, 20), tmp_path / "2.parquet", FileLayout.PARQUET)
    same(drained(source), expected(ground, 10, 20))
    (tmp_path / ".hidden.csv").write_text("x")
    (tmp_path / "notes.md").write_text("x")
    append(tmp_path / "3.csv", text_of(ground.later, slice(20, 30)))
    found = source.take(0.0)
    same(found, expected(ground, 20, 30))
    again = following(tmp_path, position=found.position)
    assert len(again.take(0.0)) == 0
    write(ground.later.rows(10, 40), tmp_path / "2.parquet", FileLayout.PARQUET)  # rewritten
    assert drained(again).times.tolist()[-10:] == expected(ground, 30, 40).times.tolist()


def test_a_parquet_file_that_is_still_being_written_waits(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    write(ground.later.rows(0, 10), tmp_path / "whole.parquet", FileLayout.PARQUET)
    data = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "whole.parquet").unlink()
    (tmp_path / "rows.parquet").write_bytes(data[: len(data) // 2])
    source = following(tmp_path)
    assert len(source.take(0.0)) == 0
    (tmp_path / "rows.parquet").write_bytes(data)
    same(drained(source), expected(ground, 0, 10))
    assert source.unreadable == 0


def test_a_gzip_file_is_read_when_it_is_complete(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    data = gzip.compress("".join(text_of(ground.later, slice(0, 10))).encode())
    (tmp_path / "rows.csv").write_bytes(data)
    same(drained(following(tmp_path)), expected(ground, 0, 10))


def test_a_file_without_a_channel_of_the_rules_is_refused(
    ground: Ground, following: Following, tmp_path: Path
) -> None:
    append(tmp_path / "rows.csv", text_of(without_channel(ground.later, "F_PU1"), slice(0, 5)))
    with pytest.raises(RecordError, match="has no channel 'F_PU1'"):
        following(tmp_path / "rows.csv").take(0.0)


def test_a_position_of_another_source_is_refused(following: Following, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="a watch of another source"):
        following(tmp_path, position='{"x": 1}')


# -- history ----------------------------------------------------------------------------------


def test_a_replay_gives_every_row_in_order(ground: Ground, subject: Subject) -> None:
    source = HistorySource(ground.later.rows(0, 700), subject, chunk=256)
    parts = []
    while source.state is not SourceState.OVER:
        parts.append(source.take(0.0))
    assert [len(part) for part in parts] == [256, 256, 188]
    same(joined(parts), expected(ground, 0, 700))


def test_a_replay_at_a_pace_waits(ground: Ground, subject: Subject) -> None:
    record: Record = ground.later.rows(0, 10)
    source = HistorySource(record, subject, pace=100.0)
    assert len(source.take(0.0)) == 10
    assert len(HistorySource(record, subject, pace=1.0).take(0.0)) == 1


# -- messages ---------------------------------------------------------------------------------


def test_a_message_with_many_tags_is_a_row() -> None:
    payload = {"Timestamp": "2026-01-02T03:04:05Z", "A": 1, "B": "off", "C": None, "D": "bad"}
    found = parsed_message(json.dumps(payload).encode(), {})
    assert isinstance(found, RowMessage)
    assert found.time == 1_767_323_045_000_000
    assert dict(found.readings) | {"C": 0, "D": 0} == {"A": 1.0, "B": 0.0, "C": 0, "D": 0}
    assert np.isnan([found.readings["C"], found.readings["D"]]).all()


@pytest.mark.parametrize("factor", [1, 1_000, 1_000_000, 1_000_000_000])
def test_times_as_numbers_in_any_unit(factor: int) -> None:
    found = parsed_message(json.dumps({"time": 1_767_323_045 * factor, "A": 1}).encode(), {})
    assert isinstance(found, RowMessage)
    assert found.time == 1_767_323_045_000_000


@pytest.mark.parametrize(
    ("payload", "value"),
    [(b"1.5", 1.5), (b'{"value": 2, "ts": 1}', 2.0), (b"ON", 1.0), (b"auf", 7.0), (b"true", 1.0)],
)
def test_a_message_with_one_reading(payload: bytes, value: float) -> None:
    assert parsed_message(payload, {"auf": 7.0}) == Reading(value=value)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"\xff\xfe", "is no text"),
        (b'{"time": "noon", "A": 1}', "has the time 'noon'"),
        (b" " * 1_100_000, "expected at most"),
        (b'{"time": 1' + b"0" * 400 + b', "A": 1}', "has the time '10000"),
        (b'{"time": 1e300, "A": 1}', "has the time '1e.300'"),
        (b'{"time": -3e18, "A": 1}', "has the time '-3e.18'"),
        (b'{"time": "99999999999999999999-01-01", "A": 1}', "has the time '99999"),
        (b'{"time": "2200-01-01", "A": 1}', "has the time '2200-01-01'"),
        (b'{"time": "NaT", "A": 1}', "has the time 'NaT'"),
        (b'{"time": "", "A": 1}', "has the time ''"),
        (b'{"time": "now", "A": 1}', "has the time 'now'"),
    ],
)
def test_a_message_that_cannot_be_read_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        parsed_message(payload, {})


@pytest.mark.parametrize("payload", [b"1" + b"0" * 400, b"-1" + b"0" * 400, b"1e999"])
def test_a_number_that_no_float_holds_does_not_stop_the_watch(payload: bytes) -> None:
    """It is endless, and the intake counts it as an impossible reading."""
    found = parsed_message(payload, {})
    assert isinstance(found, Reading)
    assert math.isinf(found.value)
    row = parsed_message(b'{"A": ' + payload + b"}", {})
    assert isinstance(row, RowMessage)
    assert math.isinf(row.readings["A"])


# -- sampling ---------------------------------------------------------------------------------


def test_readings_become_a_row_at_each_stride() -> None:
    now = 100.0
    sampler = Sampler(("A", "B"), stride_s=10.0, max_age_s=25.0, clock=lambda: now)
    assert len(sampler.row()) == 0
    assert sampler.put("A", 1.0)
    assert not sampler.put("unknown", 1.0)
    now = 110.5
    row = sampler.row()
    assert row.times.tolist() == [110_000_000]
    assert row.values[0, 0] == 1.0
    assert np.isnan(row.values[0, 1])
    assert len(sampler.row()) == 0  # each row once
    now = 120.0
    sampler.put("B", 2.0)
    assert sampler.row().values.tolist() == [[1.0, 2.0]]
    now = 130.5
    assert np.isnan(sampler.row().values[0, 0])  # too old
    sampler.forget()
    now = 140.0
    assert len(sampler.row()) == 0  # nothing is known: no row is invented


# -- points of a template -----------------------------------------------------------------------


def placed_in(subject: Subject) -> PlantFile:
    """A plant file whose tag XS-1, in tenths, is the subject's first channel."""
    point = Placement(name=subject.names[0], factor=10.0, offset=1.0)
    return PlantFile(channels={"XS-1": Declaration(point=point)})


def test_opc_ua_is_refused_if_tags_are_points(subject: Subject) -> None:
    with pytest.raises(SettingError, match="an OPC UA source reads tags only"):
        opened_source(
            "opc.tcp://127.0.0.1:1",
            subject,
            plant=placed_in(subject),
            format_name=None,
            position="",
            lasting=False,
            from_end=False,
            nodes=None,
            max_age_s=None,
        )


class _NoBroker:
    """A client that connects to nothing."""

    def connect(self, *_: object, **__: object) -> None:
        pass

    def loop_start(self) -> None:
        pass


def test_mqtt_rows_and_readings_become_points(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt, "client_of", lambda *_, **__: _NoBroker())
    source = mqtt.MqttSource(
        broker_of("mqtt://127.0.0.1:1/rows/#"),
        subject,
        plant=placed_in(subject),
        client_name="",
        lasting=False,
    )
    row = b'{"time": "2026-05-01T00:00:00Z", "XS-1": 4.5}'
    source._messages.put(("rows", row, 1, 1))
    (values,) = source.take(0.0).values
    assert values[0] == 46.0
    assert np.isnan(values[1:]).all()
    put: list[tuple[str, float]] = []

    def keep(name: str, value: float) -> bool:
        put.append((name, value))
        return True

    monkeypatch.setattr(source._sampler, "put", keep)
    source._messages.put(("rows/XS-1", b"2.0", 2, 1))
    source.take(0.0)
    assert put == [(subject.names[0], 21.0)]
