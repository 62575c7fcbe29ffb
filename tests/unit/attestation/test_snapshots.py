"""Snapshots: the same ledger as from the whole log, and only under the holder's own signature."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from sluice.attestation.log import chain, snapshots
from sluice.attestation.log.chain import Log, LogCopy, LogReader, read_log
from sluice.attestation.log.entries import Entry, PledgesClosed, RoundOpened
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.log.snapshots import LedgerSnapshot, load_snapshot, snapshot_path
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.signing import SigningKey
from sluice.errors import SettingError, VerificationError

from .conftest import NOW, World, later
from .eventful import KINDS, MODEL, write_every_kind


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The indices of the entries that a ledger checks from now on."""
    indices: list[int] = []
    check = Ledger.check

    def counted(self: Ledger, entry: Entry) -> None:
        indices.append(entry.index)
        check(self, entry)

    monkeypatch.setattr(Ledger, "check", counted)
    return indices


def kinds(path: Path) -> set[str]:
    *entries, _ = path.read_bytes().splitlines()
    return {json.loads(each)["body"]["kind"] for each in entries}


def key_of(log: Log) -> SigningKey:
    return log._key


def test_a_snapshot_after_any_entry_is_the_ledger_of_the_whole_log(world: World) -> None:
    for _ in write_every_kind(world):
        world.log.snapshot()
        snapshot = load_snapshot(world.path, key_of(world.log).public)
        assert snapshot is not None
        assert snapshot.state == world.ledger.state == read_log(world.path).state
    assert kinds(world.path) == KINDS


def test_a_ledger_goes_on_from_a_snapshot_as_from_the_whole_log(world: World) -> None:
    """Every entry is checked and noted by a ledger that came from the snapshot before it."""
    snapshot: LedgerSnapshot | None = None
    for _ in write_every_kind(world):
        if snapshot:
            assert snapshot.state.size < world.ledger.size
            reader = LogReader(world.path, snapshot=snapshot)
            assert reader.catch_up().state == world.ledger.state
        world.log.snapshot()
        snapshot = load_snapshot(world.path, key_of(world.log).public)
        assert snapshot is not None
    assert kinds(world.path) == KINDS


def test_a_snapshot_does_not_change_with_the_ledger(world: World) -> None:
    world.log.snapshot()
    path, key = world.path, world.coordinator.public
    snapshot = load_snapshot(path, key)
    assert snapshot is not None
    before = deepcopy(snapshot.state)
    world.protocol.open_round(MODEL, later(60), at=NOW)
    assert snapshot.state == before
    assert load_snapshot(path, key) == snapshot


def test_opening_after_a_snapshot_reads_only_the_tail(world: World, checked: list[int]) -> None:
    for _ in write_every_kind(world):
        pass
    key = key_of(world.log)
    world.log.snapshot()
    size = world.ledger.size
    world.log.append(_next_round(world), at=NOW)
    checked.clear()
    opened = Log.open(world.path, key)
    assert checked == [size]
    assert opened.ledger.state == world.ledger.state
    checked.clear()
    assert Log.open(world.path, key, replay=True).ledger.state == world.ledger.state
    assert checked == list(range(size + 1))


def _next_round(world: World) -> RoundOpened:
    rounds = world.ledger.rounds
    assert rounds.model is not None
    return RoundOpened(round=rounds.last + 1, model=rounds.model, deadline=instant(later(600)))


def test_a_snapshot_signed_by_another_key_is_ignored(world: World, checked: list[int]) -> None:
    """A thief of the folder, or of a key that was rotated, cannot say what the log has accepted."""
    stranger = SigningKey.generate()
    world.protocol.open_round(MODEL, later(60), at=NOW)
    forged = Log.open(world.path, world.coordinator)
    forged._key = stranger
    forged.ledger.state.approvers = [stranger.public]
    forged.snapshot()
    checked.clear()
    opened = Log.open(world.path, world.coordinator)
    assert checked == [0, 1]
    assert opened.ledger.state.approvers == [key.public for key in world.approvers]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"size":2', b'"size":1'),
        (b'"history":true', b'"history":false'),
        (b"\n", b""),
        (b'"length":', b'"length":1'),
    ],
    ids=["head", "state", "no line", "place"],
)
def test_a_snapshot_with_changed_bytes_is_ignored(
    world: World, checked: list[int], old: bytes, new: bytes
) -> None:
    world.protocol.open_round(MODEL, later(60), at=NOW)
    world.log.snapshot()
    path = snapshot_path(world.path)
    raw = path.read_bytes()
    assert old in raw
    path.write_bytes(raw.replace(old, new, 1))
    checked.clear()
    assert Log.open(world.path, world.coordinator).ledger.state == world.ledger.state
    assert checked == [0, 1]


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\n{}", b"{}\n" + b"[" * 5_000])
def test_a_file_that_is_no_snapshot_is_ignored(world: World, content: bytes) -> None:
    snapshot_path(world.path).write_bytes(content)
    assert Log.open(world.path, world.coordinator).ledger.size == 1


def test_a_snapshot_that_is_too_large_is_not_read(
    world: World, checked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.log.snapshot()
    size = snapshot_path(world.path).stat().st_size
    for largest, read in ((size, []), (size - 1, [0])):
        monkeypatch.setattr(snapshots, "LARGEST_SNAPSHOT", largest)
        checked.clear()
        Log.open(world.path, world.coordinator)
        assert checked == read


def test_a_copy_without_entries_has_no_snapshot(world: World, tmp_path: Path) -> None:
    copy = LogCopy(tmp_path / "copy.jsonl", SigningKey.generate(), world.coordinator.public)
    copy.snapshot()
    assert not snapshot_path(tmp_path / "copy.jsonl").exists()


def test_a_snapshot_of_a_longer_log_shows_that_the_log_was_cut(world: World) -> None:
    """Someone put back an older copy of the log, whole and signed, beside the newer snapshot."""
    older = world.path.read_bytes()
    world.protocol.open_round(MODEL, later(60), at=NOW)
    world.log.snapshot()
    world.path.write_bytes(older)
    read_log(world.path)
    with pytest.raises(VerificationError, match="truncated, rewritten or restored"):
        Log.open(world.path, world.coordinator)


def test_a_long_log_is_saved_now_and_then(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "SNAPSHOT_EVERY", 2)
    sizes = []
    for number in range(1, 4):
        world.protocol.open_round(MODEL, later(60), at=NOW)
        world.log.append(PledgesClosed(round=number), at=NOW)
        world.protocol.revealing(number).finish(MODEL, at=NOW)
        snapshot = load_snapshot(world.path, world.coordinator.public)
        assert snapshot is not None
        sizes.append(snapshot.state.size)
    assert sizes == [4, 6, 10]


def test_an_entry_is_written_although_its_snapshot_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk must not make the coordinator believe that an entry was not logged."""

    def full(*_: object) -> None:
        raise SettingError("cannot write log.jsonl.snapshot: No space left on device")

    monkeypatch.setattr(chain, "SNAPSHOT_EVERY", 1)
    monkeypatch.setattr(chain, "save_snapshot", full)
    world.protocol.open_round(MODEL, later(60), at=NOW)
    assert read_log(world.path).size == world.ledger.size == 2
