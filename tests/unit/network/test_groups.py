"""Sums of groups between sites: the coordinator and the helper learn a group's sum, and no more.

Twelve plants in this process share in four groups with a real helper over TLS; one may be
malicious, so three groups are enough.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from operator import add
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sluice.attestation.hidden import GroupSums, HelperLedger, expand, shares
from sluice.attestation.hidden import helper as helper_module
from sluice.attestation.hidden.elements import Elements
from sluice.attestation.log.chain import Log, read_log
from sluice.attestation.log.entries import (
    ENTRIES,
    Entry,
    EpochDrawn,
    GroupGivenUp,
    GroupSummed,
    ModelAggregated,
    RoundOpened,
    entry_digest,
)
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.log.snapshots import load_snapshot
from sluice.attestation.messages.hidden_sums import GroupReleased
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.protocol import plant as plant_protocol
from sluice.attestation.protocol import statistic_hash
from sluice.attestation.systems.full import statistic_settings
from sluice.detector.moments.settings import MomentSettings
from sluice.detector.moments.statistic import MomentStatistic, moment_statistic
from sluice.errors import CheckpointError, RefusedError, SettingError, VerificationError
from sluice.federation.messages import Contributed, NothingShown, Reply, Train
from sluice.invariants.encoding import Register
from sluice.invariants.rulesfile import load_rules
from sluice.network.coordinator import grouping
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import (
    FederationPlan,
    coordinator_service,
    found_federation,
)
from sluice.network.coordinator.grouping import SharedGroups
from sluice.network.coordinator.operations import take_out
from sluice.network.coordinator.sharing import statistics_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.helper.client import HelperClient
from sluice.network.helper.folder import HelperFolder
from sluice.network.helper.server import serve_helper
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.grouping import GroupMember
from sluice.network.plant.model import demand_logged, last_statistics, shared_vote
from sluice.network.statistics import MemberStatistics, demand_fitting
from sluice.network.terms import JoinRequest, read_document
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.questions import AskModel, Declined
from sluice.network.wire.wire import Direct
from sluice.telemetry.reading import read_record
from tests.unit.attestation.eventful import GROUPED
from tests.unit.conftest import Outcome

from .asking import Driven
from .conftest import Clock, Consortium, bound_plan, free_port, sign_off

Run = Callable[..., Outcome]
NAMES = tuple(f"plant-{at:02}" for at in range(12))
VOTERS = ("group-1-0", "group-1-1", "group-1-2", "group-1-3")
ROWS = 300
LATER = 4 * ROWS
END = "2999-01-01T00:00:00.000000Z"


def plan_of(
    record: Path, key: SigningKey, helper: HelperFolder, **changes: object
) -> FederationPlan:
    grouped: dict[str, object] = {"rows_max": 512, "members_min": 9, "helper": helper.card}
    return bound_plan(record, key, **(grouped | changes))


def rows_of(made: Consortium, name: str, *, later: int = 0) -> TrainingRows:
    start = 8_640 + ROWS // 4 * int(name[-2:]) + later  # of no two plants, so sums differ
    return TrainingRows(record=str(made.record), start=start, stop=start + ROWS)


def join(made: Consortium, name: str) -> None:
    membership = PlantFolder.create(
        made.folder / name,
        made.site.invite(name, at=made.clock()),
        load_rules(made.rules),
        made.rules.read_text(encoding="utf-8"),
        rows_of(made, name),
        at=made.clock(),
    )
    made.enrol(read_document(JoinRequest, membership.folder / "request.json", private=True))
    sign_off(made, name)


@pytest.fixture(scope="module")
def joined(line_files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Consortium:
    """Twelve plants that have joined and proven a batch, and a helper that has accepted them."""
    record, rules = line_files
    folder, key = tmp_path_factory.mktemp("groups"), SigningKey.generate()
    now = datetime.now(UTC)
    helper = HelperFolder.create(
        folder / "helper", "water", host="127.0.0.1", port=free_port(), at=now
    )
    site = found_federation(folder / "coordinator", plan_of(record, key, helper), at=now)
    made = Consortium(folder, record, rules, site, (key,))
    made.clock.now = now
    for name in NAMES:
        join(made, name)
        PlantFolder(folder / name).agent().attest()
    helper.accept_log(site.log, at=now)
    return made


def copied(made: Consortium, folder: Path) -> Consortium:
    shutil.copytree(made.folder, folder, dirs_exist_ok=True)
    again = replace(made, folder=folder, site=CoordinatorFolder(folder / "coordinator"))
    again.clock, again.plants = Clock(), {}
    again.clock.now = made.clock.now
    for name in NAMES:
        again.plants[name] = PlantFolder(folder / name).agent()
    return again


@pytest.fixture
def fresh(joined: Consortium, tmp_path: Path) -> Consortium:
    return copied(joined, tmp_path / "fresh")


@pytest.fixture(scope="module")
def ran(joined: Consortium, tmp_path_factory: pytest.TempPathFactory) -> Consortium:
    made = copied(joined, tmp_path_factory.mktemp("ran"))
    with helping(made):
        made.run()
    return made


@pytest.fixture
def done(ran: Consortium, tmp_path: Path) -> Consortium:
    return copied(ran, tmp_path / "done")


@contextmanager
def helping(made: Consortium) -> Iterator[None]:
    with serve_helper(HelperFolder(path=made.folder / "helper")):
        yield


def run(made: Consortium) -> Ledger:
    """Run with the helper, and return what the log says."""
    with helping(made):
        made.run()
    return read_log(made.site.log)


def helper_ledger(made: Consortium) -> HelperLedger:
    folder, ledger = HelperFolder(path=made.folder / "helper"), HelperLedger()
    ledger.read((folder.state / "helper.log").read_bytes().splitlines(), folder.card.key)
    return ledger


def seeds_held(made: Consortium) -> list[str]:
    return sorted(each.name for each in (made.folder / "helper/state/shares").iterdir())


def model_of(made: Consortium) -> MemberStatistics:
    store = CoordinatorStore(made.site.base)
    checkpoint = store.last(federation="water")
    store.close()
    assert checkpoint is not None
    return statistics_in(checkpoint.parameters, made.site.terms)


def held_by(made: Consortium, name: str) -> MemberStatistics | None:
    received = last_statistics(made.folder / name, made.site.terms)
    return received.shared if received else None


def own_sums(made: Consortium, name: str) -> MomentStatistic:
    plant = PlantFolder(made.folder / name)
    settings = statistic_settings(plant.keys.circuit)
    assert settings is not None
    return moment_statistic(plant.share.read(), settings)


def agent_of(made: Consortium, name: str) -> Agent:
    agent = made.plants[name]
    assert isinstance(agent, Agent)
    return agent


# -- the round ---------------------------------------------------------------------------------


def test_every_plant_ends_with_the_exact_sums_of_four_groups(ran: Consortium) -> None:
    ledger, kept = read_log(ran.site.log), model_of(ran)
    groups = ledger.groups.in_force
    assert sorted(name for group in groups for name in group.members) == list(NAMES)
    assert kept.names == VOTERS
    for group in groups:
        voter = kept.of(group.name)
        assert voter is not None
        assert voter.statistic == reduce(add, (own_sums(ran, name) for name in group.members))
    assert all(held_by(ran, name) == kept for name in NAMES)
    assert seeds_held(ran) == []


def test_no_party_holds_a_statistic_of_one_plant(ran: Consortium) -> None:
    """Neither the coordinator's files nor the helper's nor another plant's hold its sums."""
    sums = own_sums(ran, NAMES[0])
    numbers = sums.lagged.astype("<u8").tobytes()
    for place in ("coordinator", "helper", NAMES[1]):
        files = [each for each in (ran.folder / place).rglob("*") if each.is_file()]
        assert len(files) > 5
        assert not any(numbers[:256] in each.read_bytes() for each in files)


