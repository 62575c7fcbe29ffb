"""What is compared field by field: no field can differ unnoticed."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from sluice.admission.policy import PaperPolicy
from sluice.attestation.log.ledger import under
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import draw_challenge
from sluice.attestation.protocol.key_folder import KeyFolder, Pinned
from sluice.attestation.systems.sampled.system import Sampling
from sluice.attestation.systems.system import Circuit
from sluice.errors import SettingError
from sluice.federation.drawn import DrawnRows

from . import drawn_plant
from .conftest import NOW, PlantRun

OTHER = "0" * 64


def test_a_pinned_circuit_is_named_by_each_of_its_parts(circuit: Circuit) -> None:
    pinned = Pinned.of(circuit)
    assert pinned.names(circuit)
    for other in (
        replace(pinned, system="other"),
        replace(pinned, circuit=OTHER),
        replace(pinned, parameters={"queries": 1}),
        replace(pinned, rows_max=pinned.rows_max + 1),
        replace(pinned, rules=OTHER),
        replace(pinned, policy=OTHER),
        replace(pinned, statistic="moments"),
    ):
        assert not other.names(circuit)


def test_a_commitment_matches_its_registration_in_each_part(run: PlantRun) -> None:
    commit, registration = run.committed.message.content, run.plant.registration().content
    assert under(commit, registration)
    for other in (
        replace(commit, client="south"),
        replace(commit, federation="power"),
        replace(commit, system="other"),
        replace(commit, circuit=OTHER),
        replace(commit, rules=OTHER),
        replace(commit, policy=OTHER),
    ):
        assert not under(other, registration)


def test_a_challenge_is_for_one_commitment_of_one_client_of_one_federation(run: PlantRun) -> None:
    commit = run.committed.message.content
    challenge = draw_challenge(commit)
    assert challenge.answers(commit)
    for other in (
        replace(commit, client="south"),
        replace(commit, federation="power"),
        replace(commit, commitment=OTHER),
    ):
        assert not challenge.answers(other)


def test_keys_are_used_again_only_for_the_same_rules_policy_and_draws(
    drawn_folder: KeyFolder, tmp_path: Path
) -> None:
    rules, circuit = drawn_plant.paper_rules(), drawn_folder.circuit
    proofs = DrawnRows(
        folder=tmp_path, sampling=Sampling(samples=2, violations=1), clock=lambda: NOW
    )
    policy = PaperPolicy()
    assert proofs._fits(circuit, rules, policy, 64)
    assert not proofs._fits(circuit, rules, policy, 65)
    assert not proofs._fits(circuit, replace(rules, plant="other"), policy, 64)
    assert not proofs._fits(circuit, rules, replace(policy, alpha=0.5), 64)
    for sampling in (Sampling(samples=3, violations=1), Sampling(samples=2, violations=0)):
        assert not replace(proofs, sampling=sampling)._fits(circuit, rules, policy, 64)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(SettingError, match="has no time zone"):
        instant(datetime(2026, 5, 1))  # noqa: DTZ001
