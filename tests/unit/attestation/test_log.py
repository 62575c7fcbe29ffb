"""The log: chained, crash-safe, verified offline, and one log for everybody."""

import fcntl
import os
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.attestation.log import ledger
from sluice.attestation.log.chain import Log, LogReader, mend, read_log
from sluice.attestation.log.entries import (
    BatchAttested,
    Entry,
    KeyRotated,
    LogOpened,
    ModelAggregated,
    PledgesClosed,
    RoundAbandoned,
    RoundOpened,
    entry_digest,
)
from sluice.attestation.log.heads import HEADS, Head, refuse_fork
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages.orders import rotate
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.protocol.coordinator import ProtocolCoordinator
from sluice.errors import DocumentError, SettingError, VerificationError

from .conftest import NOW, PlantRun, World, copied, later

DEADLINE = "2026-05-01T13:00:00.000000Z"


def refused(step: str, words: str = "") -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step {step}: .*{words}")


def lines(world: World) -> list[bytes]:
    """The entries of the log, then its signed head."""
    return world.path.read_bytes().splitlines()


def test_a_log_says_the_same_when_it_is_read_again(run: PlantRun) -> None:
    run.received.attest(run.proof, at=NOW)
    again = read_log(run.world.path)
    assert again.size == run.world.ledger.size == 4
    assert again.head("x") == run.world.ledger.head("x")
    assert again.client("north", step="1") == run.world.ledger.client("north", step="1")
    assert again.attestation(run.committed.message.content.commitment) == run.proven.attestation
    reopened = Log.open(run.world.path, run.world.coordinator)
    reopened.append(RoundOpened(round=1, model="0" * 64, deadline="2026-05-01T13:00:00.000000Z"),
                    at=NOW)  # fmt: skip
    assert read_log(run.world.path).size == 5


@pytest.mark.parametrize("index", range(4))
def test_a_changed_entry_is_found(run: PlantRun, index: int) -> None:
    run.received.attest(run.proof, at=NOW)
    entries = lines(run.world)
    entries[index] = entries[index].replace(b"2026-05-01T12:00", b"2026-05-01T12:01")
    run.world.path.write_bytes(b"\n".join(entries) + b"\n")
    why = f"entry {index + 1} does not follow" if index < 3 else "entries are missing or forged"
    with refused("7", why):
        read_log(run.world.path)


def test_entries_left_out_swapped_or_doubled_are_found(run: PlantRun) -> None:
    entries = lines(run.world)
    for wrong in (
        [entries[0], *entries[2:]],
        [entries[0], entries[2], entries[1], entries[3]],
        [entries[0], entries[1], entries[1], *entries[2:]],
        entries[1:],
    ):
        run.world.path.write_bytes(b"\n".join(wrong) + b"\n")
        with refused("7"):
            read_log(run.world.path)


def test_lines_in_a_second_spelling_are_found(run: PlantRun) -> None:
    entries = lines(run.world)
    entries[2] = entries[2].replace(b'"index":2', b'"index": 2')
    run.world.path.write_bytes(b"\n".join(entries) + b"\n")
    with refused("7", "entry 2: .*canonical"):
        read_log(run.world.path)


def test_entries_of_unknown_kind_and_overlong_lines_are_found(world: World) -> None:
    raw = world.path.read_bytes()
    world.path.write_bytes(raw.replace(b'"kind":"opened"', b'"kind":"shut"'))
    with refused("7", "entry 0: .*not well formed"):
        read_log(world.path)
    world.path.write_bytes(b"x" * 140_000)
    with refused("7", "more than 131,072 bytes"):
        read_log(world.path)
    world.path.write_bytes(b"")
    with refused("7", "is empty"):
        read_log(world.path)
    with pytest.raises(SettingError, match="cannot be read"):
        read_log(world.path.with_name("nowhere"))


@pytest.mark.parametrize("kept", [1, 10, -1])
def test_a_torn_last_line_is_reported_and_put_aside(run: PlantRun, kept: int) -> None:
    path = run.world.path
    whole = path.read_bytes()
    last = lines(run.world)[2] + b"\n"
    torn = whole[: whole.index(last)] + last[:kept]
    path.write_bytes(torn)
    with refused("7", "torn"):
        read_log(path)
    with refused("7", "torn"):
        Log.open(path, run.world.coordinator)
    assert path.read_bytes() == torn  # nothing was dropped by looking
    aside = mend(path, run.world.coordinator)
    assert aside is not None
    assert aside.read_bytes() == last[:kept]
    log = Log.open(path, run.world.coordinator)
    assert log.ledger.size == read_log(path).size == 2
    assert mend(path, run.world.coordinator) is None


