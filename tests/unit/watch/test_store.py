"""The state survives restarts, belongs to one watch, and bounds what waits."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.watch import store as store_module
from sluice.watch.rows import StreamRows
from sluice.watch.store import Outgoing, Store, StoredAlarm

Event = tuple[Outgoing, StoredAlarm, tuple[str, ...]]


def event(key: str, *sinks: str) -> Event:
    return (
        Outgoing(number=0, key=key, alarm="a", content=f'{{"key": "{key}"}}'),
        StoredAlarm(id="a", start=1, content="{}"),
        sinks,
    )


def rows(*times: int, position: str = "") -> StreamRows:
    return StreamRows(
        times=np.array(times, np.int64),
        values=np.array([[float(t), np.nan] for t in times]).reshape(-1, 2),
        position=position,
    )


def test_a_new_state_is_empty(tmp_path: Path) -> None:
    assert Store(tmp_path / "s.db", identity="x").load() is None


def test_rows_position_and_events_are_kept_together(tmp_path: Path) -> None:
    first = Store(tmp_path / "s.db", identity="x")
    first.commit(rows(1, 2, position="here"), [event("k", "one", "two")])
    first.close()
    again = Store(tmp_path / "s.db", identity="x")
    saved = again.load()
    assert saved is not None
    assert (saved.text, saved.position) == ("", "here")
    assert saved.journal[0].times.tolist() == [1, 2]
    assert np.isnan(saved.journal[0].values[:, 1]).all()
    assert [waiting.key for waiting in again.waiting("two")] == ["k"]
    assert again.waiting("three") == ()


def test_memory_replaces_the_rows_before_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db", identity="x")
    store.commit(rows(1, position="p"), [])
    store.remember(b"memory", "text")
    store.commit(rows(2), [])
    saved = store.load()
    assert saved is not None
    assert (saved.rows, saved.text, saved.position) == (b"memory", "text", "p")
    assert [part.times.tolist() for part in saved.journal] == [[2]]


def test_an_event_is_added_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db", identity="x")
    store.commit(rows(), [event("k", "one")])
    (waiting,) = store.waiting("one")
    store.delivered("one", waiting.number)
    store.commit(rows(), [event("k", "one")])
    assert store.waiting("one") == ()
    assert store.waits("one") == 0


def test_what_waits_for_a_dead_sink_is_bounded_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MOST_WAITING", 3)
    store = Store(tmp_path / "s.db", identity="x")
    store.commit(rows(), [event(str(n), "one") for n in range(5)])
    assert [waiting.key for waiting in store.waiting("one")] == ["2", "3", "4"]
    assert store.dropped == 2


def test_the_state_of_other_rules_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "s.db", identity="x").close()
    with pytest.raises(SettingError, match="other rules, another model or other settings"):
        Store(tmp_path / "s.db", identity="y")


def test_a_file_that_is_no_state_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but longer than a header of one hundred bytes " * 4)
    before = path.read_bytes()
    with pytest.raises(SettingError, match="cannot be used: file is not a database"):
        Store(path, identity="x")
    assert path.read_bytes() == before


def test_a_state_of_another_schema_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "s.db", identity="x").close()
    with sqlite3.connect(tmp_path / "s.db") as base:
        base.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    base.close()
    with pytest.raises(SettingError, match="has schema 99; this Sluice writes 1"):
        Store(tmp_path / "s.db", identity="x")


def test_two_watches_on_one_state_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db", identity="x")
    second = (
        "import sys; from pathlib import Path; from sluice.watch.store import Store; "
        "Store(Path(sys.argv[1]), identity='x')"
    )
    done = subprocess.run(
        [sys.executable, "-c", second, str(tmp_path / "s.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "another 'sluice watch' uses the state" in done.stderr
    store.close()


def test_the_state_is_private(tmp_path: Path) -> None:
    Store(tmp_path / "s.db", identity="x").close()
    assert (tmp_path / "s.db").stat().st_mode & 0o777 == 0o600
