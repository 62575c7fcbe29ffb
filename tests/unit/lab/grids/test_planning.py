"""Planning: which cells a grid has, in which order, and what each of them depends on."""

from itertools import groupby
from pathlib import Path

import pytest

from sluice.errors import GridError
from sluice.lab.grids.gridfile import parse_grid
from sluice.lab.grids.planning import ATTACKS, GridPlan, planned
from sluice.lab.grids.work import Work

GRID = """
name = "small"
[record.tanks]
plant = "line"
days = 8.0
clients = 5
[record.basins]
plant = "line"
days = 9.0
clients = 4
liar_share = 0.0
[[study]]
name = "removal"
records = ["tanks", "basins"]
rules = ["fedavg", "median"]
attacks = ["replay"]
modes = ["clean", "gated"]
invariants = ["paper-wide"]
seeds = [0, 1]
"""


def plan(
    *changes: tuple[str, str], only: tuple[str, ...] = (), data: Path = Path("nowhere")
) -> GridPlan:
    text = GRID
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return planned(parse_grid(text, where="grid"), data=data, only=only)


def test_cells_come_layout_by_layout_in_the_order_of_the_file() -> None:
    cells = plan().cells
    layouts = [
        (record, seed)
        for (record, seed), _ in groupby(cells, lambda cell: (cell.asked.record, cell.asked.seed))
    ]
    assert layouts == [("tanks", 0), ("tanks", 1), ("basins", 0), ("basins", 1)]
    first = [(cell.asked.mode, cell.asked.rule) for cell in cells[:4]]
    assert first == [
        ("clean", "fedavg"),
        ("clean", "median"),
        ("gated", "fedavg"),
        ("gated", "median"),
    ]
    assert len({cell.work.layout.id for cell in cells}) == 4


def test_only_the_records_asked_for_are_planned() -> None:
    whole, part = plan(), plan(only=("basins",))
    assert {cell.asked.record for cell in part.cells} == {"basins"}
    assert part.cells == tuple(cell for cell in whole.cells if cell.asked.record == "basins")
    with pytest.raises(GridError, match="record 'basin' is unknown; .* did you mean 'basins'?"):
        plan(only=("basin",))


def test_malicious_clients_are_a_share_of_the_clients() -> None:
    liars = {cell.asked.record: cell.asked.liars for cell in plan().cells}
    assert liars == {"tanks": 2, "basins": 0}  # 0.3 of 5 is rounded to even
    swept = plan(("seeds = [0, 1]", "seeds = [0]\nclients = [2, 10]"), only=("tanks",))
    assert {(cell.asked.clients, cell.asked.liars) for cell in swept.cells} == {(2, 1), (10, 3)}


def test_a_study_without_attacks_asks_for_none() -> None:
    cells = plan(
        ('attacks = ["replay"]\n', ""),
        ('["clean", "gated"]', '["clean"]'),
        ('invariants = ["paper-wide"]\n', ""),
    ).cells
    assert {(cell.asked.attack, cell.asked.invariants) for cell in cells} == {(None, None)}
    assert {(cell.work.attack, cell.work.invariants) for cell in cells} == {(None, None)}


def test_a_clean_cell_is_asked_with_its_attack_and_worked_without() -> None:
    clean = [cell for cell in plan().cells if cell.asked.mode == "clean"]
    assert {(cell.asked.attack, cell.asked.invariants) for cell in clean} == {
        ("replay", "paper-wide")
    }
    assert {(cell.work.attack, cell.work.invariants) for cell in clean} == {(None, None)}


def test_works_are_distinct_and_in_the_order_of_their_first_cell() -> None:
    found = plan(('["replay"]', '["replay", "ramp"]'))
    ids = [work.id for work in found.works]
    assert len(set(ids)) == len(ids)
    firsts = [[cell.work.id for cell in found.cells].index(one) for one in ids]
    assert firsts == sorted(firsts)
    assert found.avoided == len(found.cells) - len(ids) == 8  # clean runs once for both attacks


def test_plants_screen_their_rows_where_a_study_hardens_its_rules() -> None:
    hardened = plan(('["paper-wide"]', '["paper-wide", "hardened"]'))
    assert {cell.work.layout.screened for cell in plan().cells} == {False}
    assert {cell.work.layout.screened for cell in hardened.cells} == {True}
    assert not {work.id for work in plan().works} & {work.id for work in hardened.works}


def test_equal_cells_of_two_studies_are_one_federation() -> None:
    again = GRID[GRID.index("[[study]]") :].replace('"removal"', '"again"')
    both = planned(parse_grid(GRID + again, where="grid"), data=Path("nowhere"))
    assert len(both.cells) == 2 * len(plan().cells)
    assert both.works == plan().works