def test_the_message_of_a_torn_line_can_come_again(run: PlantRun) -> None:
    path, world = run.world.path, run.world
    torn = b"\n".join(lines(world)[:3])[:-5]
    path.write_bytes(torn)
    mend(path, world.coordinator)
    world.log = Log.open(path, world.coordinator)
    agreement = run.enrolled.agreement
    enrolled = ProtocolCoordinator(log=world.log).enrolled(run.plant.client, agreement)
    enrolled.receive(run.commit, at=later(1))
    assert read_log(path).size == 3


def test_a_full_disk_leaves_the_log_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = world.path.read_bytes()
    write = os.pwrite
    body = RoundOpened(round=1, model="0" * 64, deadline="2026-05-01T13:00:00.000000Z")

    def full(handle: int, data: bytes, at: int) -> int:
        if bytes(data).startswith(b'{"body":'):
            write(handle, bytes(data)[:40], at)
            raise OSError(28, "No space left on device")
        return write(handle, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SettingError, match="No space left"):
        world.log.append(body, at=NOW)
    monkeypatch.undo()
    assert world.path.read_bytes() == before
    world.log.append(body, at=NOW)
    assert read_log(world.path).size == 2


def test_an_append_is_on_the_disk_before_it_is_believed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    world.enrol(world.plant())
    assert len(synced) == 1


