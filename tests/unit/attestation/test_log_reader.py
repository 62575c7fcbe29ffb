"""A reader that follows a log verifies each entry once, and notices any change to earlier ones."""

import fcntl
import threading
from pathlib import Path

import pytest

from sluice.attestation.log.chain import Log, LogReader, read_log
from sluice.attestation.log.entries import Entry, RoundOpened
from sluice.attestation.log.ledger import Ledger
from sluice.errors import SettingError, VerificationError

from .conftest import NOW, PlantRun


def opened(number: int) -> RoundOpened:
    return RoundOpened(round=number, model="0" * 64, deadline="2026-05-01T13:00:00.000000Z")


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The indices of the entries that were verified."""
    found: list[int] = []
    check = Ledger.check

    def counted(ledger: Ledger, entry: Entry) -> None:
        found.append(entry.index)
        check(ledger, entry)

    monkeypatch.setattr(Ledger, "check", counted)
    return found


@pytest.fixture
def path(run: PlantRun) -> Path:
    run.received.attest(run.proof, at=NOW)
    return run.world.path


def append(run: PlantRun) -> None:
    Log.open(run.world.path, run.world.coordinator).append(opened(1), at=NOW)


def test_only_new_entries_are_verified(run: PlantRun, path: Path, verified: list[int]) -> None:
    reader = LogReader(path)
    assert reader.catch_up().size == 4
    assert verified == [0, 1, 2, 3]
    verified.clear()
    reader.catch_up()
    assert verified == []
    append(run)
    verified.clear()
    ledger = reader.catch_up()
    assert verified == [4]
    assert ledger.head("x") == read_log(path).head("x")
    assert ledger is reader.ledger


@pytest.mark.parametrize("index", range(4))
def test_an_entry_that_was_changed_after_it_was_verified_is_noticed(
    run: PlantRun, path: Path, index: int
) -> None:
    reader = LogReader(path)
    reader.catch_up()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[index] = lines[index].replace(b"2026-05-01T12:00", b"2026-05-01T12:01")
    path.write_bytes(b"".join(lines))
    for _ in range(2):
        with pytest.raises(VerificationError, match=r"was rewritten: its first 4 entries"):
            reader.catch_up()
    assert reader.ledger.size == 4


def test_a_log_that_was_replaced_by_another_is_noticed(run: PlantRun, path: Path) -> None:
    reader = LogReader(path)
    reader.catch_up()
    raw = path.read_bytes()
    path.unlink()
    path.write_bytes(raw.replace(b"2026-05-01T12:00", b"2026-05-01T12:02"))
    with pytest.raises(VerificationError, match="was rewritten"):
        reader.catch_up()


def test_a_truncated_log_is_noticed(path: Path) -> None:
    reader = LogReader(path)
    reader.catch_up()
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    with pytest.raises(VerificationError, match="was truncated: it has .* bytes"):
        reader.catch_up()
    path.write_bytes(whole)
    assert reader.catch_up().size == 4


def test_a_torn_line_is_noticed_and_mended(path: Path) -> None:
    reader = LogReader(path)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"body":')
    with pytest.raises(VerificationError, match="is torn"):
        reader.catch_up()
    assert reader.ledger.size == 4
    path.write_bytes(whole)
    assert reader.catch_up().size == 4


def test_an_append_that_is_under_way_is_not_a_torn_line(run: PlantRun, path: Path) -> None:
    reader = LogReader(path)
    reader.catch_up()
    before = path.read_bytes()
    append(run)
    line = path.read_bytes()[len(before) :]
    path.write_bytes(before)
    with path.open("ab") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        writing.write(line[:20])
        writing.flush()
        sizes: list[int] = []
        polling = threading.Thread(target=lambda: sizes.append(reader.catch_up().size))
        polling.start()
        polling.join(timeout=0.2)
        assert polling.is_alive()  # it waits for the append
        writing.write(line[20:])
        writing.flush()
        fcntl.flock(writing, fcntl.LOCK_UN)
        polling.join(timeout=10)
    assert sizes == [5]


def test_an_empty_or_missing_log_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        LogReader(tmp_path / "log.jsonl").catch_up()
    (tmp_path / "log.jsonl").touch()
    with pytest.raises(VerificationError, match="is empty"):
        LogReader(tmp_path / "log.jsonl").catch_up()
