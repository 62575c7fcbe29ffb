"""Federations to run as processes of their own: founded and joined once, copied for each test."""

from pathlib import Path

import pytest

from sluice.detector import Descent
from sluice.invariants import Profile, mine, save_rules
from sluice.network.founding import Plan
from sluice.network.membership import Share
from sluice.plants import simulate
from sluice.telemetry import Layout, Record, write

from .sites import Draft, free_port

POLICY = 'kind = "hardened"\n'
LINE_ROWS = 600


@pytest.fixture(scope="session")
def jax_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jax")


@pytest.fixture(scope="session")
def line_draft(tmp_path_factory: pytest.TempPathFactory) -> Draft:
    """Three plants on `line`, three short rounds, full proofs of 600 rows."""
    return drafted(
        tmp_path_factory.mktemp("line"),
        simulate("line", seed=0, days=8),
        cuts=(4_320, 8_640),
        rows={
            name: (8_640 + at * LINE_ROWS, 8_640 + (at + 1) * LINE_ROWS)
            for at, name in enumerate(("north", "south", "west"))
        },
        rounds=3,
        deadline_s=180.0,
        rows_max=1_024,
    )


def drafted(
    folder: Path,
    record: Record,
    *,
    cuts: tuple[int, int],  # rules are fitted before the first and calibrated before the second
    rows: dict[str, tuple[int, int]],
    rounds: int,
    deadline_s: float,
    rows_max: int,
    suspend_after: int = 50,
) -> Draft:
    path, rules_file = folder / "record.parquet", folder / "rules.json"
    write(record, path, Layout.PARQUET)
    fit, calibrate = cuts
    rules = mine(record.rows(0, fit), record.rows(fit, calibrate), profile=Profile.HARDENED)
    save_rules(rules, rules_file)
    plan = Plan(
        federation="water",
        host="127.0.0.1",
        port=free_port(),
        link_port=free_port(),
        reference=Share(record=str(path), start=fit, stop=calibrate),
        policy=POLICY,
        rows_max=rows_max,
        rounds=rounds,
        descent=Descent(epochs=1, batch=256),
        batch_deadline_s=deadline_s,
        round_deadline_s=deadline_s,
        suspend_after=suspend_after,
    )
    shares = {
        name: Share(record=str(path), start=start, stop=stop)
        for name, (start, stop) in rows.items()
    }
    return Draft.make(folder / "draft", plan, rules, rules_file, shares)
