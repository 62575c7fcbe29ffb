"""The helper as a process of its own, over TLS: kills in each phase, and what it refuses."""

import http.client
import json
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import add
from pathlib import Path
from threading import Thread

import pytest

from sluice.attestation.hidden import GroupSums
from sluice.attestation.messages import (
    EPOCHS,
    HELPER_ENTRIES,
    SUBMISSIONS,
    EpochOrder,
    RetireOrder,
    ShareTaken,
    Signed,
    SigningKey,
    instant,
    sign,
)
from sluice.errors import SettingError, VerificationError
from sluice.network.helper import HelpedFederation, HelperClient, HelperFolder
from tests.unit.attestation.hidden_federation import NAMES, SETTINGS, Member, Parties

from .helper_process import PATIENCE_S, HelperProcess
from .sites import SLUICE, free_port


@contextmanager
def helper_of(parties: Parties) -> Iterator[HelperProcess]:
    port = free_port()
    federation = HelpedFederation(
        name="north", coordinator=parties.coordinator.public, members=parties.opened.members
    )
    now = datetime.now(UTC)
    folder = HelperFolder.create(parties.folder, "north", host="127.0.0.1", port=port, at=now)
    folder.accept(federation, at=now)
    running = HelperProcess(folder)
    running.start()
    try:
        yield running
    finally:
        running.kill()


def client_of(running: HelperProcess, parties: Parties) -> HelperClient:
    return HelperClient(running.folder.card, coordinator=parties.coordinator.public)


def order_until(parties: Parties, seconds: float, epoch: int = 1) -> Signed[EpochOrder]:
    deadline = instant(datetime.now(UTC) + timedelta(seconds=seconds))
    return parties.order(epoch=epoch, deadline=deadline)


def totals(
    parties: Parties,
    client: HelperClient,
    members: dict[str, Member],
    kill: HelperProcess | None = None,
) -> None:
    """Release every group, and compare with the exact sums."""
    order = client.catch_up().epoch
    assert order is not None
    sums = GroupSums(order, SETTINGS)
    for each in members.values():
        sums.accept(each.contribution())
    for group, names in enumerate(sums.groups):
        signed = sign(sums.release_order(group, client.ledger), parties.coordinator)
        first = client.release(signed)
        if kill:
            kill.kill()
            kill.start()
            assert client_of(kill, parties).release(signed) == first
        expected = reduce(add, (members[name].statistic for name in names))
        assert sums.total(*first) == expected


def test_a_helper_that_is_killed_in_each_phase_gives_the_same_sums(tmp_path: Path) -> None:
    parties = Parties(tmp_path / "helper")
    members = parties.members()
    with helper_of(parties) as running:
        client = client_of(running, parties)
        order = order_until(parties, 600)
        client.open_epoch(order)
        running.kill()
        running.start()
        answers: dict[str, ShareTaken] = {}
        for at, (name, each) in enumerate(members.items()):
            answers[name] = client.share(each.submission(), malicious=1)
            if at in (0, 4, 8):
                running.kill()
                running.start()
                assert client.share(each.submission(), malicious=1) == answers[name]
        assert client.catch_up().shares == answers
        totals(parties, client, members, kill=running)
        assert list((parties.folder / "state" / "shares").iterdir()) == []
        assert running.stop() == 0
        lines = (parties.folder / "state" / "helper.log").read_bytes().splitlines()
        bodies = [HELPER_ENTRIES.read(line).content.body.kind for line in lines]
        assert bodies == ["opened", "epoch", *["share"] * 9, *["released"] * 3]
        running.start()


def test_kills_at_any_moment_lose_no_answer(tmp_path: Path) -> None:
    parties = Parties(tmp_path / "helper")
    members = parties.members()
    with helper_of(parties) as running:
        client = client_of(running, parties)
        client.open_epoch(order_until(parties, 600))
        done: list[str] = []

        def share_all() -> None:
            own = client_of(running, parties)
            for name, each in members.items():
                deadline = time.monotonic() + PATIENCE_S
                while time.monotonic() < deadline:
                    try:
                        own.share(each.submission(), malicious=1)
                    except SettingError:  # the helper does not answer
                        time.sleep(0.02)
                    else:
                        done.append(name)
                        break

        sharing = Thread(target=share_all)
        sharing.start()
        for pause in (0.02, 0.05, 0.11, 0.03):
            time.sleep(pause)
            running.kill()
            running.start()
        sharing.join(timeout=PATIENCE_S)
        assert done == list(NAMES)
        totals(parties, client, members)


def test_a_member_that_drops_out_blocks_its_group_until_the_deadline_only(tmp_path: Path) -> None:
    parties = Parties(tmp_path / "helper")
    members = parties.members()
    with helper_of(parties) as running:
        client = client_of(running, parties)
        client.open_epoch(order_until(parties, 6))
        silent = client.ledger.groups[1][0]
        for name, each in members.items():
            if name != silent:
                client.share(each.submission(), malicious=1)
        deadline = time.monotonic() + PATIENCE_S
        while not client.catch_up().retired and time.monotonic() < deadline:
            time.sleep(0.2)
        assert client.ledger.retired == {1: f"no share of {silent}"}
        kept = {path.name for path in (parties.folder / "state" / "shares").iterdir()}
        assert kept == {*client.ledger.groups[0], *client.ledger.groups[2]}
        with pytest.raises(VerificationError, match="is retired"):
            client.share(members[silent].submission(), malicious=1)
        retire = RetireOrder(federation="north", epoch=1, group=0, reason="a member was removed")
        client.retire(sign(retire, parties.coordinator))
        assert set(client.catch_up().retired) == {0, 1}


