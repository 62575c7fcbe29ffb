"""Checks a grid and expands it into cells and the pieces of work that these need."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

from sluice.aggregation import RULES
from sluice.detector import DetectorKind, detector_names
from sluice.errors import GridError, SettingError
from sluice.federation import VOTE_RULES, demand_rule
from sluice.invariants import Profile
from sluice.lab.attacks import POISONS, UPDATE_ATTACKS
from sluice.lab.grids.gridfile import Grid, RecordTable, StudyTable, nearest
from sluice.lab.grids.plants import SITES_PLANT
from sluice.lab.grids.sources import RecordSource, resolved
from sluice.lab.grids.work import Work, WorkLayout, depends_on_rules
from sluice.lab.results import Asked
from sluice.lab.trials import BLEND, MODES, Adversary

__all__ = ["GridPlan", "PlannedCell", "planned"]

ATTACKS = tuple(dict.fromkeys((*POISONS, *UPDATE_ATTACKS, BLEND)))
RULE_SETS = tuple(profile.value for profile in Profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """A cell as the grid names it, and the work that it needs."""

    asked: Asked
    work: Work


@dataclass(frozen=True, kw_only=True)
class GridPlan:
    """Every cell of a grid."""

    name: str
    cells: tuple[PlannedCell, ...]
    stand_ins: tuple[str, ...]  # warnings: which record replaces which

    @cached_property
    def works(self) -> tuple[Work, ...]:
        """The distinct federations to train, in the order of their first cell."""
        return tuple({cell.work.id: cell.work for cell in self.cells}.values())

    @property
    def avoided(self) -> int:
        """How many cells share the federation of another cell."""
        return len(self.cells) - len(self.works)


def planned(grid: Grid, *, data: Path, only: Iterable[str] = ()) -> GridPlan:
    """Check a grid and expand it; `only` selects the cells of these records."""
    only = tuple(only)
    _known(f"grid {grid.name!r}: record", only, grid.record)
    _check(grid)
    record_names = dict.fromkeys(name for study in grid.study for name in study.records)
    sources = {
        name: resolved(name, grid.record, data=data)
        for name in record_names
        if not only or name in only
    }
    cells = tuple(cell for study in grid.study for cell in _cells(grid, study, sources))
    if not cells:
        raise GridError(f"grid {grid.name!r} has no cells; give it a [[study]]")
    _refuse_duplicates(grid, cells)
    stand_ins = tuple(
        f"{source.name} STANDS IN for {name}, which is not under {data}"
        for name, source in sources.items()
        if source.name != name
    )
    return GridPlan(name=grid.name, cells=cells, stand_ins=stand_ins)


def _cells(
    grid: Grid, study: StudyTable, sources: dict[str, RecordSource]
) -> Iterator[PlannedCell]:
    """Yield a study's cells layout by layout, so that a worker can reuse the loaded layout."""
    screened = Profile.HARDENED.value in study.invariants
    for name in study.records:
        if name not in sources:
            continue
        table = grid.record[name]
        for clients, seed in product(study.clients or (table.clients,), study.seeds):
            layout = WorkLayout(
                record=sources[name],
                clients=clients,
                liars=round(table.liar_share * clients),
                target_share=table.target_share,
                training=grid.training,
                screened=screened,
                seed=seed,
            )
            _check_layout(layout, study)
            yield from _of_layout(study, name, layout)


def _of_layout(study: StudyTable, record: str, layout: WorkLayout) -> Iterator[PlannedCell]:
    axes = product(study.modes, study.invariants or (None,), study.attacks or (None,), study.rules)
    for mode, invariants, attack, rule in axes:
        attacked = attack if MODES[mode].attacked else None
        asked = Asked(
            study=study.name,
            record=record,
            stand_in=None if layout.record.name == record else layout.record.name,
            clients=layout.clients,
            liars=layout.liars,
            rule=rule,
            attack=attack,
            mode=mode,
            invariants=invariants,
            seed=layout.seed,
        )
        work = Work(
            layout=layout,
            rule=rule,
            mode=mode,
            attack=attacked,
            invariants=invariants if depends_on_rules(MODES[mode], attacked) else None,
        )
        yield PlannedCell(asked=asked, work=work)


