"""Malicious plants among honest ones, as real processes over TLS through the proxy."""

import os
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.gate import judge
from sluice.aggregation.registry import RULES
from sluice.attestation.systems.registry import circuit_for, find_system
from sluice.detector.autoencoder import initial
from sluice.federation.proofs import Attestor, ProofGate
from sluice.federation.rounds import Checkpoint, admit, begin, take_round
from sluice.federation.transport import InProcess
from sluice.lab.plants.catalogue import simulate
from sluice.network.plant.folder import PlantFolder
from sluice.network.training_rows import TrainingRows
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

from .conftest import Ground
from .outcomes import Row, note, note_sizes
from .sites import Sites, running

pytestmark = pytest.mark.skipif(
    "SLUICE_NETWORK" not in os.environ, reason="make test-network runs it"
)

ROWS = 2_048
FIRST = 15_552
HONEST = ("east", "north", "south", "west")


def honest_shares(ground: Ground) -> dict[str, TrainingRows]:
    """The rows of honest plants; the record's first `ROWS` rows after `FIRST` have a bad row."""
    starts = {name: FIRST + at * ROWS for at, name in enumerate(HONEST, start=1)}
    return {name: ground.share(start, start + ROWS) for name, start in starts.items()}


def in_one_process(sites: Sites, rounds: int) -> Checkpoint:
    """Run the same federation in this process, by proof, with batches as the plants have them."""
    site = sites.site
    terms, names = site.terms, (*HONEST, "malicious")
    batches = {name: PlantFolder(sites.folder / name).share.read() for name in names}
    system, rules = (
        find_system(terms.system),
        PlantFolder(sites.folder / "north").keys.circuit.rules,
    )
    circuit = circuit_for(system, rules, site.policy(), rows_max=terms.rows_max)
    transport = InProcess(
        batches=batches,
        windows={name: terms.framing.windows(batch) for name, batch in batches.items()},
        descent=terms.descent,
        seed=terms.seed,
        attest=Attestor(federation=terms.federation, system=system, circuit=circuit),
    )
    endpoint = ProofGate(federation=terms.federation, system=system, circuit=circuit)
    start = initial(terms.framing.width, seed=terms.seed)
    checkpoint = begin(start, admit(names, transport, endpoint))
    for _ in range(rounds):
        checkpoint = take_round(checkpoint, transport, RULES[terms.rule], None)
    return checkpoint


def sizes(sites: Sites, memory: dict[str, float]) -> dict[str, str]:
    """Return the resources that ten rounds with four plants needed."""
    water, north = sites.site.folder, sites.folder / "north"
    proof = next((north / "batches").glob("*/proof.json")).stat().st_size
    update = next((north / "rounds").glob("*.update")).stat().st_size
    peaks = {f"memory of {name}, at most": f"{mb:,.0f} MB" for name, mb in memory.items()}
    return {
        **peaks,
        "one proof of 2,048 rows": f"{proof / 1e6:.2f} MB",
        "one update, and the model": f"{update / 1e6:.2f} MB",
        "the log, a round and plant": f"{sites.site.log.stat().st_size / 40_000:.1f} kB",
        "the store, a round": f"{sites.site.base.stat().st_size / 1e7:.2f} MB",
        "the SuperLink's own folder, in all": f"{size_of(water / 'flower') / 1e6:.1f} MB",
        "a plant's folder, a round": f"{size_of(north / 'rounds') / 1e7:.2f} MB",
    }


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_ten_rounds_with_a_malicious_plant_end_with_the_model_of_one_process(
    treatment: Ground, jax_cache: Path, tmp_path: Path
) -> None:
    attacked = tmp_path / "attacked.parquet"
    write(
        simulate("treatment", seed=1, days=1, attacks=True).every(10), attacked, FileLayout.PARQUET
    )
    malicious = TrainingRows(record=str(attacked), start=0, stop=ROWS)
    draft = treatment.draft(
        tmp_path / "draft",
        {**honest_shares(treatment), "malicious": malicious},
        rounds=10,
        deadline_s=240.0,
        rows_max=ROWS,
    )
    with running(draft, tmp_path / "sites", jax_cache) as sites:
        sites.start()
        sites.await_entry("aggregated", 9)
        memory = sites.memory_mb("north")
        ending = sites.end()
        assert ending.members == (HONEST,) * 10
        assert ending.excluded == ({"malicious": "4"},) * 10  # it cannot prove such a batch
        same = in_one_process(sites, 10)
        assert (same.admitted, same.refused) == (HONEST, ("malicious",))
        assert not judge(malicious.read(), treatment.rules, sites.site.policy()).admitted
        apart = float(np.max(np.abs(sites.model() - same.parameters)))
        assert apart < 1e-5
        note_sizes(sizes(sites, memory))
    case = "treatment, 5 plants with 2,048 rows each, one has attacks in its batch; 10 rounds"
    members = (
        f"all but the malicious plant (step 4) in 10 rounds; weights {apart:.0e} from one process"
    )
    note(Row(case=case, members=members, entries=ending.entries, seconds=sites.seconds))


def test_malicious_plants_of_four_kinds_are_left_out_each_with_its_step(
    treatment: Ground, jax_cache: Path, tmp_path: Path
) -> None:
    honest = honest_shares(treatment)
    shares = {
        "copied": honest["east"],
        "forged": honest["south"],
        "north": honest["north"],
        "silent": treatment.share(FIRST, FIRST + ROWS),
        "stale": honest["west"],
    }
    draft = treatment.draft(
        tmp_path / "draft",
        shares,
        rounds=3,
        deadline_s=240.0,
        batch_deadline_s=45.0,
        rows_max=ROWS,
    )
    for name in (
        "copied",
        "forged",
        "north",
        "stale",
    ):  # 45 s are for the transfer, not for proving
        PlantFolder(draft.folder / name).agent().attest()
    with running(draft, tmp_path / "sites", jax_cache) as sites:
        for attack in ("copied", "forged", "silent", "stale"):
            sites.start_malicious(attack, attack, str(sites.folder / "north"))
        sites.start()
        ending = sites.end()
        assert ending.members == (("north",),) * 3
        for excluded in ending.excluded:
            assert {name: excluded[name] for name in ("copied", "forged", "silent", "stale")} == {
                "copied": "5.8",
                "forged": "5.8",
                "silent": "4",
                "stale": "2",
            }
        assert ending.model == sites.expected(ending.members)
    attacks = "silent, forged proof, copied proof, stale batch"
    case = f"treatment, four malicious plants: {attacks}; 3 rounds"
    members = "one in 3 rounds, without the malicious plants (steps 4, 5.8, 5.8 and 2)"
    note(Row(case=case, members=members, entries=ending.entries, seconds=sites.seconds))
