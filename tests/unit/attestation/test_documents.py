"""Documents have one encoding; every second spelling is refused."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from sluice.attestation.messages.documents import Form, instant
from sluice.attestation.messages.messages import (
    CHALLENGES,
    COMMITS,
    PROOFS,
    REGISTRATIONS,
    Challenge,
    draw_challenge,
    largest_proof_document,
)
from sluice.attestation.messages.orders import APPROVALS
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.key_folder import PINNED
from sluice.errors import DocumentError, SettingError

from .conftest import NOW, PlantRun

LARGEST = largest_proof_document(1 << 20)


def test_writing_and_reading_are_inverse(run: PlantRun) -> None:
    assert COMMITS.read(run.commit) == run.committed.message
    assert PROOFS.read(run.proof, largest=LARGEST) == run.proven.message


def edited(raw: bytes, edit: Callable[[dict[str, object]], object]) -> bytes:
    """Change a document's content and write it canonically, signature and all."""
    document = json.loads(raw)
    edit(document["content"])
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


SECOND_SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "a trailing line feed": lambda raw: raw + b"\n",
    "a byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "white space": lambda raw: raw.replace(b":", b": ", 1),
    "a doubled key": lambda raw: raw.replace(b'"rows":', b'"rows":1,"rows":', 1),
    "keys in another order": lambda raw: json.dumps(
        dict(reversed(json.loads(raw).items())), separators=(",", ":")
    ).encode(),
    "an escaped letter": lambda raw: raw.replace(b'"water"', b'"\\u0077ater"', 1),
    "a float": lambda raw: raw.replace(b'"rows":600', b'"rows":600.0', 1),
    "an exponent": lambda raw: raw.replace(b'"rows":600', b'"rows":6e2', 1),
    "a number as a string": lambda raw: raw.replace(b'"rows":600', b'"rows":"600"', 1),
    "a boolean for a number": lambda raw: raw.replace(b'"schema":1', b'"schema":true', 1),
    "NaN": lambda raw: raw.replace(b'"rows":600', b'"rows":NaN', 1),
    "a negative number": lambda raw: raw.replace(b'"rows":600', b'"rows":-600', 1),
    "more than 2^53": lambda raw: raw.replace(b'"rows":600', b'"rows":9007199254740993', 1),
    "an unknown field": lambda raw: edited(raw, lambda c: c.update(note="hello")),
    "a field too few": lambda raw: edited(raw, lambda c: c.pop("rows")),
    "another version": lambda raw: edited(raw, lambda c: c.update(protocol=2)),
    "another schema": lambda raw: edited(raw, lambda c: c.update(schema=2)),
    "a default left out": lambda raw: edited(raw, lambda c: c.pop("schema")),
    "an odd commitment": lambda raw: edited(raw, lambda c: c.update(commitment="abc")),
    "a name with a space": lambda raw: edited(raw, lambda c: c.update(client="a b")),
    "a name that climbs": lambda raw: edited(raw, lambda c: c.update(client="../x")),
    "a month too many": lambda raw: raw.replace(b"2024-01-07", b"2024-13-07"),
    "no microseconds": lambda raw: raw.replace(b".000000", b"", 1),
    "text after it": lambda raw: raw + b"{}",
    "nothing": lambda raw: raw[:0],
    "half of it": lambda raw: raw[: len(raw) // 2],
    "a list": lambda raw: b"[" + raw + b"]",
    "deep nesting": lambda raw: raw[:0] + b"[" * 4_000,
    "no text": lambda raw: b"\xff" + raw,
}


@pytest.mark.parametrize("what", SECOND_SPELLINGS)
def test_second_spellings_are_refused(run: PlantRun, what: str) -> None:
    raw = SECOND_SPELLINGS[what](run.commit)
    assert raw != run.commit
    with pytest.raises(DocumentError):
        COMMITS.read(raw)


def test_hex_has_lower_case_only(run: PlantRun) -> None:
    signature = run.committed.message.signature
    raw = run.commit.replace(signature.encode(), signature.upper().encode())
    with pytest.raises(DocumentError, match="signature"):
        COMMITS.read(raw)


def test_an_interval_runs_forward(run: PlantRun) -> None:
    interval = run.committed.message.content.interval

    def turn(content: dict[str, object]) -> None:
        content["interval"] = {"start": interval.end, "end": interval.start}

    with pytest.raises(DocumentError, match="must not end before it starts"):
        COMMITS.read(edited(run.commit, turn))


