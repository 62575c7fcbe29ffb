"""Runs that are killed lose the work in flight and nothing else; one cell's trouble is its own."""

import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from sluice.lab.results.reading import GridState, stored_cells
from sluice.lab.results.store import ResultStore

PROGRAM = Path(__file__).with_name("fake_grid.py")
ROOM = 150_000


def started(folder: Path, *told: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(PROGRAM), str(folder), *told])


def started_with_little_room(folder: Path, *told: str) -> subprocess.Popen[bytes]:
    """No file may grow past this: to SQLite that is a full disk."""
    program = (
        f"import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({ROOM},) * 2);"
        f"sys.argv = {[str(PROGRAM), str(folder), *told]!r};"
        f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
    )
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)


def runs(folder: Path) -> Counter[str]:
    log = folder / "log"
    return Counter(log.read_text().split() if log.exists() else [])


def test_a_run_that_is_killed_goes_on_to_the_same_bytes_and_reruns_only_what_was_in_flight(
    tmp_path: Path,
) -> None:
    works = " ".join(["ok"] * 30)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    undisturbed = started(whole, "make", works)
    first = started(killed, "make", works)
    assert undisturbed.wait(300) == 0
    kills = 2
    for kill in range(kills):
        wanted = 8 * (kill + 1)
        until = time.monotonic() + 120
        while sum(runs(killed).values()) < wanted:
            assert time.monotonic() < until
            time.sleep(0.01)
        first.kill()
        first.wait()
        first = started(killed, "resume")
    assert first.wait(300) == 0
    assert (killed / "cells.parquet").read_bytes() == (whole / "cells.parquet").read_bytes()
    assert all(count == 1 for count in runs(whole).values())
    again = sum(count - 1 for count in runs(killed).values())
    assert set(runs(killed)) == {str(at) for at in range(30)}
    assert again <= 2 * kills  # two workers, so at most two running at each kill
    assert not list((killed / "owners").iterdir())


def test_a_failing_cell_keeps_its_reason_and_the_others_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    assert started(folder, "make", "ok unable bug die die-once ok").wait(300) == 0
    cells = stored_cells(ResultStore(folder))
    assert [cell.state for cell in cells] == [
        GridState.DONE,
        GridState.FAILED,
        GridState.FAILED,
        GridState.FAILED,
        GridState.DONE,
        GridState.DONE,
    ]
    assert cells[1].reason == "the record is too short"
    assert cells[2].reason == "a bug in Sluice: ZeroDivisionError: by zero"
    assert cells[3].reason is not None
    assert (
        "killed by SIGKILL, perhaps because memory ran out, at each of 3 attempts"
        in cells[3].reason
    )
    assert (runs(folder)["3"], runs(folder)["4"], runs(folder)["1"]) == (3, 2, 1)


def test_a_disk_that_fills_up_stops_a_run_in_one_sentence_and_room_lets_it_go_on(
    tmp_path: Path,
) -> None:
    works = " ".join(["ok"] * 20)
    whole, short = tmp_path / "whole", tmp_path / "short"
    undisturbed, stopped = (
        started(whole, "make", works),
        started_with_little_room(short, "make", works),
    )
    _, told = stopped.communicate(timeout=300)
    assert stopped.returncode == 1
    assert b"is full or fails; free some space, then continue with 'sluice lab resume" in told
    kept = sqlite3.connect(short / "cells.sqlite")
    assert kept.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    done = kept.execute("SELECT count(*) FROM works WHERE state = 'done'").fetchone()[0]
    kept.close()
    assert 0 < done < 20
    assert started(short, "resume").wait(300) == 0
    assert undisturbed.wait(300) == 0
    assert (short / "cells.parquet").read_bytes() == (whole / "cells.parquet").read_bytes()