def test_the_vote_and_its_certificate_count_groups(ran: Consortium, sluice: Run) -> None:
    plant, clean = PlantFolder(ran.folder / NAMES[0]), read_record(ran.record).rows(4_320, 8_640)
    received = last_statistics(plant.folder, ran.site.terms)
    assert received is not None
    detector = shared_vote(
        ran.site.terms,
        received,
        clean,
        rules=plant.keys.circuit.rules,
        false_alarms_per_week=1.0,
        groups=plant.ledger().groups.in_force,
    )
    voted = detector.model
    assert (voted.members, voted.needed, voted.malicious) == (VOTERS, 2, 1)  # type: ignore[attr-defined]
    plants = [name for each in detector.training.contributions for name in each.plants]
    assert sorted(plants) == list(NAMES)
    words = ("--clean", "4320:8640", "--out", ran.folder / "model.safetensors")
    made = sluice("plant", "model", plant.folder, *words)
    assert made.code == 0, made.err
    assert "2 of 4 groups' votes are an alarm" in " ".join(made.out.split())


def test_status_pages_name_the_groups(ran: Consortium, sluice: Run) -> None:
    groups = read_log(ran.site.log).groups.in_force
    line = f"group-1-0 votes: {', '.join(groups[0].members)}"
    for words in (
        ("coordinator", "status", ran.site.folder),
        ("plant", "status", ran.folder / NAMES[0]),
        ("audit-log", "verify", ran.site.log),
    ):
        seen = sluice(*words)
        assert line in " ".join(seen.out.split()), words
    assert "summed in groups of at least 3 plants" in " ".join(seen.out.split())
    status = sluice("coordinator", "status", ran.site.folder, "--json").json
    named, plants = status["groups"], status["plants"]
    assert isinstance(named, list)
    assert isinstance(plants, list)
    assert len(named) == 4
    assert {each["word"] for each in plants} == {"trained"}


