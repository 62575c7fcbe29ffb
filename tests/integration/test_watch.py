"""`sluice watch` as a process: killed and continued, on a real broker and a real OPC UA server."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluice.detector.alone import train
from sluice.detector.modelfile import save_detector
from sluice.invariants.mining.profiles import mine
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.seeding import stream
from sluice.telemetry.record import Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.watch.conftest import text_of

ROOT = Path(__file__).parents[2]
BROKER = Path(os.environ.get("SLUICE_BROKER", ROOT / "build" / "broker" / "bin" / "amqtt"))
PATIENCE_S = 60.0
PASSWORD = "only-for-this-test"
HASHES = (
    "import sys; from pwdlib import PasswordHash; from pwdlib.hashers.argon2 import Argon2Hasher; "
    "print(PasswordHash((Argon2Hasher(),)).hash(sys.stdin.read()))"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rules, a model, and later rows in which a flow meter stops and a level is frozen."""
    folder = tmp_path_factory.mktemp("site")
    plant = simulate("line", seed=0, days=12)
    save_rules(mine(plant.rows(0, 7_000), plant.rows(7_000, 14_000)), folder / "rules.json")
    detector = train(plant.rows(0, 14_000), kind="subspace", false_alarms_per_week=1.0)
    save_detector(detector, folder / "model.safetensors")
    later = plant.rows(14_000, 17_000)
    values = later.values.copy()
    for start in (300, 900, 1_500, 2_100, 2_700):
        values[start : start + 40, later.index("F_PU1")] = 0.0
        values[start + 150 : start + 200, later.index("L_T2")] += 0.4
    write(later.with_values(values), folder / "later.parquet", FileLayout.PARQUET)
    return folder


@pytest.fixture(scope="module")
def later(site: Path) -> Record:
    from sluice.telemetry.reading import read_record  # noqa: PLC0415

    return read_record(site / "later.parquet")


def command(site: Path, source: object, *options: object) -> list[str]:
    rules = ("--rules", site / "rules.json", "--model", site / "model.safetensors")
    words = ("watch", source, *rules, "--json", *options)
    return [sys.executable, "-m", "sluice", *map(str, words)]


