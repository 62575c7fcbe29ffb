"""The gate by drawn rows: commitments are logged, then rows are drawn, then proofs are verified."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sluice.admission.policy import PaperPolicy
from sluice.attestation.log.chain import read_log
from sluice.attestation.systems.sampled.system import Sampling
from sluice.detector.autoencoder import Descent
from sluice.errors import SettingError
from sluice.federation.drawn import DrawnRows, LoggedGate
from sluice.federation.messages import Attestation, Shown
from sluice.federation.proofs import Attestor
from sluice.federation.rounds import admit
from sluice.federation.transport import InProcess
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.fabrications import ChannelRoll
from sluice.lab.plants.catalogue import simulate

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PLANT = simulate("line", seed=0, days=10)
BATCH = PLANT.rows(8_640, 8_890)
ROWS = len(BATCH)


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return mine(PLANT.rows(0, 4_320), PLANT.rows(4_320, 8_640), profile=Profile.PAPER_WIDE)


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> DrawnRows:
    return DrawnRows(
        folder=tmp_path_factory.mktemp("run"),
        sampling=Sampling(samples=3, violations=1),
        clock=lambda: NOW,
    )


def sides(proofs: DrawnRows, rules: RuleSet) -> tuple[Attestor, LoggedGate, Path]:
    attest, admission = proofs.sides("lakes", rules, PaperPolicy(), rows_max=ROWS)
    assert isinstance(admission, LoggedGate)
    return attest, admission, max(proofs.folder.glob("log*.jsonl"), key=lambda path: len(path.name))


def test_rows_are_drawn_once_the_commitment_is_logged(proofs: DrawnRows, rules: RuleSet) -> None:
    attest, admission, log = sides(proofs, rules)
    rolled = ChannelRoll(rows=60)(BATCH, seed=0)
    transport = InProcess(
        batches={"a": BATCH, "b": rolled}, windows={}, descent=Descent(), seed=0, attest=attest
    )
    decisions = admit(("a", "b"), transport, admission)
    assert decisions["a"].rows == ROWS
    assert decisions["b"].reasons == ("it sent no proof",)
    *entries, _ = log.read_text().splitlines()  # the last line is the signed head
    kinds = [json.loads(line)["body"]["kind"] for line in entries]
    assert kinds[:4] == ["opened", "registered", "committed", "challenged"]
    assert kinds[-1] == "attested"
    assert kinds.count("attested") == 1
    assert read_log(log).size == len(kinds)


def test_a_client_that_skips_the_challenge_or_copies_is_refused(
    proofs: DrawnRows, rules: RuleSet
) -> None:
    attest, admission, _ = sides(proofs, rules)
    shown = attest("a", BATCH)
    assert shown is not None
    other = attest("c", BATCH)
    assert other is not None
    mixed = Attestation(commit=other.commit, proof=shown.proof)
    for client, brought, why in (
        ("b", shown, "step 1"),  # it is not enrolled
        ("c", shown, "step 2"),  # the commitment of a
        ("c", mixed, "step 5.2"),  # the proof of a, signed by a
        ("a", Shown(batch=BATCH), "no proof"),
    ):
        found = admission.decide(client, brought)
        assert not found.admitted
        assert why in found.reasons[0]
    assert admission.decide("c", other).admitted


def test_keys_are_made_once_and_kept_to_their_rules(proofs: DrawnRows, rules: RuleSet) -> None:
    sides(proofs, rules)
    key = (proofs.folder / "keys" / "verifying.key").read_bytes()
    sides(proofs, rules)
    assert (proofs.folder / "keys" / "verifying.key").read_bytes() == key
    with pytest.raises(SettingError, match="other draws"):
        proofs.sides("lakes", rules, PaperPolicy(), rows_max=ROWS + 1)


@pytest.mark.parametrize("changed", ["rules", "policy", "samples", "violations"])
def test_keys_of_another_agreement_are_not_used(
    proofs: DrawnRows, rules: RuleSet, changed: str
) -> None:
    sides(proofs, rules)
    other = replace(rules, plant="another") if changed == "rules" else rules
    policy = PaperPolicy(alpha=0.04) if changed == "policy" else PaperPolicy()
    if changed in ("samples", "violations"):
        drawn = {"samples": 3, "violations": 1} | {changed: 2}
        proofs = replace(proofs, sampling=Sampling(**drawn))
    with pytest.raises(SettingError, match="is for other rules, another policy, or other draws"):
        proofs.sides("lakes", other, policy, rows_max=ROWS)
