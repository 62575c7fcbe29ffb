"""The result store: leases, one transaction per result, and readable errors."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from sluice.errors import ResultsError
from sluice.lab.results.audited import load_audits
from sluice.lab.results.cell import Asked, CellResult, Score
from sluice.lab.results.export import export
from sluice.lab.results.federations import TrainedFederation
from sluice.lab.results.owner import Owner, gone
from sluice.lab.results.provenance import Provenance, provenance
from sluice.lab.results.reading import GridState, stored_cells, under_way
from sluice.lab.results.store import FILE, ResultStore
from sluice.lab.results.work import GridFacts, Made, WorkRow

MAKER = Provenance(version="1", commit="c", code="k", environment="e")
SCORE = Score(
    targeted_recall=0.1 + 0.2,
    untargeted_recall=None,
    targeted_auc_pr=0.5,
    precision=None,
    recall=1 / 3,
    f1=0.4,
    auc_pr=0.5,
    oracle_best_f1=0.6,
    detected_attacks=2.0,
    attacks=3,
    median_delay_s=60.0,
    false_alarms_per_day=0.0,
    etaf1=0.1,
    influence={"plant-0": 0.7, "plant-1": 0.3},
    passed={"plant-0": 1.0, "plant-1": 1.0},
)
RESULT = CellResult(
    mode="gated",
    attack="replay",
    rule="fedavg",
    seed=0,
    admitted=("plant-0", "plant-1"),
    refused={"plant-2": ("3 of 9 rows break a rule", "the level stands still")},
    liars=("plant-1", "plant-2"),
    score=SCORE,
)
MADE = Made(result=RESULT, federation="f", recalled=False, wall_s=1.5)


def asked(seed: int, *, mode: str = "gated") -> Asked:
    return Asked(
        study="removal",
        record="tanks",
        stand_in=None,
        clients=3,
        liars=2,
        rule="fedavg",
        attack="replay",
        mode=mode,
        invariants="paper-wide",
        seed=seed,
    )


def filled(folder: Path, works: int = 4) -> ResultStore:
    """A store in which each piece of work serves two cells, and layouts have two pieces each."""
    rows = [
        WorkRow(
            id=f"w{at}",
            layout=f"layout {at // 2}",
            rule="fedavg",
            settings="{}",
            cells=((2 * at, asked(at)), (2 * at + 1, asked(at, mode="clean"))),
        )
        for at in range(works)
    ]
    return ResultStore.create(folder, GridFacts(name="small", stand_ins=("a for b",)), rows)


def test_work_is_claimed_once_kept_and_counted(tmp_path: Path) -> None:
    store = filled(tmp_path)
    claim = store.claim("me", now=0, lease_s=60)
    assert claim is not None
    assert claim.id == "w0"
    assert under_way(store) == (asked(0),)
    assert store.finish(claim, "me", MADE, made_by=MAKER, now=1)
    counts = store.counts()
    assert (counts.cells, counts.cells_done, counts.done, counts.waiting) == (8, 2, 1, 3)
    first = stored_cells(store)[0]
    assert first.state is GridState.DONE
    assert first.result == RESULT
    assert first.made_by == MAKER
    assert store.scores("layout 0", "fedavg") == {"f": SCORE}
    assert store.scores("layout 1", "fedavg") == {}
    assert store.facts() == GridFacts(name="small", stand_ins=("a for b",))


def test_a_worker_stays_with_its_layout_and_others_begin_another(tmp_path: Path) -> None:
    store = filled(tmp_path)
    taken = [
        store.claim("a", now=0, lease_s=60),
        store.claim("b", now=0, lease_s=60),
        store.claim("b", now=0, lease_s=60, prefer="layout 1"),
        store.claim("a", now=0, lease_s=60, prefer="layout 0"),
        store.claim("a", now=0, lease_s=60, prefer="layout 0"),
    ]
    assert [claim and claim.id for claim in taken] == ["w0", "w2", "w3", "w1", None]


def test_two_workers_never_hold_one_piece_of_work(tmp_path: Path) -> None:
    filled(tmp_path, works=60).close()

    def work(name: str) -> list[str]:
        store, held = ResultStore(tmp_path), []
        while claim := store.claim(name, now=0, lease_s=60):
            held.append(claim.id)
        store.close()
        return held

    with ThreadPoolExecutor(4) as pool:
        held = [name for found in pool.map(work, "abcd") for name in found]
    assert Counter(held) == Counter(f"w{at}" for at in range(60))


def test_a_lease_that_ran_out_is_somebody_elses_and_the_late_result_is_dropped(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path, works=1)
    first = store.claim("a", now=0, lease_s=60)
    assert first is not None
    assert store.claim("b", now=59, lease_s=60) is None
    store.renew("a", now=59, lease_s=60)
    assert store.claim("b", now=61, lease_s=60) is None
    second = store.claim("b", now=120, lease_s=60)
    assert second is not None
    assert second.attempt == 2
    assert not store.finish(first, "a", MADE, made_by=MAKER, now=121)
    assert not store.fail(first, "a", "too late", made_by=MAKER, now=121)
    assert store.finish(second, "b", MADE, made_by=MAKER, now=122)


def test_a_failure_keeps_its_reason_until_it_is_tried_again(tmp_path: Path) -> None:
    store = filled(tmp_path, works=1)
    claim = store.claim("a", now=0, lease_s=60)
    assert claim is not None
    store.fail(claim, "a", "record 'tanks' has no channel", made_by=MAKER, now=1)
    assert store.claim("a", now=1e9, lease_s=60) is None
    assert stored_cells(store)[0].reason == "record 'tanks' has no channel"
    assert store.counts().over
    assert store.retry_failed() == 1
    assert store.claim("a", now=2, lease_s=60) is not None


def test_what_the_killed_held_is_free_at_once_and_what_the_living_hold_is_not(
    tmp_path: Path,
) -> None:
    store = filled(tmp_path)
    script = (
        "import sys, time; from pathlib import Path\n"
        "from sluice.lab.results import Owner, ResultStore\n"
        "folder = Path(sys.argv[1]); owner = Owner(folder); store = ResultStore(folder)\n"
        "store.claim(owner.name, now=time.time(), lease_s=3600); print(owner.name, flush=True)\n"
        "time.sleep(60)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    name = other.stdout.readline().strip()
    with Owner(tmp_path) as me:
        store.claim(me.name, now=0, lease_s=60)
        assert store.release_the_dead() == 0
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        other.stdout.close()
        assert store.release_the_dead() == 1
        assert store.counts().running == 1
        assert not gone(tmp_path, me.name)
    assert gone(tmp_path, name)
    assert gone(tmp_path, me.name)
    assert not gone(tmp_path, "another-machine-1-ab")


def test_a_transaction_that_is_killed_leaves_nothing_half_done(tmp_path: Path) -> None:
    store = filled(tmp_path, works=1)
    store.close()
    script = (
        "import os, sqlite3, sys\n"
        "file = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "file.execute('BEGIN IMMEDIATE')\n"
        "file.execute(\"INSERT INTO federations VALUES ('f', 'l', 'r', 's')\")\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / FILE)], check=False)
    store = ResultStore(tmp_path)
    assert store.rows("SELECT * FROM federations") == []
    assert store.rows("PRAGMA integrity_check")[0][0] == "ok"
    assert store.claim("a", now=0, lease_s=60) is not None


def test_a_full_disk_is_told_in_a_sentence_and_corrupts_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path)
    claim = store.claim("a", now=0, lease_s=60)
    assert claim is not None
    pages = store.rows("PRAGMA page_count")[0][0]
    store._file.execute(f"PRAGMA max_page_count = {pages}")
    long = replace(RESULT, refused={"plant-2": ("x" * 200_000,)})
    with pytest.raises(
        ResultsError, match="is full or fails; free some space, then continue with 'sluice"
    ):
        store.finish(claim, "a", replace(MADE, result=long), made_by=MAKER, now=1)
    assert store.rows("PRAGMA integrity_check")[0][0] == "ok"
    assert store.counts().running == 1
    store._file.execute("PRAGMA max_page_count = 100000")
    assert store.finish(claim, "a", MADE, made_by=MAKER, now=2)


def test_a_locked_database_is_told_in_a_sentence(tmp_path: Path) -> None:
    filled(tmp_path).close()
    other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    store = ResultStore(tmp_path, patience_s=0.05)
    with pytest.raises(ResultsError, match="is locked by another program; close that program"):
        store.claim("a", now=0, lease_s=60)
    other.execute("ROLLBACK")
    other.close()
    assert store.claim("a", now=0, lease_s=60) is not None


def test_folders_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="holds no results"):
        ResultStore(tmp_path)
    filled(tmp_path).close()
    with pytest.raises(ResultsError, match="already holds results"):
        filled(tmp_path)
    (tmp_path / FILE).write_bytes(b"no database at all, and longer than a header" * 30)
    with pytest.raises(ResultsError, match="is damaged or not a results file"):
        ResultStore(tmp_path)
    newer = tmp_path / "newer"
    filled(newer)._file.execute("UPDATE facts SET value = '99' WHERE key = 'schema'")
    with pytest.raises(ResultsError, match="has schema 99"):
        ResultStore(newer)


def test_the_same_results_export_to_the_same_bytes_whenever_they_came(tmp_path: Path) -> None:
    files = []
    for name, order in (("a", (0, 1, 2)), ("b", (2, 0, 1))):
        store = filled(tmp_path / name, works=4)
        claims = [store.claim("me", now=0, lease_s=60) for _ in range(4)]
        for at in order:
            claim = claims[at]
            assert claim is not None
            made = replace(MADE, wall_s=time.time(), recalled=bool(at), federation=f"f{at}")
            store.finish(claim, "me", made, made_by=MAKER, now=time.time())
        assert claims[3] is not None
        store.fail(claims[3], "me", "no rules", made_by=MAKER, now=time.time())
        files.append(export(store, tmp_path / name))
    assert files[0].cells.read_bytes() == files[1].cells.read_bytes()
    assert files[0].times.read_bytes() != files[1].times.read_bytes()
    frame = pl.read_parquet(files[0].cells)
    assert frame["targeted_recall"][0] == 0.1 + 0.2
    assert frame["refused_because"][0].to_list() == [
        "3 of 9 rows break a rule; the level stands still"
    ]
    assert frame["influence_of_liars"][0] == 0.3
    assert frame["state"].to_list() == ["done"] * 6 + ["failed"] * 2
    assert frame["reason"][7] == "no rules"


def test_provenance_names_code_and_environment_alike_each_time() -> None:
    assert provenance() == provenance()
    assert len(provenance().code) == 32


def test_a_results_file_whose_table_is_an_endless_view_is_refused(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute("ALTER TABLE cells RENAME TO cells_before")
        base.execute(
            "CREATE VIEW cells AS WITH RECURSIVE n(at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n)"
            " SELECT at, 'asked' AS asked, 'w0' AS work FROM n"
        )
    with pytest.raises(ResultsError, match=f"{FILE} has views or triggers"):
        ResultStore(tmp_path, read_only=True)


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "{}"], ids=["deep", "torn", "other"])
def test_a_result_that_is_not_well_formed_is_damage(tmp_path: Path, text: str) -> None:
    filled(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as base:
        base.execute("UPDATE cells SET asked = ?", (text,))
    store = ResultStore(tmp_path, read_only=True)
    with pytest.raises(ResultsError, match=f"{FILE} is damaged: a result is not well formed"):
        stored_cells(store)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "audits.json is damaged"),
        (b"{" + b" " * (17 << 20), "audits file .*audits.json is too large"),
    ],
    ids=["deep", "large"],
)
def test_a_file_of_audits_that_explodes_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "audits.json").write_bytes(content)
    with pytest.raises(ResultsError, match=message):
        load_audits(tmp_path)


def test_work_whose_federation_was_trained_elsewhere_comes_first(tmp_path: Path) -> None:
    store = filled(tmp_path)
    elsewhere = TrainedFederation(
        federation="f",
        layout="layout 1",
        rule="fedavg",
        score=SCORE,
        made_by=MAKER,
        wall_s=1.0,
        ended=2.0,
        works=("w3", "of another grid"),
    )
    assert store.take_over([elsewhere]) == 1
    assert store.take_over([elsewhere]) == 0
    assert store.scores("layout 1", "fedavg") == {"f": SCORE}
    claims = [store.claim("me", now=0.0, lease_s=1.0, prefer="layout 0") for _ in range(2)]
    store.close()
    assert [claim.id for claim in claims if claim] == ["w3", "w0"]
