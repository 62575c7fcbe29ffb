"""Hashes that proofs, logs and stored rules depend on: a change here breaks what users hold.

The values of paper rules, sampled statements and the paper policy are those of release 0.1.0.
Hardened rules changed when limits were set by cross-validation. The hardened policy has a share of
severe rows and margins for switches and blocks. The statement of `full` has version 2, which states
the new kinds of rules; its circuits got other columns when digits had two sets of weights. A change
of a value needs a line under Results in CHANGELOG.md.
"""

import hashlib

import pytest

from sluice.admission import HardenedPolicy, PaperPolicy
from sluice.admission.policy import policy_hash
from sluice.attestation import circuit_for, find_system
from sluice.attestation.systems.sampled.statement import derive_sampled
from sluice.invariants import Profile, RuleSet, mine, rules_hash
from sluice.lab.plants import simulate

DAYS = {"line": 6.0, "treatment": 1.0}
RULES = {
    ("line", Profile.HARDENED): "6b0b9305997d5366b8b5268c686dd7548925ce12f2e2fc63d96a4085b1cfa708",
    ("line", Profile.PAPER_WIDE): (
        "44d0ffc44bd52a1be949d8b793af9ba6572986eead8688b145cc659361cd9c6a"
    ),
    ("treatment", Profile.HARDENED): (
        "6a3928a40604cee42a494b4872b005855fc34458502de61377b6a136df5031dd"
    ),
    ("treatment", Profile.PAPER_WIDE): (
        "41dfe4429142ccf96be6c6381be461a04b0755055354af1cac26df137d418c7e"
    ),
}
CIRCUITS = {
    ("line", 1_024): "19d8f783b0935f8ad3789cf18448048b3415b535bc398de0f4f2e5c0176e5b69",
    ("line", 4_096): "2488f83bb2c44000bfe4bb530beb192e1b764efd05f549812e6b38b3f8b65217",
    ("treatment", 8_192): "a5ab0c7fd32ec5095cfc9417a1dc78bb71501197122a5b788c7fae8826864e33",
    ("treatment", 16_384): "99ec572bf6a025a0f83ebe9b01fc8e1c990f48fc1e6fe445bf5d5a111ccf057d",
}
SAMPLED = {
    "line": "e8a5c95b8a3f4c0b337667773e05de177d2097829d6a36e82903e1f4999019de",
    "treatment": "434daee73a0852e78f33773f836fd4ca76de19ac07b7c5f0a0bf32bc2bb251a7",
}
POLICIES = {
    "hardened": "3241aa0d3bcd1b70d19b6b7cafcde17012696b5397fa614bb15b8728affe0679",
    "paper": "486fa5d54a002259f66f1dc30a491509f431ab99f798b19b64bc228762221421",
}


@pytest.fixture(scope="module")
def mined() -> dict[tuple[str, Profile], RuleSet]:
    rules = {}
    for plant, days in DAYS.items():
        record = simulate(plant, seed=0, days=days)
        half = len(record) // 2
        for profile in (Profile.HARDENED, Profile.PAPER_WIDE):
            rules[plant, profile] = mine(
                record.rows(0, half), record.rows(half, len(record)), profile=profile
            )
    return rules


@pytest.mark.parametrize(("plant", "profile"), RULES)
def test_mined_rules_have_the_hash_they_had(
    mined: dict[tuple[str, Profile], RuleSet], plant: str, profile: Profile
) -> None:
    assert rules_hash(mined[plant, profile]) == RULES[plant, profile]


@pytest.mark.parametrize(("plant", "rows"), CIRCUITS)
def test_circuits_have_the_identity_they_had(
    mined: dict[tuple[str, Profile], RuleSet], plant: str, rows: int
) -> None:
    rules = mined[plant, Profile.HARDENED]
    circuit = circuit_for(find_system("full"), rules, HardenedPolicy(), rows_max=rows)
    assert circuit.identity == CIRCUITS[plant, rows]


@pytest.mark.parametrize("plant", SAMPLED)
def test_sampled_statements_have_the_content_they_had(
    mined: dict[tuple[str, Profile], RuleSet], plant: str
) -> None:
    statement = derive_sampled(mined[plant, Profile.PAPER_WIDE], samples=32, rows_max=4_096)
    assert hashlib.sha256(statement.content).hexdigest() == SAMPLED[plant]


def test_built_in_policies_have_the_hash_they_had() -> None:
    assert policy_hash(HardenedPolicy()) == POLICIES["hardened"]
    assert policy_hash(PaperPolicy()) == POLICIES["paper"]
