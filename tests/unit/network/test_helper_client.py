"""A helper that lies: what plants and the coordinator check in its answers and its log."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sluice.attestation.hidden import GroupSums, Helper
from sluice.attestation.messages import (
    EPOCHS,
    RELEASES,
    SUBMISSIONS,
    ReleaseOrder,
    Signed,
    SigningKey,
    sign,
)
from sluice.errors import SettingError, VerificationError
from sluice.network.helper import HelpedFederation, HelperClient, HelperFolder, serve_helper
from sluice.network.helper import client as client_module
from tests.unit.attestation.hidden_federation import NAMES, SETTINGS, START, Member, Parties

Answer = Callable[[str, bytes], bytes]


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Parties:
    return Parties(tmp_path_factory.mktemp("parties") / "helper")


@pytest.fixture(scope="module")
def folder(parties: Parties) -> HelperFolder:
    federation = HelpedFederation(
        name="north", coordinator=parties.coordinator.public, members=parties.opened.members
    )
    now = datetime.now(UTC)
    folder = HelperFolder.create(parties.folder, "north", host="127.0.0.1", port=0, at=now)
    folder.accept(federation, at=now)
    return folder


class Scripted(HelperClient):
    """A client whose helper answers in the same process, or lies."""

    def __init__(self, folder: HelperFolder, helper: Helper, parties: Parties) -> None:
        super().__init__(folder.card, coordinator=parties.coordinator.public)
        self.helper = helper
        self.lies: dict[str, bytes] = {}

    def _ask(self, method: str, path: str, body: bytes) -> bytes:
        del method
        where = path.partition("?")[0]
        if where in self.lies:
            return self.lies[where]
        match where:
            case "/log":
                lines = self.helper.lines(int(path.partition("=")[2]))
                return b"".join(line + b"\n" for line in lines)
            case "/epochs":
                self.helper.open_epoch(EPOCHS.read(body), at=START)
            case "/shares":
                self.helper.take(SUBMISSIONS.read(body), at=START)
            case "/releases":
                return self.helper.release(RELEASES.read(body), at=START)[1]
        return b""


@pytest.fixture
def client(folder: HelperFolder, parties: Parties, tmp_path: Path) -> Iterator[Scripted]:
    opened = replace(parties.opened, helper=folder.key.public)
    Helper.create(tmp_path / "state", opened, folder.key, at=START)
    helper = Helper(tmp_path / "state", folder.key)
    yield Scripted(folder, helper, parties)
    helper.close()


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(VerificationError) as found:
        act()
    return str(found.value)


def test_a_torn_line_is_no_log(client: Scripted) -> None:
    assert client.catch_up().size == 1
    assert client.catch_up().size == 1  # nothing new is no torn line
    client.lies["/log"] = b'{"content"'
    assert "torn line" in refused(client.catch_up)


def test_a_log_of_nobody_or_of_another_federation_is_refused(
    client: Scripted, folder: HelperFolder, parties: Parties
) -> None:
    card, coordinator = folder.card, parties.coordinator.public
    lines = b"".join(line + b"\n" for line in client.helper.lines())
    for named, key, log in (
        (card, coordinator, b""),
        (replace(card, federation="south"), coordinator, lines),
        (card, SigningKey.generate().public, lines),
    ):
        other = Scripted(folder, client.helper, parties)
        other._card, other._coordinator, other.lies = named, key, {"/log": log}
        assert "another federation or coordinator" in refused(other.catch_up)


def test_an_epoch_that_the_log_does_not_show_is_not_open(
    client: Scripted, parties: Parties
) -> None:
    client.lies["/epochs"] = b""
    assert "another epoch" in refused(lambda: client.open_epoch(parties.order()))
    del client.lies["/epochs"]
    client.open_epoch(parties.order())


def test_a_share_goes_to_a_large_group_and_into_the_log(client: Scripted, parties: Parties) -> None:
    own = parties.members()[NAMES[0]].submission()
    client.open_epoch(parties.order())
    assert "the terms say 2" in refused(lambda: client.share(own, malicious=2))
    assert client.catch_up().shares == {}
    client.lies["/shares"] = b""
    assert "did not log it" in refused(lambda: client.share(own, malicious=1))
    del client.lies["/shares"]
    assert client.share(own, malicious=1).client == NAMES[0]


def release_order(client: Scripted, parties: Parties) -> Signed[ReleaseOrder]:
    """Open an epoch, share for the first group, and order its sum."""
    members: dict[str, Member] = parties.members()
    client.open_epoch(parties.order())
    sums = GroupSums(parties.order().content, SETTINGS)
    for name in sums.groups[0]:
        client.share(members[name].submission(), malicious=1)
        sums.accept(members[name].contribution())
    return sign(sums.release_order(0, client.catch_up()), parties.coordinator)


def test_a_sum_is_the_one_that_the_log_names(client: Scripted, parties: Parties) -> None:
    order = release_order(client, parties)
    client.lies["/releases"] = b"0"
    assert "did not log it" in refused(lambda: client.release(order))
    client.helper.release(order, at=START)
    assert "names another sum" in refused(lambda: client.release(order))
    del client.lies["/releases"]
    released, content = client.release(order)
    assert released.order == order
    other = sign(replace(order.content, epoch=2), parties.coordinator)
    client.lies["/releases"] = content
    assert "did not log it" in refused(lambda: client.release(other))


def over_tls(folder: HelperFolder, parties: Parties, port: int) -> HelperClient:
    card = replace(folder.card, port=port)
    return HelperClient(card, coordinator=parties.coordinator.public)


def test_what_a_helper_refuses_or_sends_in_excess_is_refused(
    folder: HelperFolder, parties: Parties, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_helper(folder) as port:
        client = over_tls(folder, parties, port)
        log = client._ask("GET", "/log?from=0", b"")
        assert log.count(b"\n") == 1
        assert "the helper refuses" in refused(lambda: client._ask("POST", "/shares", b"{}"))
        monkeypatch.setattr(client_module, "LARGEST_ANSWER", len(log))
        assert client._ask("GET", "/log?from=0", b"") == log
        monkeypatch.setattr(client_module, "LARGEST_ANSWER", len(log) - 1)
        with pytest.raises(SettingError, match="too large"):
            client._ask("GET", "/log?from=0", b"")


def test_a_helper_whose_port_is_used_says_so(
    folder: HelperFolder, tmp_path: Path, parties: Parties
) -> None:
    del folder
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        federation = HelpedFederation(
            name="north", coordinator=parties.coordinator.public, members=parties.opened.members
        )
        now = datetime.now(UTC)
        second = HelperFolder.create(
            tmp_path / "second", "north", host="127.0.0.1", port=port, at=now
        )
        second.accept(federation, at=now)
        with (
            pytest.raises(SettingError, match="the helper cannot listen on port"),
            serve_helper(second),
        ):
            pass
