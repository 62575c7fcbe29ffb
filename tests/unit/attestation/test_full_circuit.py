"""The circuit says what the evaluator says: on random rules and batches, at every budget's edge."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from sluice import _attest
from sluice.attestation.systems.full.statement import derive
from sluice.attestation.systems.full.witness import Witness
from sluice.telemetry.record import Record

from .full_plant import Shown, Wiring, clean_batch, policy_of, rules_of, shown, with_cell, with_jump

ODD = (
    *(("F", 1.2), ("F", 4.4), ("F", -0.3), ("L", 5.0), ("Q", 60.0), ("Q", 96.0)),
    *(("S", 0.0), ("S", 7.0), ("S", 2.4), ("S", np.nan), ("P", 1.0), ("R", 1.0)),
    *(("F", np.nan), ("G", 1.0), ("U", 9.0)),
)


SPECTRA = (
    (),
    (("Q", 8, 0),),
    (("Q", 8, 3), ("L", 8, 0), ("L", 8, 7)),  # all end on different rows
    (("Q", 6, 1), ("L", 9, 1), ("L", 9, 2), ("Q", 3, 0)),  # some on the same
    (("L", 40, 39), ("Q", 4, 2), ("L", 4, 3)),
)


@st.composite
def wirings(draw: st.DrawFn) -> Wiring:
    pumps = draw(st.sampled_from([(), (("P", 0),), (("P", 0), ("R", 0))]))
    return Wiring(
        settle=draw(st.integers(0, 4)),
        averaged=draw(st.booleans()),
        windows=draw(st.sampled_from([(), (4, 8), (4, 8, 16, 7), (2, 3), (12, 5, 4)])),
        blocks=draw(st.sampled_from([(9,), (6, 24), (3,), (40,), ()])),
        severe_rows=draw(st.sampled_from([0, 0, 4])),
        severe_multiple=draw(st.sampled_from([1.0, 1.0, 1.7])),
        jumps=draw(st.booleans()),
        standby=pumps,
        tied=draw(st.booleans()),
        idle=draw(st.booleans()),
        bands=draw(st.sampled_from([(), (True,), (False, True), (True, False, False)])),
        spectra=draw(st.sampled_from(SPECTRA)),
        means=draw(st.sampled_from([(), (8,), (12, 5)])),
    )


@st.composite
def batches(draw: st.DrawFn, wiring: Wiring) -> Record:
    rows = draw(st.integers(30, 90))
    batch = clean_batch(rows, draw(st.integers(0, 999)), averaged=wiring.averaged)
    at = st.integers(1, rows - 1)
    for _ in range(draw(st.integers(0, 3))):
        channel, value = draw(st.sampled_from(ODD))
        batch = with_cell(batch, draw(at), channel, value)
    if draw(st.integers(0, 3)) == 0:
        batch = with_jump(batch, draw(at))
    if draw(st.integers(0, 4)) == 0:
        values = batch.values.copy()
        first = draw(st.integers(0, rows - 12))
        values[first : first + 12, batch.index("L")] = values[first, batch.index("L")]
        batch = batch.with_values(values)
    return batch


def admitted(wiring: Wiring, batch: Record, budgets: dict[str, object]) -> bool:
    """Whether the circuit takes the batch; every constraint is tried on every row."""
    statement = derive(rules_of(wiring), policy_of(wiring))
    witness = Witness.of(statement, batch)
    planes = _attest.FullBatch(
        witness.rows, witness.registers, witness.codes, witness.starts, witness.flagged
    )
    try:
        _attest.FullCircuit(statement.content).examine(json.dumps(budgets).encode(), planes)
    except _attest.RefusedBatchError:
        return False
    return True


def statable(wiring: Wiring, found: Shown) -> bool:
    """Whether any budgets could admit it: some things the circuit leaves no room for."""
    jumps = wiring.jumps or found.segments == 1
    severe = wiring.severe_rows > 0 or found.severe == 0
    return jumps and severe and not found.still


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_circuit_takes_exactly_the_batches_that_the_evaluator_admits(
    data: st.DataObject,
) -> None:
    wiring = data.draw(wirings())
    batch = data.draw(batches(wiring))
    found = shown(rules_of(wiring), policy_of(wiring), batch)
    within = statable(wiring, found)
    event(f"statable: {within}")
    assert admitted(wiring, batch, found.document()) == within
    if not within:
        return
    for name, count in found.document().items():
        if isinstance(count, int) and count > 0 and (name != "segments" or wiring.jumps):
            assert not admitted(wiring, batch, found.document() | {name: count - 1}), name
        for index, each in enumerate(count if isinstance(count, list) else ()):
            if each > 0:
                fewer = [*count]  # type: ignore[misc]
                fewer[index] -= 1
                assert not admitted(wiring, batch, found.document() | {name: fewer}), name


def test_budgets_with_room_take_the_batch_too() -> None:
    wiring = Wiring(
        severe_rows=4, jumps=True, tied=True, idle=True, bands=(True, False), spectra=SPECTRA[3]
    )
    batch = with_jump(clean_batch(80, 1), 40)
    found = shown(rules_of(wiring), policy_of(wiring), batch)
    wide = Shown(
        violating=70,
        severe=9,
        segments=7,
        unsteady=tuple(count + 11 for count in found.unsteady),
        windows=tuple(99 for _ in found.windows),
        switches=tuple(99 for _ in found.switches),
        blocks=tuple(99 for _ in found.blocks),
        still=False,
    )
    assert admitted(wiring, batch, wide.document())


def test_a_missing_channel_is_named() -> None:
    from sluice.errors import MissingChannelError  # noqa: PLC0415

    wiring = Wiring()
    batch = clean_batch(40, 0)
    statement = derive(rules_of(wiring), policy_of(wiring))
    lacking = batch.select([name for name in batch.names if name != "U"])
    with pytest.raises(MissingChannelError, match="'U', which the commitment under the rules of"):
        Witness.of(statement, lacking)


def test_statements_differ_where_rules_or_policies_do() -> None:
    contents = {
        derive(rules_of(wiring), policy_of(wiring)).content
        for wiring in (
            Wiring(),
            Wiring(settle=3),
            Wiring(jumps=True),
            Wiring(severe_rows=1),
            Wiring(severe_multiple=2.0),
            Wiring(blocks=(8,)),
            replace(Wiring(), standby=()),
            Wiring(tied=True),
            Wiring(idle=True),
            Wiring(bands=(True,)),
            Wiring(bands=(False,)),
            Wiring(spectra=(("Q", 8, 0),)),
            Wiring(spectra=(("Q", 8, 1),)),
        )
    }
    assert len(contents) == 13
    assert len({_attest.FullCircuit(content).identity for content in contents}) == 13
