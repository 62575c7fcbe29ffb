"""A plant answers its own coordinator, says the same twice, and sees when a log is changed."""

from dataclasses import replace

import pytest

from sluice.attestation.log.heads import HEADS
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.detector.autoencoder import initial
from sluice.network.plant.agent import Agent
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    AskBatch,
    AskToken,
    AskUpdate,
    Batch,
    Declined,
    Payload,
    Pledge,
    Question,
    Revelation,
    write_parameters,
)

from .conftest import Consortium, Founder


@pytest.fixture
def one(founder: Founder) -> tuple[Consortium, Agent]:
    consortium = founder()
    return consortium, consortium.join("north", 0)


def asked(
    consortium: Consortium,
    agent: Agent,
    ask: AskBatch | AskToken | AskUpdate,
    *,
    key: SigningKey | None = None,
    client: str = "north",
) -> Payload | Declined:
    key = key or SigningKey.load(consortium.site.key)
    question = Question(federation="water", client=client, ask=ask)
    return ANSWERS.read(agent.answer(QUESTIONS.write(sign(question, key)))).answer


def token_ask(consortium: Consortium, agent: Agent, *, seed: int = 0) -> AskToken:
    width = consortium.site.terms.framing.width
    return AskToken(
        round=1,
        attestation=agent.attest().attestation,
        parameters=write_parameters(initial(width, seed=seed)),
    )


def test_an_impostor_with_another_key_gets_no_answer(one: tuple[Consortium, Agent]) -> None:
    consortium, agent = one
    stranger = SigningKey.generate()
    assert isinstance(asked(consortium, agent, AskBatch(), key=stranger), Declined)
    assert isinstance(asked(consortium, agent, AskBatch(), client="south"), Declined)
    assert isinstance(ANSWERS.read(agent.answer(b"{}")).answer, Declined)


def test_a_batch_is_proven_once_and_its_opening_is_private(one: tuple[Consortium, Agent]) -> None:
    consortium, agent = one
    first = asked(consortium, agent, AskBatch())
    assert isinstance(first, Batch)
    assert asked(consortium, agent, AskBatch()) == first
    openings = list((consortium.folder / "north").rglob("*.opening"))
    assert len(openings) == 1
    assert openings[0].stat().st_mode & 0o777 == 0o600


def test_a_round_is_pledged_once(one: tuple[Consortium, Agent]) -> None:
    consortium, agent = one
    first = asked(consortium, agent, token_ask(consortium, agent))
    assert isinstance(first, Pledge)
    assert asked(consortium, agent, token_ask(consortium, agent)) == first
    # A coordinator that goes back and asks the same round for another model is not served.
    assert isinstance(asked(consortium, agent, token_ask(consortium, agent, seed=1)), Declined)


def test_a_wrong_number_of_weights_is_declined(one: tuple[Consortium, Agent]) -> None:
    consortium, agent = one
    ask = replace(token_ask(consortium, agent), parameters=b"\0" * 8)
    assert isinstance(asked(consortium, agent, ask), Declined)


def test_a_rewritten_log_is_refused(one: tuple[Consortium, Agent]) -> None:
    consortium, agent = one
    asked(consortium, agent, token_ask(consortium, agent))
    protocol = consortium.site.protocol()
    head = HEADS.write(protocol.log.signed_head())
    lines = tuple(consortium.site.log.read_bytes().split(b"\n")[:-1])
    shown = AskUpdate(round=1, head=head, lines=lines)
    revealed = asked(consortium, agent, shown)
    assert isinstance(revealed, Revelation)
    assert HEADS.read(revealed.head).content.signer == "north"
    # The same log again, from its beginning or from the plant's last entry, is accepted.
    assert isinstance(asked(consortium, agent, shown), Revelation)
    assert isinstance(asked(consortium, agent, replace(shown, lines=())), Revelation)
    # A shorter log, signed by the coordinator itself, is another one.
    other = consortium.site.log.with_name("other.jsonl")
    other.write_bytes(lines[0] + b"\n")
    from sluice.attestation.log.chain import Log  # noqa: PLC0415 - only here

    back = Log.open(other, SigningKey.load(consortium.site.key)).signed_head()
    shorter = AskUpdate(round=1, head=HEADS.write(back), lines=lines[:1])
    assert isinstance(asked(consortium, agent, shorter), Declined)


def test_an_update_that_was_changed_on_disk_is_not_sent(one: tuple[Consortium, Agent]) -> None:
    consortium, agent = one
    pledged = asked(consortium, agent, token_ask(consortium, agent))
    assert isinstance(pledged, Pledge)
    assert TOKENS.read(pledged.token).content.round == 1
    path = consortium.folder / "north" / "rounds" / "000001.update"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\0")
    head = HEADS.write(consortium.site.protocol().log.signed_head())
    lines = tuple(consortium.site.log.read_bytes().split(b"\n")[:-1])
    assert isinstance(
        asked(consortium, agent, AskUpdate(round=1, head=head, lines=lines)), Declined
    )
