"""Events reach files, syslog and webhooks; a dead sink stops nothing and loses nothing."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sluice.errors import SettingError
from sluice.watch.sinks import Delivery, SinkError, delivery, opened_sink
from sluice.watch.sinks.cef import cef_line
from sluice.watch.sinks.jsonl import JsonLines
from sluice.watch.store import Outgoing, Store, StoredAlarm


def content(key: str = "a1/raised/1", **changed: object) -> str:
    return json.dumps(
        {
            "event": "raised",
            "key": key,
            "plant": "north",
            "at": "2026-01-02T03:04:05",
            "id": "a1",
            "start": "2026-01-02T03:00:00",
            "end": None,
            "severity": "high",
            "rules": ["S~F"],
            "tags": ["F", "S"],
            "sentence": "F shows 0",
            "last": "2026-01-02T03:04:05",
            "link": None,
            **changed,
        }
    )


def event(key: str = "a1/raised/1", **changed: object) -> Outgoing:
    return Outgoing(number=1, key=key, alarm="a1", content=content(key, **changed))


def stored(store: Store, sink: str, *keys: str) -> None:
    from sluice.watch.sources.source import no_rows  # noqa: PLC0415

    alarm = StoredAlarm(id="a1", start=1, content="{}")
    store.commit(no_rows(1), [(event(key), alarm, (sink,)) for key in keys])


# -- JSON lines -------------------------------------------------------------------------------


def test_a_file_has_each_event_once_even_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "alarms.jsonl"
    first = JsonLines(path)
    first.deliver(event("one"))
    with path.open("ab") as file:
        file.write(b'{"key": "two", "sent')  # a process was killed while it wrote
    again = JsonLines(path)
    for key in ("one", "two", "two"):
        again.deliver(event(key))
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert keys == ["one", "two"]


def test_lines_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "alarms.jsonl"
    path.write_text("not json\n[1]\n")
    JsonLines(path).deliver(event("one"))
    assert path.read_text().startswith("not json\n[1]\n{")


def test_a_file_that_cannot_be_written_now_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "away"
    folder.mkdir()
    sink = JsonLines(folder / "alarms.jsonl")
    (folder / "alarms.jsonl").unlink()
    folder.rmdir()
    with pytest.raises(SinkError, match="No such file"):
        sink.deliver(event("one"))


# -- CEF --------------------------------------------------------------------------------------


def test_a_cef_line() -> None:
    line = cef_line(event(), version="1.0")
    header, fields = line.rsplit("|", 1)
    assert header == "CEF:0|Sluice|watch|1.0|raised|alarm raised|9"
    assert "externalId=a1 " in fields
    assert "start=1767322800000 " in fields
    assert "msg=F shows 0 " in fields
    assert "cs1Label=tags cs1=F, S " in fields
    assert "end=" not in fields


@pytest.mark.parametrize(
    ("sentence", "written"),
    [
        ("a=b", "msg=a\\=b "),
        ("a\\b", "msg=a\\\\b "),
        ("a|b", "msg=a|b "),
        ("two\nlines\r\n", "msg=two lines  "),
        ("nul\x00", "msg=nul  "),
    ],
)
def test_what_would_change_the_meaning_of_a_line_is_escaped(sentence: str, written: str) -> None:
    line = cef_line(event(sentence=sentence), version="1|2\\3")
    assert written in line
    assert "|1\\|2\\\\3|" in line
    assert "\n" not in line


def test_a_hostile_tag_adds_no_field() -> None:
    line = cef_line(event(tags=["F act=blocked"]), version="1")
    assert "cs1=F act\\=blocked" in line


# -- syslog -----------------------------------------------------------------------------------


def test_syslog_over_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)
        sink = opened_sink(f"syslog+udp://127.0.0.1:{server.getsockname()[1]}")
        sink.deliver(event())
        data = server.recv(4_096).decode()
        sink.close()
    assert data.startswith("<34>1 2")  # security, critical
    assert " sluice " in data
    assert "CEF:0|Sluice|watch|" in data


def test_syslog_over_tcp_notices_a_closed_connection_and_connects_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sink = opened_sink(f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}")
        sink.deliver(event("one"))
        connection, _ = server.accept()
        assert connection.recv(4_096).endswith(b"\n")
        connection.close()
        time.sleep(0.05)
        with pytest.raises(SinkError, match="closed"):
            sink.deliver(event("two"))
        sink.deliver(event("two"))
        connection, _ = server.accept()
        assert b"CEF:0" in connection.recv(4_096)
        connection.close()
        sink.close()


def test_syslog_to_a_socket_file(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "log"))
        server.settimeout(5)
        sink = opened_sink(f"syslog+unix:{tmp_path / 'log'}")
        sink.deliver(event())
        assert b"CEF:0" in server.recv(4_096)
        sink.close()


def test_a_syslog_server_that_is_down_fails_for_now() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SinkError, match="refused"):
        opened_sink(f"syslog+tcp://127.0.0.1:{port}").deliver(event())


# -- webhook ----------------------------------------------------------------------------------


class Hook(BaseHTTPRequestHandler):
    """Answers with the next code of a list, and keeps what was posted."""

    codes: list[int]
    seen: list[tuple[dict[str, str], bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((dict(self.headers), body))
        self.send_response(self.codes.pop(0) if self.codes else 200)
        if self.codes == [999]:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST  # noqa: N815 - a name of the server

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def hooked(*codes: int) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    class handler(Hook):  # noqa: N801 - a class for each server
        pass

    handler.codes, handler.seen = list(codes), []
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alarms?key=secret", handler.seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_webhook_gets_json_with_a_stable_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_WEBHOOK_TOKEN", "token")
    with hooked() as (address, seen):
        sink = opened_sink(address)
        sink.deliver(event("one"))
    headers, body = seen[0]
    assert json.loads(body)["id"] == "a1"
    assert headers["Idempotency-Key"] == "one"
    assert headers["Authorization"] == "Bearer token"
    assert "secret" not in sink.name


@pytest.mark.parametrize("code", [302, 400, 500])
def test_any_answer_but_2xx_is_a_failure(code: int) -> None:
    with hooked(code) as (address, seen), pytest.raises(SinkError, match=f"answers {code}"):
        opened_sink(address).deliver(event())
    assert len(seen) == 1  # no redirect was followed


# -- delivery ---------------------------------------------------------------------------------


def test_a_failed_event_is_tried_again_and_arrives_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "FIRST_PAUSE_S", 0.01)
    store = Store(None, identity="x")
    with hooked(500, 503) as (address, seen):
        sinks = Delivery(store, [opened_sink(address)])
        stored(store, sinks.names[0], "one", "two")
        sinks.start()
        assert sinks.stop(within_s=10) == 0
    assert [headers["Idempotency-Key"] for headers, _ in seen] == ["one", "one", "one", "two"]
    (health,) = sinks.health()
    assert (health.delivered, health.failures, health.waiting) == (2, 2, 0)


def test_a_dead_sink_blocks_neither_the_caller_nor_other_sinks(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, but never answers
        dead = opened_sink(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        good = opened_sink(f"jsonl:{tmp_path / 'alarms.jsonl'}")
        store = Store(tmp_path / "s.db", identity="x")
        sinks = Delivery(store, [dead, good])
        sinks.start()
        began = time.monotonic()
        for number in range(50):
            stored(store, dead.name, f"dead {number}")
            stored(store, good.name, f"good {number}")
            sinks.wake()
        assert time.monotonic() - began < 5
        while store.waits(good.name) and time.monotonic() - began < 10:
            time.sleep(0.01)
        assert len((tmp_path / "alarms.jsonl").read_text().splitlines()) == 50
        assert sinks.stop(within_s=0.1) == 50  # they stay in the state
    store.close()


def test_a_restart_delivers_what_waited(tmp_path: Path) -> None:
    address = f"jsonl:{tmp_path / 'alarms.jsonl'}"
    store = Store(tmp_path / "s.db", identity="x")
    stored(store, opened_sink(address).name, "one")
    store.close()
    store = Store(tmp_path / "s.db", identity="x")
    sinks = Delivery(store, [opened_sink(address)])
    sinks.start()
    assert sinks.stop(within_s=5) == 0
    assert json.loads((tmp_path / "alarms.jsonl").read_text())["key"] == "one"
    store.close()


def test_heartbeats_go_to_files(tmp_path: Path) -> None:
    store = Store(None, identity="x")
    sinks = Delivery(store, [opened_sink(f"jsonl:{tmp_path / 'a.jsonl'}")])
    sinks.start()
    sinks.beat('{"event": "heartbeat"}')
    deadline = time.monotonic() + 5
    while not (tmp_path / "a.jsonl").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    sinks.stop(within_s=1)
    assert (tmp_path / "a.jsonl").read_text() == '{"event": "heartbeat"}\n'


# -- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("alarms.jsonl", "is not known; give one of jsonl:FILE"),
        ("jsonl:", "is not known"),
        ("jsonl:nowhere/alarms.jsonl", "name a file in a folder that exists"),
        ("ftp://host/x", "is not known"),
        ("syslog+udp://", "has no host or port"),
        ("syslog+tcp://host:99999", "has no host or port"),
        ("https:///x", "has no host"),
        ("https://user:secret@host/x", "set SLUICE_WEBHOOK_TOKEN"),
        ("mqtt://host", "is no broker's address"),
        ("mqtt://u:secret@host/topic", "set SLUICE_MQTT_PASSWORD"),
    ],
)
def test_a_broken_address_is_refused_and_no_password_is_printed(address: str, message: str) -> None:
    with pytest.raises(SettingError, match=message) as refused:
        opened_sink(address)
    assert "secret" not in str(refused.value)
