"""Hashes that proofs, logs and stored rules depend on: a change here breaks what users hold.

The values of rules, sampled statements and the paper policy are those of release 0.1.0. The
hardened policy has a share of severe rows and margins for switches and blocks, and the statement of
`full` has version 2, which states the rules they belong to; so their values are new. A change of
one needs a line under Results in CHANGELOG.md.
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
    ("line", Profile.HARDENED): "bb4ae83a77be90d1da7ccd6b82d16a9dd3403470e712a8ff19aa2512513df99d",
    ("line", Profile.PAPER_WIDE): (
        "44d0ffc44bd52a1be949d8b793af9ba6572986eead8688b145cc659361cd9c6a"
    ),
    ("treatment", Profile.HARDENED): (
        "d9dab14c80fb08dcd4a34a4d4272f74b49532b98841edbee474311bec31a281b"
    ),
    ("treatment", Profile.PAPER_WIDE): (
        "41dfe4429142ccf96be6c6381be461a04b0755055354af1cac26df137d418c7e"
    ),
}
CIRCUITS = {
    ("line", 1_024): "081097e3f48d99974166904029cbe6c9bc8487cb38d569399999ffbfb28933a1",
    ("line", 4_096): "eda551f1d4f8290b23fc7b0f826703e068d6c0da1f31d646763d0d087e11ed42",
    ("treatment", 8_192): "8db01be0fa56ce81b3fb6d3fa59be4b70cf211ab478b54d7d8596a9cd8567781",
    ("treatment", 16_384): "43d05bc675bc5446b1825e089c3d591f3a5bca582e0ddcd51c8ae2e555f4b2d9",
}
SAMPLED = {
    "line": "e8a5c95b8a3f4c0b337667773e05de177d2097829d6a36e82903e1f4999019de",
    "treatment": "434daee73a0852e78f33773f836fd4ca76de19ac07b7c5f0a0bf32bc2bb251a7",
}
POLICIES = {
    "hardened": "cdd256c4f311bc770939e0e27998746cf781605bbe582c6f89f23893670894d5",
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
