"""A coordinator with the real key that breaks the protocol: its plants answer only for the log."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sluice.attestation.log.chain import compare_logs, copy_log, read_log
from sluice.attestation.log.entries import (
    HeadCountersigned,
    ModelAggregated,
    RoundAbandoned,
    UpdatePledged,
)
from sluice.attestation.log.heads import COORDINATOR, HEADS, Head
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.errors import VerificationError
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.questions import (
    AskLog,
    Declined,
    LogPage,
    LogSeen,
    Pledge,
    Revelation,
)
from tests.unit.conftest import Run

from .asking import Driven
from .conftest import Consortium, Founder

Attested = tuple[Driven, Agent, str]


@pytest.fixture
def attested(founder: Founder) -> Attested:
    """North is attested; no round is open."""
    consortium = founder()
    agent = consortium.join("north", 0)
    consortium.join("south", 1)
    driven = Driven.of(consortium)
    return driven, agent, driven.attest(agent)


@pytest.fixture
def pledged(attested: Attested) -> Attested:
    """North's pledge of round 1 is in the log; the pledges are open."""
    driven, agent, attestation = attested
    driven.open()
    driven.pledged(agent, attestation)
    return attested


def nothing_was_trained(driven: Driven, plant: str = "north") -> bool:
    """Whether the plant's folder has neither a token nor an update."""
    files = (driven.consortium.folder / plant / "rounds").iterdir()
    return not [path for path in files if path.suffix in {".token", ".update"}]


# -- questions that the log does not bear out -------------------------------------------------


def test_signed_questions_for_rounds_that_the_log_does_not_have_get_no_update(
    attested: Attested,
) -> None:
    """Five crafted models, each signed by the coordinator, and no trace of them in the log."""
    driven, agent, attestation = attested
    before = driven.path.read_bytes()
    for k in range(5):
        ask = driven.token(attestation, round_=10**6 + k, seed=k)
        assert isinstance(driven.ask(agent, ask), Declined)
        assert isinstance(driven.ask(agent, driven.update(10**6 + k)), Declined)
    assert nothing_was_trained(driven)
    # While a round is open, no other one is answered either.
    driven.open()
    for k in range(5):
        ask = driven.token(attestation, round_=10**6 + k, seed=k)
        assert isinstance(driven.ask(agent, ask), Declined)
        assert isinstance(driven.ask(agent, driven.update(10**6 + k)), Declined)
    assert nothing_was_trained(driven)
    assert driven.path.read_bytes() != before  # only the open round
    assert isinstance(driven.ask(agent, driven.token(attestation)), Pledge)


def test_a_round_opened_on_another_model_gets_no_token(attested: Attested) -> None:
    driven, agent, attestation = attested
    driven.open(seed=0)
    assert isinstance(driven.ask(agent, driven.token(attestation, seed=1)), Declined)
    assert nothing_was_trained(driven)


def test_an_abandoned_round_gets_no_token(attested: Attested) -> None:
    driven, agent, attestation = attested
    number = driven.open()
    driven.log.append(RoundAbandoned(round=number), at=driven.now())
    assert isinstance(driven.ask(agent, driven.token(attestation)), Declined)
    assert nothing_was_trained(driven)


def test_a_round_that_is_closed_gets_no_token(attested: Attested) -> None:
    driven, agent, attestation = attested
    driven.open()
    driven.close()
    assert isinstance(driven.ask(agent, driven.token(attestation)), Declined)
    assert nothing_was_trained(driven)


def test_an_update_is_not_revealed_before_the_pledges_are_closed(pledged: Attested) -> None:
    driven, agent, _ = pledged
    assert isinstance(driven.ask(agent, driven.update()), Declined)
    driven.close()
    assert isinstance(driven.ask(agent, driven.update()), Revelation)


def test_an_update_is_not_revealed_in_a_log_without_the_plants_own_pledge(
    attested: Attested,
) -> None:
    """The coordinator keeps the token for itself and closes the pledges."""
    driven, agent, attestation = attested
    driven.open()
    assert isinstance(driven.ask(agent, driven.token(attestation)), Pledge)
    driven.close()
    assert isinstance(driven.ask(agent, driven.update()), Declined)


