"""The plant's side: forward only, the opening private, and reasons that stay at home."""

import dataclasses
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.admission.gate import judge
from sluice.attestation.messages.messages import COMMITS, REGISTRATIONS
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.plant import (
    Committed,
    Pledged,
    Proven,
    Registered,
    beside,
    explanation,
)
from sluice.attestation.systems.unsafe import Unsafe
from sluice.errors import RecordError, RefusedError, SettingError, VerificationError

from .conftest import NOW, SYSTEM, Told, later


def test_out_of_order_cannot_be_written_down(told: Told) -> None:
    """Each line is an error to the type checker (or mypy would call the ignore unused)."""
    batch = told.world.batch()
    with pytest.raises(AttributeError):
        told.plant.prove(batch)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        told.plant.pledge(1, "0" * 64, b"")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        told.committed.commit(batch)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        told.committed.pledge(1, "0" * 64, b"")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        told.proven.prove(batch)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        told.enrolled.attest(told.proof, at=NOW)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        told.world.protocol.receive(told.commit, at=NOW)  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Proven(plant=told.plant, message=told.proven.message)  # type: ignore[call-arg]


@pytest.mark.parametrize("state", ["committed", "proven", "enrolled", "received"])
def test_a_state_is_reached_from_the_one_before_and_no_other_way(told: Told, state: str) -> None:
    reached = getattr(told, state)
    fields = {each.name: getattr(reached, each.name) for each in dataclasses.fields(reached)}
    del fields["transition"]
    with pytest.raises(TypeError, match="transition"):
        type(reached)(**fields)
    with pytest.raises(TypeError, match=f"a {type(reached).__name__} is returned by the step"):
        type(reached)(**fields, transition=object())


def test_rounds_and_attestations_are_found_in_the_log_alone(told: Told) -> None:
    protocol = told.world.protocol
    for find in (protocol.pledging, protocol.revealing):
        with pytest.raises(VerificationError, match="round 1 is not going on"):
            find(1)
    pledging = protocol.open_round("0" * 64, later(60), at=NOW)
    assert protocol.pledging(1) == pledging
    with pytest.raises(VerificationError, match="still takes tokens"):
        protocol.revealing(1)
    with pytest.raises(VerificationError, match="has pledged nothing"):
        protocol.pledge("north", 1)
    with pytest.raises(VerificationError, match="has no attestation"):
        protocol.attested("north", "1" * 64, at=NOW)
    pledging.close(at=NOW)
    assert protocol.revealing(1).round == 1
    with pytest.raises(VerificationError, match="closed to tokens"):
        protocol.pledging(1)


def test_a_proof_of_another_commitment_does_not_resume(told: Told) -> None:
    assert told.committed.proven(told.proven.message).attestation == told.proven.attestation
    other = told.plant.commit(told.world.batch(1))
    with pytest.raises(SettingError, match="another commitment"):
        other.proven(told.proven.message)


def test_states_do_not_change(told: Told) -> None:
    with pytest.raises(AttributeError):
        told.committed.message = told.committed.message  # type: ignore[misc]


def test_the_opening_is_private(told: Told, tmp_path: Path) -> None:
    path = tmp_path / "commit.json"
    told.committed.save(path)
    opening = beside(path)
    assert opening.name == "commit.opening"
    assert stat.S_IMODE(opening.stat().st_mode) == 0o600
    salt = told.committed.opening.salt
    assert salt in opening.read_text()
    for shown in (told.committed, told.committed.opening, told.proven, told.plant):
        assert salt not in repr(shown)
    for sent in (told.commit, REGISTRATIONS.write(told.plant.registration())):
        assert salt.encode() not in sent
    opening.chmod(0o644)
    with pytest.raises(SettingError, match="can be read by others"):
        Committed.load(path, told.plant.key, SYSTEM, told.plant.circuit)


def test_every_commitment_has_its_own_salt(told: Told) -> None:
    one, two = (told.plant.commit(told.world.batch()) for _ in range(2))
    assert one.opening.salt != two.opening.salt
    assert one.message.content.commitment != two.message.content.commitment


