"""Equation 7, and the paper's own removal table from its published recalls."""

import json
from pathlib import Path
from typing import Any

import pytest

from sluice.errors import SettingError
from sluice.evaluation.paired import Pair, Unit, paired_difference
from sluice.evaluation.removal import Federation, Reference, Removal, RemovalCase, removal

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "removal.json").read_text(encoding="utf-8")
)
RULES = sorted(VECTORS["rules"])
HALF_DIGIT = 5e-5  # the recalls are printed to four decimals

CLIENTS = frozenset(f"plant-{at}" for at in range(VECTORS["clients"]))
MALICIOUS = [f"plant-{at}" for at in range(VECTORS["liars"])]
HONEST = CLIENTS - frozenset(MALICIOUS)


def federation(recall: float, malicious: frozenset[str] = frozenset(MALICIOUS)) -> Federation:
    return Federation(targeted_recall=recall, roster=HONEST | malicious, malicious=malicious)


def case(seed: int, recalls: dict[str, float], *, against: Reference, mode: str) -> RemovalCase:
    left = frozenset(MALICIOUS[VECTORS["refused_liars"][seed] if mode == "gated" else 0 :])
    reference = {
        Reference.CLEAN: Federation(targeted_recall=recalls["clean"], roster=CLIENTS),
        Reference.HONEST_ONLY: Federation(targeted_recall=recalls["honest_only"], roster=HONEST),
    }[against]
    return RemovalCase(
        unit=Unit(seed=seed, record="swat", targets=str(seed)),
        reference=reference,
        naive=federation(recalls["naive"]),
        defended=federation(recalls[mode], left),
    )


def removed(rule: str, mode: str, against: Reference) -> Removal:
    recalls = VECTORS["rules"][rule]["recalls"]
    cases = [case(seed, own, against=against, mode=mode) for seed, own in enumerate(recalls)]
    return removal(cases, reference=against)


def rounding(found: Removal) -> float:
    """Return how far, in per cent, rounded recalls can move a removal.

    It is 1 - N/D with D the damage; each of n runs moves N and D by at most two half digits.
    """
    assert found.share is not None
    assert found.damage is not None
    moved = 2 * HALF_DIGIT * len(found.informative)
    damage = found.damage * len(found.informative)
    return 100 * (1 + abs(1 - found.share)) * moved / (damage - moved)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("mode", ["projected", "gated"])
def test_the_papers_table_is_reproduced(rule: str, mode: str) -> None:
    expected = VECTORS["rules"][rule]["honest-only"]
    found = removed(rule, mode, Reference.HONEST_ONLY)
    assert [unit.seed for unit in found.informative] == expected["informative"]
    assert found.units == 5
    if not expected["informative"]:
        assert found.share is found.damage is None
        return
    assert found.damage is not None
    assert found.share is not None
    assert found.damage * 100 == pytest.approx(expected["damage_points"], abs=0.05 + 1e-9)
    percent = found.share * 100
    within = rounding(found)
    assert percent == pytest.approx(expected[f"{mode}_percent"], abs=0.05 + within)
    assert percent == pytest.approx(
        VECTORS["rules"][rule]["paper"][f"{mode}_percent"], abs=0.5 + within
    )


@pytest.mark.parametrize("rule", RULES)
def test_against_the_clean_run_the_gate_removes_far_less(rule: str) -> None:
    expected = VECTORS["rules"][rule]["clean"]
    found = removed(rule, "gated", Reference.CLEAN)
    assert found.share is not None
    assert [unit.seed for unit in found.informative] == expected["informative"]
    assert found.share * 100 == pytest.approx(expected["gated_percent"], abs=0.05 + rounding(found))
    assert found.warning is None  # a gated federation never consists of ten honest clients


def test_a_gate_that_admits_no_malicious_client_removes_everything_by_construction() -> None:
    found = removed("fedavg", "gated", Reference.HONEST_ONLY)
    assert [unit.seed for unit in found.by_construction] == [1]
    assert found.warning is not None
    assert found.warning.startswith("on 1 of 2 informative units")
    assert "honest-only reference" in found.warning
    assert "seed 1 on 'swat'" in found.warning
    krum = removed("krum", "gated", Reference.HONEST_ONLY)
    assert krum.share == pytest.approx(1)
    assert krum.by_construction == krum.informative
    assert removed("fedavg", "projected", Reference.HONEST_ONLY).warning is None


def test_the_primary_figure_of_the_same_runs_is_less_sure_of_itself() -> None:
    pairs = [
        Pair(
            unit=Unit(seed=seed, record="swat", targets=str(seed)),
            recall=own["gated"],
            against=own["naive"],
        )
        for seed, own in enumerate(VECTORS["rules"]["fedavg"]["recalls"])
    ]
    found = paired_difference(pairs, seed=0)
    assert found.mean == pytest.approx(0.04078, abs=1e-9)
    assert (found.pairs, found.seeds) == (5, 5)
    assert found.low < 0.01 < found.high  # five seeds do not rule out a hundredth


def plain(reference: float, naive: float, defended: float, *, seed: int = 0) -> RemovalCase:
    return RemovalCase(
        unit=Unit(seed=seed, record="line", targets="a"),
        reference=Federation(targeted_recall=reference, roster=HONEST),
        naive=federation(naive),
        defended=federation(defended),
    )


def test_removal_is_weighted_by_damage() -> None:
    cases = [plain(0.6, 0.2, 0.5), plain(0.5, 0.48, 0.42, seed=1)]
    found = removal(cases, reference=Reference.HONEST_ONLY)
    assert found.share == pytest.approx(1 - (0.1 + 0.08) / (0.4 + 0.02))
    assert found.damage == pytest.approx(0.21)


def test_one_point_of_damage_is_informative_whatever_floats_say() -> None:
    assert 0.21 - 0.20 < 0.01
    assert removal([plain(0.21, 0.20, 0.21)], reference=Reference.CLEAN).share == pytest.approx(1)
    none = removal([plain(0.2099, 0.20, 0.21)], reference=Reference.CLEAN)
    assert none.share is None
    assert (none.informative, none.units) == ((), 1)


def test_a_federation_names_only_its_own_malicious_clients() -> None:
    with pytest.raises(
        SettingError,
        match="plant-0, plant-1, plant-2 cannot be malicious in a federation without them",
    ):
        Federation(targeted_recall=0.5, roster=HONEST, malicious=frozenset(MALICIOUS))
    with pytest.raises(SettingError, match="recall of 27.4"):
        Federation(targeted_recall=27.4, roster=HONEST)


def test_removal_needs_units_and_each_once() -> None:
    with pytest.raises(SettingError, match="at least one seed"):
        removal([], reference=Reference.CLEAN)
    with pytest.raises(SettingError, match="twice"):
        removal([plain(0.5, 0.2, 0.4), plain(0.5, 0.2, 0.4)], reference=Reference.CLEAN)
