"""The workbench: what it keeps for the next piece of work, and when it may not."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.lab.grids import workbench
from sluice.lab.grids.gridfile import parse_grid
from sluice.lab.grids.planning import planned
from sluice.lab.grids.sources import Opened, RecordSource, opened
from sluice.lab.grids.work import Work, work_to_json
from sluice.lab.grids.workbench import LabBench, Workbench
from sluice.lab.results.work import Made
from sluice.lab.results.workers.pool import WorkerTask
from sluice.lab.trials.artifact_cache import ArtifactCache
from sluice.lab.trials.cell import score_of
from sluice.lab.trials.contributions import Contributions
from sluice.lab.trials.modes import MODES
from sluice.lab.trials.scenario import scenario
from sluice.lab.trials.trial import Trial
from sluice.telemetry import Shares, feature_names

GRID = """
name = "benched"
[training]
detector = "subspace"
[record.tanks]
plant = "line"
days = 5.0
clients = 3
[[study]]
name = "removal"
records = ["tanks"]
rules = ["fedavg"]
attacks = ["channel-roll", "attest-clean"]
modes = ["clean", "naive", "gated"]
invariants = ["paper-wide"]
seeds = [0, 1]
"""
WORKS = planned(parse_grid(GRID, where="grid"), data=Path("nowhere")).works


def work(mode: str, attack: str | None = None, seed: int = 0) -> Work:
    (found,) = [
        one for one in WORKS if (one.mode, one.attack, one.layout.seed) == (mode, attack, seed)
    ]
    return found


@pytest.fixture(scope="module")
def bench() -> Workbench:
    return Workbench()


@pytest.fixture(scope="module")
def clean(bench: Workbench) -> Made:
    return bench.work(work("clean"), {})


def test_the_score_is_that_of_the_trial_done_by_hand(clean: Made) -> None:
    layout = work("clean").layout
    records = opened(layout.record)
    shared = scenario(records.clean, records.test, setup=layout.setup, seed=0)
    trial = Trial(contributions=Contributions(shared))
    score = score_of(trial.run(trial.plan(MODES["clean"]), "fedavg"), trial)
    assert clean.result.score == score
    assert clean.result.liars == shared.malicious
    assert (clean.result.mode, clean.result.attack, clean.result.seed) == ("clean", None, 0)
    assert not clean.recalled


def test_a_grid_lets_members_vote(bench: Workbench) -> None:
    text = GRID.replace('"subspace"', '"moments"').replace('"fedavg"', '"vote", "any-of-subsets"')
    works = planned(parse_grid(text, where="grid"), data=Path("nowhere")).works
    scores = {}
    for each in (one for one in works if (one.mode, one.layout.seed) == ("clean", 0)):
        shared = bench.shared(each.layout)
        trial = Trial(contributions=Contributions(shared))
        (done,) = finished = trial.run(trial.plan(MODES["clean"]), each.rule)
        assert done.detector.model.kind == "vote"
        scores[each.rule] = bench.work(each, {}).result.score
        assert scores[each.rule] == score_of(finished, trial)
    assert list(scores) == ["vote", "any-of-subsets"]
    assert scores["vote"] != scores["any-of-subsets"]


def test_a_known_federation_is_not_run_again(bench: Workbench, clean: Made) -> None:
    known = {clean.federation: replace(clean.result.score, f1=0.125)}
    again = bench.work(work("clean"), known)
    assert again.recalled
    assert again.result.score.f1 == 0.125
    assert again.federation == clean.federation
    assert replace(again.result, score=clean.result.score) == clean.result


def test_a_score_of_another_federation_is_not_taken(bench: Workbench, clean: Made) -> None:
    other = bench.work(work("naive", "channel-roll"), {clean.federation: clean.result.score})
    assert not other.recalled
    assert other.federation != clean.federation


def test_cells_that_train_on_the_same_rows_are_one_federation(bench: Workbench) -> None:
    naive = bench.work(work("naive", "attest-clean"), {})
    gated = bench.work(work("gated", "attest-clean"), {naive.federation: naive.result.score})
    assert gated.recalled
    assert gated.result.mode == "gated"
    assert gated.result.admitted == naive.result.admitted


@pytest.mark.parametrize("part", ["clean", "test"])
def test_the_same_clients_measured_on_other_rows_are_another_federation(
    part: str, clean: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first clean row after those for mining sets the threshold; no client trains on it."""

    def changed(source: RecordSource, *, cache: ArtifactCache | None) -> Opened:
        records = opened(source, cache=cache)
        record = getattr(records, part)
        values = record.values.copy()
        values[int(Shares().invariants * len(record)), 0] += 1.0
        return replace(records, **{part: replace(record, values=values)})

    monkeypatch.setattr(workbench, "opened", changed)
    other = Workbench().work(work("clean"), {clean.federation: clean.result.score})
    assert not other.recalled
    assert other.federation != clean.federation


