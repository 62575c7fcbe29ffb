"""Rule poisoning: who notices it."""

import pytest

from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.lab.attacks.loosening import Spikes
from sluice.lab.audits.loosening import LooseningTable, loosening
from sluice.lab.plants.catalogue import simulate


@pytest.fixture(scope="module")
def hardened() -> LooseningTable:
    plant = simulate("line", seed=0, days=10)
    return loosening(
        plant.rows(0, 4_000),
        plant.rows(4_000, 8_000),
        plant.rows(10_000, 11_000),
        prepare=Spikes(),
        policy=HardenedPolicy(),
        seed=0,
    )


def test_spikes_widen_tolerances_and_the_file_tells(hardened: LooseningTable) -> None:
    """Spikes are a heavy tail: the file claims residuals and refusals that no policy accepts."""
    assert len(hardened.widened) > 6
    assert max(rule.ratio or 0 for rule in hardened.widened) > 3
    assert any("the file claims clean residuals" in reason for reason in hardened.refused_alone)


def test_the_last_accepted_file_is_the_witness(hardened: LooseningTable) -> None:
    said = " ".join(hardened.refused_beside_last)
    assert all(rule.rule in said for rule in hardened.widened)


def test_a_clean_batch_passes_before_and_after(hardened: LooseningTable) -> None:
    assert hardened.admitted_before
    assert hardened.admitted_after
    assert hardened.violating_after <= hardened.violating_before


def test_under_the_papers_policy_nothing_is_asked_that_it_could_answer() -> None:
    plant = simulate("line", seed=0, days=4)
    table = loosening(
        plant.rows(0, 2_000),
        plant.rows(2_000, 4_000),
        plant.rows(4_000, 5_000),
        prepare=Spikes(),
        policy=PaperPolicy(),
        seed=0,
    )
    assert any("states nothing about clean batches" in reason for reason in table.refused_true)
    assert len(table.widened) == len(table.rules)
