"""A small plant, its rules and its gates, made once."""

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record


@pytest.fixture(scope="session")
def clean() -> Record:
    return simulate("line", seed=1, days=9)


@pytest.fixture(scope="session")
def unseen(clean: Record) -> Record:
    return clean.rows(8_640, len(clean))


@pytest.fixture(scope="session")
def labelled() -> Record:
    return simulate("line", seed=2, days=6, attacks=True)


@pytest.fixture(scope="session")
def hardened_rules(clean: Record) -> RuleSet:
    return mine(clean.rows(0, 4_320), clean.rows(4_320, 8_640), profile=Profile.HARDENED)


@pytest.fixture(scope="session")
def hardened(hardened_rules: RuleSet) -> Gate:
    return Gate.of(hardened_rules, HardenedPolicy())


@pytest.fixture(scope="session")
def paper(clean: Record) -> Gate:
    rules = mine(clean.rows(0, 4_320), clean.rows(4_320, 8_640), profile=Profile.PAPER_NARROW)
    return Gate.of(rules, PaperPolicy())
