"""Hashes that proofs, logs and stored rules depend on: a change here breaks what users hold.

The values of sampled statements and the paper policy are those of release 0.1.0, and paper rules
are as they were then.
Hardened rules changed when limits were set by cross-validation, when ties, constants, switch bands
and spectra were mined by default, when bands, spectra, ties and rare pumps were mined more closely,
when means were mined and ties and windows got more room, and when noise limits kept to the fastest
change and flows settled by the rows after a switch. The hardened policy has a share of severe
rows, margins for switches and blocks, and a ceiling of 35 % on untied channels. The statement of
`full` has version 2, which states the new kinds of rules; its circuits got other columns when
digits had two sets of weights, and other parameters each time queries were replaced by work.
A change of a value needs a line under Results in CHANGELOG.md.

Processors with other vector instructions add in another order, and the last digits of mined numbers
differ. So rules are pinned, and circuits derived, with six significant digits.
"""

import hashlib
import json

import pytest

from sluice.admission import HardenedPolicy, PaperPolicy
from sluice.admission.policy import policy_hash
from sluice.attestation import circuit_for, find_system
from sluice.attestation.systems.sampled.statement import derive_sampled
from sluice.invariants import Profile, RuleSet, mine, rules_hash
from sluice.invariants.rulesfile import dump_rules, parse_rules
from sluice.lab.plants import simulate

DAYS = {"line": 6.0, "treatment": 1.0}
RULES = {
    ("line", Profile.HARDENED): "24d6629007ebb80ceeccd5b652096b283333fe32afcd88039eea0792a46fe763",
    ("line", Profile.PAPER_WIDE): (
        "dee3eafb8dca616cef1ffcf2af438044201420f55fa06adc9d262bc234e5f1fa"
    ),
    ("treatment", Profile.HARDENED): (
        "7741ab2278b87a7597b25a02198827ca672f7ba2a50fde7939da450b65ca6827"
    ),
    ("treatment", Profile.PAPER_WIDE): (
        "2fadae8c4e3e34520d423e9d199c6c524c76e2ab0f99eeed35b4baff5fd9ef88"
    ),
}
CIRCUITS = {
    ("line", 1_024): "b3ded7a14191b35bf27269013331c2d56d9ee5307577d45e22a6a9f628579acd",
    ("line", 4_096): "fa23e07e77e227d3cc1e036754acfb2ce2326701c12364fb8cbb60b7c6b7b39b",
    ("treatment", 8_192): "40626565295661c83d218e92e188a9abc9203061af5d344ecb5981c2f8446aa8",
    ("treatment", 16_384): "d66412942e1e821d72723409528c5167acebae5091a7762644411c766f137c48",
}
SAMPLED = {
    "line": "e8a5c95b8a3f4c0b337667773e05de177d2097829d6a36e82903e1f4999019de",
    "treatment": "434daee73a0852e78f33773f836fd4ca76de19ac07b7c5f0a0bf32bc2bb251a7",
}
POLICIES = {
    "hardened": "a405ccc8fe8670a70a01bede46a22f935b07ae0461bd8c1d9558926ceb49ef49",
    "paper": "486fa5d54a002259f66f1dc30a491509f431ab99f798b19b64bc228762221421",
}


def rounded(rules: RuleSet) -> RuleSet:
    """Return the rules with six significant digits of every number."""
    document = json.loads(dump_rules(rules), parse_float=_six_digits)
    return parse_rules(json.dumps(document), name="rounded rules", sealed=False)


def _six_digits(number: str) -> float:
    return float(f"{float(number):.6g}")


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
    assert rules_hash(rounded(mined[plant, profile])) == RULES[plant, profile]


@pytest.mark.parametrize(("plant", "rows"), CIRCUITS)
def test_circuits_have_the_identity_they_had(
    mined: dict[tuple[str, Profile], RuleSet], plant: str, rows: int
) -> None:
    rules = rounded(mined[plant, Profile.HARDENED])
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