def test_the_records_name_does_not_make_other_work_but_its_content_does() -> None:
    same = plan(("[record.basins]", "[record.pools]"), ('"basins"', '"pools"'))
    longer = plan(("days = 9.0", "days = 10.0"))
    assert [work.id for work in same.works] == [work.id for work in plan().works]
    changed = {
        cell.asked.record
        for cell, before in zip(longer.cells, plan().cells, strict=True)
        if cell.work.id != before.work.id
    }
    assert changed == {"basins"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("clients = 5", "clients = 5\nevery = 2"),
        ("clients = 5", "clients = 5\nskip_s = 60.0"),
        ("clients = 5", "clients = 5\ntarget_share = 0.5"),
        ("clients = 5", 'clients = 5\nunlabelled = "normal"'),
        ("clients = 5", "clients = 6"),
        ("clients = 5", "clients = 5\nliar_share = 0.2"),
        ("seeds = [0, 1]", "seeds = [2, 3]"),
        ('name = "small"', 'name = "small"\n[training]\nrounds = 3'),
        ('name = "small"', 'name = "small"\n[training]\nepochs = 3'),
        ('name = "small"', 'name = "small"\n[training]\nbatch = 3'),
    ],
)
def test_whatever_decides_a_result_makes_other_work(old: str, new: str) -> None:
    before = {work.id for work in plan(only=("tanks",)).works}
    assert not before & {work.id for work in plan((old, new), only=("tanks",)).works}


def test_a_layout_is_the_settings_of_its_scenario() -> None:
    change = ('name = "small"', 'name = "small"\n[training]\nrounds = 3\nepochs = 4\nbatch = 5')
    work: Work = plan(change).works[0]
    setup = work.layout.setup
    assert (setup.clients, setup.malicious, setup.rounds) == (5, 2, 3)
    assert (setup.descent.epochs, setup.descent.batch) == (4, 5)
    assert (setup.detector, setup.target_share) == ("autoencoder", 0.25)


def test_stand_ins_are_said_once_a_record_and_in_every_cell(tmp_path: Path) -> None:
    lost = (
        'plant = "line"\ndays = 9.0',
        'clean = "a.csv"\ntest = "b.csv"\ninstead = "tanks"',
    )
    found = plan(lost, data=tmp_path)
    assert found.stand_ins == (f"tanks STANDS IN for basins, which is not under {tmp_path}",)
    assert {(cell.asked.record, cell.asked.stand_in) for cell in found.cells} == {
        ("tanks", None),
        ("basins", "tanks"),
    }
    assert plan(lost, data=tmp_path, only=("tanks",)).stand_ins == ()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "days = 9.0",
            'days = 9.0\ninstead = "tank"',
            "record 'basins': instead 'tank' is unknown; known are tanks, basins; did you mean",
        ),
        ("days = 9.0", "every = 0", "every must be at least 1 and skip_s must not be negative"),
        ("days = 9.0", "skip_s = -1.0", "every must be at least 1 and skip_s must not be"),
        ("days = 9.0", "liar_share = -0.1", "liar_share is -0.1; give a share in [0, 1)"),
        ("days = 9.0", 'clean = "a"\ntest = "b"', "needs either plant, or clean and test"),
        ("days = 9.0", "target_share = 0.0", "study 'removal' on 'basins': a federation needs"),
        ("seeds = [0, 1]", "seeds = [0]\nclients = [0]", "0 clients; give at least 1"),
        ('modes = ["clean", "gated"]', "modes = []", "modes is empty; every axis needs at least"),
        ('modes = ["clean", "gated"]', 'modes = ["bound"]', "mode 'bound' proves every batch"),
        ('records = ["tanks", "basins"]', "records = []", "records is empty"),
        (
            'name = "small"',
            'name = "small"\n[training]\ndetector = "subspce"',
            "unknown detector 'subspce'; known are autoencoder, subspace, moments",
        ),
        ('name = "small"', 'name = "small"\n[training]\nepochs = 0', "at least 1 epoch"),
    ],
)
def test_what_a_plan_cannot_do_is_said(old: str, new: str, why: str) -> None:
    changes = [(old, new)]
    if "liar_share = -0.1" in new:
        changes.append(("liar_share = 0.0\n", ""))
    with pytest.raises(GridError) as refused:
        plan(*changes)
    assert why in str(refused.value)


def test_a_substitute_must_be_simulated() -> None:
    files = ('plant = "line"\ndays = 9.0', 'clean = "a.csv"\ntest = "b.csv"')
    with pytest.raises(GridError, match="instead is 'basins', which is read from files; name a"):
        plan(files, ("days = 8.0", 'days = 8.0\ninstead = "basins"'))


@pytest.mark.parametrize("attack", ["sign-flip", "blend"])
def test_sums_cannot_be_falsified_as_updates(attack: str) -> None:
    assert attack in ATTACKS
    with pytest.raises(GridError, match=f"attack '{attack}' falsifies updates, but the detector"):
        plan(
            ('name = "small"', 'name = "small"\n[training]\ndetector = "subspace"'),
            ('["fedavg", "median"]', '["fedavg"]'),
            ('["replay"]', f'["{attack}"]'),
        )


def test_a_grid_without_a_study_has_no_cells() -> None:
    text = GRID[: GRID.index("[[study]]")].replace('name = "small"', 'name = "small"\nstudy = []')
    with pytest.raises(GridError, match="grid 'small' has no cells; give it a \\[\\[study\\]\\]"):
        planned(parse_grid(text, where="grid"), data=Path("nowhere"))