@contextmanager
def started(words: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def uninterrupted(site: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        command(site, site / "later.parquet", "--replay"),
        capture_output=True,
        text=True,
        check=True,
    )
    *alarms, last = map(json.loads, done.stdout.splitlines())
    assert last["summary"]["alarms"] == len(alarms) > 4
    return alarms


def raised(path: Path) -> list[str]:
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return [event["id"] for event in events if event["event"] == "raised"]


# -- kills ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [100, 101])
def test_a_watch_that_is_killed_again_and_again_raises_every_alarm_once(
    site: Path, later: Record, tmp_path: Path, seed: int
) -> None:
    rng = stream(seed, "watch", "kills")
    expected = uninterrupted(site)
    lines = text_of(later, slice(None))
    growing, alarms = tmp_path / "export.csv", tmp_path / "alarms.jsonl"
    growing.write_text(lines[0])
    options = ("--state", tmp_path / "watch.db", "--sink", f"jsonl:{alarms}", "--stop-when-idle", 2)
    words, printed, kills = command(site, growing, *options), "", 0
    written = 1
    while written < len(lines):
        with started(words) as process, growing.open("a") as file:
            time.sleep(float(rng.uniform(0.9, 1.4)))  # the process reads meanwhile
            for _ in range(6):
                part = int(rng.integers(20, 180))
                file.write("".join(lines[written : written + part])[:-4])
                file.flush()
                time.sleep(float(rng.uniform(0.02, 0.15)))
                file.write("".join(lines[written : written + part])[-4:])
                file.flush()
                written += part
            process.send_signal(signal.SIGKILL)
            printed += process.communicate()[0]
            kills += 1
    last = subprocess.run(words, capture_output=True, text=True, check=True)
    printed += last.stdout
    assert kills >= 3
    wanted = [alarm["id"] for alarm in expected]
    assert sorted(raised(alarms)) == sorted(wanted)  # none lost, none twice
    assert {json.loads(line)["id"] for line in printed.splitlines()} == set(wanted)
    ended = [json.loads(line) for line in alarms.read_text().splitlines()]
    ends = {each["id"]: each["end"] for each in ended if each["event"] == "ended"}
    closed = [alarm for alarm in expected if alarm["id"] in ends]
    assert len(closed) >= len(expected) - 1  # the last one may still last
    assert all(ends[alarm["id"]] == alarm["end"] for alarm in closed)


def test_a_pipe_that_is_sent_again_after_a_kill_repeats_no_alarm(
    site: Path, later: Record, tmp_path: Path
) -> None:
    expected = {alarm["id"] for alarm in uninterrupted(site)}
    lines = text_of(later, slice(None))
    words = command(site, "-", "--state", tmp_path / "watch.db")
    with started(words, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write("".join(lines[:1_200]))
        process.stdin.flush()
        first = [json.loads(process.stdout.readline())["id"]] if process.stdout else []
        process.kill()
        first += [json.loads(line)["id"] for line in process.communicate()[0].splitlines()]
    again = subprocess.run(words, input="".join(lines), capture_output=True, text=True, check=True)
    second = [json.loads(line)["id"] for line in again.stdout.splitlines()]
    assert not set(first) & set(second)
    assert set(first) | set(second) == expected


def test_a_watch_that_is_told_to_stop_exits_0_and_states_its_health(
    site: Path, later: Record, tmp_path: Path
) -> None:
    growing = tmp_path / "export.csv"
    growing.write_text("".join(text_of(later, slice(0, 500))))
    health = tmp_path / "health.json"
    words = command(site, growing, "--health", health, "--heartbeat", 0.2)
    with started(words) as process:
        deadline = time.monotonic() + PATIENCE_S
        while not (health.exists() and json.loads(health.read_text())["rows"] == 500):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    stated = json.loads(health.read_text())
    assert stated["state"] == "ok"
    assert stated["last_row"] == str(later.times[499].astype("datetime64[s]"))
    assert (stated["late"], stated["repeated"], stated["gaps"], stated["unreadable"]) == (0,) * 4


# -- MQTT -------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if not BROKER.exists():
        pytest.skip("no MQTT broker; run make broker")
    port, folder = free_port(), tmp_path_factory.mktemp("broker")
    hashed = subprocess.run(
        [str(BROKER.with_name("python")), "-c", HASHES], input=PASSWORD, capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    (folder / "passwords").write_text(f"plant:{hashed}")
    settings = folder / "broker.yaml"
    settings.write_text(
        f"listeners:\n  default:\n    type: tcp\n    bind: 127.0.0.1:{port}\n"
        "plugins:\n  amqtt.plugins.authentication.FileAuthPlugin:\n"
        f"    password_file: {folder / 'passwords'}\n"
    )
    with (folder / "broker.log").open("w") as log:
        process = subprocess.Popen(
            [str(BROKER), "-c", str(settings)], stdout=log, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "broker.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.1)
        try:
            yield port
        finally:
            process.kill()
            process.wait()


class Client:
    """A client of the broker that keeps what it hears."""

    def __init__(self, port: int, *topics: str) -> None:
        from paho.mqtt.client import Client as Paho  # noqa: PLC0415
        from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415

        self.heard: list[tuple[str, dict[str, Any]]] = []
        self._ready = threading.Event()
        self.client = Paho(CallbackAPIVersion.VERSION2)
        self.client.username_pw_set("plant", PASSWORD)
        self.client.on_message = lambda _, __, m: self.heard.append(
            (m.topic, json.loads(m.payload))
        )
        self.client.on_subscribe = lambda *_: self._ready.set()
        self.client.on_connect = self._subscribe
        self._topics = topics
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        if topics:
            assert self._ready.wait(PATIENCE_S)

    def _subscribe(self, client: Any, *_: Any) -> None:
        for topic in self._topics:
            client.subscribe(topic, qos=1)

    def say(self, topic: str, content: object) -> None:
        sent = self.client.publish(topic, json.dumps(content), qos=1)
        sent.wait_for_publish(PATIENCE_S)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def messages(record: Record, rows: slice) -> list[dict[str, object]]:
    return [
        {"time": str(time), **dict(zip(record.names, values.tolist(), strict=True))}
        for time, values in zip(record.times[rows], record.values[rows], strict=True)
    ]


def test_rows_from_a_broker_raise_alarms_on_it_also_those_sent_while_it_was_down(
    site: Path, later: Record, broker: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_MQTT_PASSWORD", PASSWORD)
    address = f"mqtt://plant@127.0.0.1:{broker}"
    options = ("--state", tmp_path / "watch.db", "--sink", f"{address}/alarms", "--heartbeat", 0.3)
    words = command(site, f"{address}/plant/rows", *options)
    client = Client(broker, "alarms/#")
    rows = messages(later, slice(280, 360))

    def heard(kind: str) -> list[dict[str, Any]]:
        return [content for topic, content in client.heard if topic == f"alarms/{kind}"]

    def wait_for(what: str, rows_seen: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (heard(what) and heard("heartbeat")[-1]["rows"] >= rows_seen):
            assert time.monotonic() < deadline, client.heard[-3:]
            time.sleep(0.05)

    try:
        with started(words) as process:
            wait_for("heartbeat", 0)
            time.sleep(0.5)  # between the connection and the subscription
            for row in rows[:12]:
                client.say("plant/rows", row)
            client.say("plant/rows", "not a row")
            wait_for("heartbeat", 12)
            process.kill()
            process.wait()
        for row in rows[12:]:
            client.say("plant/rows", row)
        with started(words) as process:
            wait_for("raised", 80)
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
            printed = process.stdout.read() if process.stdout else ""
    finally:
        client.close()
    assert heard("raised")[0]["rules"] == ["S_PU1~F_PU1"]
    assert len({each["id"] for each in heard("raised")}) == len(heard("raised"))
    assert [json.loads(line)["id"] for line in printed.splitlines()] == [
        each["id"] for each in heard("raised")
    ]
    assert heard("heartbeat")[-1]["state"] == "ok"


def test_a_broker_that_is_not_there_is_bad_input(site: Path) -> None:
    done = subprocess.run(
        command(site, f"mqtt://127.0.0.1:{free_port()}/rows"), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be reached: Connection refused; check the address" in done.stderr


# -- OPC UA -----------------------------------------------------------------------------------


@contextmanager
def opc_server(record: Record, port: int) -> Iterator[subprocess.Popen[str]]:
    """Serve a record's tags; after a line on its stdin, the level of tank 1 fails."""
    readings = json.dumps(dict(zip(record.names, record.values[0].tolist(), strict=True)))
    words = [sys.executable, str(Path(__file__).with_name("opc_server.py")), str(port), readings]
    with started([*words, "L_T1"], stdin=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield server


def test_tags_of_an_opc_ua_server_are_sampled_and_a_bad_one_raises_an_alarm(
    site: Path, later: Record, tmp_path: Path
) -> None:
    from dataclasses import replace  # noqa: PLC0415

    from sluice.invariants.rulesfile import load_rules  # noqa: PLC0415

    quick = tmp_path / "rules.json"  # ten rows a second, so that the test is short
    save_rules(replace(load_rules(site / "rules.json"), stride_s=0.1), quick)
    port = free_port()
    words = [sys.executable, "-m", "sluice", "watch", f"opc.tcp://127.0.0.1:{port}/"]
    words += ["--rules", str(quick), "--json"]
    health = tmp_path / "health.json"
    events = tmp_path / "events.jsonl"
    words += ["--health", str(health), "--heartbeat", "0.1", "--sink", f"jsonl:{events}"]
    with opc_server(later.rows(0, 1), port) as server, started(words) as process:
        deadline = time.monotonic() + PATIENCE_S
        while not (health.exists() and json.loads(health.read_text())["rows"] >= 5):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert server.stdin is not None
        server.stdin.write("fail\n")
        server.stdin.flush()
        # The levels stand still although the pumps run, which raises alarms too; the missing
        # reading may join one of them.
        found: list[dict[str, Any]] = []
        while not found:
            assert time.monotonic() < deadline + PATIENCE_S
            time.sleep(0.05)
            whole = events.read_text().rpartition("\n")[0].splitlines()
            evidence = [each for line in whole for each in json.loads(line).get("evidence", ())]
            found = [each for each in evidence if each["kind"] == "missing"]
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert found[0]["tags"] == ["L_T1"]
    assert "L_T1 has no reading" in found[0]["sentence"]


def test_an_opc_ua_server_without_a_tag_is_bad_input(site: Path, later: Record) -> None:
    port = free_port()
    with opc_server(later.rows(0, 1).without("F_PU1"), port):
        done = subprocess.run(
            command(site, f"opc.tcp://127.0.0.1:{port}/"), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no channel 'F_PU1'" in done.stderr
