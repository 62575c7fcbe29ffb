"""Enrolment: rules that approvers have signed, invitations that end, crashes, two at once."""

import json
import multiprocessing
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import ENTRIES, ClientRegistered, LogTerms
from sluice.attestation.messages.messages import REGISTRATIONS
from sluice.attestation.messages.orders import APPROVALS, approve
from sluice.attestation.messages.signing import SigningKey
from sluice.attestation.protocol.coordinator import ProtocolCoordinator
from sluice.attestation.protocol.plant import Registered
from sluice.attestation.systems.registry import circuit_for, find_system
from sluice.errors import RefusedError, SettingError, VerificationError
from sluice.invariants.rulesfile import load_rules, parse_rules, seal_rules
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder, demand_usable
from sluice.network.terms import Invitation, JoinRequest, write_document
from sluice.network.training_rows import TrainingRows
from tests.unit.conftest import Run

from .conftest import IDLE, ROWS, START, Consortium, Founder

HISTORY = LogTerms(history=True)


@pytest.fixture
def empty(founder: Founder) -> Consortium:
    return founder(approvers=2)


def rules_of(request: JoinRequest) -> str:
    return REGISTRATIONS.read(request.registration.encode()).content.rules


def signed(
    subject: str, key: SigningKey, *, client: str | None = None, looser: bool = False
) -> bytes:
    return APPROVALS.write(approve(subject, key, client=client, looser=looser, declared=[IDLE]))


def registrations(consortium: Consortium) -> list[ClientRegistered]:
    *lines, _ = consortium.site.log.read_bytes().splitlines()
    bodies = [ENTRIES.read(line).body for line in lines]
    return [body for body in bodies if isinstance(body, ClientRegistered)]


def members(consortium: Consortium) -> list[str]:
    store = CoordinatorStore(consortium.site.base)
    try:
        return [member.name for member in store.members()]
    finally:
        store.close()


def with_rules(consortium: Consortium, name: str, factor: float) -> JoinRequest:
    """Return a request of a plant that has joined, with its first tolerance changed."""
    path = consortium.folder / f"{name}-{factor}.json"
    document = json.loads(consortium.rules.read_text(encoding="utf-8"))
    document["invariants"][0]["tolerance"] *= factor
    path.write_text(json.dumps(document), encoding="utf-8")
    seal_rules(path)
    terms, keys = consortium.site.terms, PlantFolder(consortium.folder / name).keys
    system = find_system(terms.system, reveal_rows=True)
    circuit = circuit_for(
        system, load_rules(path), consortium.site.policy(), rows_max=terms.rows_max
    )
    plant = Registered(
        federation=terms.federation,
        client=name,
        key=keys.client_key(),
        system=system,
        circuit=circuit,
    )
    raw = json.loads((consortium.folder / name / "request.json").read_text(encoding="utf-8"))
    return JoinRequest(
        plant=name,
        protocols=tuple(raw["protocols"]),
        secret=consortium.site.invite(name, at=consortium.clock()).secret,
        node_key=raw["node_key"],
        registration=REGISTRATIONS.write(plant.registration()).decode(),
        rules=path.read_text(encoding="utf-8"),
    )


def refused(consortium: Consortium, request: JoinRequest, approvals: Sequence[bytes]) -> str:
    """Hand in a request that must be refused; return why. Nothing is written."""
    before, joined = consortium.site.log.read_bytes(), members(consortium)
    with pytest.raises(VerificationError, match="step 1") as why:
        consortium.site.enrol(request, approvals=approvals, at=consortium.clock())
    assert consortium.site.log.read_bytes() == before
    assert members(consortium) == joined
    return str(why.value)


# -- approvals ------------------------------------------------------------------------------------


def test_a_plant_whose_rules_nobody_approved_does_not_join(
    empty: Consortium, sluice: Run, tmp_path: Path
) -> None:
    empty.clock.now = datetime.now(UTC)  # the command has no other clock
    request = empty.request("north", 0)
    assert "0 approvals" in refused(empty, request, [])
    # At the command line the same import ends with exit code 3, and with the approval it succeeds.
    water, file = empty.site.folder, tmp_path / "north" / "request.json"
    seen = sluice("coordinator", "import", water, file, "--json")
    assert (seen.code, seen.json["step"]) == (3, "1")
    approval = tmp_path / "approval.json"
    approval.write_bytes(signed(rules_of(request), empty.approver))
    assert sluice("coordinator", "import", water, file, "--approval", approval).code == 0
    assert members(empty) == ["north"]


