"""`sluice lab audit`: what a grid's rule sets tell apart, before any federation is trained."""

from typing import Annotated

import typer

from sluice.admission import Gate
from sluice.audits import coverage, separation
from sluice.cli.console import Json, Quiet, emit, out, working
from sluice.cli.lab_reading import Results
from sluice.errors import EmptyRulesError
from sluice.invariants import Kind
from sluice.lab.scenario import scenario
from sluice.lab.sources import Opened, opened
from sluice.lab.work import Work, work_from_json
from sluice.lab.workbench import Workbench
from sluice.results.audited import AuditedAttack, AuditedKind, AuditedSet, save_audits
from sluice.results.provenance import provenance
from sluice.results.reading import stored_cells
from sluice.results.store import Store
from sluice.telemetry import Record

__all__ = ["audit"]


def audit(
    results: Results,
    batches: Annotated[int, typer.Option(min=1, help="Batches of each kind.")] = 200,
    size: Annotated[int, typer.Option(min=2, help="Rows a batch.")] = 1_000,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Audit every rule set of a grid on its record: separation and coverage, for the report.

    Example: [bold]sluice lab audit results[/bold]
    """
    store = Store(results, read_only=True)
    wanted = _wanted(store)
    store.close()
    bench = Workbench(rules=results / "rules", code=provenance().code)
    done: list[AuditedSet] = []
    for (record, stand_in, invariants), work in wanted.items():
        with working(f"auditing {invariants} on {record}", quiet=quiet or json):
            try:
                gate, records = _gate(bench, work)
            except EmptyRulesError as error:
                out.print(f"{record}, {invariants}: {error}", markup=False)
                continue
            done.append(
                _audited(record, stand_in, invariants, gate, records, batches=batches, size=size)
            )
    save_audits(results, tuple(done))
    if json:
        emit({"sets": len(done), "audits": str(results / "audits.json")})
    else:
        out.print(f"{len(done)} rule sets audited; 'sluice lab report' draws them")


def _wanted(store: Store) -> dict[tuple[str, str | None, str], Work]:
    """Return one piece of work for each rule set on each record."""
    found: dict[tuple[str, str | None, str], Work] = {}
    for cell in stored_cells(store):
        work = work_from_json(cell.settings)
        if work.invariants is not None:
            key = (cell.asked.record, cell.asked.stand_in, work.invariants)
            found.setdefault(key, work)
    return found


def _gate(bench: Workbench, work: Work) -> tuple[Gate, Opened]:
    records = opened(work.layout.record)
    shared = scenario(records.clean, records.test, setup=work.layout.setup, seed=work.layout.seed)
    assert work.invariants is not None
    return bench.gate(work.layout, shared, work.invariants).gate, records


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
    seen = coverage(records.test, gate)
    kinds = [rule.kind for rule in gate.rules.invariants]
    return AuditedSet(
        record=record,
        stand_in=stand_in,
        invariants=invariants,
        couplings=kinds.count(Kind.COUPLING),
        balances=kinds.count(Kind.BALANCE),
        honest_share=seen.honest_share,
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
            for segment in seen.segments
        ),
    )


def _unmined(clean: Record, gate: Gate) -> Record:
    """Return the rows that the rules were neither mined from nor calibrated on."""
    return clean.rows(gate.rules.fit_rows + gate.rules.calibration_rows, len(clean))
