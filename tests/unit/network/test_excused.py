"""Shadow mode, waivers, renewals: which plants take part without a proof, and which do not."""

from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.orders import APPROVALS, SHADOW_ORDERS, WAIVERS, approve
from sluice.attestation.messages.signing import SigningKey, content_digest
from sluice.errors import RefusedError, SettingError, VerificationError
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.importing import take_in
from sluice.network.coordinator.operations import (
    WaivedInterval,
    shadow_order_for,
    waiver_for,
)
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import ExportedAttestation, write_document
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.wire import Direct
from sluice.reports.dashboard.snapshot import take
from sluice.telemetry.reading import read_record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

from .conftest import ROWS, START, Consortium, Founder
from .malicious_plant import forged, stale

LATER = START + timedelta(days=14)


@pytest.fixture
def spoilt(founder: Founder, tmp_path: Path) -> Consortium:
    """North keeps its rules; a flow meter of south reads a half too much."""
    consortium = founder(suspend_after=50)
    consortium.join("north", 0)
    agent = consortium.join("south", 1)
    line = read_record(consortium.record)
    values = np.array(line.values)
    values[:, line.index("F_PU1")] *= 1.5
    write(line.with_values(values), tmp_path / "spoilt.csv", FileLayout.CSV)
    share = TrainingRows(
        record=str(tmp_path / "spoilt.csv"), start=8_640 + ROWS, stop=8_640 + 2 * ROWS
    )
    write_document(share, consortium.folder / "south" / "plant.json")
    assert isinstance(agent, Agent)
    return consortium


def run(consortium: Consortium, rounds: int, *, shadow: bool | None = None) -> dict[str, str]:
    """Take rounds, and return each plant's state after them."""
    store = CoordinatorStore(consortium.site.base)
    wire = Direct(consortium.plants)
    try:
        service = coordinator_service(
            consortium.site, store, wire, clock=consortium.clock, shadow=shadow
        )
        service.run(rounds=rounds, on_round=lambda _: None)
        return {member.name: member.state for member in store.members()}
    finally:
        store.close()


def members(consortium: Consortium) -> tuple[str, ...]:
    return read_log(consortium.site.log).rounds.members


def in_shadow(consortium: Consortium) -> bool:
    ledger = read_log(consortium.site.log)
    return ledger.exemptions.shadow(at=ledger.time)


def order_shadow(consortium: Consortium, *, until: datetime = LATER) -> None:
    order = shadow_order_for(consortium.site.folder, until=until, reason="first two weeks")
    consortium.order(order)


# -- shadow ---------------------------------------------------------------------------------------


def test_in_shadow_the_gate_records_refusals_without_enforcing_them(
    spoilt: Consortium,
) -> None:
    order_shadow(spoilt)
    states = run(spoilt, 1, shadow=True)
    assert states == {
        "north": "attested",
        "south": "in shadow: would have been refused at step 4",
    }
    assert members(spoilt) == ("north", "south")
    ledger = read_log(spoilt.site.log)
    assert ledger.exemptions.shadow(at=ledger.time)
    assert [(e.client, e.waiver) for e in ledger.exemptions.excused] == [("south", None)]
    shown = take(spoilt.site.folder)
    assert "in shadow" in shown.gate
    assert "would have been refused at step 4" in [row.state.sentence for row in shown.plants][1]


def test_a_shadow_lasts_until_the_gate_is_enforced(spoilt: Consortium) -> None:
    order_shadow(spoilt)
    run(spoilt, 1, shadow=True)
    run(spoilt, 2)  # neither flag: as the log has it
    assert members(spoilt) == ("north", "south")
    states = run(spoilt, 3, shadow=False)
    assert states["south"] == "left out at step 4"
    assert members(spoilt) == ("north",)
    assert not in_shadow(spoilt)


def test_a_shadow_whose_time_is_over_is_enforced_again(spoilt: Consortium) -> None:
    order_shadow(spoilt, until=START + timedelta(hours=1))
    run(spoilt, 1)
    assert in_shadow(spoilt)
    spoilt.clock.now = START + timedelta(hours=2)
    assert run(spoilt, 2)["south"] == "left out at step 4"
    assert members(spoilt) == ("north",)
    with pytest.raises(SettingError, match="shadow needs an order that approvers have signed"):
        run(spoilt, 3, shadow=True)