def test_another_seed_is_another_federation(bench: Workbench, clean: Made) -> None:
    other = bench.work(work("clean", seed=1), {})
    assert other.federation != clean.federation
    assert other.result.seed == 1


def test_a_record_is_opened_once_for_all_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noted(source: object, *, cache: object) -> Opened:
        read.append("read")
        return opened(work("clean").layout.record)

    monkeypatch.setattr(workbench, "opened", noted)
    own = Workbench()
    layouts = [work("clean", seed=seed).layout for seed in (0, 1)]
    for layout in layouts:
        own.shared(layout)
    assert read == ["read"]
    thinner = replace(layouts[0], record=replace(layouts[0].record, every=2))
    own.shared(thinner)
    assert len(read) == 2


def test_consecutive_work_of_one_layout_shares_its_scenario(bench: Workbench) -> None:
    first = bench._load(work("clean").layout)
    assert bench._load(work("naive", "channel-roll").layout) is first
    renamed = replace(work("clean").layout, record=replace(first.layout.record, name="other"))
    assert bench._load(renamed) is first
    assert bench._load(work("clean", seed=1).layout) is not first


def test_a_gate_is_of_the_policy_that_its_rules_are_made_for(bench: Workbench) -> None:
    layout = work("clean").layout
    shared = bench.shared(layout)
    paper = bench.gate(layout, shared, "paper-wide")
    hardened = bench.gate(layout, shared, "hardened")
    assert (paper.name, hardened.name) == ("paper-wide", "hardened")
    assert paper.gate.policy == PaperPolicy()
    assert hardened.gate.policy == HardenedPolicy()
    assert paper.gate.rules.clean is None
    assert hardened.gate.rules.clean is not None


def test_screened_plants_drop_windows_that_violate_the_hardened_rules(bench: Workbench) -> None:
    layout = work("clean").layout
    plain = bench._load(layout)
    screened = bench._load(replace(layout, screened=True))
    gate = bench.gate(layout, plain.scenario, "hardened").gate
    for client, shard in plain.scenario.shards.items():
        whole = plain.contributions.honest(client).windows
        kept = screened.contributions.honest(client).windows
        violating = int(whole.touching(gate.judge(shard).violating).sum())
        assert violating > 0
        assert len(kept) == len(whole) - violating


def test_the_detector_of_screened_plants_reads_no_untied_channel(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = replace(work("clean").layout, screened=True)
    hardened = bench.gate(layout, bench.shared(layout), "hardened")
    untied = replace(hardened.gate.rules, untied=("L_T2", "F_PU1"))
    loose = replace(hardened, gate=replace(hardened.gate, rules=untied))
    monkeypatch.setattr(Workbench, "gate", lambda *_: loose)
    framing = Workbench()._load(layout).scenario.framing
    assert set(feature_names(bench.shared(layout).parts.fit)) - set(framing.scaler.names) == {
        "L_T2",
        "F_PU1",
    }


def test_a_workers_bench_does_the_work_of_its_task(tmp_path: Path, clean: Made) -> None:
    run = LabBench(kept=tmp_path / "kept", code="this")()
    made = run(WorkerTask(settings=work_to_json(work("clean")), known={}))
    assert made.result == clean.result
    assert made.federation == clean.federation
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["records"]
    score = clean.result.score
    again = run(WorkerTask(settings=work_to_json(work("clean")), known={clean.federation: score}))
    assert again.recalled
