"""Bound statistics between sites: what a plant shares is what its proof ties to its rows."""

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import parse_policy
from sluice.attestation.log.chain import Log, read_log
from sluice.attestation.log.entries import (
    BatchCommitted,
    ClientRegistered,
    ClientRemoved,
    GateSet,
)
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import COMMITS
from sluice.attestation.messages.orders import ShadowOrder, Waiver
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.attestation.messages.tokens import TOKENS, update_digest
from sluice.attestation.protocol.plant import Committed, statistic_hash
from sluice.attestation.systems.full import statistic_settings
from sluice.detector.moments.statistic import MomentStatistic, moment_statistic
from sluice.errors import (
    CheckpointError,
    DocumentError,
    RefusedError,
    SettingError,
    VerificationError,
)
from sluice.federation.federate import FederationSettings, federate
from sluice.federation.messages import Contributed, Train
from sluice.invariants.rulesfile import load_rules
from sluice.network import statistics
from sluice.network.coordinator import founding
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import (
    coordinator_service,
    found_federation,
)
from sluice.network.coordinator.importing import take_in
from sluice.network.coordinator.operations import take_out
from sluice.network.coordinator.sharing import statistics_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.model import last_statistics
from sluice.network.statistics import MemberStatistics, demand_fitting, vote_of
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.questions import (
    ANSWERS,
    AskBatch,
    AskModel,
    Batch,
    Declined,
    Payload,
    Pledge,
    Revelation,
)
from sluice.network.wire.wire import LARGEST_ANSWER, Direct
from sluice.reports.dashboard.federation_page import federation_page
from sluice.reports.dashboard.snapshot import take
from sluice.telemetry.reading import read_record
from tests.unit.conftest import Outcome

from .asking import Driven, Falsifying
from .conftest import LIMITS, POLICY, START, Clock, Consortium, Founder, bound_plan, sign_off

Run = Callable[..., Outcome]
NAMES = ("north", "south", "west")