def test_no_operator_puts_the_gate_in_shadow_without_an_approver(spoilt: Consortium) -> None:
    with pytest.raises(SettingError, match="shadow needs an order that approvers have signed"):
        run(spoilt, 1, shadow=True)
    assert not in_shadow(spoilt)
    order = shadow_order_for(spoilt.site.folder, until=LATER, reason="first two weeks")
    with pytest.raises(VerificationError, match=r"step 4: the order: 0 approvals"):
        spoilt.order(order, SigningKey.generate())
    # An approval of another order does not serve.
    other = approve(replace(order, reason="another reason"), spoilt.approver)
    path, signed = spoilt.folder / "shadow.json", spoilt.folder / "approval.json"
    path.write_bytes(SHADOW_ORDERS.write(order))
    signed.write_bytes(APPROVALS.write(other))
    with pytest.raises(VerificationError, match=r"step 4: the order: 0 approvals"):
        take_in(spoilt.site.folder, path, approvals=[signed], at=spoilt.clock())
    assert run(spoilt, 1)["south"] == "left out at step 4"


def test_in_shadow_a_plant_that_breaks_the_protocol_is_still_left_out(
    consortium: Consortium,
) -> None:
    consortium.plants["south"] = forged(PlantFolder(consortium.folder / "south"))
    consortium.plants["west"] = stale(PlantFolder(consortium.folder / "west"))
    order_shadow(consortium)
    states = run(consortium, 1, shadow=True)
    assert states["south"] == "left out at step 5.8"
    assert states["west"] == "left out at step 2"
    assert members(consortium) == ("north",)


# -- waivers --------------------------------------------------------------------------------------


def window(consortium: Consortium, plant: str = "south", **changes: object) -> WaivedInterval:
    south = consortium.plants["south"]
    assert isinstance(south, Agent)
    settings: dict[str, object] = {
        "plant": plant,
        "interval": Interval.of(south.batch),
        "expires": START + timedelta(days=1),
        "reason": "flow meter 1 is being replaced",
    }
    return WaivedInterval(**(settings | changes))  # type: ignore[arg-type]


def granted(consortium: Consortium, window: WaivedInterval) -> str:
    waiver = waiver_for(consortium.site.folder, window)
    consortium.order(waiver)
    return content_digest(waiver)


def test_a_waived_batch_takes_part_until_the_waiver_expires(spoilt: Consortium) -> None:
    named = granted(spoilt, window(spoilt))
    states = run(spoilt, 1)
    assert states["south"] == f"by waiver {named[:12]}, without a proof"
    assert members(spoilt) == ("north", "south")
    assert not in_shadow(spoilt)
    run(spoilt, 2)
    assert members(spoilt) == ("north", "south")
    store = CoordinatorStore(spoilt.site.base)
    assert ("south", "refused at step 4") not in store.counts()  # while the waiver holds
    store.close()
    spoilt.clock.now += timedelta(days=2)
    assert run(spoilt, 3)["south"] == "left out at step 4"
    assert members(spoilt) == ("north",)


def test_a_batch_in_shadow_is_not_asked_for_again_before_the_shadow_ends(
    spoilt: Consortium,
) -> None:
    until = START + timedelta(days=29)  # when an attestation with a proof would soon expire
    order_shadow(spoilt, until=until)
    run(spoilt, 1)
    with closing(CoordinatorStore(spoilt.site.base)) as store:
        wire = Direct(spoilt.plants)
        service = coordinator_service(spoilt.site, store, wire, clock=spoilt.clock)
        spoilt.clock.now = until - timedelta(hours=1)
        assert "south" not in service.intake.due(round_=2)


def test_a_waiver_for_another_plant_or_another_time_does_not_serve(spoilt: Consortium) -> None:
    granted(spoilt, window(spoilt, plant="north"))
    north = spoilt.plants["north"]
    assert isinstance(north, Agent)
    granted(spoilt, window(spoilt, interval=Interval.of(north.batch)))
    assert run(spoilt, 1)["south"] == "left out at step 4"
    assert members(spoilt) == ("north",)


def test_a_waiver_can_be_granted_while_the_federation_runs(spoilt: Consortium) -> None:
    store = CoordinatorStore(spoilt.site.base)
    service = coordinator_service(spoilt.site, store, Direct(spoilt.plants), clock=spoilt.clock)
    service.run(rounds=1, on_round=lambda _: None)
    granted(spoilt, window(spoilt))  # another process
    service.run(rounds=2, on_round=lambda _: None)
    store.close()
    assert members(spoilt) == ("north", "south")