# -- plants that drop out or lie ---------------------------------------------------------------


class Silent:
    """Answers as its plant does, but not with one kind of answer."""

    def __init__(self, agent: Agent, kind: str, *, groups: tuple[int, ...] = ()) -> None:
        self._agent, self._kind, self._groups = agent, f'"kind":"{kind}"'.encode(), groups

    def answer(self, question: bytes) -> bytes:
        raw = self._agent.answer(question)
        groups = self._agent.ledger.groups
        number = groups.number_of(self._agent.name)
        first = number in self._groups and groups.drawn[number or 0][0] == self._agent.name
        return b"" if self._kind in raw and (first or not self._groups) else raw


@pytest.mark.parametrize(
    ("how", "step"), [("no pledge", "6"), ("no share", "6"), ("no share for the helper", "6.9.1")]
)
def test_a_member_that_drops_out_costs_its_group_and_no_other(
    fresh: Consortium, how: str, step: str
) -> None:
    agent = agent_of(fresh, NAMES[0])
    if how == "no share for the helper":
        agent._group.hand_in = lambda *_: None  # type: ignore[union-attr,method-assign]
    else:
        fresh.plants[NAMES[0]] = Silent(agent, "token" if how == "no pledge" else "update")
    ledger = run(fresh)
    (over,) = ledger.groups.given_up
    group = ledger.groups.drawn[over]
    assert NAMES[0] in group
    assert ledger.rounds.excluded == {name: step if name == NAMES[0] else "6.9.2" for name in group}
    assert [each.group for each in ledger.groups.in_force] == [n for n in range(4) if n != over]
    theirs = helper_ledger(fresh)
    assert over not in theirs.released
    assert over in theirs.retired
    assert seeds_held(fresh) == []  # the shares of the others are erased, and never summed
    assert bool(set(group) & set(theirs.shares)) == (how != "no pledge")
    store = CoordinatorStore(fresh.site.base)
    absent = {each.name for each in store.members() if each.absences}
    store.close()
    assert absent <= {NAMES[0]}
    snapshot_is_the_ledger_of_the_whole_log(fresh)


def snapshot_is_the_ledger_of_the_whole_log(made: Consortium) -> None:
    """Of a log that has every kind of entry about groups."""
    lines, key = made.site.log.read_bytes().splitlines(), made.site.signing_key()
    assert {json.loads(line)["body"]["kind"] for line in lines[:-1]} >= GROUPED
    whole = read_log(made.site.log)
    Log.open(made.site.log, key, replay=True).snapshot()
    snapshot = load_snapshot(made.site.log, key.public)
    assert snapshot is not None
    assert snapshot.state == whole.state
    assert snapshot.state.groups.summed
    assert Log.open(made.site.log, key).ledger.groups.in_force == whole.groups.in_force


