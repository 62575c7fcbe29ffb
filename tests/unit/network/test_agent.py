"""A plant answers its own coordinator, says the same twice, and sees when a log is changed."""

from dataclasses import replace

import pytest

from sluice.attestation.log.chain import LogCopy, read_log
from sluice.attestation.log.entries import BatchCommitted, Entry
from sluice.attestation.log.heads import HEADS
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.key_folder import KeyFolder
from sluice.errors import DocumentError, SettingError, VerificationError
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    AskBatch,
    AskLog,
    Batch,
    Declined,
    Pledge,
    Question,
    Revelation,
)
from sluice.telemetry.reading import read_record

from .asking import Driven
from .conftest import ROWS, Consortium, Founder

Pair = tuple[Driven, Agent]


@pytest.fixture
def one(founder: Founder) -> Pair:
    consortium = founder()
    agent = consortium.join("north", 0)
    return Driven.of(consortium), agent


@pytest.fixture
def opened(one: Pair) -> tuple[Driven, Agent, str]:
    """Round 1 is open on the initial model, and north is attested."""
    driven, agent = one
    attestation = driven.attest(agent)
    driven.open()
    return driven, agent, attestation


def test_a_plant_is_attested_until_its_last_proof_ends_whatever_it_committed_to_since(
    one: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven, agent = one
    folder, ledger = PlantFolder(driven.consortium.folder / agent.name), driven.log.ledger
    monkeypatch.setattr(PlantFolder, "ledger", lambda _: ledger)
    assert folder.attested_until() is None
    driven.attest(agent)
    until = folder.attested_until()
    rows = read_record(driven.consortium.record).rows(8_640 + ROWS, 8_640 + 2 * ROWS)
    commit = folder.registered().commit(rows).message
    driven.log.append(BatchCommitted(commit=commit), at=driven.now())
    assert folder.attested_until() == until is not None


def test_an_impostor_with_another_key_gets_no_answer(one: Pair) -> None:
    driven, agent = one
    assert isinstance(driven.ask(agent, AskBatch(), key=SigningKey.generate()), Declined)
    assert isinstance(driven.ask(agent, AskBatch(), client="south"), Declined)
    assert isinstance(ANSWERS.read(agent.answer(b"{}")).answer, Declined)


def test_a_question_of_another_federation_gets_no_answer(one: Pair) -> None:
    driven, agent = one
    question = Question(
        federation="fire", client=agent.name, page=driven.page(), copied=False, ask=AskLog()
    )
    for federation, answered in (("fire", False), (driven.log.ledger.opened.federation, True)):
        raw = QUESTIONS.write(sign(replace(question, federation=federation), driven.key))
        answer = ANSWERS.read(agent.answer(raw)).answer
        assert isinstance(answer, Declined) != answered


def test_only_a_question_of_a_later_version_is_called_an_unknown_protocol(one: Pair) -> None:
    driven, agent = one
    question = Question(
        federation="water", client=agent.name, page=driven.page(), copied=False, ask=AskLog()
    )
    raw = QUESTIONS.write(sign(question, driven.key))
    spoken = f'"protocol":{question.protocol}'.encode()
    assert raw.count(spoken) == 1
    for changed, word in (
        (raw.replace(spoken, b'"protocol":99'), "unknown protocol"),
        (raw.replace(b'"ask":', b'"task":'), "refused"),
        (b"{}", "refused"),
    ):
        answer = ANSWERS.read(agent.answer(changed)).answer
        assert isinstance(answer, Declined)
        assert answer.word == word


def test_an_update_that_was_never_pledged_is_refused(one: Pair) -> None:
    driven, agent = one
    driven.open()
    answer = driven.ask(agent, driven.update())
    assert isinstance(answer, Declined)
    assert answer.word == "refused"  # not: the file cannot be read


def test_a_key_that_the_log_names_and_the_folder_lacks_is_missed(
    one: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven, agent = one
    driven.attest(agent)
    assert not isinstance(driven.ask(agent, AskLog()), Declined)
    other = replace(agent._registered, key=SigningKey.generate())
    monkeypatch.setattr(agent, "_registered", other)
    monkeypatch.setattr(KeyFolder, "adopt", lambda *_: None)
    answer = driven.ask(agent, AskLog())
    assert isinstance(answer, Declined)


def test_a_page_that_begins_after_what_the_plant_has_seen_is_named(one: Pair) -> None:
    driven, agent = one
    driven.open()
    with pytest.raises(VerificationError, match="has seen 0 log entries; the page begins at 1"):
        agent._extend(driven.page(1))
    agent._extend(driven.page(0))
    with pytest.raises(VerificationError, match="the coordinator has gone back"):
        agent._extend(replace(driven.page(0), lines=driven.page(0).lines[:-1]))


def test_an_attestation_of_a_batch_that_is_lost_is_named(one: Pair) -> None:
    with pytest.raises(SettingError, match="111111111111, which this plant has not made"):
        one[1]._archive.named("1" * 64)


def test_a_plant_may_name_the_rows_again_that_it_has_attested(one: Pair) -> None:
    driven, agent = one
    driven.attest(agent)
    folder = PlantFolder(driven.consortium.folder / agent.name)
    own = folder.share
    for free in (own, replace(own, start=own.stop, stop=own.stop + ROWS)):
        folder.renew(free)
    with pytest.raises(SettingError, match="overlaps .* which this plant has committed to"):
        folder.renew(replace(own, start=own.start + 1))


def test_a_plant_whose_keys_pin_another_circuit_does_not_start(one: Pair) -> None:
    driven, agent = one
    folder = PlantFolder(driven.consortium.folder / agent.name)
    path, own = folder.folder / "keys" / "circuit.json", folder.keys.circuit.identity
    path.write_text(path.read_text().replace(own, "0" * 64))
    with pytest.raises(DocumentError, match=r"pins circuit 000000000000\.\.\."):
        _ = folder.keys


def test_training_that_gives_no_update_is_answered_without_a_token(
    opened: tuple[Driven, Agent, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driven, agent, attestation = opened

    class Silent:
        def exchange(self, requests: dict[str, object]) -> dict[str, None]:
            return dict.fromkeys(requests)

    monkeypatch.setattr(agent, "_trainer", lambda _: Silent())
    assert isinstance(driven.ask(agent, driven.token(attestation)), Declined)


def test_a_batch_is_proven_once_and_its_opening_is_private(one: Pair) -> None:
    driven, agent = one
    first = driven.ask(agent, AskBatch())
    assert isinstance(first, Batch)
    assert driven.ask(agent, AskBatch()) == first
    openings = list((driven.consortium.folder / "north").rglob("*.opening"))
    assert len(openings) == 1
    assert openings[0].stat().st_mode & 0o777 == 0o600


def test_a_round_is_pledged_once(opened: tuple[Driven, Agent, str]) -> None:
    driven, agent, attestation = opened
    first = driven.ask(agent, driven.token(attestation))
    assert isinstance(first, Pledge)
    assert driven.ask(agent, driven.token(attestation)) == first
    # A coordinator that asks the same round for another model is not served.
    assert isinstance(driven.ask(agent, driven.token(attestation, seed=1)), Declined)


def test_a_round_that_was_pledged_on_another_model_is_not_pledged_again(
    opened: tuple[Driven, Agent, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a recovery the log may open a round again, on another model."""
    driven, agent, attestation = opened
    assert isinstance(driven.ask(agent, driven.token(attestation)), Pledge)
    monkeypatch.setattr(agent, "_demand_opened", lambda *_: None)
    assert isinstance(driven.ask(agent, driven.token(attestation)), Pledge)
    assert isinstance(driven.ask(agent, driven.token(attestation, seed=1)), Declined)


def test_a_wrong_number_of_weights_is_declined(opened: tuple[Driven, Agent, str]) -> None:
    driven, agent, attestation = opened
    ask = replace(driven.token(attestation), parameters=b"\0" * 8)
    assert isinstance(driven.ask(agent, ask), Declined)


def test_an_update_is_revealed_with_the_head_that_the_plant_has_reached(
    opened: tuple[Driven, Agent, str],
) -> None:
    driven, agent, attestation = opened
    driven.pledged(agent, attestation)
    driven.close()
    revealed = driven.ask(agent, driven.update())
    assert isinstance(revealed, Revelation)
    head = HEADS.read(revealed.head).content
    assert head == driven.log.ledger.head("north")
    # The same log again, from its beginning or from the plant's last entry, is accepted.
    assert driven.ask(agent, driven.update()) == revealed
    page = driven.page(driven.log.ledger.size)
    assert page.lines == ()
    assert driven.ask(agent, driven.update(), page=page) == revealed


def test_an_update_that_was_changed_on_disk_is_not_sent(
    opened: tuple[Driven, Agent, str],
) -> None:
    driven, agent, attestation = opened
    pledged = driven.ask(agent, driven.token(attestation))
    assert isinstance(pledged, Pledge)
    assert TOKENS.read(pledged.token).content.round == 1
    path = driven.consortium.folder / "north" / "rounds" / "000001.update"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")
    driven.take(pledged)
    driven.close()
    assert isinstance(driven.ask(agent, driven.update()), Declined)


def test_a_plant_reads_its_long_log_from_its_own_snapshot_and_from_no_others(
    consortium: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    consortium.run(rounds=2)
    plant, checked = PlantFolder(consortium.folder / "north"), list[int]()
    whole = read_log(plant.log)
    check = Ledger.check

    def counted(self: Ledger, entry: Entry) -> None:
        checked.append(entry.index)
        check(self, entry)

    def snapshot(key: SigningKey) -> None:
        LogCopy(plant.log, key, consortium.site.terms.coordinator).snapshot()

    monkeypatch.setattr(Ledger, "check", counted)
    snapshot(plant.keys.client_key())
    checked.clear()
    assert plant.ledger().state == whole.state
    assert checked == []
    snapshot(SigningKey.generate())
    checked.clear()
    assert plant.ledger().state == whole.state
    assert checked == list(range(whole.size))