def test_an_update_is_not_revealed_for_another_pledge_of_the_plant(attested: Attested) -> None:
    """The log has a token of north for another update, which a copy of its folder signed."""
    driven, agent, attestation = attested
    driven.open()
    saved = driven.ask(agent, driven.token(attestation))
    assert isinstance(saved, Pledge)
    key = PlantFolder(driven.consortium.folder / "north").keys.client_key()
    other = sign(replace(TOKENS.read(saved.token).content, update="1" * 64), key)
    driven.log.append(UpdatePledged(token=other), at=driven.now())
    driven.close()
    assert isinstance(driven.ask(agent, driven.update()), Declined)


def test_a_foreign_attestation_gets_no_token(attested: Attested) -> None:
    driven, agent, _ = attested
    south = driven.consortium.plants["south"]
    assert isinstance(south, Agent)
    theirs = driven.attest(south)
    driven.open()
    assert isinstance(driven.ask(agent, driven.token(theirs)), Declined)
    assert isinstance(driven.ask(agent, driven.token("1" * 64)), Declined)
    assert nothing_was_trained(driven)


def test_an_attestation_that_the_plant_made_and_the_log_does_not_have_gets_no_token(
    founder: Founder,
) -> None:
    """The coordinator refused the batch in the log, and asks for training all the same."""
    consortium = founder()
    agent = consortium.join("north", 0)
    driven = Driven.of(consortium)
    made = agent.attest().attestation
    driven.open()
    assert isinstance(driven.ask(agent, driven.token(made)), Declined)
    assert nothing_was_trained(driven)


def test_an_expired_attestation_gets_no_token(attested: Attested) -> None:
    driven, agent, attestation = attested
    days = driven.log.ledger.terms.attestation_days
    driven.consortium.clock.now += timedelta(days=days, seconds=1)
    driven.open()
    assert isinstance(driven.ask(agent, driven.token(attestation)), Declined)
    assert nothing_was_trained(driven)


# -- pages and heads --------------------------------------------------------------------------


def headed(page: LogPage, change: Callable[[Head], Head], key: SigningKey) -> LogPage:
    content = HEADS.read(page.head).content
    return replace(page, head=HEADS.write(sign(change(content), key)))


def same(head: Head) -> Head:
    return head


@pytest.mark.parametrize(
    "forge",
    [
        lambda page, _: headed(page, same, SigningKey.generate()),
        lambda page, key: headed(page, lambda head: replace(head, size=head.size + 1), key),
        lambda page, key: headed(page, lambda head: replace(head, last="1" * 64), key),
        lambda page, key: headed(page, lambda head: replace(head, signer="south"), key),
        lambda page, key: headed(page, lambda head: replace(head, federation="power"), key),
        lambda page, _: replace(page, head=b"{}"),
        lambda page, _: replace(page, lines=page.lines[:-1]),
        lambda page, _: replace(page, lines=page.lines[:2] + page.lines[3:]),
        lambda page, _: replace(page, lines=page.lines[:-1] + page.lines[-2:-1]),
    ],
    ids=[
        "signed by a stranger",
        "a size that the plant has not reached",
        "another last entry",
        "in another party's name",
        "of another federation",
        "no head",
        "the last entry is missing",
        "an entry is skipped",
        "an entry comes twice",
    ],
)
def test_a_forged_head_or_page_is_not_followed(
    attested: Attested, forge: Callable[[LogPage, SigningKey], LogPage]
) -> None:
    driven, agent, attestation = attested
    driven.open()
    page = driven.page()
    answer = driven.answer(agent, driven.token(attestation), page=forge(page, driven.key))
    assert isinstance(answer.answer, Declined)
    assert answer.seen == agent.ledger.size == 0
    assert nothing_was_trained(driven)
    # The right page is still followed.
    assert isinstance(driven.ask(agent, driven.token(attestation), page=page), Pledge)


def test_a_page_that_skips_entries_is_not_followed(attested: Attested) -> None:
    driven, agent, attestation = attested
    half = driven.log.ledger.size // 2
    driven.open()
    assert isinstance(
        driven.ask(agent, driven.token(attestation), page=driven.page(half)), Declined
    )
    assert agent.ledger.size == 0


def test_only_the_head_that_the_plant_has_reached_is_countersigned(pledged: Attested) -> None:
    """The question names no head; the plant signs the one that its own entries give."""
    driven, agent, _ = pledged
    driven.close()
    later = driven.page()
    revealed = driven.ask(agent, driven.update(), page=later)
    assert isinstance(revealed, Revelation)
    head = HEADS.read(revealed.head)
    assert head.content == driven.log.ledger.head("north")
    folder = PlantFolder(driven.consortium.folder / "north")
    assert head.content == read_log(folder.log).head("north")
    # A head of entries that it was not shown is refused, and nothing is signed.
    driven.log.append(HeadCountersigned(head=head), at=driven.now())
    ahead = replace(later, head=driven.page().head)
    assert isinstance(driven.ask(agent, driven.update(), page=ahead), Declined)


