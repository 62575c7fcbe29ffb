"""`sluice watch` from the outside."""

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from sluice.cli.watch import command
from sluice.cli.watch import replay as replay_module
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Label, Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome
from tests.unit.watch.conftest import Ground, files_in, ground, stopped_pump, text_of

Run = Callable[..., Outcome]

__all__ = ["ground"]  # a fixture

KEYS = {"id", "start", "end", "severity", "rules", "tags", "sentence"}


@pytest.fixture(scope="module")
def folder(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("watch")
    files_in(made, ground)
    attacked = ground.attacked(stopped_pump)
    labels = attacked.labels.copy()
    labels[1_000:1_120] = Label.ATTACK
    write(replace(attacked, labels=labels), made / "later.parquet", FileLayout.PARQUET)
    (made / "later.csv").write_text("".join(text_of(attacked, slice(900, 1_300))))
    return made


def judged_by(folder: Path) -> tuple[object, ...]:
    return "--rules", folder / "rules.json", "--model", folder / "model.safetensors"


def test_help_has_an_example(sluice: Run) -> None:
    assert "Example: sluice watch" in sluice("watch", "--help").out


# -- history ----------------------------------------------------------------------------------


def test_a_replay_prints_one_alarm_a_line_and_a_summary(sluice: Run, folder: Path) -> None:
    seen = sluice("watch", folder / "later.parquet", *judged_by(folder), "--replay", "--json")
    assert (seen.code, seen.err) == (0, "")
    *alarms, last = map(json.loads, seen.out.splitlines())
    assert alarms
    for alarm in alarms:
        assert alarm.keys() >= KEYS
        assert alarm["start"] <= alarm["end"]
        assert alarm["severity"] in ("low", "medium", "high")
        assert alarm["sentence"]
    assert list(last) == ["summary"]
    summary = last["summary"]
    assert (summary["rows"], summary["alarms"]) == (3_000, len(alarms))
    assert (summary["attacks"], summary["attacks_detected"]) == (1, 1)
    assert len({alarm["id"] for alarm in alarms}) == len(alarms)


def test_a_replay_gives_the_same_alarms_each_time(sluice: Run, folder: Path) -> None:
    words = ("watch", folder / "later.csv", *judged_by(folder), "--replay", "--json")
    first, second = sluice(*words).out.splitlines(), sluice(*words).out.splitlines()
    assert first[:-1] == second[:-1] != []


@pytest.mark.parametrize("only", [0, 2])
def test_rules_or_a_model_alone_are_enough(sluice: Run, folder: Path, only: int) -> None:
    one = judged_by(folder)[only : only + 2]
    seen = sluice("watch", folder / "later.parquet", *one, "--replay", "--json")
    assert seen.code == 0
    assert len(seen.out.splitlines()) > 1


def test_a_replay_in_words_and_as_a_page(sluice: Run, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "alarms.html"
    seen = sluice("watch", folder / "later.parquet", *judged_by(folder), "--replay", "--html", page)
    assert seen.code == 0
    assert "F_PU1 shows 0 m3/h while S_PU1 reads on" in seen.out.replace("\n", " ")
    assert "labelled attacks  1 of 1 with an alarm" in seen.out
    text = page.read_text()
    assert "Alarms over time" in text
    assert "S_PU1~F_PU1" in text
    assert 'id="section-2024' in text


def test_the_link_leads_to_the_alarm_on_the_page(sluice: Run, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "alarms.html"
    words = ("watch", folder / "later.parquet", *judged_by(folder), "--replay", "--json")
    seen = sluice(*words, "--html", page, "--page", "https://watch.example/alarms.html")
    first = json.loads(seen.out.splitlines()[0])
    address, _, anchor = first["link"].partition("#")
    assert address == "https://watch.example/alarms.html"
    assert f'id="{anchor}"' in page.read_text()


def test_sinks_get_the_events_of_a_replay(sluice: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "alarms.jsonl"
    words = ("watch", folder / "later.csv", *judged_by(folder), "--replay", "--json")
    seen = sluice(*words, "--sink", f"jsonl:{path}")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = {event["event"] for event in events}
    assert {"raised", "ended"} <= kinds
    printed = {json.loads(line).get("id") for line in seen.out.splitlines()[:-1]}
    assert {event["id"] for event in events} == printed


def test_a_terminal_shows_a_live_view(
    sluice: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()

    def terminal(*, highlight: bool) -> Console:
        return Console(file=shown, force_terminal=True, width=120, highlight=highlight)

    monkeypatch.setattr(replay_module, "Console", terminal)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    seen = sluice("watch", folder / "later.csv", *judged_by(folder), "--replay")
    assert seen.code == 0
    assert "400 of 400 rows" in shown.getvalue()
    assert "F_PU1" in shown.getvalue()
    assert "rows judged" in seen.out


# -- live -------------------------------------------------------------------------------------


def piped(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    readable, writable = os.pipe()
    os.write(writable, text.encode()[:60_000])
    os.close(writable)
    monkeypatch.setattr(sys, "stdin", os.fdopen(readable))


def test_rows_from_stdin(
    sluice: Run, folder: Path, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacked = ground.attacked(stopped_pump)
    text = "".join(text_of(attacked, slice(970, 1_150)))
    piped(text[:60_000], monkeypatch)
    seen = sluice("watch", "-", *judged_by(folder), "--json", "--quiet")
    sys.stdin.close()
    assert (seen.code, seen.err) == (0, "")
    alarms = [json.loads(line) for line in seen.out.splitlines()]
    assert any("S_PU1~F_PU1" in alarm["rules"] for alarm in alarms)
    assert all(alarm.keys() >= KEYS and alarm["end"] is None for alarm in alarms)


def test_a_growing_file_with_state_page_health_and_sink(
    sluice: Run, folder: Path, tmp_path: Path
) -> None:
    growing = tmp_path / "export.csv"
    lines = (folder / "later.csv").read_text().splitlines(keepends=True)
    growing.write_text("".join(lines[:110]))
    options = (
        "--state", tmp_path / "w.db", "--html", tmp_path / "p.html", "--health",
        tmp_path / "h.json", "--sink", f"jsonl:{tmp_path / 'a.jsonl'}", "--stop-when-idle", 0.3,
    )  # fmt: skip
    words = ("watch", growing, *judged_by(folder), *options, "--json")
    first = sluice(*words)
    with growing.open("a") as file:
        file.write("".join(lines[110:]))
    second = sluice(*words)
    assert (first.code, second.code) == (0, 0)
    found = [json.loads(line)["id"] for line in (first.out + second.out).splitlines()]
    assert found
    assert len(set(found)) == len(found)
    events = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert {e["id"] for e in events if e["event"] == "raised"} == set(found)
    health = json.loads((tmp_path / "h.json").read_text())
    assert (health["rows"], health["late"], health["repeated"]) == (400, 0, 0)
    assert found[0] in (tmp_path / "p.html").read_text()


def test_without_a_state_a_restart_begins_anew_and_says_so(sluice: Run, folder: Path) -> None:
    seen = sluice("watch", folder / "later.csv", *judged_by(folder), "--stop-when-idle", 0.2)
    assert seen.code == 0
    assert "without --state, a restart begins from the start" in seen.err
    assert "HIGH 2024" in seen.out


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("later.csv", (), "give --model, --rules, or both"),
        ("-", ("--replay",), "'-' is none; name a file or a folder"),
        ("mqtt://host/x", ("--replay",), "'mqtt://host/x' is none"),
        ("later.csv", ("--replay", "--state", "s.db"), "keeps no state; drop --state"),
        ("later.csv", ("--pace", "5"), "--pace is about history"),
        ("later.csv", ("--every", "5"), "add --replay, or train the model"),
        ("later.csv", ("--nodes", "{}/rules.json"), "--nodes is about OPC UA"),
        ("later.csv", ("--self-contained",), "give --html PAGE"),
        ("later.csv", ("--sink", "carrier-pigeon"), "is not known; give one of jsonl:FILE"),
        ("later.csv", ("--sink", "jsonl:a", "--sink", "jsonl:a"), "is given twice"),
        ("http://host/rows", (), "is no source that Sluice reads"),
        ("mqtt://host", (), "is no broker's address"),
        ("later.csv", ("--raise-rows", "0"), "Invalid value for '--raise-rows'"),
    ],
)  # fmt: skip
def test_bad_settings_exit_with_2(
    sluice: Run,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    named = folder / source if source.startswith("later") else source
    by = judged_by(folder) if "or both" not in message else ()
    seen = sluice("watch", named, *by, *(word.replace("{}", str(folder)) for word in options))
    assert (seen.code, seen.out) == (2, "")
    assert message in " ".join(seen.err.split())
    assert "Traceback" not in seen.err


def test_a_record_at_another_stride_is_refused(sluice: Run, folder: Path, tmp_path: Path) -> None:
    plant: Record = simulate("line", seed=1, days=1)
    write(plant.every(5), tmp_path / "slow.parquet", FileLayout.PARQUET)
    seen = sluice("watch", tmp_path / "slow.parquet", *judged_by(folder), "--replay", "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "has a row every 300 s" in seen.err
    live = sluice("watch", tmp_path / "slow.parquet", *judged_by(folder), "--json")
    assert (live.code, live.out) == (2, "")
    assert "a row comes every 300 s" in live.err


@pytest.mark.parametrize(
    ("source", "package", "extra"),
    [("mqtt://127.0.0.1:1/x", "paho", "mqtt"), ("opc.tcp://127.0.0.1:1", "asyncua", "opcua")],
)
def test_a_missing_extra_is_named(
    sluice: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    package: str,
    extra: str,
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Missing(package), *sys.meta_path])
    seen = sluice("watch", source, *judged_by(folder))
    assert (seen.code, seen.out) == (2, "")
    assert f"pip install 'sluice-fl[{extra}]'" in seen.err


class _Missing:
    """Finds nothing of one package, as if it were not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, *_: object) -> None:
        if name.split(".", maxsplit=1)[0] == self._package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_the_state_is_not_an_input(sluice: Run, folder: Path) -> None:
    rules = folder / "rules.json"
    seen = sluice("watch", folder / "later.csv", "--rules", rules, "--state", rules)
    assert seen.code == 2
    assert "is an input of this command" in seen.err
    assert command.watch.__doc__
