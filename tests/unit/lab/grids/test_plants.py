"""Sites: a federation whose clients are plants of different size."""

from pathlib import Path

import numpy as np

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.lab.expert_rules import line_rules
from sluice.lab.grids.gridfile import read_grid
from sluice.lab.grids.planning import planned
from sluice.lab.grids.plants import site_scenario
from sluice.lab.grids.workbench import Workbench
from sluice.lab.trials.scenario import Setup

SETUP = Setup(clients=10, malicious=3)


def test_every_site_has_its_own_size_and_the_reference_plant_is_tested() -> None:
    shared = site_scenario(setup=SETUP, seed=0)
    pumps = [
        np.median(shard.column("F_PU1")[shard.column("S_PU1") > 0])
        for shard in shared.shards.values()
    ]
    assert len(shared.shards) == 10
    assert {len(shard) for shard in shared.shards.values()} == {4_000}
    assert max(pumps) / min(pumps) > 1.1  # 12 % either way
    assert (len(shared.parts.root), len(shared.test)) == (800, 4_000)
    assert shared.malicious == ("plant-5", "plant-6", "plant-9")
    assert shared.test.attack_segments


def test_another_seed_is_other_sites() -> None:
    first, second = (site_scenario(setup=SETUP, seed=seed) for seed in (0, 1))
    assert (first.shards["plant-0"].values != second.shards["plant-0"].values).any()


def test_the_reference_plants_rules_refuse_faithful_sites_of_another_size() -> None:
    """As measured on the paper's own simulator: a shared rule set is no rule set for all."""
    shared = site_scenario(setup=SETUP, seed=0)
    gate = Gate.of(line_rules(shared.parts.calibration), PaperPolicy())
    assert gate.judge(shared.parts.validation).admitted
    refused = [not gate.judge(shard).admitted for shard in shared.shards.values()]
    assert sum(refused) >= 5


def test_the_papers_simulator_is_51_cells_by_exact_rules(tmp_path: Path) -> None:
    plan = planned(read_grid("paper"), data=tmp_path, only=["simulator"])
    assert len(plan.cells) == 51
    assert all(cell.work.layout.record.sites for cell in plan.cells)
    work = next(
        work for work in plan.works if work.mode == "physics-aware" and work.rule == "fedavg"
    )
    assert work.invariants == "paper-expert"
    bench = Workbench()
    rules = bench.gate(work.layout, bench.shared(work.layout), "paper-expert").gate.rules
    assert [rule.name for rule in rules.invariants][:2] == ["balance T1", "balance T2"]
    assert len(rules.invariants) == 6
