"""The dashboard verifies the log step by step, and begins at the coordinator's own snapshot."""

import pytest

from sluice.attestation.log.chain import chained_lines, read_log
from sluice.attestation.log.entries import Entry
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.log.snapshots import snapshot_path
from sluice.attestation.messages.signing import SigningKey
from sluice.errors import VerificationError
from sluice.reports.dashboard import snapshot as dashboard
from sluice.reports.dashboard.federation_page import federation_page
from sluice.reports.dashboard.snapshot import FollowedLog, take

from .conftest import Consortium, Founder


@pytest.fixture
def ran(founder: Founder) -> Consortium:
    consortium = founder()
    consortium.join("north", 0)
    consortium.join("south", 1)
    consortium.run(rounds=3)
    return consortium


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The indices of the entries that are verified from now on."""
    indices: list[int] = []
    check = Ledger.check

    def counted(self: Ledger, entry: Entry) -> None:
        indices.append(entry.index)
        check(self, entry)

    monkeypatch.setattr(Ledger, "check", counted)
    return indices


def test_the_first_view_does_not_replay_the_log(ran: Consortium, checked: list[int]) -> None:
    snapshot_path(ran.site.log).unlink(missing_ok=True)
    whole = take(ran.site.folder)
    size = whole.entries
    assert checked == list(range(size))
    assert [row.round for row in whole.history] == [1, 2, 3]
    ran.site.protocol().log.snapshot()
    checked.clear()
    followed = FollowedLog(ran.site)
    found = take(ran.site.folder, log=followed)
    assert checked == []
    assert (found.entries, found.head, found.history) == (size, whole.head, whole.history)
    assert (whole.trusted, found.trusted) == (0, size)
    log = next(tile for tile in federation_page(found).tiles if tile.label == "log")
    assert f"the first {size} by the coordinator's signed snapshot" in log.note
    ran.run(rounds=4)
    checked.clear()
    found = take(ran.site.folder, log=followed)
    assert checked == list(range(size, found.entries))
    assert [row.round for row in found.history] == [1, 2, 3, 4]
    checked.clear()
    take(ran.site.folder, log=followed)
    assert checked == []


def test_only_the_last_rounds_are_read_however_long_the_log_is(
    ran: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = take(ran.site.folder).history
    ran.site.protocol().log.snapshot()
    read: list[int] = []

    def counted(*arguments: object, **named: object) -> object:
        found = chained_lines(*arguments, **named)  # type: ignore[arg-type]
        read.append(len(found[0]))
        return found

    monkeypatch.setattr(dashboard, "chained_lines", counted)
    monkeypatch.setattr(dashboard, "PIECE_ENTRIES", 2)
    assert FollowedLog(ran.site).follow()[1] == whole
    assert sum(read) == read_log(ran.site.log).size
    read.clear()
    monkeypatch.setattr(dashboard, "ROUNDS_SHOWN", 1)
    assert FollowedLog(ran.site).follow()[1] == whole[-1:]
    assert 0 < sum(read) < read_log(ran.site.log).size


def test_a_round_of_the_snapshot_that_was_changed_is_not_shown(ran: Consortium) -> None:
    ran.site.protocol().log.snapshot()
    raw = ran.site.log.read_bytes()
    kind = raw.index(b'"kind":"aggregated"')
    place = raw.index(b'"model":"', kind) + len(b'"model":"')
    changed = b"0" if raw[place : place + 1] != b"0" else b"1"
    ran.site.log.write_bytes(raw[:place] + changed + raw[place + 1 :])
    found = take(ran.site.folder)
    assert "is not the one that later entries were chained to" in found.fault
    assert found.history == ()
    ran.site.log.write_bytes(raw)
    assert take(ran.site.folder).fault == ""


def test_a_snapshot_that_the_coordinator_has_not_signed_is_not_used(
    ran: Consortium, checked: list[int]
) -> None:
    log = ran.site.protocol().log
    log._key = SigningKey.generate()
    log.snapshot()
    checked.clear()
    found = take(ran.site.folder)
    assert checked == list(range(found.entries))
    ran.site.protocol().log.snapshot()
    ran.site.key.chmod(0o644)  # nor is one whose signer cannot be known
    checked.clear()
    assert take(ran.site.folder).trusted == 0
    assert checked == list(range(found.entries))


def test_lines_are_chained_to_a_verified_entry(ran: Consortium) -> None:
    ledger = read_log(ran.site.log)
    size, last = ledger.size, ledger.head("coordinator").last
    lines, before = chained_lines(ran.site.log, stop=size, last=last, most=3)
    assert len(lines) == 3
    assert before == ledger.head("coordinator", size=size - 3).last
    lines, before = chained_lines(ran.site.log, stop=size, last=last, most=size + 5)
    assert (len(lines), before) == (size, "0" * 64)
    with pytest.raises(VerificationError, match=f"entry {size - 1} of .* chained to"):
        chained_lines(ran.site.log, stop=size, last="ab" * 32, most=3)
    with pytest.raises(VerificationError, match=f"entries {size - 2} to {size} any more"):
        chained_lines(ran.site.log, stop=size + 1, last=last, most=3)