def test_an_approval_by_a_strangers_key_does_not_count(empty: Consortium) -> None:
    request = empty.request("north", 0)
    subject = rules_of(request)
    assert "0 approvals" in refused(empty, request, [signed(subject, SigningKey.generate())])
    # The coordinator's own key and the plant's are strangers too.
    assert "0 approvals" in refused(empty, request, [signed(subject, empty.site.signing_key())])
    plant = PlantFolder(empty.folder / "north").keys.client_key()
    assert "0 approvals" in refused(empty, request, [signed(subject, plant)])
    # An approval that names the approver, and that another key has signed, is a forgery.
    forged = json.loads(signed(subject, plant))
    forged["content"]["approver"] = empty.approver.public
    raw = json.dumps(forged, separators=(",", ":"), sort_keys=True).encode()
    assert "signature of the approval" in refused(empty, request, [raw])


def test_an_approval_of_other_rules_or_for_another_plant_does_not_count(empty: Consortium) -> None:
    request = empty.request("north", 0)
    key = empty.approver
    assert "0 approvals" in refused(empty, request, [signed("1" * 64, key)])
    approval = signed(rules_of(request), key, client="south")
    assert "0 approvals" in refused(empty, request, [approval])
    empty.site.enrol(
        request, approvals=[signed(rules_of(request), key, client="north")], at=empty.clock()
    )


def test_one_approver_who_signs_twice_is_not_two(founder: Founder) -> None:
    consortium = founder(approvers=2, log=replace(HISTORY, approvals=2))
    request = consortium.request("north", 0)
    one, two = consortium.approvers
    subject = rules_of(request)
    twice = [signed(subject, one), signed(subject, one)]
    assert "1 approvals" in refused(consortium, request, twice)
    consortium.site.enrol(
        request, approvals=[signed(subject, one), signed(subject, two)], at=consortium.clock()
    )


def test_looser_rules_need_two_approvers_who_say_that_they_are_looser(empty: Consortium) -> None:
    empty.join("north", 0)
    request = with_rules(empty, "north", 1.5)
    one, two = empty.approvers
    subject = rules_of(request)
    plain = [signed(subject, one), signed(subject, two)]
    assert "the looser rules of 'north': 0 approvals" in refused(empty, request, plain)
    half = [signed(subject, one, looser=True), signed(subject, two)]
    assert "the looser rules of 'north': 1 approvals" in refused(empty, request, half)
    both = [signed(subject, key, looser=True) for key in (one, two)]
    empty.site.enrol(request, approvals=both, at=empty.clock())
    assert [body.looser for body in registrations(empty)] == [False, True]


def test_stricter_rules_need_one_approver(empty: Consortium) -> None:
    empty.join("north", 0)
    request = with_rules(empty, "north", 0.999)
    approvals = [signed(rules_of(request), empty.approver)]
    empty.site.enrol(request, approvals=approvals, at=empty.clock())
    assert [body.looser for body in registrations(empty)] == [False, False]


def test_a_federation_cannot_need_more_approvals_than_it_has_approvers(founder: Founder) -> None:
    with pytest.raises(SettingError, match="2 approvals are needed and 1 approvers are named"):
        founder(log=replace(HISTORY, approvals=2))


# -- invitations and versions ---------------------------------------------------------------------