@pytest.fixture(scope="module")
def joined(line_files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Consortium:
    """Three plants that have joined and signed off, and a fourth that has not signed off."""
    record, rules = line_files
    folder, key = tmp_path_factory.mktemp("bound"), SigningKey.generate()
    site = found_federation(folder / "coordinator", bound_plan(record, key), at=START)
    made = Consortium(folder, record, rules, site, (key,))
    for index, name in enumerate((*NAMES, "east")):
        made.join(name, index)
        if name != "east":
            sign_off(made, name)
    return made


@pytest.fixture(scope="module")
def ran(joined: Consortium, tmp_path_factory: pytest.TempPathFactory) -> Consortium:
    """The same, after its round."""
    made = copied(joined, tmp_path_factory.mktemp("ran"), NAMES)
    made.run()
    return made


def copied(consortium: Consortium, folder: Path, names: tuple[str, ...]) -> Consortium:
    shutil.copytree(consortium.folder, folder, dirs_exist_ok=True)
    made = replace(consortium, folder=folder, site=CoordinatorFolder(folder / "coordinator"))
    made.clock, made.plants = Clock(), {}
    made.clock.now = consortium.clock.now
    for name in names:
        made.plants[name] = PlantFolder(folder / name).agent()
    return made


@pytest.fixture
def bound(joined: Consortium, tmp_path: Path) -> Consortium:
    return copied(joined, tmp_path / "fresh", NAMES)


@pytest.fixture
def done(ran: Consortium, tmp_path: Path) -> Consortium:
    return copied(ran, tmp_path / "done", NAMES)


def agent_of(consortium: Consortium, name: str) -> Agent:
    agent = consortium.plants[name]
    assert isinstance(agent, Agent)
    return agent


def model_of(consortium: Consortium) -> MemberStatistics:
    store = CoordinatorStore(consortium.site.base)
    checkpoint = store.last(federation="water")
    store.close()
    assert checkpoint is not None
    return statistics_in(checkpoint.parameters, consortium.site.terms)


def held_by(consortium: Consortium, name: str) -> MemberStatistics | None:
    received = last_statistics(consortium.folder / name, consortium.site.terms)
    return received.shared if received else None


def steps(consortium: Consortium) -> dict[str, str]:
    store = CoordinatorStore(consortium.site.base)
    found = {each.name: each.step for each in store.members() if each.step}
    store.close()
    return found | dict(read_log(consortium.site.log).rounds.excluded)


# -- the round ---------------------------------------------------------------------------------


def test_every_plant_ends_with_the_bound_statistics(done: Consortium) -> None:
    kept = model_of(done)
    assert kept.names == NAMES
    ledger = read_log(done.site.log)
    for name in NAMES:
        own = kept.of(name)
        assert own is not None
        plant = PlantFolder(done.folder / name)
        settings = statistic_settings(plant.keys.circuit)
        assert settings is not None
        assert own.statistic == moment_statistic(plant.share.read(), settings)
        commit = ledger.attested_commit(name, own.attestation, step="7")
        assert commit.statistic == own.statistic.digest
        assert commit.signed_off == "A. Reader"
        assert held_by(done, name) == kept


def test_the_first_entry_names_lags_scale_and_limits_and_that_they_are_bound(
    done: Consortium,
) -> None:
    opened = json.loads(done.site.log.read_text().splitlines()[0])["body"]["statistic"]
    assert (opened["bound"], opened["limits"], opened["lags"]) == (
        True,
        {"rows_min": 300, "span_min_s": 3_600},
        10,
    )
    assert {each["low"] for each in opened["channels"]} == {None}  # the rules of each plant say it
    assert all(each["spread"] > 0 and each["resolution"] > 0 for each in opened["channels"])


def test_bound_statistics_have_no_common_settings(joined: Consortium) -> None:
    with pytest.raises(SettingError, match="the rules of each plant decide what it sums"):
        _ = joined.site.terms.moments


def test_the_statistic_travels_once_and_with_the_batch(bound: Consortium) -> None:
    sent: list[Payload | Declined] = []
    honest = agent_of(bound, "north")

    class Listening:
        def answer(self, question: bytes) -> bytes:
            raw = honest.answer(question)
            sent.append(ANSWERS.read(raw).answer)
            return raw

    bound.plants["north"] = Listening()
    bound.run()
    (batch,) = [each for each in sent if isinstance(each, Batch)]
    (revealed,) = [each for each in sent if isinstance(each, Revelation)]
    assert batch.statistic is not None
    assert revealed.update.hex() == statistic_hash(batch.statistic)
    bound.run()
    assert len([each for each in sent if isinstance(each, Batch | Revelation)]) == 2


def test_the_vote_is_the_same_in_one_process_and_over_the_wire(done: Consortium) -> None:
    reference = read_record(done.record).rows(4_320, 8_640)
    clients = {name: PlantFolder(done.folder / name).share.read() for name in NAMES}
    alone = federate(
        FederationSettings(
            clients=clients,
            validation=reference,
            gate=Gate.of(load_rules(done.rules), parse_policy(POLICY, name="of the test")),
            detector="moments",
            rule="vote",
            bound=LIMITS,
        )
    ).detector
    wired = vote_of(
        model_of(done),
        done.site.terms,
        reference,
        rounds=1,
        rules=None,
        false_alarms_per_week=1.0,
    )
    one, other = alone.model.tensors(), wired.model.tensors()
    assert list(one) == list(other)
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)
    assert alone.threshold == wired.threshold


# -- malicious plants --------------------------------------------------------------------------


def with_statistic(change: Callable[[bytes], bytes | None]) -> Callable[[Payload], Payload]:
    def changing(answer: Payload) -> Payload:
        if isinstance(answer, Batch):
            assert answer.statistic is not None
            return replace(answer, statistic=change(answer.statistic))
        return answer

    return changing


def one_more(raw: bytes) -> bytes:
    last = int.from_bytes(raw[-8:], "little") + 1
    return raw[:-8] + last.to_bytes(8, "little")


@pytest.mark.parametrize(
    "change",
    [lambda _: None, lambda _: b"", one_more, lambda raw: raw + bytes(8)],
    ids=["none", "empty", "one more", "longer"],
)
def test_a_statistic_that_the_commitment_does_not_name_is_refused(
    bound: Consortium, change: Callable[[bytes], bytes | None]
) -> None:
    bound.plants["south"] = Falsifying(agent_of(bound, "south"), with_statistic(change))
    with pytest.raises(RefusedError, match="the terms need 3"):
        bound.run()
    assert steps(bound) == {"south": "5.6.1"}