def test_a_page_of_a_fork_is_not_followed(pledged: Attested, tmp_path: Path) -> None:
    driven, agent, _ = pledged
    fork = driven.forked(tmp_path / "fork.jsonl")
    driven.close()
    assert isinstance(driven.ask(agent, driven.update()), Revelation)
    before = (driven.consortium.folder / "north" / "log.jsonl").read_bytes()
    fork.log.append(RoundAbandoned(round=1), at=fork.now())
    number = fork.open()
    for page in (fork.page(), fork.page(agent.ledger.size - 1), fork.page(agent.ledger.size)):
        assert isinstance(fork.ask(agent, fork.update(number), page=page), Declined)
        assert isinstance(fork.ask(agent, AskLog(), page=page), Declined)
    assert (driven.consortium.folder / "north" / "log.jsonl").read_bytes() == before


def test_a_log_that_has_gone_back_is_not_followed(
    pledged: Attested, caplog: pytest.LogCaptureFixture
) -> None:
    driven, agent, _ = pledged
    earlier = driven.page()
    driven.close()
    assert isinstance(driven.ask(agent, driven.update()), Revelation)
    with caplog.at_level(logging.WARNING):
        answer = driven.ask(agent, driven.update(), page=earlier)
    assert isinstance(answer, Declined)
    assert "the coordinator has gone back" in caplog.text
    # The plant shows the head that the coordinator has signed for it.
    assert answer.head is not None
    shown = HEADS.read(answer.head)
    shown.verify(driven.key.public, step="7")
    assert (shown.content.signer, shown.content.size) == (COORDINATOR, agent.ledger.size)


def test_a_stranger_can_neither_show_pages_nor_warn(
    attested: Attested, caplog: pytest.LogCaptureFixture
) -> None:
    driven, agent, _ = attested
    stranger = SigningKey.generate()
    assert isinstance(driven.ask(agent, AskLog(), key=stranger), Declined)
    assert isinstance(driven.ask(agent, AskLog()), LogSeen)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        driven.ask(agent, AskLog(), key=stranger, copied=True)
    assert "another process answers" not in caplog.text
    with caplog.at_level(logging.WARNING):
        driven.ask(agent, AskLog(), copied=True)
    assert "another process answers" in caplog.text


# -- two logs -----------------------------------------------------------------------------------


@pytest.fixture
def two_logs(consortium: Consortium, tmp_path: Path) -> tuple[Driven, Driven]:
    """North sees one log, south another; both have pledged in both, and both logs are closed."""
    one = Driven.of(consortium)
    attestations = {}
    for name in ("north", "south"):
        agent = consortium.plants[name]
        assert isinstance(agent, Agent)
        attestations[name] = one.attest(agent)
    one.open()
    two = one.forked(tmp_path / "second.jsonl")
    for name, attestation in attestations.items():
        agent = consortium.plants[name]
        assert isinstance(agent, Agent)
        token = (one if name == "north" else two).ask(agent, one.token(attestation))
        one.take(token)
        two.take(token)
    one.close()
    two.close()
    return one, two


def revealed(driven: Driven, name: str) -> Revelation:
    agent = driven.consortium.plants[name]
    assert isinstance(agent, Agent)
    answer = driven.ask(agent, driven.update())
    assert isinstance(answer, Revelation)
    return answer


def test_a_coordinator_that_shows_two_logs_cannot_aggregate_both_plants_in_either(
    two_logs: tuple[Driven, Driven],
) -> None:
    one, two = two_logs
    answers = {"north": revealed(one, "north"), "south": revealed(two, "south")}
    for driven, seen, other in ((one, "north", "south"), (two, "south", "north")):
        revealing = driven.protocol.revealing(1)
        for name, answer in answers.items():
            revealing.reveal(driven.protocol.pledge(name, 1), answer.update, at=driven.now())
        driven.protocol.countersign(answers[seen].head, at=driven.now())
        with pytest.raises(VerificationError, match=r"step 7: .*head of another log"):
            driven.protocol.countersign(answers[other].head, at=driven.now())
        west = driven.protocol
        with pytest.raises(VerificationError, match=rf"{other} revealed an update .* countersign"):
            west.log.append(
                ModelAggregated(round=1, model="2" * 64, clients=("north", "south")),
                at=driven.now(),
            )
        # It can only leave the other plant out, in the sight of everyone who reads this log.
        assert revealing.leave_out_unseen(at=driven.now()) == (other,)
        assert revealing.finish("2" * 64, at=driven.now()) == (seen,)


