"""Operator actions on a federation of real processes: shadow, renewal, waiver, removal."""

import os
from pathlib import Path

import numpy as np
import pytest

from sluice.attestation.log.entries import BatchAttested, BatchExcused, ModelAggregated
from sluice.attestation.messages.context import Interval
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import write_document
from sluice.network.training_rows import TrainingRows
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

from .outcomes import Row, note
from .sites import APPROVER, Draft, Sites, running

pytestmark = pytest.mark.skipif(
    "SLUICE_NETWORK" not in os.environ, reason="make test-network runs it"
)


def spoil(sites: Sites, plant: str) -> Interval:
    """Have a flow meter of a plant read a quarter too much, and return when."""
    plant_folder = PlantFolder(sites.folder / plant)
    share = plant_folder.share
    whole = share.whole()
    values = np.array(whole.values)
    values[:, whole.index("F_PU1")] *= 1.25
    path = sites.folder / "spoilt.parquet"
    write(whole.with_values(values), path, FileLayout.PARQUET)
    spoilt = TrainingRows(record=str(path), start=share.start, stop=share.stop)
    write_document(spoilt, plant_folder.folder / "plant.json")
    return Interval.of(spoilt.read())


def approved_import(sites: Sites, order: str) -> None:
    """Have the approver sign an order, and import it."""
    approval = f"{order}.approval"
    sites.type("rules", "approve", order, "--key", "approver.key", "--out", approval)
    sites.type("coordinator", "import", "water", order, "--approval", approval)


def rounds_of(sites: Sites, upto: int, *flags: str) -> tuple[tuple[str, ...], ...]:
    """Take rounds up to a number, and return who took part in each so far."""
    sites.agree(rounds=upto)
    sites.start(*flags)
    sites.end()
    return tuple(body.clients for body in sites.bodies() if isinstance(body, ModelAggregated))


def test_operators_put_the_gate_in_shadow_waive_renew_and_remove(
    line_draft: Draft, jax_cache: Path, tmp_path: Path
) -> None:
    everybody, others = line_draft.plants, ("north", "south")
    with running(line_draft, tmp_path / "sites", jax_cache) as sites:
        spoilt = spoil(sites, "west")
        APPROVER.save(sites.folder / "approver.key")
        shadow = ("--days", "1", "--reason", "the first day", "--out", "shadow.json")
        sites.type("coordinator", "shadow", "water", *shadow)
        approved_import(sites, "shadow.json")
        assert rounds_of(sites, 1) == (everybody,)
        excused = [body for body in sites.bodies() if isinstance(body, BatchExcused)]
        assert [(body.client, body.waiver) for body in excused] == [("west", None)]

        share = PlantFolder(sites.folder / "north").share
        moved = f"{share.start + 1_800}:{share.stop + 1_800}"
        sites.type("plant", "renew", "north", "--rows", moved)
        assert rounds_of(sites, 3, "--enforce") == (everybody, others, others)
        attested = [body.client for body in sites.bodies() if isinstance(body, BatchAttested)]
        assert sorted(attested) == ["north", "north", "south"]
        assert sites.ending().excluded[1:] == ({"west": "4"},) * 2

        window = ("--from", spoilt.start, "--to", spoilt.end, "--reason", "a flow meter is away")
        sites.type("coordinator", "waive", "water", "west", *window, "--out", "west.waiver")
        approved_import(sites, "west.waiver")
        assert rounds_of(sites, 4)[-1] == everybody
        granted = [body for body in sites.bodies() if isinstance(body, BatchExcused)][-1]
        assert granted.client == "west"
        assert granted.waiver is not None

        sites.type("coordinator", "remove", "water", "north", "--from", "4")
        assert rounds_of(sites, 4)[-1] == ("south", "west")
        entries = sites.ending().entries
    note(
        Row(
            case="a spoilt batch in shadow, enforced, waived; another renewed; a plant removed",
            members="4 rounds: all, 2 without west, all; then the last again without north",
            entries=entries,
            seconds=sites.seconds,
        )
    )