def recommitted(plant: PlantFolder, **changes: object) -> bytes:
    """Return the plant's commitment with other content, under its own signature."""
    (path,) = plant.folder.glob("batches/*/commit.json")
    content = replace(COMMITS.read(path.read_bytes()).content, **changes)  # type: ignore[arg-type]
    return COMMITS.write(sign(content, plant.keys.client_key()))


def test_a_forged_statistic_that_the_commitment_names_fails_the_proof(bound: Consortium) -> None:
    """It commits to the sums that it wishes, and proves its own rows."""
    agent, plant = agent_of(bound, "south"), PlantFolder(bound.folder / "south")

    def forged(answer: Payload) -> Payload:
        if isinstance(answer, Batch):
            assert answer.statistic is not None
            other = one_more(answer.statistic)
            commit = recommitted(plant, statistic=statistic_hash(other))
            return replace(answer, statistic=other, commit=commit)
        return answer

    bound.plants["south"] = Falsifying(agent, forged)
    with pytest.raises(RefusedError, match="the terms need 3"):
        bound.run()
    assert steps(bound) == {"south": "5.8"}


@pytest.mark.parametrize("part", ["statistic", "signed_off"])
def test_a_commitment_without_a_statistic_or_a_sign_off_is_refused(
    bound: Consortium, part: str
) -> None:
    agent, plant = agent_of(bound, "south"), PlantFolder(bound.folder / "south")

    def without(answer: Payload) -> Payload:
        if isinstance(answer, Batch):
            return replace(answer, commit=recommitted(plant, **{part: None}))
        return answer

    bound.plants["south"] = Falsifying(agent, without)
    with pytest.raises(RefusedError, match="the terms need 3"):
        bound.run()
    assert steps(bound) == {"south": "2"}


def test_a_pledge_of_another_statistic_excludes_its_plant(bound: Consortium) -> None:
    """The round's update is the hash of the bound statistic, and the log checks it."""
    agent, plant = agent_of(bound, "south"), PlantFolder(bound.folder / "south")

    def other(answer: Payload) -> Payload:
        if isinstance(answer, Pledge):
            token = TOKENS.read(answer.token).content
            update = update_digest("water", "south", token.round, bytes(32))
            signed = sign(replace(token, update=update), plant.keys.client_key())
            return replace(answer, token=TOKENS.write(signed))
        return answer

    bound.plants["south"] = Falsifying(agent, other)
    bound.run()
    assert steps(bound) == {"south": "6.9", "north": "6.6", "west": "6.6", "east": "4"}


def test_a_revelation_of_another_statistic_excludes_its_plant(bound: Consortium) -> None:
    def other(answer: Payload) -> Payload:
        return replace(answer, update=bytes(32)) if isinstance(answer, Revelation) else answer

    bound.plants["south"] = Falsifying(agent_of(bound, "south"), other)
    bound.run()
    assert steps(bound) == {"south": "6.3", "north": "6.6", "west": "6.6", "east": "4"}


# -- the log -----------------------------------------------------------------------------------


def test_a_short_batch_is_refused_by_the_plant_and_by_the_log(bound: Consortium) -> None:
    plant, driven = PlantFolder(bound.folder / "south"), Driven.of(bound)
    rows, sharing = plant.share.read(), plant.statistic_sharing()
    assert sharing is not None
    longer = replace(sharing, limits=StatisticLimits(rows_min=300))
    for asked, batch, limit in (
        (sharing, rows.rows(0, 299), "at least 300 rows"),
        (longer, rows, "at least 86,400 s"),
    ):
        with pytest.raises(RefusedError, match=limit):
            asked.signed_off(batch)
        with pytest.raises(RefusedError, match=limit):
            asked.sign_off(batch, "A. Reader", at=START)
    commit = plant.registered().commit(rows.rows(0, 299), signed_off="A. Reader").message
    with pytest.raises(VerificationError, match="at least 300 rows") as refused:
        driven.log.append(BatchCommitted(commit=commit), at=driven.now())
    assert refused.value.step == "2"