def test_what_the_helper_refuses_over_the_wire(tmp_path: Path) -> None:
    parties = Parties(tmp_path / "helper")
    members = parties.members()
    with helper_of(parties) as running:
        client = client_of(running, parties)
        honest = members[NAMES[0]]
        with pytest.raises(VerificationError, match="has not opened epoch 1"):
            client.share(honest.submission(), malicious=1)
        with pytest.raises(VerificationError, match="too few for groups"):
            client.open_epoch(
                parties.order(members=NAMES[:8], deadline="2999-01-01T00:00:00.000000Z")
            )
        client.open_epoch(order_until(parties, 600))
        with pytest.raises(VerificationError, match="the terms say 2"):
            client.share(honest.submission(), malicious=2)
        with pytest.raises(VerificationError, match="does not open"):
            client.share(honest.submission(share=bytes(32)), malicious=1)
        other = sign(honest.submission().content, members[NAMES[1]].key)
        with pytest.raises(VerificationError, match="signature"):
            client.share(other, malicious=1)
        wrong = HelperClient(running.folder.card, coordinator=SigningKey.generate().public)
        with pytest.raises(VerificationError, match="another federation or coordinator"):
            wrong.catch_up()
        impostor = replace(running.folder.card, key=SigningKey.generate().public)
        with pytest.raises(VerificationError, match="signature"):
            HelperClient(impostor, coordinator=parties.coordinator.public).catch_up()
        assert _kinds(client) == ["opened", "epoch"]
        _refuses_bad_requests(running)


def _kinds(client: HelperClient) -> list[str]:
    raw = client._ask("GET", "/log?from=0", b"")
    return [HELPER_ENTRIES.read(line).content.body.kind for line in raw.splitlines()]


def _refuses_bad_requests(running: HelperProcess) -> None:
    card = running.folder.card
    trust = ssl.create_default_context(cadata=card.authority)
    huge = str(SUBMISSIONS.largest + 1)
    for method, path, body, headers, status in (
        ("GET", "/shares", b"", {}, 404),
        ("GET", "/log?from=-1", b"", {}, 404),
        ("POST", "/log", b"", {}, 404),
        ("POST", "/shares", b"", {"Content-Length": huge}, 413),
        ("POST", "/shares", b"", {"Content-Length": "x"}, 413),
        ("POST", "/shares", b"{}", {}, 403),
        ("POST", "/epochs", b"[" * 1_000, {}, 403),
        ("POST", "/epochs", bytes(EPOCHS.largest), {}, 403),
    ):
        connection = http.client.HTTPSConnection(card.host, card.port, timeout=20, context=trust)
        connection.request(method, path, body, headers)
        assert connection.getresponse().status == status, (method, path)
        connection.close()
    plain = http.client.HTTPConnection(card.host, card.port, timeout=20)
    plain.request("GET", "/log")
    with pytest.raises((OSError, http.client.HTTPException)):
        plain.getresponse()
    plain.close()
    untrusting = ssl.create_default_context()
    connection = http.client.HTTPSConnection(card.host, card.port, timeout=20, context=untrusting)
    with pytest.raises(ssl.SSLError):
        connection.request("GET", "/log")
    connection.close()


def test_a_helper_that_rewrites_its_log_is_named_by_it(tmp_path: Path) -> None:
    """Two signed entries with one number, or one that does not follow, are the helper's own."""
    parties = Parties(tmp_path / "helper")
    members = parties.members()
    with helper_of(parties) as running:
        client = client_of(running, parties)
        client.open_epoch(order_until(parties, 600))
        client.share(members[NAMES[0]].submission(), malicious=1)
        running.kill()
        log = parties.folder / "state" / "helper.log"
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(lines[:2]))  # it forgets the share
        running.start()
        late = client_of(running, parties)
        late.share(members[NAMES[1]].submission(), malicious=1)
        late.share(members[NAMES[2]].submission(), malicious=1)
        with pytest.raises(VerificationError, match="does not follow"):
            client.catch_up()
        one = HELPER_ENTRIES.read(lines[2].rstrip()).content
        other = HELPER_ENTRIES.read(log.read_bytes().splitlines()[2]).content
        assert (one.index, one.previous) == (other.index, other.previous)
        assert one != other


def test_the_commands_describe_a_helper(tmp_path: Path) -> None:
    parties = Parties(tmp_path / "helper")
    with helper_of(parties) as running:
        client_of(running, parties).open_epoch(order_until(parties, 600))
        shown = subprocess.run(
            [*SLUICE, "helper", "show", str(parties.folder), "--json"],
            check=True,
            capture_output=True,
        )
        found = json.loads(shown.stdout)
        assert (found["entries"], found["epoch"], len(found["groups"])) == (2, 1, 3)
        second = subprocess.run(
            [*SLUICE, "helper", "run", str(parties.folder)], check=False, capture_output=True
        )
        assert second.returncode == 2