def test_a_waiver_that_no_approver_has_signed_does_not_serve(spoilt: Consortium) -> None:
    waiver = waiver_for(spoilt.site.folder, window(spoilt))
    stranger = SigningKey.generate()
    with pytest.raises(VerificationError, match=r"step 4: the waiver: 0 approvals"):
        spoilt.order(waiver, stranger)
    path = spoilt.folder / "waiver.json"
    path.write_bytes(WAIVERS.write(waiver))
    with pytest.raises(VerificationError, match=r"step 4: the waiver: 0 approvals"):
        take_in(spoilt.site.folder, path, at=spoilt.clock())
    # The coordinator's own key is no approver's.
    with pytest.raises(VerificationError, match=r"step 4: the waiver: 0 approvals"):
        spoilt.order(waiver, spoilt.site.signing_key())
    # An approval of a waiver for another window does not serve.
    other, signed = replace(waiver, client="north"), spoilt.folder / "approval.json"
    signed.write_bytes(APPROVALS.write(approve(other, spoilt.approver)))
    with pytest.raises(VerificationError, match=r"step 4: the waiver: 0 approvals"):
        take_in(spoilt.site.folder, path, approvals=[signed], at=spoilt.clock())
    assert read_log(spoilt.site.log).exemptions.waivers == ()
    assert run(spoilt, 1)["south"] == "left out at step 4"


def test_a_waiver_and_a_shadow_order_say_why(tmp_path: Path) -> None:
    for reason in ("", "x" * 201, "tank\x1b[2J"):
        with pytest.raises(SettingError, match="printable ASCII"):
            shadow_order_for(tmp_path, until=LATER, reason=reason)
        with pytest.raises(SettingError, match="printable ASCII"):
            WaivedInterval(
                plant="south",
                interval=Interval(start="2026-01-01T00:00:00.000000", end="2026-01-02T00:00:00"),
                expires=START,
                reason=reason,
            )


# -- renewals -------------------------------------------------------------------------------------


def renewed(consortium: Consortium, name: str, start: int) -> None:
    plant = PlantFolder(consortium.folder / name)
    plant.renew(TrainingRows(record=str(consortium.record), start=start, stop=start + ROWS))


def attestation_of(consortium: Consortium, plant: str) -> str:
    """Return the attestation that a plant's token of the last round names."""
    rounds = read_log(consortium.site.log).rounds
    token = rounds.token(rounds.last, plant)
    assert token is not None
    return token.attestation


def test_a_batch_is_renewed_while_the_federation_runs(consortium: Consortium) -> None:
    run(consortium, 1)
    used = [attestation_of(consortium, "north")]
    renewed(consortium, "north", 8_640 + 3 * ROWS)
    run(consortium, 2)  # the coordinator hears of it
    used.append(attestation_of(consortium, "north"))
    states = run(consortium, 3)
    assert states["north"] == "attested"
    used.append(attestation_of(consortium, "north"))
    assert used[0] == used[1] != used[2]
    assert members(consortium) == ("north", "south", "west")


def test_a_stale_batch_is_not_taken_up_again(consortium: Consortium) -> None:
    north = consortium.plants["north"]
    assert isinstance(north, Agent)
    old, share = north.attested_documents(), PlantFolder(consortium.folder / "north").share
    run(consortium, 1)
    renewed(consortium, "north", 8_640 + 3 * ROWS)
    run(consortium, 3)
    # Carried in as a file, the old one changes nothing.
    path = consortium.folder / "north.attestation"
    exported = ExportedAttestation(
        plant="north", commit=old.commit.decode(), proof=old.proof.decode()
    )
    write_document(exported, path)
    with pytest.raises(RefusedError, match=r"step 5\.4"):
        take_in(consortium.site.folder, path, at=consortium.clock())
    # Answered by the plant itself, it leaves the plant out.
    write_document(share, consortium.folder / "north" / "plant.json")
    run(consortium, 4)
    assert run(consortium, 5)["north"] == "left out at step 5.4"
    assert run(consortium, 6)["north"] == "left out at step 5.4"


def test_a_restarted_plant_continues_with_the_batch_it_has(consortium: Consortium) -> None:
    run(consortium, 1)
    renewed(consortium, "north", 8_640 + 3 * ROWS)
    consortium.plants["north"] = PlantFolder(consortium.folder / "north").agent(reveal_rows=True)
    run(consortium, 2)
    assert members(consortium) == ("north", "south", "west")


def test_rows_that_overlap_an_attested_batch_are_not_taken(consortium: Consortium) -> None:
    run(consortium, 1)
    with pytest.raises(SettingError, match="overlaps"):
        renewed(consortium, "north", 8_640 + ROWS // 2)
    # A plant that names them all the same is left out by the coordinator.
    share = TrainingRows(record=str(consortium.record), start=8_700, stop=9_300)
    write_document(share, consortium.folder / "north" / "plant.json")
    run(consortium, 2)
    assert run(consortium, 3)["north"] == "left out at step 2"
