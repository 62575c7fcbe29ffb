"""Grids: what is wrong is said before anything runs, and identical work is found."""

import re
from collections import Counter
from pathlib import Path

import pytest

from sluice.errors import GridError
from sluice.lab.grids.gridfile import parse_grid, preset_names, read_grid
from sluice.lab.grids.planning import GridPlan, planned
from sluice.lab.grids.work import work_from_json, work_to_json
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

GRID = """
name = "small"
[training]
rounds = 2
[record.tanks]
plant = "line"
days = 8.0
clients = 5
[[study]]
name = "removal"
records = ["tanks"]
rules = ["fedavg", "median"]
attacks = ["replay", "channel-roll"]
modes = ["clean", "naive", "gated"]
invariants = ["paper-wide", "paper-narrow"]
seeds = [0, 1]
"""


def plan(text: str = GRID, *, data: Path = Path("nowhere")) -> GridPlan:
    return planned(parse_grid(text, where="grid"), data=data)


def test_the_papers_grid_has_its_1120_cells(tmp_path: Path) -> None:
    whole = planned(read_grid("paper"), data=tmp_path)
    counts = Counter(cell.asked.record for cell in whole.cells)
    assert counts == {"swat": 907, "wadi": 90, "batadal": 72, "simulator": 51}


def test_the_papers_swat_grid_avoids_three_federations_in_ten(tmp_path: Path) -> None:
    swat = planned(read_grid("paper"), data=tmp_path, only=["swat"])
    assert len(swat.works) == 546
    assert swat.avoided / len(swat.cells) >= 0.30


def test_an_absent_record_is_replaced_and_said_to_be(tmp_path: Path) -> None:
    swat = planned(read_grid("paper"), data=tmp_path, only=["swat"])
    assert swat.stand_ins == (f"treatment STANDS IN for swat, which is not under {tmp_path}",)
    assert {cell.asked.stand_in for cell in swat.cells} == {"treatment"}
    assert "treatment for swat" in str(swat.cells[0].asked)


def test_clean_is_one_federation_for_all_attacks_and_rule_sets() -> None:
    clean = [cell for cell in plan().cells if cell.asked.mode == "clean"]
    assert len(clean) == 2 * 2 * 2 * 2
    assert len({cell.work.id for cell in clean}) == 2 * 2  # rules and seeds


def test_a_non_adaptive_attack_without_a_gate_is_one_federation_for_all_rule_sets() -> None:
    cells = plan().cells
    naive = {cell.work.id for cell in cells if cell.asked.mode == "naive"}
    gated = {cell.work.id for cell in cells if cell.asked.mode == "gated"}
    assert len(naive) == 2 * 2 * 2
    assert len(gated) == 2 * 2 * 2 * 2


def test_an_attack_that_minds_the_rules_is_one_for_each_rule_set() -> None:
    text = GRID.replace('"channel-roll"]', '"ramp"]')
    naive = [cell for cell in plan(text).cells if cell.asked.mode == "naive"]
    minded = {cell.work.id for cell in naive if cell.asked.attack == "ramp"}
    assert len(minded) == 2 * 2 * 2


def test_work_survives_being_written_down() -> None:
    for work in plan().works:
        again = work_from_json(work_to_json(work))
        assert again == work
        assert again.id == work.id


def test_work_is_named_by_content_and_not_by_path(tmp_path: Path) -> None:
    ids = []
    for folder in ("here", "there"):
        data = tmp_path / folder
        data.mkdir()
        write(simulate("line", seed=0, days=2), data / "clean.csv", FileLayout.CSV)
        write(simulate("line", seed=1, days=2, attacks=True), data / "test.csv", FileLayout.CSV)
        text = GRID.replace('plant = "line"\ndays = 8.0', 'clean = "clean.csv"\ntest = "test.csv"')
        ids.append([work.id for work in plan(text, data=data).works])
    assert ids[0] == ids[1]
    (tmp_path / "there" / "clean.csv").write_text(
        (tmp_path / "there" / "clean.csv").read_text() + "\n"
    )
    assert [work.id for work in plan(text, data=data).works] != ids[0]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"median"', '"medain"', "did you mean 'median'?"),
        ('"gated"', '"gatd"', "did you mean 'gated'?"),
        ('"replay"', '"bribery"', "attack 'bribery' is unknown"),
        ('"paper-wide"', '"paper-wid"', "did you mean 'paper-wide'?"),
        ('["tanks"]', '["tank"]', "did you mean 'tanks'?"),
        ("[0, 1]", "[0, -1]", "seed -1 is negative"),
        ("[0, 1]", "[0, 0]", "asks twice for"),
        ("[0, 1]", "[]", "seeds is empty"),
        ("[0, 1]", '["0"]', "valid integer"),
        ("rounds = 2", "ronds = 2", "unknown key 'ronds'; did you mean 'rounds'?"),
        ("days = 8.0", "dais = 8.0", "[record.tanks]: unknown key 'dais'; did you mean 'days'?"),
        ("seeds =", "seed =", "study 'removal': unknown key 'seed'; did you mean 'seeds'?"),
        ('"line"', '"lime"', "unknown plant 'lime'"),
        ('plant = "line"', 'clean = "a.csv"', "needs either plant, or clean and test"),
        ('plant = "line"', 'clean = "a.csv"\ntest = "b.csv"', "a.csv is not in the data folder"),
        ("clients = 5", "clients = 5\nliar_share = 1.5", "liar_share is 1.5"),
        ("clients = 5", "clients = 3\nliar_share = 0.9", "3 clients cannot have 3 malicious ones"),
        ("days = 8.0", "days = 8.0\nsites = true", "without days and every"),
        ('"line"', '"treatment"\nsites = true', "sites are plants 'line' of different size"),
        ("rounds = 2", "rounds = 0", "at least 1 round"),
        (
            "rounds = 2",
            'detector = "subspace"',
            "rule 'median' has no updates to weigh; use rule 'fedavg'",
        ),
        ('attacks = ["replay", "channel-roll"]', "", "mode 'naive' needs attacks"),
        ('invariants = ["paper-wide", "paper-narrow"]', "", "mode 'gated' needs invariants"),
        ("[[study]]", "[study]", "in double brackets"),
        ('name = "small"', 'name = "small', "is not TOML"),
    ],
)
def test_a_bad_grid_is_refused_with_what_is_wrong(old: str, new: str, why: str) -> None:
    with pytest.raises(GridError) as refused:
        plan(GRID.replace(old, new))
    assert why in str(refused.value)


def test_a_grid_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    assert "paper" in preset_names()
    with pytest.raises(GridError, match="did you mean 'paper'"):
        read_grid(str(tmp_path / "papr.toml"))


def test_the_grid_that_the_page_shows_is_one() -> None:
    page = Path(__file__).parents[4] / "docs" / "explanation" / "lab.md"
    (shown,) = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = plan(str(shown))
    assert len(found.cells) == 2 * 2 * 5 * 5 * 2
    assert found.stand_ins