def _check(grid: Grid) -> None:
    for name, table in grid.record.items():
        _check_record(f"grid {grid.name!r}: record {name!r}", table, grid)
    for study in grid.study:
        where = f"grid {grid.name!r}: study {study.name!r}"
        _known(f"{where}: record", study.records, grid.record)
        _known(f"{where}: rule", study.rules, (*RULES, *VOTE_RULES))
        _known(f"{where}: mode", study.modes, MODES)
        _known(f"{where}: attack", study.attacks, ATTACKS)
        _known(f"{where}: rule set", study.invariants, RULE_SETS)
        _check_study(where, study)
        _check_detector(where, study, grid)


def _check_record(where: str, table: RecordTable, grid: Grid) -> None:
    from_files = table.clean is not None and table.test is not None
    if (table.plant is None) != from_files or (table.clean is None) != (table.test is None):
        raise GridError(f"{where} needs either plant, or clean and test; give one of these")
    if table.sites and (table.plant != SITES_PLANT or table.days or table.every > 1):
        raise GridError(
            f"{where}: sites are plants {SITES_PLANT!r} of different size and fixed length; give "
            f'plant = "{SITES_PLANT}" without days and every'
        )
    if table.every < 1 or table.skip_s < 0:
        raise GridError(f"{where}: every must be at least 1 and skip_s must not be negative")
    if not 0 <= table.liar_share < 1:
        raise GridError(f"{where}: liar_share is {table.liar_share:g}; give a share in [0, 1)")
    if table.instead is not None:
        _known(f"{where}: instead", (table.instead,), grid.record)
        if grid.record[table.instead].plant is None:
            raise GridError(
                f"{where}: instead is {table.instead!r}, which is read from files; name a "
                "simulated plant, because its record is always available"
            )


def _check_study(where: str, study: StudyTable) -> None:
    for axis in ("records", "rules", "modes", "seeds"):
        if not getattr(study, axis):
            raise GridError(f"{where}: {axis} is empty; every axis needs at least one value")
    if negative := [seed for seed in study.seeds if seed < 0]:
        raise GridError(f"{where}: seed {negative[0]} is negative; seeds are 0 or more")
    if low := [clients for clients in study.clients if clients < 1]:
        raise GridError(f"{where}: {low[0]} clients; give at least 1")
    for name in study.modes:
        mode = MODES[name]
        if mode.bound:
            raise GridError(
                f"{where}: mode {name!r} proves every batch and is not part of a grid; use "
                "'sluice federate --bound'"
            )
        if mode.attacked and not study.attacks:
            raise GridError(f"{where}: mode {name!r} needs attacks; name at least one")
        if (mode.gated or mode.adversary is Adversary.PROJECTED) and not study.invariants:
            raise GridError(f"{where}: mode {name!r} needs invariants; name a rule set")


def _check_detector(where: str, study: StudyTable, grid: Grid) -> None:
    if grid.training.detector not in detector_names():
        raise GridError(
            f"{where}: unknown detector {grid.training.detector!r}; known are "
            f"{', '.join(detector_names())}"
        )
    for rule in study.rules:
        try:
            demand_rule(rule, grid.training.detector)
        except SettingError as error:
            raise GridError(f"{where}: {error}") from None
    if grid.training.detector != DetectorKind.AUTOENCODER:
        falsified = [name for name in study.attacks if name in UPDATE_ATTACKS or name == BLEND]
        if falsified:
            raise GridError(
                f"{where}: attack {falsified[0]!r} falsifies updates, but the detector "
                f"{grid.training.detector!r} sends sums; choose another attack or detector"
            )


def _check_layout(layout: WorkLayout, study: StudyTable) -> None:
    try:
        layout.setup  # noqa: B018 - its constructor checks the values
    except SettingError as error:
        raise GridError(f"study {study.name!r} on {layout.record.name!r}: {error}") from None


def _known(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = tuple(known)
    for name in names:
        if name not in known:
            raise GridError(
                f"{what} {name!r} is unknown; known are {', '.join(known)}{nearest(name, known)}"
            )


def _refuse_duplicates(grid: Grid, cells: tuple[PlannedCell, ...]) -> None:
    seen: set[Asked] = set()
    for cell in cells:
        if cell.asked in seen:
            raise GridError(
                f"grid {grid.name!r}: study {cell.asked.study!r} asks twice for {cell.asked}; "
                "remove one of the two"
            )
        seen.add(cell.asked)
