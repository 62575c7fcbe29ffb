"""`sluice lab audit`: measure what a grid's rule sets detect; no federation is trained."""

import time
from typing import Annotated

import typer

from sluice.admission import Gate
from sluice.attestation.systems import SALT_BYTES, circuit_for, find_system
from sluice.cli import Json, Quiet, emit, out, warn, working
from sluice.cli.attest import peak_mb
from sluice.errors import EmptyRulesError
from sluice.invariants import Profile, RelationKind
from sluice.lab.audits import coverage, separation
from sluice.lab.cli.grid_reading import Results
from sluice.lab.grids import Opened, Work, Workbench, opened, work_from_json
from sluice.lab.results import (
    AuditedAttack,
    AuditedKind,
    AuditedProof,
    AuditedSet,
    Audits,
    ResultStore,
    provenance,
    save_audits,
    stored_cells,
)
from sluice.lab.trials import KEPT, ArtifactCache
from sluice.telemetry import Record

__all__ = ["audit"]

PROVEN_ROWS = 1_024  # the size of the paper's window
CONTEXT_BYTES = 32


def audit(
    results: Results,
    batches: Annotated[int, typer.Option(min=1, help="Number of batches of each kind.")] = 200,
    size: Annotated[int, typer.Option(min=2, help="Rows per batch.")] = 1_000,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure separation and coverage of every rule set of a grid, for the report.

    The command also proves one batch of each record and measures the proof.

    Example: [bold]sluice lab audit results[/bold]
    """
    store = ResultStore(results, read_only=True)
    wanted = _wanted(store)
    store.close()
    bench = Workbench(cache=ArtifactCache(folder=results / KEPT, code=provenance().code))
    sets: list[AuditedSet] = []
    for (record, stand_in, invariants), work in wanted.items():
        with working(f"auditing {invariants} on {record}", quiet=quiet or json):
            try:
                gate, records = _gate(bench, work)
            except EmptyRulesError as error:
                warn(f"{record}, {invariants}: {error}")
                continue
            sets.append(
                _audited(record, stand_in, invariants, gate, records, batches=batches, size=size)
            )
    proofs = []
    for (record, stand_in), work in {key[:2]: work for key, work in wanted.items()}.items():
        with working(f"proving a batch of {record}", quiet=quiet or json):
            if (proof := _proven(record, stand_in, bench, work)) is not None:
                proofs.append(proof)
    save_audits(results, Audits(sets=tuple(sets), proofs=tuple(proofs)))
    if json:
        path = results / "audits.json"
        emit({"sets": len(sets), "proofs": len(proofs), "audits": str(path)})
    else:
        out.print(
            f"{len(sets)} rule sets audited, {len(proofs)} batches proven; 'sluice lab report' "
            "shows them"
        )


def _wanted(store: ResultStore) -> dict[tuple[str, str | None, str], Work]:
    """Return one work of the grid for each rule set on each record."""
    wanted: dict[tuple[str, str | None, str], Work] = {}
    for cell in stored_cells(store):
        work = work_from_json(cell.settings)
        if work.invariants is not None:
            key = (cell.asked.record, cell.asked.stand_in, work.invariants)
            wanted.setdefault(key, work)
    return wanted


def _gate(bench: Workbench, work: Work, invariants: str | None = None) -> tuple[Gate, Opened]:
    records = opened(work.layout.record)
    shared = bench.shared(work.layout)
    rule_set = invariants or work.invariants
    assert rule_set is not None
    return bench.gate(work.layout, shared, rule_set).gate, records


def _proven(record: str, stand_in: str | None, bench: Workbench, work: Work) -> AuditedProof | None:
    """Prove the first batch that the hardened gate admits; return None if the record has none."""
    try:
        gate, records = _gate(bench, work, Profile.HARDENED.value)
    except EmptyRulesError:
        return None
    pool = _unmined(records.clean, gate)
    starts = range(0, len(pool) - PROVEN_ROWS + 1, PROVEN_ROWS)
    batches = (pool.rows(start, start + PROVEN_ROWS) for start in starts)
    batch = next((one for one in batches if gate.judge(one).admitted), None)
    if batch is None:
        return None
    system = find_system("full")
    circuit = circuit_for(system, gate.rules, gate.policy, rows_max=PROVEN_ROWS)
    salt, context = bytes(SALT_BYTES), bytes(CONTEXT_BYTES)  # nothing to hide in a measurement
    commitment = system.commit(batch, circuit, salt=salt)
    begun = time.perf_counter()
    proof = system.prove(batch, circuit, salt=salt, context=context)
    proven = time.perf_counter()
    system.verify(circuit, commitment=commitment, rows=len(batch), context=context, proof=proof)
    return AuditedProof(
        record=record,
        stand_in=stand_in,
        system=system.name,
        rows=len(batch),
        constraints=circuit.constraints,
        proven_bits=circuit.proven_bits,
        prove_s=proven - begun,
        peak_mb=peak_mb(),
        verify_ms=1e3 * (time.perf_counter() - proven),
        proof_bytes=len(proof),
    )


def _audited(
    record: str,
    stand_in: str | None,
    invariants: str,
    gate: Gate,
    records: Opened,
    *,
    batches: int,
    size: int,
) -> AuditedSet:
    table = separation(_unmined(records.clean, gate), gate, batches=batches, size=size)
    covered = coverage(records.test, gate)
    kinds = [rule.kind for rule in gate.rules.invariants]
    return AuditedSet(
        record=record,
        stand_in=stand_in,
        invariants=invariants,
        couplings=kinds.count(RelationKind.COUPLING),
        balances=kinds.count(RelationKind.BALANCE),
        honest_share=covered.honest_share,
        separation=tuple(
            AuditedKind(
                kind=row.kind,
                mean_violating_share=row.mean_violating_share,
                admitted_share=row.admitted_share,
                batches=row.batches,
                low=row.low,
                high=row.high,
            )
            for row in table.rows
        ),
        attacks=tuple(
            AuditedAttack(
                index=segment.index,
                rows=segment.rows,
                violating_rows=segment.violating_rows,
                covered=segment.covered,
                rule=segment.rule,
            )
            for segment in covered.segments
        ),
    )


def _unmined(clean: Record, gate: Gate) -> Record:
    """Return the rows that the rules were neither mined from nor calibrated on."""
    return clean.rows(gate.rules.fit_rows + gate.rules.calibration_rows, len(clean))
