"""A plant's copy of the log: it grows page by page, and takes nothing that does not verify."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.attestation.log.chain import (
    Log,
    LogCopy,
    chained_lines,
    compare_logs,
    copy_log,
    lines_of,
    read_log,
)
from sluice.attestation.log.entries import PledgesClosed, RoundOpened, entry_digest
from sluice.attestation.log.heads import COORDINATOR, HEADS, Head
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.systems.system import Circuit
from sluice.errors import SettingError, VerificationError
from sluice.telemetry.record import Record

from .conftest import NOW, World, copied, later
from .eventful import MODEL, NEXT, write_every_kind

ALL = 1 << 30


def refused(words: str = "") -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step 7: .*{words}")


def entries(path: Path, start: int = 0) -> tuple[bytes, ...]:
    return lines_of(path, start=start, stop=ALL, largest=ALL)


def page(log: Log, start: int, stop: int) -> tuple[tuple[bytes, ...], bytes]:
    """Entries of the log and the head after them, as the coordinator shows them."""
    shown = entries(log._path)[:stop]
    head = Head(
        federation="water", signer=COORDINATOR, size=len(shown), last=entry_digest(shown[-1])
    )
    return shown[start:], HEADS.write(sign(head, log._key))


def whole(log: Log) -> tuple[tuple[bytes, ...], bytes]:
    return entries(log._path), HEADS.write(log.signed_head())


@pytest.fixture
def plant() -> SigningKey:
    return SigningKey.generate()


def copy_of(world: World, plant: SigningKey) -> LogCopy:
    path = world.path.with_name("copy.jsonl")
    return LogCopy(path, plant, world.coordinator.public)


def test_a_copy_follows_the_log_entry_by_entry(world: World, plant: SigningKey) -> None:
    copy = copy_of(world, plant)
    path = world.path.with_name("copy.jsonl")
    seen = 0
    for _ in write_every_kind(world):
        copy.extend(entries(world.path, seen), HEADS.write(world.log.signed_head()))
        seen = copy.ledger.size
        assert path.read_bytes() == world.path.read_bytes()
        assert copy.ledger.state == world.ledger.state
    again = copy_of(world, plant)
    assert again.ledger.state == world.ledger.state


def test_a_plants_copy_refuses_a_forked_log_and_stays_as_it_was(
    world: World, plant: SigningKey, tmp_path: Path
) -> None:
    other = copied(world, tmp_path / "fork.jsonl")
    one = RoundOpened(round=1, model=MODEL, deadline="2026-05-01T13:00:00.000000Z")
    world.log.append(one, at=NOW)
    other.append(replace(one, model=NEXT), at=NOW)
    other.append(PledgesClosed(round=1), at=NOW)
    copy, path = copy_of(world, plant), tmp_path / "copy.jsonl"
    copy.extend(*whole(world.log))
    before = path.read_bytes()
    fork = entries(tmp_path / "fork.jsonl")
    for lines in (fork, fork[1:], fork[2:], (fork[1],), ()):
        with refused():
            copy.extend(lines, HEADS.write(other.signed_head()))
        assert path.read_bytes() == before
        assert copy.ledger.state == world.ledger.state
    world.log.append(PledgesClosed(round=1), at=NOW)
    copy.extend(entries(world.path, 2), HEADS.write(world.log.signed_head()))
    assert path.read_bytes() == world.path.read_bytes()


def test_a_copy_takes_no_entries_without_a_head_of_the_coordinator(
    world: World, plant: SigningKey, tmp_path: Path
) -> None:
    copy, path = copy_of(world, plant), tmp_path / "copy.jsonl"
    lines, head = whole(world.log)
    content = HEADS.read(head).content
    for wrong in (
        b"",
        b"{}",
        head + b" ",
        HEADS.write(sign(content, plant)),
        HEADS.write(sign(replace(content, size=2), world.coordinator)),
        HEADS.write(sign(replace(content, last="0" * 64), world.coordinator)),
        HEADS.write(sign(replace(content, federation="power"), world.coordinator)),
        HEADS.write(sign(replace(content, signer="north"), world.coordinator)),
    ):
        with refused():
            copy.extend(lines, wrong)
        assert path.read_bytes() == b""
        assert copy.ledger.size == 0
    copy.extend(lines, head)


def test_a_copy_is_of_the_coordinator_that_the_invitation_names(
    world: World, plant: SigningKey, line: Record, circuit: Circuit, tmp_path: Path
) -> None:
    other = World(line, circuit, tmp_path / "other.jsonl")
    with refused("another coordinator than the invitation names"):
        copy_of(world, plant).extend(*whole(other.log))
    with refused("the log is empty"):
        copy_of(world, plant).extend((), HEADS.write(other.log.signed_head()))


def test_a_copy_takes_pages_from_before_the_coordinators_key_was_rotated(
    world: World, plant: SigningKey
) -> None:
    """The coordinator signs every page with its key of today; the plant knows the first key."""
    world.protocol.open_round(MODEL, later(60), at=NOW)
    keys = [SigningKey.generate() for _ in range(2)]
    for key in keys:
        world.log.rotate(key, at=NOW)
    copy = copy_of(world, plant)
    rotations = world.ledger.rotations
    first = page(world.log, 0, 2)
    with refused("signature of the head"):
        copy.extend(*first)
    with refused("signature of the head"):
        copy.extend(*first, rotations=rotations[1:])
    forged = tuple(replace(each, by_new=each.by_old) for each in rotations)
    with refused("signature of the rotation"):
        copy.extend(*first, rotations=forged)
    copy.extend(*first, rotations=rotations)
    assert copy_of(world, plant).ledger.size == 2
    copy.extend(*page(world.log, 2, 4), rotations=rotations)
    assert copy.ledger.state == world.ledger.state
    assert read_log(world.path.with_name("copy.jsonl")).size == 4


# -- crashes --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


def killed_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """End the process once this many bytes are written."""
    write = os.pwrite

    def partly(handle: int, data: bytes, at: int) -> int:
        write(handle, bytes(data)[:count], at)
        raise Killed

    monkeypatch.setattr(os, "pwrite", partly)


@pytest.mark.parametrize("part", [0, 0.01, 0.2, 0.5, 0.7, 0.9, 0.99])
def test_a_plant_killed_while_it_writes_goes_on_from_whole_entries(
    world: World, plant: SigningKey, monkeypatch: pytest.MonkeyPatch, part: float
) -> None:
    copy, path = copy_of(world, plant), world.path.with_name("copy.jsonl")
    copy.extend(*whole(world.log))
    world.protocol.open_round(MODEL, later(60), at=NOW)
    lines, head = entries(world.path, 1), HEADS.write(world.log.signed_head())
    with monkeypatch.context() as dying:
        killed_after(dying, int(part * (len(lines[0]) + len(head) + 2)))
        with pytest.raises(Killed):
            copy.extend(lines, head)
    again = copy_of(world, plant)
    assert again.ledger.size in {1, 2}
    again.extend(entries(world.path, again.ledger.size), head)
    assert again.ledger.state == world.ledger.state
    assert path.read_bytes() == world.path.read_bytes()


def test_a_plant_killed_before_its_first_entry_begins_again(
    world: World, plant: SigningKey
) -> None:
    world.path.with_name("copy.jsonl").touch()
    copy = copy_of(world, plant)
    copy.extend(*whole(world.log))
    assert copy.ledger.size == 1


def test_a_full_disk_leaves_the_copy_as_it_was(
    world: World, plant: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, path = copy_of(world, plant), world.path.with_name("copy.jsonl")
    copy.extend(*whole(world.log))
    world.protocol.open_round(MODEL, later(60), at=NOW)
    lines, head = entries(world.path, 1), HEADS.write(world.log.signed_head())
    write = os.pwrite

    def full(handle: int, data: bytes, at: int) -> int:
        write(handle, bytes(data)[:40], at)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as small:
        small.setattr(os, "pwrite", full)
        with pytest.raises(SettingError, match="No space left"):
            copy.extend(lines, head)
    assert copy.ledger.size == 1
    copy.extend(lines, head)
    assert path.read_bytes() == world.path.read_bytes()


def test_a_copy_that_another_process_changed_is_not_written_to(
    world: World, plant: SigningKey
) -> None:
    copy, path = copy_of(world, plant), world.path.with_name("copy.jsonl")
    copy.extend(*whole(world.log))
    world.protocol.open_round(MODEL, later(60), at=NOW)
    lines, head = entries(world.path, 1), HEADS.write(world.log.signed_head())
    for content in (b"", path.read_bytes()[:100], path.read_bytes().replace(b"12:00", b"12:01", 1)):
        path.write_bytes(content)
        with refused("truncated, rewritten or restored"):
            copy.extend(lines, head)
        assert path.read_bytes() == content


def test_a_copy_with_a_forged_entry_is_found_when_the_plant_starts(
    world: World, plant: SigningKey
) -> None:
    copy, path = copy_of(world, plant), world.path.with_name("copy.jsonl")
    copy.extend(*whole(world.log))
    path.write_bytes(path.read_bytes().replace(b"12:00:00", b"12:00:01", 1))
    with refused("missing or forged"):
        copy_of(world, plant)


# -- pages ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def eventful(line: Record, circuit: Circuit, tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(line, circuit, tmp_path_factory.mktemp("pages") / "log.jsonl")
    for _ in write_every_kind(world):
        pass
    return world


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_pages_of_any_size_make_the_whole_log(eventful: World, data: st.DataObject) -> None:
    *expected, _ = eventful.path.read_bytes().splitlines()
    size = len(expected)
    start = data.draw(st.integers(0, size + 3), label="start")
    stop = data.draw(st.integers(0, size + 3), label="stop")
    at = start
    pages: list[bytes] = []
    while at < stop:
        largest = data.draw(st.integers(0, 5_000), label="largest")
        lines = lines_of(eventful.path, start=at, stop=stop, largest=largest)
        if not lines:
            break
        assert len(lines) == 1 or sum(len(line) + 1 for line in lines) <= largest
        pages.extend(lines)
        at += len(lines)
    assert pages == expected[start:stop]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_copy_of_any_pages_is_the_log(
    eventful: World, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("copy") / "log.jsonl"
    size, plant = eventful.ledger.size, SigningKey.generate()
    copy = LogCopy(path, plant, eventful.coordinator.public)
    at = 0
    while at < size:
        stop = data.draw(st.integers(at + 1, size), label="stop")
        copy.extend(*page(eventful.log, at, stop), rotations=eventful.ledger.rotations)
        at = stop
        if data.draw(st.booleans(), label="restart"):
            if data.draw(st.booleans(), label="snapshot"):
                copy.snapshot()
            copy = LogCopy(path, plant, eventful.coordinator.public)
    assert copy.ledger.state == eventful.ledger.state
    assert path.read_bytes() == eventful.path.read_bytes()


def test_a_torn_line_is_not_part_of_a_page(world: World) -> None:
    world.protocol.open_round(MODEL, later(60), at=NOW)
    *lines, _ = world.path.read_bytes().splitlines()
    world.path.write_bytes(lines[0] + b"\n" + lines[1][:-9])
    assert entries(world.path) == (lines[0],)


def test_a_line_that_names_no_line_before_it_is_chained_to_nothing(tmp_path: Path) -> None:
    line = b'{"body":{},"index":0}'
    (tmp_path / "log.jsonl").write_bytes(line + b"\n")
    with refused("entry 0 of .* is not the one that later entries were chained to"):
        chained_lines(tmp_path / "log.jsonl", stop=1, last=entry_digest(line), most=1)


# -- copies of the whole file ---------------------------------------------------------------------


def test_two_copies_share_entries_until_they_part(world: World, tmp_path: Path) -> None:
    other = copied(world, tmp_path / "fork.jsonl")
    assert compare_logs(world.path, tmp_path / "fork.jsonl") == 1
    one = RoundOpened(round=1, model=MODEL, deadline="2026-05-01T13:00:00.000000Z")
    world.log.append(one, at=NOW)
    assert compare_logs(world.path, tmp_path / "fork.jsonl") == 1
    other.append(replace(one, model=NEXT), at=NOW)
    with refused("forked: its entry 1 is"):
        compare_logs(world.path, tmp_path / "fork.jsonl")
    other.append(PledgesClosed(round=1), at=NOW)
    with refused("forked: its entry 1 is"):
        compare_logs(tmp_path / "fork.jsonl", world.path)


def test_two_logs_that_part_at_their_first_entry_are_a_fork(world: World, tmp_path: Path) -> None:
    """The coordinator opened two logs, alike but for the minute."""
    other = Log.create(
        tmp_path / "other.jsonl", world.ledger.opened, world.coordinator, at=later(1)
    )
    assert other.ledger.size == 1
    with refused("forked: its entry 0 is"):
        compare_logs(world.path, tmp_path / "other.jsonl")


def test_a_copied_log_is_verified_and_does_not_replace_itself(world: World, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    for _ in range(2):  # the second replaces the first
        assert copy_log(world.path, target) == 1
        assert target.read_bytes() == world.path.read_bytes()
    with pytest.raises(SettingError, match="is the log itself"):
        copy_log(world.path, world.path)
    world.path.write_bytes(world.path.read_bytes()[:-3])
    with refused("torn"):
        copy_log(world.path, tmp_path / "torn.jsonl")
    assert not (tmp_path / "torn.jsonl").exists()