def test_a_new_log_and_a_mended_one_are_on_the_disk_too(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    closed: list[int] = []
    close = os.close

    def closing(handle: int) -> None:
        closed.append(handle)
        close(handle)

    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(os, "close", closing)
    opened = LogOpened(federation="water", coordinator=world.coordinator.public, approvers=())
    Log.create(tmp_path / "new", opened, world.coordinator, at=NOW)
    assert (len(synced), len(closed)) == (2, 3)  # the folder and the line; touched, too
    with world.path.open("ab") as log:
        log.write(b"half an entry")
    mend(world.path, world.coordinator)
    assert len(synced) == 5  # what was put aside, the folder, the log


def test_a_writer_waits_for_the_other(world: World) -> None:
    body = RoundOpened(round=1, model="0" * 64, deadline="2026-05-01T13:00:00.000000Z")
    with world.path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = threading.Thread(target=world.log.append, args=(body,), kwargs={"at": NOW})
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        fcntl.flock(held, fcntl.LOCK_UN)
        waiting.join(10)
    assert read_log(world.path).size == 2


def test_two_writers_do_not_fork_a_log(world: World) -> None:
    other = Log.open(world.path, world.coordinator)
    body = RoundOpened(round=1, model="0" * 64, deadline="2026-05-01T13:00:00.000000Z")
    world.log.append(body, at=NOW)
    with refused("6", "round 1 cannot follow round 1"):
        other.append(body, at=NOW)
    other.append(PledgesClosed(round=1), at=NOW)
    world.log.append(ModelAggregated(round=1, model="1" * 64, clients=()), at=NOW)
    assert read_log(world.path).size == 4
    world.path.write_bytes(b"".join(world.path.read_bytes().splitlines(keepends=True)[:2]))
    with refused("7", "truncated, rewritten or restored from an older copy"):
        world.log.append(PledgesClosed(round=1), at=NOW)


def test_a_log_that_was_emptied_is_not_written_to(world: World) -> None:
    world.path.write_bytes(b"")
    with refused("7", "truncated, rewritten or restored from an older copy"):
        world.protocol.open_round("0" * 64, later(60), at=NOW)
    assert world.path.read_bytes() == b""


def test_a_log_is_read_before_its_first_append(world: World) -> None:
    unread = Log(world.path, world.coordinator)
    unread.append(RoundOpened(round=1, model="0" * 64, deadline=DEADLINE), at=NOW)
    assert read_log(world.path).size == unread.ledger.size == 2


def test_a_log_is_its_coordinators(world: World, tmp_path: Path) -> None:
    stranger = SigningKey.generate()
    with pytest.raises(SettingError, match="belongs to another coordinator"):
        Log.open(world.path, stranger)
    opened = LogOpened(federation="water", coordinator=world.coordinator.public, approvers=())
    with pytest.raises(SettingError, match="with the key that it names"):
        Log.create(tmp_path / "other", opened, stranger, at=NOW)
    with pytest.raises(SettingError, match="cannot create the log"):
        Log.create(world.path, opened, world.coordinator, at=NOW)
    with refused("7", "and no other, must open it"):
        world.log.append(opened, at=NOW)


def test_what_could_not_be_read_is_not_written(world: World) -> None:
    before = world.path.read_bytes()
    body = RoundOpened(round=1, model="no hash", deadline="2026-05-01T13:00:00.000000Z")
    with pytest.raises(DocumentError, match="model"):
        world.log.append(body, at=NOW)
    assert world.path.read_bytes() == before


# -- heads ----------------------------------------------------------------------------------------


def test_plants_countersign_the_head(run: PlantRun) -> None:
    world = run.world
    head = sign(world.ledger.head("north"), run.plant.key)
    world.protocol.countersign(HEADS.write(head), at=NOW)
    assert read_log(world.path).size == 4
    for wrong in (
        sign(replace(head.content, last="1" * 64), run.plant.key),
        sign(replace(head.content, size=99), run.plant.key),
        sign(replace(head.content, federation="power"), run.plant.key),
        sign(head.content, SigningKey.generate()),
        sign(replace(head.content, signer="south"), run.plant.key),
    ):
        with refused("7"):
            world.protocol.countersign(HEADS.write(wrong), at=NOW)
    with refused("7"):
        world.protocol.countersign(HEADS.write(head) + b" ", at=NOW)


def test_a_head_that_is_too_old_is_not_countersigned(
    run: PlantRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger keeps the digests of the last entries only, so that it does not grow with them."""
    monkeypatch.setattr(ledger, "RECENT", 4)
    world = run.world
    heads = {world.ledger.size: world.ledger.head("north")}
    for number in range(1, 8):
        world.protocol.open_round("0" * 64, later(60), at=NOW)
        world.log.append(RoundAbandoned(round=number), at=NOW)
        heads[world.ledger.size] = world.ledger.head("north")
        again = read_log(world.path)
        assert len(again.state.recent) <= 8
        for size, head in heads.items():
            if world.ledger.size - size < 4:
                assert again.head("north", size=size) == head
            else:
                with refused("7", f"the head of {size} entries is too old"):
                    again.head("north", size=size)
    old = HEADS.write(sign(heads[3], run.plant.key))
    with refused("7", "too old"):
        world.protocol.countersign(old, at=NOW)
    assert world.ledger.head("north", size=0).last == "0" * 64


def test_a_coordinator_that_shows_two_logs_is_found_out(world: World, tmp_path: Path) -> None:
    """Both plants are enrolled; then one half of the log is hidden from each."""
    copy = tmp_path / "other.jsonl"
    copy.write_bytes(world.path.read_bytes())
    for_north, for_south = world.log, Log.open(copy, world.coordinator)
    one = RoundOpened(round=1, model="1" * 64, deadline="2026-05-01T13:00:00.000000Z")
    for_north.append(one, at=NOW)
    for_south.append(replace(one, model="2" * 64), at=NOW)
    north, south = for_north.signed_head(), for_south.signed_head()
    for head in (north, south):
        head.verify(world.coordinator.public, step="7")  # the coordinator cannot deny either
    with refused("7", "forked"):
        refuse_fork(north.content, south.content)
    refuse_fork(north.content, north.content)
    with refused("7", "two federations"):
        refuse_fork(north.content, replace(south.content, federation="power"))


# -- the signed head ------------------------------------------------------------------------------


def test_a_truncated_log_is_refused(run: PlantRun) -> None:
    *entries, head = lines(run.world)
    for kept in range(1, len(entries)):
        for wrong, why in (
            ([*entries[:kept], head], "entries are missing or forged"),
            (entries[:kept], "without the coordinator's signed head"),
        ):
            run.world.path.write_bytes(b"\n".join(wrong) + b"\n")
            with refused("7", why):
                read_log(run.world.path)
            with refused("7", why):
                Log.open(run.world.path, run.world.coordinator)
    run.world.path.write_bytes(b"\n".join(entries) + b"\n")
    with refused("7", f"ends after entry {len(entries) - 1} without the coordinator's signed head"):
        read_log(run.world.path)


def test_a_log_whose_last_entry_was_forged_is_refused(run: PlantRun, tmp_path: Path) -> None:
    """A party that can write the file adds an attestation, which needs no plant's signature."""
    path, size = run.world.path, run.world.ledger.size
    forger = copied(run.world, tmp_path / "forged.jsonl")
    commitment = run.committed.message.content.commitment
    forger.append(
        BatchAttested(client="north", commitment=commitment, attestation="1" * 64), at=NOW
    )
    forged = (tmp_path / "forged.jsonl").read_bytes().splitlines()
    thief = SigningKey.generate()
    signed = sign(forger.ledger.head("coordinator"), thief)
    for head, why in (
        (lines(run.world)[-1], "entries are missing or forged"),
        (HEADS.write(signed), "signature of the head"),
        (
            HEADS.write(sign(forger.ledger.head("north"), run.world.coordinator)),
            "missing or forged",
        ),
        (b"{}", "not well formed"),
        (b"", "without the coordinator's signed head"),
    ):
        path.write_bytes(b"\n".join([*forged[: size + 1], head]) + b"\n")
        with refused("7", why):
            read_log(path)
        with refused("7", why):
            run.world.log.append(RoundOpened(round=1, model="0" * 64, deadline=DEADLINE), at=NOW)


def test_an_entry_with_another_number_is_refused(world: World) -> None:
    """The coordinator numbers an entry as it likes, and signs the log."""
    world.protocol.open_round("0" * 64, later(60), at=NOW)
    first, second, _ = lines(world)
    forged = second.replace(b'"index":1', b'"index":5')
    content = Head(federation="water", signer="coordinator", size=2, last=entry_digest(forged))
    head = HEADS.write(sign(content, world.coordinator))
    world.path.write_bytes(b"\n".join([first, forged, head]) + b"\n")
    with refused("7", "entry 5 does not follow entry 0"):
        read_log(world.path)


def test_bytes_after_the_head_are_refused(run: PlantRun) -> None:
    whole = run.world.path.read_bytes()
    last = whole.splitlines()[-1] + b"\n"
    for more, why in ((last, "bytes follow"), (b"\n", "bytes follow"), (b" ", "torn"),
                      (whole.splitlines()[0] + b"\n", "bytes follow")):  # fmt: skip
        run.world.path.write_bytes(whole + more)
        with refused("7", why):
            read_log(run.world.path)


def test_blank_lines_are_refused(run: PlantRun) -> None:
    entries = lines(run.world)
    for at in range(len(entries) + 1):
        run.world.path.write_bytes(b"\n".join([*entries[:at], b"", *entries[at:]]) + b"\n")
        with refused("7"):
            read_log(run.world.path)


def test_a_reader_notices_a_log_that_was_cut_or_rewritten(run: PlantRun, tmp_path: Path) -> None:
    path, log = run.world.path, run.world.log
    older = path.read_bytes()
    other = copied(run.world, tmp_path / "other.jsonl")
    body = RoundOpened(round=1, model="0" * 64, deadline=DEADLINE)
    log.append(body, at=NOW)
    reader = LogReader(path)
    assert reader.catch_up().size == 4
    other.append(replace(body, model="1" * 64), at=NOW)
    newer = path.read_bytes()
    ends = newer.rindex(b"\n", 0, -1)
    joined = newer[:ends] + b" " + newer[ends + 1 :]
    for wrong in (older, (tmp_path / "other.jsonl").read_bytes(), b"", newer[:-400], joined):
        path.write_bytes(wrong)
        with refused("7", "does not have entry 3 any more"):
            reader.catch_up()
    path.write_bytes(newer)
    assert reader.catch_up().size == 4


def test_a_reader_verifies_only_new_entries(run: PlantRun, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = LogReader(run.world.path)
    reader.catch_up()
    run.world.protocol.open_round("0" * 64, later(60), at=NOW)
    checked: list[int] = []
    check = Ledger.check

    def counted(self: Ledger, entry: Entry) -> None:
        checked.append(entry.index)
        check(self, entry)

    monkeypatch.setattr(Ledger, "check", counted)
    assert reader.catch_up().state == run.world.ledger.state
    assert reader.catch_up().size == 4
    assert checked == [3]


def test_a_log_of_another_protocol_version_is_refused(world: World) -> None:
    raw = world.path.read_bytes()
    world.path.write_bytes(raw.replace(b'"protocol":2', b'"protocol":1', 1))
    with refused("7", "entry 0: .*not well formed"):
        read_log(world.path)


# -- crashes --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


def test_a_coordinator_killed_while_it_writes_goes_on_from_whole_entries(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever part of the bytes is on disk, `mend` leaves a log that verifies."""
    body = RoundOpened(round=1, model="0" * 64, deadline=DEADLINE)
    whole, write = world.path.read_bytes(), os.pwrite
    sizes = []
    for count in range(0, 2_000, 7):
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(whole)
        log = Log.open(path, world.coordinator)

        def partly(handle: int, data: bytes, at: int, count: int = count) -> int:
            if count < len(data):
                write(handle, bytes(data)[:count], at)
                raise Killed
            return write(handle, data, at)

        with monkeypatch.context() as dying:
            dying.setattr(os, "pwrite", partly)
            with suppress(Killed):
                log.append(body, at=NOW)
        mend(path, world.coordinator)
        sizes.append(read_log(path).size)
        again = Log.open(path, world.coordinator)
        if again.ledger.size == 1:
            again.append(body, at=NOW)
        assert read_log(path).head("x") == again.ledger.head("x")
    assert sizes == sorted(sizes)
    assert set(sizes) == {1, 2}


def test_a_log_is_mended_twice_at_the_same_place(run: PlantRun) -> None:
    path, key = run.world.path, run.world.coordinator
    whole = path.read_bytes()
    kept = [b"half an entry", b"half of the next one", b"and of a third"]
    names = []
    for torn in kept:
        path.write_bytes(whole + torn)
        aside = mend(path, key)
        assert aside is not None
        names.append(aside.name)
        assert aside.read_bytes() == torn
        assert path.read_bytes() == whole
    assert len(set(names)) == 3


def test_a_whole_log_is_not_changed_by_mending(run: PlantRun) -> None:
    before = run.world.path.read_bytes()
    assert mend(run.world.path, run.world.coordinator) is None
    assert run.world.path.read_bytes() == before


def test_only_the_coordinator_mends_its_log(run: PlantRun) -> None:
    *entries, _ = lines(run.world)
    run.world.path.write_bytes(b"\n".join(entries) + b"\n")
    with pytest.raises(SettingError, match="belongs to another coordinator"):
        mend(run.world.path, run.plant.key)
    with refused("7", "without the coordinator's signed head"):
        read_log(run.world.path)
    mend(run.world.path, run.world.coordinator)
    assert read_log(run.world.path).size == 3


def test_forged_entries_are_not_mended(run: PlantRun) -> None:
    """`mend` signs again what a crash left, not what fails a check or has another signature."""
    *entries, head = lines(run.world)
    forged = HEADS.write(sign(run.world.ledger.head("coordinator"), SigningKey.generate()))
    for wrong in (
        [entries[0], entries[2]],
        [*entries[:-1], head],
        [*entries, forged],
        [*entries, head, head],
        [*entries, b""],
    ):
        run.world.path.write_bytes(b"\n".join(wrong) + b"\n")
        with refused("7"):
            mend(run.world.path, run.world.coordinator)


def test_a_key_that_was_rotated_by_another_process_signs_nothing(world: World) -> None:
    """A service with the old key would write a log that does not verify."""
    other = Log.open(world.path, world.coordinator)
    new = SigningKey.generate()
    other.rotate(new, at=NOW)
    before = world.path.read_bytes()
    with pytest.raises(SettingError, match="does not sign the log .* any more"):
        world.protocol.open_round("0" * 64, later(60), at=NOW)
    assert world.path.read_bytes() == before
    with pytest.raises(SettingError, match="belongs to another coordinator"):
        Log.open(world.path, world.coordinator)
    with pytest.raises(SettingError, match="belongs to another coordinator"):
        mend(world.path, world.coordinator)
    Log.open(world.path, new).append(
        RoundOpened(round=1, model="0" * 64, deadline=DEADLINE), at=NOW
    )
    assert read_log(world.path).size == 3


def test_the_coordinators_key_is_rotated_only_by_a_log_that_has_the_new_one(world: World) -> None:
    new = SigningKey.generate()
    signed = rotate("water", world.coordinator, new)
    before = world.path.read_bytes()
    with pytest.raises(SettingError, match="does not sign the log"):
        world.log.append(KeyRotated(signed=signed), at=NOW)
    assert world.path.read_bytes() == before
    world.log.rotate(new, at=NOW)
    assert read_log(world.path).coordinator == new.public