def test_a_commitment_is_gone_on_with(told: Told, tmp_path: Path) -> None:
    path = tmp_path / "commit.json"
    told.committed.save(path)
    again = Committed.load(path, told.plant.key, SYSTEM, told.plant.circuit)
    assert again.message == told.committed.message
    assert again.prove(told.world.batch()).attestation == told.proven.attestation
    with pytest.raises(SettingError, match="exists, and its opening with it"):
        told.committed.save(path)


def test_a_commitment_is_gone_on_with_by_its_maker_only(told: Told, tmp_path: Path) -> None:
    path, other = tmp_path / "commit.json", tmp_path / "other.json"
    told.committed.save(path)
    told.plant.commit(told.world.batch(1)).save(other)
    with pytest.raises(SettingError, match="another key"):
        Committed.load(path, told.world.coordinator, SYSTEM, told.plant.circuit)
    circuit = replace(told.plant.circuit, identity="0" * 64)
    with pytest.raises(SettingError, match="another circuit"):
        Committed.load(path, told.plant.key, SYSTEM, circuit)
    beside(other).replace(beside(path))
    with pytest.raises(SettingError, match="not the opening of"):
        Committed.load(path, told.plant.key, SYSTEM, told.plant.circuit)
    with pytest.raises(SettingError, match="cannot be read"):
        Committed.load(tmp_path / "nowhere.json", told.plant.key, SYSTEM, told.plant.circuit)


def test_only_the_committed_batch_is_proven(told: Told) -> None:
    for other in (told.world.batch(1), told.world.line.rows(8_640, 8_640 + 599)):
        with pytest.raises(SettingError, match="is not the one that was committed to"):
            told.committed.prove(other)


def test_what_the_policy_never_takes_is_not_committed_to(told: Told) -> None:
    line, plant = told.world.line, told.plant
    with pytest.raises(RecordError, match="199 rows; the policy takes 200 to 4,096"):
        plant.commit(line.rows(8_640, 8_839))
    with pytest.raises(RecordError, match="stride of 120 s"):
        plant.commit(line.rows(0, 2_000).every(2))
    with pytest.raises(RecordError, match="has no channel 'F_PU1'"):
        plant.commit(told.world.batch().without("F_PU1"))


def test_a_batch_that_breaks_the_rules_is_refused_in_plant_words(told: Told) -> None:
    committed = told.plant.commit(told.world.forged())
    with pytest.raises(RefusedError, match=r"S_PU1 reads (on|off) while F_PU1 shows") as refused:
        committed.prove(told.world.forged())
    assert refused.value.exit_code == 3
    assert "Only you see these reasons" in str(refused.value)


def test_a_batch_that_no_circuit_can_hold_is_refused_in_plant_words_too(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_narrow(*_: object, **__: object) -> bytes:
        raise RefusedError("L_T1 is beyond its limits")

    monkeypatch.setattr(Unsafe, "commit", too_narrow)
    with pytest.raises(RefusedError, match="S_PU1 reads"):
        told.plant.commit(told.world.forged())
    with pytest.raises(RefusedError, match="beyond its limits"):
        told.plant.commit(told.world.batch())


def test_reasons_never_leave_the_plant(told: Told) -> None:
    """Whatever a plant with a refused batch has sent, no word of its verdict is in it."""
    forged, plant = told.world.forged(), told.plant
    verdict = judge(forged, plant.circuit.rules, plant.circuit.policy)
    assert not verdict.admitted
    committed = plant.commit(forged)
    with pytest.raises(RefusedError):
        committed.prove(forged)
    sent = [
        REGISTRATIONS.write(plant.registration()),
        COMMITS.write(committed.message),
        told.commit,
        TOKENS.write(told.proven.pledge(1, "0" * 64, b"update").message),
        told.world.path.read_bytes(),
    ]
    sentences = [*verdict.sentences, *(found.sentence for found in verdict.findings)]
    said = {word for sentence in sentences for word in sentence.split()}
    words = {word for word in said if len(word) > 4 and word[0].isalpha()}
    assert {"S_PU1", "F_PU1", "reads"} <= words
    assert explanation(verdict)
    for message in sent:
        assert [word for word in words if word.encode() in message] == []


def test_a_state_shows_no_batch_and_no_update(told: Told) -> None:
    pledged: Pledged = told.proven.pledge(1, "0" * 64, b"weights of the plant")
    assert "weights" not in repr(pledged)
    assert "proof=" not in repr(told.proven)
    plant: Registered = told.proven.plant
    assert plant == told.plant