def test_no_batch_is_exempt_from_proving(bound: Consortium) -> None:
    order = ShadowOrder(
        federation="water", until=instant(bound.clock.now.replace(year=2027)), reason="tests"
    )
    waiver = Waiver(
        federation="water",
        client="north",
        interval=Interval(start="2026-01-01T00:00:00.000000", end="2026-01-02T00:00:00.000000"),
        expires=order.until,
        reason="tests",
    )
    for asked in (order, waiver):
        with pytest.raises(VerificationError, match="no waiver, no shadow mode") as refused:
            bound.order(asked)
        assert refused.value.step == "4"
    driven = Driven.of(bound)
    with pytest.raises(VerificationError, match="the gate already has this setting"):
        driven.log.append(GateSet(enforced=True), at=driven.now())


def test_only_the_system_that_binds_is_registered(bound: Consortium) -> None:
    plant, driven = PlantFolder(bound.folder / "east"), Driven.of(bound)
    registered = plant.registered()
    content = replace(registered.registration().content, system="unsafe", client="tide")
    body = ClientRegistered(registration=sign(content, registered.key), looser=False, approvals=())
    with pytest.raises(VerificationError, match="only proofs of 'full' bind") as refused:
        driven.log.append(body, at=driven.now())
    assert refused.value.step == "1"


# -- the sign-off ------------------------------------------------------------------------------