def test_an_invitation_that_has_expired_is_refused_at_the_plant_and_at_the_coordinator(
    empty: Consortium, sluice: Run, tmp_path: Path
) -> None:
    request = empty.request("north", 0)
    late = START + timedelta(days=14, minutes=1)
    with pytest.raises(RefusedError, match="expired on 2026-05-15"):
        empty.site.enrol(request, approvals=[empty.approval(request)], at=late)
    invitation = empty.site.invite("south", at=START)
    share = TrainingRows(record=str(empty.record), start=8_640, stop=8_640 + ROWS)
    text = empty.rules.read_text(encoding="utf-8")
    with pytest.raises(RefusedError, match="expired on 2026-05-15"):
        PlantFolder.create(
            empty.folder / "south",
            invitation,
            parse_rules(text, name="of south"),
            text,
            share,
            at=late,
            reveal_rows=True,
        )
    assert not (empty.folder / "south").exists()
    # On the command line: an invitation of last month.
    path = tmp_path / "west.invitation"
    old = empty.site.invite("west", at=datetime.now(UTC) - timedelta(days=31))
    write_document(old, path, private=True)
    record = ("--record", empty.record, "--rules", empty.rules, "--reveal-rows")
    seen = sluice("plant", "join", path, *record, "--out", tmp_path / "west")
    assert seen.code == 3
    assert "expired" in seen.err
    assert not (tmp_path / "west").exists()


def test_an_invitation_lasts_as_long_as_the_operator_says(empty: Consortium) -> None:
    invitation = empty.site.invite("north", at=START, lasts=timedelta(hours=2))
    assert invitation.expires == "2026-05-01T14:00:00.000000Z"
    until = START + timedelta(hours=2)
    demand_usable(invitation, at=until)
    with pytest.raises(RefusedError, match="expired on 2026-05-01T14"):
        demand_usable(invitation, at=until + timedelta(microseconds=1))


def test_a_plant_and_a_coordinator_without_a_common_version_do_not_join(
    empty: Consortium,
) -> None:
    request = empty.request("north", 0)
    newer = replace(request, protocols=(3, 4))
    with pytest.raises(RefusedError, match="'north' speaks protocol 3, 4, this coordinator 2"):
        empty.site.enrol(newer, approvals=[empty.approval(request)], at=empty.clock())
    none = replace(request, protocols=())
    with pytest.raises(RefusedError, match="'north' speaks protocol none"):
        empty.site.enrol(none, approvals=[empty.approval(request)], at=empty.clock())
    assert members(empty) == []
    both = replace(request, protocols=(2, 3))
    empty.site.enrol(both, approvals=[empty.approval(request)], at=empty.clock())


def test_a_plant_takes_a_new_or_an_empty_folder_and_no_other(empty: Consortium) -> None:
    (empty.folder / "north").mkdir()
    empty.request("north", 0)
    with pytest.raises(SettingError, match="north is not empty; name a new folder"):
        empty.request("north", 0)


def test_a_plant_does_not_answer_an_invitation_of_another_version(empty: Consortium) -> None:
    invitation: Invitation = replace(empty.site.invite("north", at=START), protocols=(3,))
    text = empty.rules.read_text(encoding="utf-8")
    with pytest.raises(RefusedError, match="the coordinator speaks protocol 3, this software 2"):
        PlantFolder.create(
            empty.folder / "north",
            invitation,
            parse_rules(text, name="of north"),
            text,
            TrainingRows(record=str(empty.record), start=8_640, stop=8_640 + ROWS),
            at=START,
            reveal_rows=True,
        )


# -- crashes, and two operators -------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone between the log and the store."""


def killed_before_the_store(
    consortium: Consortium, request: JoinRequest, approvals: Sequence[bytes]
) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CoordinatorStore, "join", die)
        with pytest.raises(Killed):
            consortium.site.enrol(request, approvals=approvals, at=consortium.clock())


def test_an_enrolment_killed_between_log_and_store_is_completed_by_the_same_import(
    empty: Consortium,
) -> None:
    request = empty.request("north", 0)
    killed_before_the_store(empty, request, [empty.approval(request)])
    assert len(registrations(empty)) == 1
    assert members(empty) == []
    empty.enrol(request)
    assert len(registrations(empty)) == 1
    assert members(empty) == ["north"]
    with pytest.raises(RefusedError, match="was used on"):
        empty.enrol(request)
    empty.plants["north"] = PlantFolder(empty.folder / "north").agent(reveal_rows=True)
    assert empty.run(rounds=1).admitted == ("north",)


