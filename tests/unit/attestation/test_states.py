"""The plant's side: forward only, the opening private, and reasons that stay at home."""

import dataclasses
import inspect
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.gate import judge
from sluice.attestation.messages.messages import COMMITS, REGISTRATIONS, draw_challenge
from sluice.attestation.messages.signing import sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol import coordinator, plant, verifier
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

from .conftest import NOW, SYSTEM, PlantRun, later


def test_out_of_order_cannot_be_written_down(run: PlantRun) -> None:
    """Each line is an error to the type checker (or mypy would call the ignore unused)."""
    batch = run.world.batch()
    with pytest.raises(AttributeError):
        run.plant.prove(batch)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        run.plant.pledge(1, "0" * 64, b"")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        run.committed.commit(batch)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        run.committed.pledge(1, "0" * 64, b"")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        run.proven.prove(batch)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        run.enrolled.attest(run.proof, at=NOW)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        run.world.protocol.receive(run.commit, at=NOW)  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Proven(plant=run.plant, message=run.proven.message)  # type: ignore[call-arg]


@pytest.mark.parametrize("state", ["committed", "proven", "enrolled", "received"])
def test_a_state_is_reached_from_the_one_before_and_no_other_way(run: PlantRun, state: str) -> None:
    reached = getattr(run, state)
    fields = {each.name: getattr(reached, each.name) for each in dataclasses.fields(reached)}
    assert "transition" not in fields  # the key is not kept, so it cannot be borrowed
    with pytest.raises(TypeError, match="transition"):
        type(reached)(**fields)
    with pytest.raises(TypeError, match=f"{type(reached).__name__} is returned by the step"):
        type(reached)(**fields, transition=object())
    with pytest.raises(ValueError, match="transition"):
        dataclasses.replace(reached)


STATES = [
    state
    for module in (coordinator, plant, verifier)
    for state in vars(module).values()
    if dataclasses.is_dataclass(state)
    and isinstance(state, type)
    and state.__module__ == module.__name__
    and "transition" in inspect.signature(state).parameters
]


def test_every_state_of_the_protocol_is_tested() -> None:
    assert len(STATES) == 13


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_no_state_can_be_written_down(state: type) -> None:
    fields = dict.fromkeys(inspect.signature(state).parameters)
    with pytest.raises(TypeError, match=f"{state.__name__} is returned by the step before it"):
        state(**fields | {"transition": object()})


def test_rounds_and_attestations_are_found_in_the_log_alone(run: PlantRun) -> None:
    protocol = run.world.protocol
    for find in (protocol.pledging, protocol.revealing):
        with pytest.raises(VerificationError, match="round 1 is not in progress"):
            find(1)
    pledging = protocol.open_round("0" * 64, later(60), at=NOW)
    assert protocol.pledging(1) == pledging
    with pytest.raises(VerificationError, match="still accepts tokens"):
        protocol.revealing(1)
    with pytest.raises(VerificationError, match="has no pledge"):
        protocol.pledge("north", 1)
    with pytest.raises(VerificationError, match="has no attestation"):
        protocol.attested("north", "1" * 64, at=NOW)
    pledging.close(at=NOW)
    assert protocol.revealing(1).round == 1
    with pytest.raises(VerificationError, match="closed to tokens"):
        protocol.pledging(1)


def test_a_round_that_is_over_or_was_never_opened_is_not_found(run: PlantRun) -> None:
    protocol = run.world.protocol
    protocol.open_round("0" * 64, later(60), at=NOW).close(at=NOW)
    for number in (0, 2):
        with pytest.raises(VerificationError, match=f"round {number} is not in progress"):
            protocol.revealing(number)
    protocol.revealing(1).finish("1" * 64, at=NOW)
    with pytest.raises(VerificationError, match="round 1 is not in progress"):
        protocol.revealing(1)


def test_a_proof_of_another_commitment_does_not_resume(run: PlantRun) -> None:
    assert run.committed.proven(run.proven.message).attestation == run.proven.attestation
    other = run.plant.commit(run.world.batch(1))
    with pytest.raises(SettingError, match="another commitment"):
        other.proven(run.proven.message)


def test_a_system_that_draws_no_rows_takes_no_challenge(run: PlantRun) -> None:
    challenge = draw_challenge(run.committed.message.content)
    with pytest.raises(SettingError, match="system 'unsafe' takes none"):
        run.committed.challenged(challenge)


def test_states_do_not_change(run: PlantRun) -> None:
    with pytest.raises(AttributeError):
        run.committed.message = run.committed.message  # type: ignore[misc]


def test_the_opening_is_private(run: PlantRun, tmp_path: Path) -> None:
    path = tmp_path / "commit.json"
    run.committed.save(path)
    opening = beside(path)
    assert opening.name == "commit.opening"
    assert stat.S_IMODE(opening.stat().st_mode) == 0o600
    salt = run.committed.opening.salt
    assert salt in opening.read_text()
    for shown in (run.committed, run.committed.opening, run.proven, run.plant):
        assert salt not in repr(shown)
    for sent in (run.commit, REGISTRATIONS.write(run.plant.registration())):
        assert salt.encode() not in sent
    opening.chmod(0o644)
    with pytest.raises(SettingError, match="can be read by others"):
        Committed.load(path, run.plant.key, SYSTEM, run.plant.circuit)