def test_a_plant_sends_nothing_without_a_sign_off(
    joined: Consortium, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = copied(joined, tmp_path / "unsigned", (*NAMES, "east"))
    made.run()
    assert model_of(made).names == NAMES
    assert "no operator has signed off" in caplog.text
    assert "--sign-off NAME" in caplog.text
    assert not list((made.folder / "east" / "batches").iterdir())
    sign_off(made, "east", "B. Other")
    made.run()
    assert model_of(made).names == ("east", *NAMES)
    assert held_by(made, "north") == model_of(made)


def test_plant_check_says_what_the_statistic_tells_and_keeps_the_sign_off(
    joined: Consortium, tmp_path: Path, sluice: Run
) -> None:
    made = copied(joined, tmp_path / "checked", NAMES)
    folder = made.folder / "east"
    before = sluice("plant", "check", folder)
    assert before.code == 3
    assert "--sign-off NAME" in before.out
    assert "is on for about" in before.out
    assert "strongest correlations: " in before.out
    seen = sluice("plant", "check", folder, "--sign-off", "B. Other", "--json")
    assert seen.code == 0, seen.err
    told = seen.json["statistic"]
    assert isinstance(told, dict)
    assert told["signed_off"] == "B. Other"
    batch = PlantFolder(folder).share.read()
    share = float((batch.column("S_PU1") == 1).mean())
    hours = next(each for each in told["running"] if each.startswith("S_PU1 "))
    assert abs(float(hours.split("(")[1].rstrip("%)")) / 100 - share) < 0.25  # the ramps weigh less
    assert sluice("plant", "check", folder).code == 0
    for name in ("", "x", "tab\there", "n" * 65):
        wrong = sluice("plant", "check", folder, "--sign-off", name)
        assert wrong.code == 2
        assert "a sign-off needs a name" in wrong.err
    assert sluice("plant", "check", folder, "--sign-off", "n" * 64).code == 0
    assert sluice("plant", "check", folder, "--sign-off", "B. Other").code == 0
    made.plants["east"] = PlantFolder(folder).agent()
    made.run()
    log = sluice("audit-log", "verify", made.site.log, "--json").json
    assert log["bound"] is True
    signed = log["signed_off"]
    assert isinstance(signed, list)
    assert {(each["plant"], each["operator"]) for each in signed} == {
        *((name, "A. Reader") for name in NAMES),
        ("east", "B. Other"),
    }
    status = sluice("coordinator", "status", made.site.folder)
    assert "Statistics are bound by proofs; each covers at least 300 rows" in status.out
    assert "statistic_rows_min is 300 (default 4,096)" in " ".join(status.out.split())


def test_a_sign_off_is_for_one_statistic(bound: Consortium) -> None:
    plant = PlantFolder(bound.folder / "south")
    sharing = plant.statistic_sharing()
    assert sharing is not None
    rows = plant.share.read()
    assert sharing.signed_off(rows) == "A. Reader"
    for name in ("Zoë", " A. Reader", "A. Reader ", "a", "x" * 65):
        with pytest.raises(SettingError, match="a sign-off needs a name"):
            sharing.sign_off(rows, name, at=START)
    for name in ("x" * 64, "ab"):
        sharing.sign_off(rows, name, at=START)
        assert sharing.signed_off(rows) == name
    with pytest.raises(RefusedError, match="no operator has signed off"):
        sharing.signed_off(rows.rows(0, 400))
    (path,) = (plant.folder / "sign-offs").iterdir()
    shorter = sharing._statistic(rows.rows(0, 400)).digest
    path.rename(path.with_name(f"{shorter}.json"))  # it names the other statistic
    with pytest.raises(RefusedError, match="no operator has signed off"):
        sharing.signed_off(rows.rows(0, 400))


# -- removal and renewal -----------------------------------------------------------------------


def test_a_member_is_taken_out_exactly_and_its_statistic_is_deleted(
    joined: Consortium, tmp_path: Path
) -> None:
    made = copied(joined, tmp_path / "four", (*NAMES, "east"))
    sign_off(made, "east")
    made.run()
    before = model_of(made)
    began = time.perf_counter()
    left = take_out(made.site.folder, "south", at=made.clock())
    seconds = time.perf_counter() - began
    assert left.members == ("east", "north", "west")
    assert model_of(made) == before.without("south")
    assert seconds < 1.0
    store = CoordinatorStore(made.site.base)
    own = before.of("south")
    assert own is not None
    assert store.statistic("south", own.attestation) is None
    store.close()
    made.run()
    assert held_by(made, "north") == before.without("south")


def test_a_renewed_batch_replaces_the_bound_statistic(done: Consortium) -> None:
    before = model_of(done)
    plant = PlantFolder(done.folder / "west")
    start = plant.share.stop
    plant.renew(TrainingRows(record=str(done.record), start=start, stop=start + 400))
    done.run()
    assert model_of(done) == before  # the new rows are not signed off
    sign_off(done, "west", "B. Other")
    done.run()
    after = model_of(done)
    assert after.without("west") == before.without("west")
    renewed, earlier = after.of("west"), before.of("west")
    assert renewed is not None
    assert earlier is not None
    assert renewed.statistic.count == 391
    assert held_by(done, "north") == after
    store = CoordinatorStore(done.site.base)
    assert store.statistic("west", earlier.attestation) is None
    assert store.statistic("west", renewed.attestation) == renewed.statistic.canonical()
    store.close()


# -- what a coordinator may not do -------------------------------------------------------------


def forged_models(kept: MemberStatistics) -> dict[str, MemberStatistics]:
    south, north = kept.of("south"), kept.of("north")
    assert south is not None
    assert north is not None
    return {
        "swapped": kept.joined_by([replace(south, statistic=north.statistic)]),
        "relabelled": kept.joined_by([replace(south, attestation=north.attestation)]),
        "dropped": kept.without("south"),
        "changed": kept.joined_by(
            [
                replace(
                    south,
                    statistic=MomentStatistic.from_canonical(
                        one_more(south.statistic.canonical()), south.statistic.settings
                    ),
                )
            ]
        ),
    }


@pytest.mark.parametrize("change", ["swapped", "relabelled", "dropped", "changed"])
def test_a_model_that_the_log_names_must_hold_every_attested_statistic(
    done: Consortium, change: str
) -> None:
    """The coordinator logs the hash of its own choice when it removes a plant."""
    kept = model_of(done)
    forged = forged_models(kept)[change].without("west")
    driven = Driven.of(done)
    body = ClientRemoved(client="west", since=0, model_of=1, model=forged.digest)
    driven.log.append(body, at=driven.now())
    agent = agent_of(done, "north")
    ask = AskModel(round=1, over=True, parameters=forged.canonical())
    assert isinstance(driven.ask(agent, ask), Declined)
    assert held_by(done, "north") == kept


def test_a_statistic_that_no_attested_commitment_names_is_not_taken(
    done: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own log says that the commitment names another statistic."""
    kept, driven = model_of(done), Driven.of(done)
    agent = agent_of(done, "north")
    driven.ask(agent, AskModel(round=1, over=True, parameters=kept.canonical()))
    ledger = agent.ledger
    commits = ledger.state.commits
    for key, logged in commits.items():
        if logged.commit.content.client == "south":
            content = replace(logged.commit.content, statistic="0" * 64)
            commits[key] = replace(logged, commit=replace(logged.commit, content=content))
    ask = AskModel(round=1, over=True, parameters=kept.canonical())
    assert isinstance(driven.ask(agent, ask), Declined)


def test_a_store_without_the_attested_statistic_is_found(
    bound: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CoordinatorStore, "statistic", lambda *_: None)
    with pytest.raises(CheckpointError, match="does not hold the statistic"):
        bound.run()


# -- the encoding ------------------------------------------------------------------------------


def test_bound_statistics_are_read_back_with_their_own_settings(done: Consortium) -> None:
    kept = model_of(done)
    raw = kept.canonical()
    assert MemberStatistics.from_canonical(raw, None) == kept
    south = kept.of("south")
    assert south is not None
    settings = south.statistic.settings
    at = statistics.HEADER.size + statistics.MEMBER.size
    (length,) = statistics.LENGTH.unpack_from(raw, at)
    start = at + statistics.LENGTH.size
    spaced = raw[:at] + statistics.LENGTH.pack(length + 1) + b" " + raw[start:]
    for wrong in (
        spaced,
        raw[:-8],
        raw + bytes(1),
        raw.replace(b'"lags":10', b'"lags": 9', 1),
        raw.replace(b'"lags":10', b'"lags":11', 1),
        raw[:56] + raw[56:].replace(b"north", b"zorth", 1),
    ):
        with pytest.raises(DocumentError):
            MemberStatistics.from_canonical(wrong, None)
    with pytest.raises(DocumentError, match="another federation's terms"):
        MemberStatistics.from_canonical(raw, settings)
    plain = MemberStatistics(settings=settings, members=kept.members).canonical()
    with pytest.raises(DocumentError, match="another federation's terms"):
        MemberStatistics.from_canonical(plain, None)


def test_a_plant_whose_rules_sum_other_channels_does_not_join(done: Consortium) -> None:
    terms, kept = done.site.terms, model_of(done)
    own = kept.members[0].statistic.settings
    unknown = replace(own, registers=(replace(own.registers[0], channel="Z"), *own.registers[1:]))
    with pytest.raises(RefusedError, match="sum channel 'Z'"):
        demand_fitting("tide", unknown, terms)
    with pytest.raises(RefusedError, match="has 9 lags"):
        demand_fitting("tide", replace(own, lags=9), terms)
    assert terms.statistic is not None
    subsets = replace(terms, statistic=replace(terms.statistic, rule="any-of-subsets"))
    fewer = replace(own, registers=own.registers[1:])
    demand_fitting("tide", fewer, terms, [own])
    demand_fitting("tide", own, subsets, [own])
    with pytest.raises(RefusedError, match="needs equal ones: use rule 'vote'"):
        demand_fitting("tide", fewer, subsets, [own])


def test_enrolment_asks_whether_the_rules_fit(
    bound: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = bound.request("tide", 4)
    terms = bound.site.terms
    assert terms.statistic is not None
    names = terms.channels[:3]
    fewer = replace(
        terms,
        channels=names,
        mean=terms.mean[:3],
        spread=terms.spread[:3],
        statistic=replace(terms.statistic, channels=terms.statistic.channels[:3]),
    )
    monkeypatch.setattr(CoordinatorFolder, "terms", fewer)
    with pytest.raises(RefusedError, match="which the federation's terms do not name"):
        bound.enrol(request)
    with pytest.raises(RefusedError, match="which the federation's terms do not name"):
        bound.request("ebb", 5)


# -- founding ----------------------------------------------------------------------------------


def test_bound_statistics_need_the_system_and_the_detector_that_bind(
    line_files: tuple[Path, Path],
) -> None:
    record, key = line_files[0], SigningKey.generate()
    for changes, match in (
        ({"system": "unsafe"}, "'unsafe' binds no statistic"),
        ({"detector": "autoencoder", "rule": "fedavg", "limits": None}, "cannot be bound"),
        ({"limits": StatisticLimits()}, "raise --largest"),
        (
            {"detector": "autoencoder", "rule": "fedavg", "bound": False},
            "shares no statistic",
        ),
    ):
        with pytest.raises(SettingError, match=match):
            bound_plan(record, key, **changes)


def test_a_bound_statistic_leaves_room_for_its_proof(
    line_files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, channels = bound_plan(line_files[0], SigningKey.generate()), 0
    with monkeypatch.context() as patched:
        patched.setattr(founding, "PROOF_ROOM", LARGEST_ANSWER - founding.ANSWER_EXTRA)
        with pytest.raises(SettingError, match="leave channels out of --reference") as refused:
            found_federation(tmp_path / "full", plan, at=START)
        channels = int(str(refused.value).split(" channels")[0].rsplit(" ", 1)[1])
    site = found_federation(tmp_path / "fits", plan, at=START)
    assert channels == len(site.terms.channels)


def test_init_prints_and_logs_lowered_limits(
    line_files: tuple[Path, Path], tmp_path: Path, sluice: Run
) -> None:
    words = ("coordinator", "init", "--reference", line_files[0], "--rows", "4320:8640")
    low = ("--statistic-rows-min", "300", "--statistic-span-min", "0")
    made = sluice(*words, tmp_path / "a", "--detector", "moments", "--bound", *low)
    assert made.code == 0, made.err
    assert "statistic_rows_min is 300 (default 4,096)" in " ".join(made.err.split())
    assert "Statistics are bound by proofs" in made.out
    seen = sluice(*words, tmp_path / "b", "--detector", "moments", "--bound", "--json")
    assert (seen.json["bound"], seen.json["statistic_rows_min"]) == (True, 4_096)
    assert seen.json["statistic_span_min"] == 86_400
    opened = read_log(tmp_path / "b" / "log.jsonl").opened.statistic
    assert opened is not None
    assert opened.limits == StatisticLimits()
    plain = sluice(*words, tmp_path / "c", "--detector", "moments", "--json")
    assert (plain.json["bound"], plain.json["statistic_rows_min"]) == (False, 4_096)
    for wrong in (
        ("--detector", "moments", "--bound", "--system", "unsafe"),
        ("--detector", "autoencoder", "--bound"),
        ("--rounds", "2", *low),
    ):
        assert sluice(*words, tmp_path / "d", *wrong).code == 2


# -- further refusals --------------------------------------------------------------------------


def test_the_coordinator_reads_only_the_hash_that_was_attested(
    done: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CoordinatorStore(done.site.base)
    made = coordinator_service(done.site, store, Direct(done.plants), clock=done.clock)
    token = made.transport.protocol.log.ledger.rounds.token(1, "south")
    own = model_of(done).of("south")
    assert token is not None
    assert own is not None
    train = Train(round=1, parameters=made.transport.sharing.first())
    read = made.transport.sharing.read(train, token, bytes.fromhex(own.statistic.digest))
    assert isinstance(read, Contributed)
    assert read.member == own
    for raw in (b"", bytes(32), own.statistic.canonical()):
        with pytest.raises(VerificationError, match="its attested commitment names") as refused:
            made.transport.sharing.read(train, token, raw)
        assert refused.value.step == "6.9"
    for held in (None, one_more(own.statistic.canonical())):
        monkeypatch.setattr(CoordinatorStore, "statistic", lambda *_, held=held: held)
        with pytest.raises(CheckpointError, match="does not hold the statistic"):
            made.transport.sharing.read(train, token, bytes.fromhex(own.statistic.digest))
    store.close()


def test_a_plant_sends_no_batch_without_a_proof(
    bound: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(*_: object, **__: object) -> object:
        raise RefusedError("no proof today")

    monkeypatch.setattr(Committed, "prove", unable)
    driven, agent = Driven.of(bound), agent_of(bound, "north")
    assert isinstance(driven.ask(agent, AskBatch(unproven=True)), Declined)


def test_there_is_no_vote_without_a_statistic(done: Consortium) -> None:
    nothing = MemberStatistics(settings=None)
    clean = read_record(done.record).rows(4_320, 8_640)
    with pytest.raises(RefusedError, match="no plant has shared a statistic yet"):
        vote_of(nothing, done.site.terms, clean, rounds=0, rules=None, false_alarms_per_week=1.0)


def test_members_with_other_settings_are_not_added_up(done: Consortium) -> None:
    terms, kept = done.site.terms, model_of(done)
    assert terms.statistic is not None
    south = kept.of("south")
    assert south is not None
    settings = south.statistic.settings
    moved = replace(settings.registers[0], low=settings.registers[0].low + 1.0)
    other = replace(settings, registers=(moved, *settings.registers[1:]))
    shifted = replace(south, statistic=replace(south.statistic, settings=other))
    mixed = kept.joined_by([shifted])
    assert MemberStatistics.from_canonical(mixed.canonical(), None) == mixed
    clean = read_record(done.record).rows(4_320, 8_640)
    ask = {"rounds": 1, "rules": None, "false_alarms_per_week": 1.0}
    assert vote_of(mixed, terms, clean, **ask) is not None  # type: ignore[arg-type]
    subsets = replace(terms, statistic=replace(terms.statistic, rule="any-of-subsets"))
    with pytest.raises(RefusedError, match="needs equal ones"):
        vote_of(mixed, subsets, clean, **ask)  # type: ignore[arg-type]


def test_there_is_nothing_to_sign_off_where_plants_train(founder: Founder, sluice: Run) -> None:
    made = founder()
    made.join("north", 0)
    seen = sluice("plant", "check", made.folder / "north", "--sign-off", "A. Reader")
    assert (seen.code, seen.out) == (2, "")
    assert "there is none to sign off" in " ".join(seen.err.split())


def test_limits_hold_without_proofs_that_bind_too(founder: Founder) -> None:
    made = founder("vote", detector="moments", members_min=3, limits=StatisticLimits())
    made.enrol(made.request("north", 0))
    plant, driven = PlantFolder(made.folder / "north"), Driven.of(made)
    batch = plant.share.read()
    with pytest.raises(RefusedError, match="at least 4,096 rows"):
        plant.agent(reveal_rows=True).attest()
    commit = plant.registered().commit(batch, signed_off="A. Reader").message
    with pytest.raises(VerificationError, match="at least 4,096 rows") as refused:
        driven.log.append(BatchCommitted(commit=commit), at=driven.now())
    assert refused.value.step == "2"


def test_an_exported_attestation_holds_the_statistic(
    bound: Consortium, sluice: Run, tmp_path: Path
) -> None:
    path = tmp_path / "south.attestation"
    assert sluice("plant", "export", bound.folder / "south", "--out", path).code == 0
    words = json.loads(path.read_text())
    assert take_in(bound.site.folder, path, at=bound.clock()).what.startswith("attested")
    bound.run()
    assert model_of(bound).names == NAMES
    del words["statistic"]
    torn = tmp_path / "torn.attestation"
    torn.write_text(json.dumps(words))
    with pytest.raises(VerificationError) as refused:
        take_in(bound.site.folder, torn, at=bound.clock())
    assert refused.value.step == "5.6.1"


def test_the_dashboard_shows_that_statistics_are_bound_and_how_much_they_cover(
    done: Consortium,
) -> None:
    snapshot = take(done.site.folder)
    assert snapshot.statistic.startswith("Statistics are bound by proofs")
    assert "statistic_rows_min is 300 (default 4,096)" in repr(federation_page(snapshot))


def test_a_log_of_bound_statistics_says_how_much_one_covers(
    done: Consortium, tmp_path: Path
) -> None:
    opened, key = read_log(done.site.log).opened, SigningKey.generate()
    assert opened.statistic is not None
    endless = replace(
        opened, coordinator=key.public, statistic=replace(opened.statistic, limits=None)
    )
    with pytest.raises(VerificationError, match="must say how much one covers"):
        Log.create(tmp_path / "log.jsonl", endless, key, at=START)
