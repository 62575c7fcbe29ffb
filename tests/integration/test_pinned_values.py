"""Hashes that proofs, logs and stored rules depend on: a change here breaks what users hold.

The values of rules, sampled statements and the paper policy are those of release 0.1.0. A change
of one needs a line under Results in CHANGELOG.md.
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
    ("line", 1_024): "35c0411cc6c024f01b27563130906a93a822b275baca09ca8de10d8a5060fe90",
    ("line", 4_096): "9b52de796d5429e0a4b7318a0831b89b6002d971c863ebac277cdbaea1497c4b",
    ("treatment", 8_192): "dc71887a7844eb83047dd7a6d0f167caa11dc15876f4cee24a0b8df1e6e3f054",
    ("treatment", 16_384): "e7889c585fecb2a04c8b4f14eab119702be63bd96507e6a9b9e2eabf9f0d7afb",
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