@pytest.mark.parametrize("end", ["=", "\n", " ", "!"])
def test_base64_has_one_spelling(run: PlantRun, end: str) -> None:
    def pad(content: dict[str, object]) -> None:
        content["proof"] = str(content["proof"]) + end

    with pytest.raises(DocumentError):
        PROOFS.read(edited(run.proof, pad), largest=LARGEST)


@pytest.mark.parametrize("value", [5, None, ["AA=="], {"a": 1}, True])
def test_bytes_are_a_string(run: PlantRun, value: object) -> None:
    with pytest.raises(DocumentError, match="base64 string"):
        PROOFS.read(edited(run.proof, lambda c: c.update(proof=value)), largest=LARGEST)


def test_the_spare_bits_of_base64_are_zero(run: PlantRun) -> None:
    def spoil(content: dict[str, object]) -> None:
        content["proof"] = "AB=="  # 0x00 is AA==; AB== would decode to it as well

    assert base64.b64decode("AB==") == base64.b64decode("AA==")
    with pytest.raises(DocumentError, match="canonical"):
        PROOFS.read(edited(run.proof, spoil), largest=LARGEST)


@pytest.mark.parametrize(
    ("form", "largest"),
    [
        (REGISTRATIONS, 8_192),
        (APPROVALS, 16_384),
        (COMMITS, 8_192),
        (CHALLENGES, 2_048),
        (PROOFS, 4_096),
        (TOKENS, 4_096),
        (PINNED, 65_536),
    ],
    ids=lambda value: value.name.replace(" ", "-") if isinstance(value, Form) else str(value),
)
def test_a_document_one_byte_too_long_is_refused_unread(form: Form[Any], largest: int) -> None:
    with pytest.raises(DocumentError, match="is not well formed"):
        form.read(b" " * largest)
    with pytest.raises(DocumentError, match=f"{largest + 1:,} bytes; the limit is {largest:,}"):
        form.read(b" " * (largest + 1))


@pytest.mark.parametrize(
    ("proof_bytes", "document_bytes"), [(0, 4_100), (2, 4_100), (3, 4_104), (256, 4_440)]
)
def test_a_proof_document_leaves_room_for_its_proof_in_base64_and_no_more(
    proof_bytes: int, document_bytes: int
) -> None:
    assert largest_proof_document(proof_bytes) == document_bytes
    assert len(base64.b64encode(bytes(proof_bytes))) <= document_bytes - 4_096


def test_the_largest_number_is_the_one_that_every_reader_agrees_on(run: PlantRun) -> None:
    def numbered(rows: int) -> bytes:
        return edited(run.commit, lambda content: content.update(rows=rows))

    assert COMMITS.read(numbered(2**53 - 1)).content.rows == 9_007_199_254_740_991
    assert COMMITS.read(numbered(0)).content.rows == 0
    with pytest.raises(DocumentError, match="rows"):
        COMMITS.read(numbered(2**53))
    with pytest.raises(DocumentError, match="rows"):
        COMMITS.read(numbered(-1))


def test_a_strangers_text_does_not_reach_the_terminal(run: PlantRun) -> None:
    raw = edited(run.commit, lambda content: content.update({"\x1b[2J" + "x" * 500: 1}))
    with pytest.raises(DocumentError) as refused:
        COMMITS.read(raw)
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 200


def test_what_cannot_be_read_is_not_signed(run: PlantRun) -> None:
    run.plant.registration()
    spaced = run.world.plant("north plant")
    with pytest.raises(DocumentError, match="client: String should match"):
        spaced.registration()


def test_times_know_their_zone() -> None:
    assert instant(NOW) == "2026-05-01T12:00:00.000000Z"
    with pytest.raises(SettingError, match="no time zone"):
        instant(datetime(2026, 5, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    "changes",
    [{"federation": "power"}, {"client": "south"}, {"commitment": "ab" * 32}],
    ids=lambda changes: next(iter(changes)),
)
def test_the_challenge_of_another_commitment_answers_nothing(
    run: PlantRun, changes: dict[str, str]
) -> None:
    commit = run.committed.message.content
    challenge = draw_challenge(commit)
    assert challenge.answers(commit)
    other: Challenge = replace(challenge, **changes)  # type: ignore[arg-type]
    assert not other.answers(commit)