def test_new_rules_killed_between_log_and_store_are_completed_by_the_same_import(
    empty: Consortium,
) -> None:
    empty.join("north", 0)
    request = with_rules(empty, "north", 0.999)
    approvals = [signed(rules_of(request), empty.approver)]
    killed_before_the_store(empty, request, approvals)
    assert len(registrations(empty)) == 2
    empty.site.enrol(request, approvals=approvals, at=empty.clock())
    assert len(registrations(empty)) == 2
    store = CoordinatorStore(empty.site.base)
    (north,) = store.members()
    store.close()
    assert north.rules == request.rules


def test_a_killed_enrolment_lets_no_other_rules_in(empty: Consortium) -> None:
    """After the kill the store does not know the plant's rules; looser ones still need more."""
    request = empty.request("north", 0)
    killed_before_the_store(empty, request, [empty.approval(request)])
    write_document(request, empty.folder / "north" / "request.json", private=True)
    looser = with_rules(empty, "north", 1.5)
    with pytest.raises(SettingError, match="the log has other rules for 'north'"):
        empty.site.enrol(
            looser, approvals=[signed(rules_of(looser), empty.approver)], at=empty.clock()
        )
    assert len(registrations(empty)) == 1


def _enrol(folder: Path, request: JoinRequest, approvals: list[bytes], start: "object") -> None:
    start.wait()  # type: ignore[attr-defined]
    at = START + timedelta(hours=1)
    try:
        CoordinatorFolder(folder).enrol(request, approvals=approvals, at=at)
    except (RefusedError, SettingError):
        raise SystemExit(3) from None


def enrolled_at_once(
    consortium: Consortium, requests: list[tuple[JoinRequest, list[bytes]]]
) -> list[int]:
    """Hand in requests in processes that start together; return their exit codes."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(len(requests))
    processes = [
        context.Process(target=_enrol, args=(consortium.site.folder, request, approvals, start))
        for request, approvals in requests
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    return [process.exitcode or 0 for process in processes]


def test_two_processes_that_enrol_at_once_write_one_log(empty: Consortium) -> None:
    requests = [empty.request(name, at) for at, name in enumerate(("north", "south", "west"))]
    given = [(request, [empty.approval(request)]) for request in requests]
    assert enrolled_at_once(empty, given) == [0, 0, 0]
    assert sorted(read_log(empty.site.log).clients) == ["north", "south", "west"]
    assert members(empty) == ["north", "south", "west"]


def test_two_operators_who_enrol_one_plant_at_once_let_no_looser_rules_in(
    empty: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sets of rules are stricter than the first, and one is looser than the other.

    The first operator compares its rules with those accepted last, and is slow to write them.
    """
    empty.join("north", 0)
    wide = with_rules(empty, "north", 0.9)
    narrow = replace(with_rules(empty, "north", 0.8), secret=wide.secret)
    store = CoordinatorStore(empty.site.base)
    store.invite("north", wide.secret, at=empty.clock(), expires=START + timedelta(days=1))
    store.close()
    compared, done = threading.Event(), threading.Event()
    looser = ProtocolCoordinator._looser

    def slow(self: ProtocolCoordinator, *arguments: object) -> bool:
        found = looser(self, *arguments)  # type: ignore[arg-type]
        if not compared.is_set():
            compared.set()
            done.wait(timeout=2)
        return found

    monkeypatch.setattr(ProtocolCoordinator, "_looser", slow)
    outcomes: dict[str, bool] = {}

    def enrol(name: str, request: JoinRequest) -> None:
        approvals = [signed(rules_of(request), empty.approver)]
        try:
            empty.site.enrol(request, approvals=approvals, at=START + timedelta(hours=1))
            outcomes[name] = True
        except (RefusedError, SettingError):
            outcomes[name] = False

    first = threading.Thread(target=enrol, args=("wide", wide))
    first.start()
    assert compared.wait(timeout=60)
    enrol("narrow", narrow)
    done.set()
    first.join(timeout=60)
    assert outcomes == {"wide": True, "narrow": False}  # one invitation, one enrolment
    assert [body.registration.content.rules for body in registrations(empty)][1:] == [
        rules_of(wide)
    ]
    store = CoordinatorStore(empty.site.base)
    (north,) = store.members()
    store.close()
    assert north.rules == wide.rules
