"""Expert rules: the line plant's own laws."""

import pytest

from sluice.admission.gate import judge
from sluice.admission.policy import PaperPolicy
from sluice.lab.attacks.fabrications import ChannelRoll, ConservationScaling
from sluice.lab.expert_rules import line_rules
from sluice.lab.plants import line
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record


@pytest.fixture(scope="module")
def clean() -> Record:
    return simulate("line", seed=5, days=6)


def test_the_lines_laws_hold_on_it_with_tolerances_near_the_recorded_ones(clean: Record) -> None:
    rules = line_rules(clean)
    tolerances = [rule.tolerance for rule in rules.invariants]
    recorded_balances = [0.02736491, 0.02739552, 0.02763571]
    assert tolerances[:3] == pytest.approx(recorded_balances, rel=0.1)
    verdict = judge(simulate("line", seed=6, days=6), rules, PaperPolicy())
    assert verdict.violating_share < 0.001


def test_fabrications_break_them(clean: Record) -> None:
    rules = line_rules(clean)
    other = simulate("line", seed=6, days=6)
    rolled = judge(ChannelRoll(rows=7)(other, seed=0), rules, PaperPolicy())
    scaled = judge(ConservationScaling(factor=1.3)(other, seed=0), rules, PaperPolicy())
    assert rolled.violating_share == pytest.approx(0.36, abs=0.08)
    assert scaled.violating_share > 0.99


def test_another_sites_laws_are_other_laws(clean: Record) -> None:
    rules = line_rules(clean, site=line.LineDesign(shift=1.0))
    own = line_rules(clean)
    assert rules.invariants[0].relation != own.invariants[0].relation
