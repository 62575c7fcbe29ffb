"""Hashes that proofs, logs and stored rules depend on: a change here breaks what users hold.

The values of paper rules, sampled statements and the paper policy are those of release 0.1.0.
Hardened rules changed when limits were set by cross-validation, when ties, constants, switch bands
and spectra were mined by default, when bands, spectra, ties and rare pumps were mined more closely,
and when means were mined and ties and windows got more room. The hardened policy has a share of
severe rows, margins for switches and blocks, and a ceiling of 35 % on untied channels. The
statement of `full` has version 2, which states the new kinds of rules; its circuits got other
columns when digits had two sets of weights, and other parameters when two queries were replaced by
work. A change of a value needs a line under Results in CHANGELOG.md.
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
    ("line", Profile.HARDENED): "df64e6f97d90058d4050b4efc9cdfa3b822d83c6418ec59b4da7ed5c527cf5c5",
    ("line", Profile.PAPER_WIDE): (
        "44d0ffc44bd52a1be949d8b793af9ba6572986eead8688b145cc659361cd9c6a"
    ),
    ("treatment", Profile.HARDENED): (
        "d73a40bd9d1e9f71b512c30b3bd16d0f0f5ae4a389d5d65ab4e15e767baf6e32"
    ),
    ("treatment", Profile.PAPER_WIDE): (
        "41dfe4429142ccf96be6c6381be461a04b0755055354af1cac26df137d418c7e"
    ),
}
CIRCUITS = {
    ("line", 1_024): "3757da475c62da02d7053d728c4452ae5fe871bb691800ab57dcbe88bcdbf23f",
    ("line", 4_096): "5d7e25406476317c1b6c24574571251854804b385805e47cae1cbb4f04d0ef07",
    ("treatment", 8_192): "343bf022bf7c00c6782b5a75c43ad5ae7cd003fcc96843394dae2e41799e80c9",
    ("treatment", 16_384): "b136c3abfe30dc6c5f55ae1a472151e87b425ead1270386e0593224e7f5d1300",
}
SAMPLED = {
    "line": "e8a5c95b8a3f4c0b337667773e05de177d2097829d6a36e82903e1f4999019de",
    "treatment": "434daee73a0852e78f33773f836fd4ca76de19ac07b7c5f0a0bf32bc2bb251a7",
}
POLICIES = {
    "hardened": "a405ccc8fe8670a70a01bede46a22f935b07ae0461bd8c1d9558926ceb49ef49",
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