def test_two_plants_that_compare_their_copies_convict_the_coordinator(
    two_logs: tuple[Driven, Driven], sluice: Run, tmp_path: Path
) -> None:
    one, two = two_logs
    revealed(one, "north")
    revealed(two, "south")
    north, south = tmp_path / "north-log.jsonl", tmp_path / "south-log.jsonl"
    assert sluice("plant", "export-log", tmp_path / "north", "--out", north).code == 0
    assert sluice("plant", "export-log", tmp_path / "south", "--out", south).code == 0
    for path in (north, south):  # each of them verifies
        assert sluice("audit-log", "verify", path).code == 0
    fork = next(
        at
        for at, pair in enumerate(
            zip(north.read_bytes().splitlines(), south.read_bytes().splitlines(), strict=True)
        )
        if pair[0] != pair[1]
    )
    seen = sluice("audit-log", "compare", north, south, "--json")
    assert (seen.code, seen.json["step"]) == (3, "7")
    assert f"its entry {fork} is" in str(seen.json)
    assert "forked" in sluice("audit-log", "compare", north, south).err
    with pytest.raises(VerificationError, match="forked"):
        compare_logs(south, north)
    # The head in one copy is not in the other.
    assert sluice("audit-log", "verify", north, "--head", south).code == 3
    # Two copies of one log agree, however much shorter one is.
    copy_log(two.path, tmp_path / "whole.jsonl")
    same = sluice("audit-log", "compare", south, tmp_path / "whole.jsonl", "--json")
    assert (same.code, same.json["same"]) == (0, True)


def test_a_log_that_is_shorter_than_a_plants_countersigned_head_is_refused(
    pledged: Attested, sluice: Run, tmp_path: Path
) -> None:
    driven, agent, _ = pledged
    short, whole = tmp_path / "short.jsonl", tmp_path / "whole.jsonl"
    copy_log(driven.path, short)
    driven.close()
    answer = driven.ask(agent, driven.update())
    assert isinstance(answer, Revelation)
    copy_log(driven.path, whole)
    head = tmp_path / "north.head"
    head.write_bytes(answer.head)
    assert sluice("audit-log", "verify", whole, "--head", head).code == 0
    seen = sluice("audit-log", "verify", short, "--head", head, "--json")
    assert (seen.code, seen.json["step"]) == (3, "7")
    assert "entries are missing" in str(seen.json)
    # A head that a stranger signed in north's name proves nothing.
    forged = sign(HEADS.read(answer.head).content, SigningKey.generate())
    head.write_bytes(HEADS.write(forged))
    seen = sluice("audit-log", "verify", whole, "--head", head)
    assert seen.code == 3
    assert "was not signed by 'north'" in seen.err.replace("\n", " ")


def test_a_log_cut_short_or_forged_is_refused_and_no_log_is_bad_input(
    pledged: Attested, sluice: Run, tmp_path: Path
) -> None:
    driven, _, _ = pledged
    whole = driven.path.read_bytes()
    *lines, head = whole.splitlines()
    path = tmp_path / "log.jsonl"
    stranger = HEADS.write(sign(driven.log.ledger.head(COORDINATOR), SigningKey.generate()))
    for wrong, code in (
        (b"\n".join([*lines[:-1], head]) + b"\n", 3),  # the last entry is gone
        (b"\n".join(lines) + b"\n", 3),  # the head is gone
        (b"\n".join([*lines, stranger]) + b"\n", 3),  # another party signed it
        (b"\n".join([*lines[:-1], lines[-1].replace(b'"round":1', b'"round":2'), head]) + b"\n", 3),
        (whole[:-9], 3),
        (b"", 2),
        (b"not a log\n", 2),
        (head + b"\n", 2),
    ):
        path.write_bytes(wrong)
        assert sluice("audit-log", "verify", path).code == code
    assert sluice("audit-log", "verify", tmp_path / "none.jsonl").code == 2
    assert sluice("audit-log", "compare", driven.path, tmp_path / "none.jsonl").code == 2