def test_every_commitment_has_its_own_salt(run: PlantRun) -> None:
    one, two = (run.plant.commit(run.world.batch()) for _ in range(2))
    assert one.opening.salt != two.opening.salt
    assert one.message.content.commitment != two.message.content.commitment


def test_a_commitment_is_gone_on_with(run: PlantRun, tmp_path: Path) -> None:
    path = tmp_path / "commit.json"
    run.committed.save(path)
    again = Committed.load(path, run.plant.key, SYSTEM, run.plant.circuit)
    assert again.message == run.committed.message
    assert again.prove(run.world.batch()).attestation == run.proven.attestation
    with pytest.raises(SettingError, match="and its opening exist"):
        run.committed.save(path)


def test_a_commitment_is_gone_on_with_by_its_maker_only(run: PlantRun, tmp_path: Path) -> None:
    path, other = tmp_path / "commit.json", tmp_path / "other.json"
    run.committed.save(path)
    run.plant.commit(run.world.batch(1)).save(other)
    taken = Committed.load(path, run.world.coordinator, SYSTEM, run.plant.circuit)
    with pytest.raises(SettingError, match="made with another key; commit to later rows"):
        taken.prove(run.world.batch())
    assert taken.proven(run.proven.message).attestation == run.proven.attestation
    with pytest.raises(VerificationError, match="signature of the proof"):
        taken.proven(sign(run.proven.message.content, run.world.coordinator))
    circuit = replace(run.plant.circuit, identity="0" * 64)
    with pytest.raises(SettingError, match="another circuit"):
        Committed.load(path, run.plant.key, SYSTEM, circuit)
    beside(other).replace(beside(path))
    with pytest.raises(SettingError, match="not the opening of"):
        Committed.load(path, run.plant.key, SYSTEM, run.plant.circuit)
    with pytest.raises(SettingError, match="cannot be read"):
        Committed.load(tmp_path / "nowhere.json", run.plant.key, SYSTEM, run.plant.circuit)


def test_only_the_committed_batch_is_proven(run: PlantRun) -> None:
    batch = run.world.batch()
    moved = replace(batch, times=batch.times + np.timedelta64(1, "h"))
    shorter = run.world.line.rows(8_640, 8_640 + 599)
    for other in (run.world.batch(1), shorter, run.world.forged(), moved):
        with pytest.raises(SettingError, match="is not the one that was committed to"):
            run.committed.prove(other)


def test_what_the_policy_never_takes_is_not_committed_to(run: PlantRun) -> None:
    line, plant = run.world.line, run.plant
    with pytest.raises(RecordError, match="199 rows; the policy takes 200 to 4,096"):
        plant.commit(line.rows(8_640, 8_839))
    with pytest.raises(RecordError, match="stride of 120 s"):
        plant.commit(line.rows(0, 2_000).every(2))
    with pytest.raises(RecordError, match="has no channel 'F_PU1'"):
        plant.commit(run.world.batch().without("F_PU1"))


def test_a_batch_that_breaks_the_rules_is_refused_in_plant_words(run: PlantRun) -> None:
    committed = run.plant.commit(run.world.forged())
    with pytest.raises(RefusedError, match=r"S_PU1 reads (on|off) while F_PU1 shows") as refused:
        committed.prove(run.world.forged())
    assert refused.value.exit_code == 3
    assert "Only you see these reasons" in str(refused.value)


def test_a_batch_that_no_circuit_can_hold_is_refused_in_plant_words_too(
    run: PlantRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_narrow(*_: object, **__: object) -> bytes:
        raise RefusedError("L_T1 is beyond its limits")

    monkeypatch.setattr(Unsafe, "commit", too_narrow)
    with pytest.raises(RefusedError, match="S_PU1 reads"):
        run.plant.commit(run.world.forged())
    with pytest.raises(RefusedError, match="beyond its limits"):
        run.plant.commit(run.world.batch())


def test_reasons_never_leave_the_plant(run: PlantRun) -> None:
    """Whatever a plant with a refused batch has sent, no word of its verdict is in it."""
    forged, plant = run.world.forged(), run.plant
    verdict = judge(forged, plant.circuit.rules, plant.circuit.policy)
    assert not verdict.admitted
    committed = plant.commit(forged)
    with pytest.raises(RefusedError):
        committed.prove(forged)
    sent = [
        REGISTRATIONS.write(plant.registration()),
        COMMITS.write(committed.message),
        run.commit,
        TOKENS.write(run.proven.pledge(1, "0" * 64, b"update").message),
        run.world.path.read_bytes(),
    ]
    sentences = [*verdict.sentences, *(found.sentence for found in verdict.findings)]
    said = {word for sentence in sentences for word in sentence.split()}
    words = {word for word in said if len(word) > 4 and word[0].isalpha()}
    assert {"S_PU1", "F_PU1", "reads"} <= words
    assert explanation(verdict)
    for message in sent:
        assert [word for word in words if word.encode() in message] == []


def test_a_state_shows_no_batch_and_no_update(run: PlantRun) -> None:
    pledged: Pledged = run.proven.pledge(1, "0" * 64, b"weights of the plant")
    assert "weights" not in repr(pledged)
    assert "proof=" not in repr(run.proven)
    plant: Registered = run.proven.plant
    assert plant == run.plant