def test_sums_of_other_rows_do_not_match_the_proof(
    fresh: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plant commits to shares of the sums that it wishes, and proves its own rows."""
    plant = PlantFolder(fresh.folder / NAMES[0])
    shutil.rmtree(plant.folder / "batches")
    honest = shares.share_sums

    def wished(statistic: MomentStatistic, *args: object, **more: object) -> object:
        sums = statistic.sums.copy()
        sums[0] += 1
        return honest(replace(statistic, sums=sums), *args, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(plant_protocol, "share_sums", wished)
        plant.agent().attest()
    fresh.plants[NAMES[0]] = plant.agent()
    ledger = run(fresh)
    assert ledger.rounds.excluded[NAMES[0]] == "6.9.1"
    assert len(ledger.groups.in_force) == 3
    assert not any(NAMES[0] in each.members for each in ledger.groups.in_force)


def test_two_incomplete_groups_leave_no_vote_and_nobody_shares(fresh: Consortium) -> None:
    """Members of two groups do not pledge; which groups are drawn is known only then."""
    for name in NAMES:
        fresh.plants[name] = Silent(agent_of(fresh, name), "token", groups=(0, 1))
    ledger = run(fresh)
    assert ledger.groups.in_force == ()
    assert set(ledger.groups.given_up) == {0, 1, 2, 3}
    assert helper_ledger(fresh).shares == {}
    assert set(ledger.rounds.excluded.values()) == {"6", "6.6", "6.9.2"}
    assert model_of(fresh).names == ()
    assert not any(ledger.groups.used(each) for each in ledger.state.attestations.values())


def test_too_few_plants_are_refused_before_any_group_is_drawn(fresh: Consortium) -> None:
    for name in NAMES[8:]:
        del fresh.plants[name]
    with (
        pytest.raises(RefusedError, match="at least 3 groups of at least 3 plants"),
        helping(fresh),
    ):
        fresh.run()
    assert read_log(fresh.site.log).groups.epoch is None
    assert helper_ledger(fresh).epoch is None


def test_groups_are_drawn_from_as_many_plants_as_the_terms_need() -> None:
    groups: Any = SimpleNamespace(terms=SimpleNamespace(members_min=9))
    none = np.zeros(0, np.float32)
    assert SharedGroups.can_begin(groups, none, NAMES[:9], at=END)
    assert not SharedGroups.can_begin(groups, none, NAMES[:8], at=END)


def test_plants_that_have_shared_or_pledged_are_settled() -> None:
    members = [SimpleNamespace(name=name, attestation=name) for name in ("new", "pledged", "used")]
    members.append(SimpleNamespace(name="refused", attestation=None))
    pledged = {(4, "pledged"): object(), (4, "refused"): object(), (3, "new"): object()}
    rounds = SimpleNamespace(last=4, token=lambda number, name: pledged.get((number, name)))
    groups: Any = SimpleNamespace(
        _ledger=SimpleNamespace(rounds=rounds),
        _groups=SimpleNamespace(used=lambda attestation: attestation == "used"),
        _store=SimpleNamespace(members=lambda: members),
    )
    assert SharedGroups.settled(groups, np.zeros(0, np.float32)) == {"pledged", "used"}


def test_shares_of_excluded_plants_are_not_added() -> None:
    added: list[object] = []
    groups: Any = SimpleNamespace(
        _sums=lambda: SimpleNamespace(accept=added.append),
        _groups=SimpleNamespace(round=1, sharing=()),
        _ledger=SimpleNamespace(rounds=SimpleNamespace(excluded={"b": "6.9.2"})),
        helper=SimpleNamespace(catch_up=lambda: None),
    )
    replies: dict[str, Reply] = {name: Contributed(member=name) for name in "abc"}
    assert SharedGroups._summed(groups, replies | {"d": NothingShown()}) == {}
    assert added == ["a", "c"]


@pytest.mark.parametrize(
    "held", [None, b"sealed", b"another" + bytes(24)], ids=["nothing", "cut", "another"]
)
def test_a_store_without_the_sealed_statistic_is_found(held: bytes | None) -> None:
    commit = SimpleNamespace(statistic=statistic_hash(b"sealed"))
    groups: Any = SimpleNamespace(
        _ledger=SimpleNamespace(attested_commit=lambda *_, **__: commit),
        _store=SimpleNamespace(statistic=lambda *_: held),
        agreements={},
    )
    with pytest.raises(CheckpointError, match="not hold the sealed statistic that 'a' has"):
        SharedGroups._contribution(groups, "a", "0" * 64, b"")


def test_plants_whose_rules_sum_otherwise_share_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    own = MomentSettings(registers=(Register(channel="A", low=0.0, step=1.0),), lags=2)
    fewer = replace(own, lags=1)
    monkeypatch.setattr(grouping, "statistic_settings", lambda circuit: circuit)
    agreements = {"a": own, "b": own, "c": fewer}
    groups: Any = SimpleNamespace(
        agreements={name: SimpleNamespace(circuit=each) for name, each in agreements.items()}
    )
    assert SharedGroups._settings(groups, ("a", "b")) == own
    with pytest.raises(RefusedError, match="the rules of 'c' sum other channels .* of 'a'"):
        SharedGroups._settings(groups, ("a", "b", "c"))


# -- the coordinator is killed, lies, or is lied to --------------------------------------------


class KilledError(Exception):
    """Stands for a kill."""


def test_a_coordinator_that_is_killed_in_each_phase_continues(
    fresh: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object, **__: object) -> None:
        raise KilledError

    with helping(fresh):
        for owner, name in (
            (HelperClient, "open_epoch"),
            (GroupSums, "release_order"),
            (SharedGroups, "_log_sums"),
            (SharedGroups, "_model"),
        ):
            with monkeypatch.context() as patched:
                patched.setattr(owner, name, kill)
                with pytest.raises(KilledError):
                    fresh.run()
        fresh.run()
    ledger = read_log(fresh.site.log)
    assert [each.name for each in ledger.groups.in_force] == list(VOTERS)
    assert (ledger.rounds.last, helper_ledger(fresh).size) == (1, 1 + 1 + 12 + 4)
    assert held_by(fresh, NAMES[3]) == model_of(fresh)


def test_plants_share_nothing_that_log_and_helper_do_not_both_allow(
    fresh: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator tells plants of an epoch that the helper does not know."""
    monkeypatch.setattr(HelperClient, "open_epoch", lambda *_: None)
    ledger = run(fresh)
    assert ledger.rounds.pledged == ()
    assert ledger.groups.in_force == ()
    assert helper_ledger(fresh).shares == {}


def test_a_plant_of_an_incomplete_group_declines_to_share(
    fresh: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator asks on, although a member of group 0 has not pledged."""
    for name in NAMES:
        fresh.plants[name] = Silent(agent_of(fresh, name), "token", groups=(0,))
    monkeypatch.setattr(SharedGroups, "left_out", lambda _: {})
    ledger = run(fresh)
    first, *others = ledger.groups.drawn[0]
    assert not {first, *others} & set(helper_ledger(fresh).shares)
    assert set(others) <= set(ledger.rounds.pledged) | set(ledger.rounds.excluded)
    assert len(ledger.groups.in_force) == 3


def test_a_helper_that_releases_no_sum_of_r_costs_its_group(
    fresh: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    lies = iter([True])

    def lying(
        adding: Callable[[Elements, Elements], Elements], parts: Iterator[Elements]
    ) -> object:
        return (
            expand(bytes(32), "a lie", len(next(parts)))
            if next(lies, None)
            else reduce(adding, parts)
        )

    monkeypatch.setattr(helper_module, "reduce", lying)
    ledger = run(fresh)
    assert len(ledger.groups.in_force) == 3
    assert list(ledger.groups.given_up.values()) == ["6.9.2"]


def test_removal_takes_the_whole_group_out_at_once(done: Consortium) -> None:
    before, began = model_of(done), time.perf_counter()
    left = take_out(done.site.folder, NAMES[0], at=done.clock())
    assert time.perf_counter() - began < 30
    group = read_log(done.site.log).groups
    assert NAMES[0] not in [name for each in group.in_force for name in each.members]
    assert left.members == tuple(each.name for each in group.in_force)
    assert len(left.members) == 3
    kept = model_of(done)
    assert all(kept.of(name) == before.of(name) for name in kept.names)
    del done.plants[NAMES[0]]
    ledger = run(done)
    assert held_by(done, NAMES[1]) == kept
    assert ledger.groups.of(NAMES[0]) is None


def test_later_rows_are_shared_in_a_later_epoch_and_never_twice(done: Consortium) -> None:
    renewing = NAMES[:9]
    for name in renewing[:8]:
        renew(done, name)
    ledger = run(done)  # eight plants are too few for an epoch
    assert ledger.groups.epoch is not None
    assert ledger.groups.epoch.epoch == 1
    renew(done, renewing[8])
    ledger = run(done)
    groups = ledger.groups.in_force
    assert {each.epoch for each in groups} <= {1, 2}
    assert sum(each.epoch == 2 for each in groups) == 3
    members = [name for each in groups for name in each.members]
    assert len(members) == len(set(members))
    assert set(renewing) <= set(members)
    assert model_of(done).names == tuple(each.name for each in groups)
    assert all(held_by(done, name) == model_of(done) for name in members)


def renew(made: Consortium, name: str) -> None:
    plant = PlantFolder(made.folder / name)
    plant.renew(rows_of(made, name, later=LATER))
    sign_off(made, name)


def test_a_plant_takes_only_the_sums_that_the_log_names(done: Consortium) -> None:
    kept, log = model_of(done), done.site.log
    one, two = kept.members[:2]
    sums = one.statistic.sums.copy()
    sums[0] += 1
    demand_logged(kept, log, read_log(log))
    driven, agent = Driven.of(done), agent_of(done, NAMES[0])
    for lie in (
        kept.joined_by([replace(one, statistic=two.statistic)]),
        kept.without(one.name),
        kept.joined_by([replace(one, statistic=replace(one.statistic, sums=sums))]),
        kept.joined_by([replace(one, attestation=two.attestation)]),
    ):
        with pytest.raises(VerificationError, match="by the log it must hold"):
            demand_logged(lie, log, read_log(log))
        ask = AskModel(round=1, over=True, parameters=lie.canonical())
        assert isinstance(driven.ask(agent, ask), Declined)


def test_the_coordinator_reads_only_shares_that_open_what_was_attested(done: Consortium) -> None:
    store = CoordinatorStore(done.site.base)
    made = coordinator_service(done.site, store, Direct(done.plants), clock=done.clock)
    token = made.transport.protocol.log.ledger.rounds.token(1, NAMES[0])
    assert token is not None
    agent, train = agent_of(done, NAMES[0]), Train(round=1, parameters=model_of(done).parameters)
    archived = agent._archive.named(token.attestation)
    raw = GroupMember.share_of(agent._group, archived)  # type: ignore[arg-type]
    made.transport.sharing.read(train, token, raw)
    for other in (b"", raw[:-1], raw + bytes(8), raw[:-1] + bytes([raw[-1] ^ 1]), bytes(len(raw))):
        with pytest.raises(VerificationError) as refused:
            made.transport.sharing.read(train, token, other)
        assert refused.value.step == "6.9.1"
    store.close()


# -- the log -----------------------------------------------------------------------------------


Altered = Callable[[Any, Consortium], Any]


def replayed(made: Consortium, kind: type) -> tuple[Ledger, Entry]:
    """Replay the log until its first entry of a kind; return the ledger, and that entry."""
    ledger = Ledger()
    for line in made.site.log.read_bytes().splitlines():
        entry = ENTRIES.read(line)
        if isinstance(entry.body, kind):
            return ledger, entry
        ledger.check(entry)
        ledger.note(entry, entry_digest(line))
    raise AssertionError(kind)


def reordered(**changes: object) -> Altered:
    """Return how an epoch is drawn with other content, under the coordinator's signature."""

    def alter(body: EpochDrawn, made: Consortium) -> EpochDrawn:
        content = replace(body.order.content, **changes)  # type: ignore[arg-type]
        return EpochDrawn(order=sign(content, made.site.signing_key()))

    return alter


def stranger(body: EpochDrawn, _: Consortium) -> EpochDrawn:
    return EpochDrawn(order=sign(body.order.content, SigningKey.generate()))


def resigned(body: GroupSummed, made: Consortium, **changes: object) -> GroupSummed:
    """Return a sum with another order in it, signed by coordinator and helper."""
    entry = body.released.content
    assert isinstance(entry.body, GroupReleased)
    content = replace(entry.body.order.content, **changes)  # type: ignore[arg-type]
    order = sign(content, made.site.signing_key())
    helper = HelperFolder(path=made.folder / "helper")
    again = replace(entry, body=replace(entry.body, order=order))
    return replace(body, released=sign(again, helper.key))


def of_another_batch(body: GroupSummed, made: Consortium) -> GroupSummed:
    released = body.released.content.body
    assert isinstance(released, GroupReleased)
    one, *others = released.order.content.members
    return resigned(body, made, members=(replace(one, commit="0" * 64), *others))


def of_a_part(body: GroupSummed, made: Consortium) -> GroupSummed:
    released = body.released.content.body
    assert isinstance(released, GroupReleased)
    return resigned(body, made, members=released.order.content.members[1:])


def without_the_helper(body: GroupSummed, made: Consortium) -> GroupSummed:
    return replace(body, released=sign(body.released.content, made.site.signing_key()))


def without_the_coordinator(body: GroupSummed, made: Consortium) -> GroupSummed:
    entry = body.released.content
    assert isinstance(entry.body, GroupReleased)
    order = sign(entry.body.order.content, SigningKey.generate())
    again = replace(entry, body=replace(entry.body, order=order))
    helper = HelperFolder(path=made.folder / "helper")
    return replace(body, released=sign(again, helper.key))


@pytest.mark.parametrize(
    ("kind", "alter", "why"),
    [
        (EpochDrawn, reordered(members=NAMES[:8]), "too few for groups"),
        (EpochDrawn, reordered(members=(*NAMES[:11], "sybil")), "no client 'sybil'"),
        (EpochDrawn, reordered(malicious=0), "the terms say 1"),
        (EpochDrawn, reordered(lags=9), "the terms say 1 and 10"),
        (EpochDrawn, reordered(head="0" * 64), "from the last entry of the log"),
        (EpochDrawn, reordered(deadline="2026-01-01T00:00:00.000000Z"), "and it is"),
        (EpochDrawn, reordered(federation="fire"), "the epoch is of 'fire'"),
        (EpochDrawn, stranger, "signature"),
        (EpochDrawn, lambda *_: RoundOpened(round=1, model="0" * 64, deadline=END), "draw one"),
        (EpochDrawn, lambda *_: GroupGivenUp(epoch=1, group=0, step="6.9.2"), "is not open"),
        (GroupSummed, without_the_helper, "signature"),
        (GroupSummed, without_the_coordinator, "signature"),
        (GroupSummed, of_another_batch, "another batch of"),
        (GroupSummed, of_a_part, "a sum is of the whole group"),
        (GroupSummed, lambda body, made: resigned(body, made, epoch=7), "not of this round"),
        (GroupSummed, lambda body, made: resigned(body, made, group=9), "group 9 is over"),
        (GroupSummed, lambda body, _: replace(body, round=2), "not of this round"),
        (GroupSummed, lambda *_: GroupGivenUp(epoch=1, group=4, step="6.9.2"), "is not open"),
        (GroupSummed, lambda *_: GroupGivenUp(epoch=2, group=0, step="6.9.2"), "is not open"),
        (
            GroupSummed,
            lambda *_: ModelAggregated(round=1, model="0" * 64, clients=NAMES),
            "whose group has no sum",
        ),
        (
            ModelAggregated,
            lambda *_: GroupGivenUp(epoch=1, group=0, step="6.9.2"),
            "is not open",
        ),
    ],
)
def test_the_log_refuses_other_entries_about_groups(
    ran: Consortium, kind: type, alter: Altered, why: str
) -> None:
    ledger, entry = replayed(ran, kind)
    ledger.check(entry)
    with pytest.raises(VerificationError, match=why):
        ledger.check(replace(entry, body=alter(entry.body, ran)))


def test_rows_that_were_shared_are_drawn_in_no_other_epoch(ran: Consortium) -> None:
    ledger = read_log(ran.site.log)
    epoch = ledger.groups.epoch
    assert epoch is not None
    again = replace(epoch, epoch=2, head=ledger.head("coordinator").last)
    body = EpochDrawn(order=sign(again, ran.site.signing_key()))
    entry = Entry(index=ledger.size, previous=again.head, time=ledger.time, body=body)
    with pytest.raises(VerificationError, match="that it has not shared yet"):
        ledger.check(entry)


# -- terms, helper and commands ----------------------------------------------------------------


def test_terms_that_groups_cannot_keep_are_refused(joined: Consortium, tmp_path: Path) -> None:
    helper = HelperFolder(path=joined.folder / "helper")
    key = SigningKey.generate()
    other = HelperFolder.create(tmp_path / "other", "fire", host="h", port=1, at=datetime.now(UTC))
    for changes, why in (
        ({"bound": False}, "only bound statistics"),
        ({"members_min": 8}, "9 members are needed"),
        ({"malicious": 2}, "20 members are needed"),
        ({"helper": other.card}, "--federation water"),
    ):
        plan = plan_of(joined.record, key, helper)
        with pytest.raises(SettingError, match=why):
            replace(plan, **changes)
    terms = joined.site.terms
    with pytest.raises(SettingError, match="9 members are needed"):
        replace(terms, members_min=8)
    statistic = terms.statistic
    assert statistic is not None
    opened = read_log(joined.site.log).opened
    for wrong, why in (
        (replace(statistic, bound=False), "only bound statistics"),
        (replace(statistic, helper=other.card), "a helper of this federation"),
        (replace(statistic, helper=replace(helper.card, key=opened.coordinator)), "helper's key"),
    ):
        body = replace(opened, statistic=wrong)
        entry = Entry(index=0, previous="0" * 64, time="2026-01-01T00:00:00.000000Z", body=body)
        with pytest.raises(VerificationError, match=why):
            Ledger().check(entry)


def test_a_helper_accepts_later_logs_of_its_federation_only(
    fresh: Consortium, tmp_path: Path, sluice: Run
) -> None:
    folder = fresh.folder / "helper"
    helper, now = HelperFolder(path=folder), datetime.now(UTC)
    again = sluice("helper", "accept", folder, "--log", fresh.site.log, "--json")
    assert again.json["members"] == list(NAMES)
    assert helper_ledger(fresh).size == 1  # nothing is new
    join(fresh, "plant-12")
    assert sluice("helper", "accept", folder, "--log", fresh.site.log).code == 0
    assert helper_ledger(fresh).key_of("plant-12")
    fresh.site.rotate_key(at=fresh.clock())
    helper.accept_log(fresh.site.log, at=now)
    assert helper_ledger(fresh).coordinator == fresh.site.signing_key().public
    lone = HelperFolder.create(tmp_path / "lone", "water", host="h", port=1, at=now)
    with pytest.raises(SettingError, match="names another helper"):
        lone.accept_log(fresh.site.log, at=now)
    assert sluice("helper", "run", lone.path).code == 2
    assert sluice("helper", "show", lone.path).code == 2
    plan = plan_of(fresh.record, SigningKey.generate(), helper)
    forged = found_federation(tmp_path / "forged", plan, at=now)
    with pytest.raises(SettingError, match="another coordinator"):
        helper.accept_log(forged.log, at=now)


def test_init_pins_the_helper(joined: Consortium, tmp_path: Path, sluice: Run) -> None:
    card = joined.folder / "helper" / "card.json"
    given = ("coordinator", "init", "--reference", joined.record, "--rows", "4320:8640")
    words = (*given, "--name", "water", "--detector", "moments")
    bound = (*words, "--bound", "--groups")
    seen = sluice(*bound, tmp_path / "a", "--helper-card", card, "--json")
    assert seen.code == 0, seen.err
    url = HelperFolder(path=card.parent).card.url
    assert (seen.json["groups"], seen.json["helper"]) == (True, url)
    site = CoordinatorFolder(tmp_path / "a")
    assert (site.terms.members_min, site.terms.binds) == (9, "hidden")
    opened = read_log(site.log).opened.statistic
    assert opened is not None
    assert opened.helper == HelperFolder(path=card.parent).card
    for wrong, why in (
        ((*bound,), "--helper-card"),
        ((*bound, "--helper", url), "--helper-card"),
        ((*bound, "--helper-card", card, "--helper", "https://h:1"), "is of a helper at"),
        ((*words, "--groups", "--helper-card", card), "add --bound"),
        ((*words, "--bound", "--helper-card", card), "are for --groups"),
        ((*bound, "--helper-card", card, "--members-min", "8"), "9 members are needed"),
    ):
        seen = sluice(*wrong, tmp_path / "b")
        assert seen.code == 2
        assert why in " ".join(seen.err.split()), seen.err


def test_plants_with_other_channels_do_not_join(joined: Consortium) -> None:
    terms = joined.site.terms
    own = statistic_settings(PlantFolder(joined.folder / NAMES[0]).keys.circuit)
    assert own is not None
    demand_fitting("a", own, terms, [own])
    fewer = replace(own, registers=own.registers[1:])
    with pytest.raises(RefusedError, match="groups need equal ones"):
        demand_fitting("a", fewer, terms, [own])
