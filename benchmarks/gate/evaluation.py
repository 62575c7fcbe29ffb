"""Evaluate the gate on every available plant and write one page of tables.

Rules are mined and calibrated on clean rows of one seed and then frozen: their hash is taken before
the first verdict. All judged rows come from other seeds or other rows. The run is deterministic:
the same code and data give the same page.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.gate.outcome import CHANCE, Covered, Outcome, SeasonOutcome
from benchmarks.gate.page import page
from benchmarks.gate.plants import NAMES, Effort, Season, Subject, absent, subject
from sluice.admission import Gate, HardenedPolicy, PaperPolicy
from sluice.arrays import Bools
from sluice.files import atomically
from sluice.invariants import Profile, rules_hash
from sluice.invariants.mining import mine
from sluice.lab.audits import (
    FABRICATED,
    Pool,
    Segment,
    admissible,
    coverage,
    fabricated,
    freeze,
    honest_batches,
    ramp,
    slowest_ramp,
)
from sluice.seeding import stream
from sluice.telemetry import Label, Record, Role

SEED = 0  # of every random draw outside the plants
FREEZE_ROWS = (24, 200)
MULTIPLES = (0.5, 1.0, 2.0)
FULL = Effort(seeds=tuple(range(101, 111)), batches=48, draws=120, line_days=60)
QUICK = Effort(seeds=(101,), batches=4, draws=4, line_days=8)


def covered(gate: Gate, labelled: Record, clean: Record) -> Covered:
    """Return which attacks a gate covers, and its share of suspect clean rows."""
    attacks = coverage(labelled, gate)
    suspect = gate.judge(clean).suspect
    return Covered(
        profile=gate.rules.profile.value,
        rules=len(gate.rules.invariants),
        rules_hash=rules_hash(gate.rules)[:12],
        covered=attacks.covered,
        attacks=attacks.total,
        beyond_chance=sum(
            segment.covered and chance(suspect, segment) < CHANCE for segment in attacks.segments
        ),
        missed=tuple(_describe(segment) for segment in attacks.segments if not segment.covered),
        honest_share=float(suspect.mean()),
        honest_rows=len(clean),
    )


def jittered(labelled: Record, size: float, seed: int) -> Record:
    """Return the record with noise on every level during attacks: no stretch repeats exactly."""
    attacked = labelled.labels == Label.ATTACK
    values = labelled.values.copy()
    for level in labelled.of_role(Role.LEVEL):
        noise = stream(seed, "jitter", level.name).normal(0.0, size, int(attacked.sum()))
        values[attacked, labelled.index(level.name)] += noise
    return labelled.with_values(values)


def chance(suspect: Bools, segment: Segment) -> float:
    """Return the share of clean stretches of an attack's length with as many suspect rows."""
    total = np.concatenate(([0], np.cumsum(suspect)))
    counts = total[segment.rows :] - total[: -segment.rows]
    return float((counts >= segment.violating_rows).mean())


def _describe(segment: Segment) -> str:
    return f"{segment.index + 1} ({segment.start.replace('T', ' ')}, {segment.rows} rows)"


def season_of(gate: Gate, season: Season) -> SeasonOutcome:
    """Judge every disjoint batch of a season."""

    def batches() -> Iterator[tuple[str, Record]]:
        for source, record in season.records():
            pool = Pool.disjoint(record, season.size)
            for start in pool.starts:
                yield f"{source}, row {start}", pool.batch(start)

    return SeasonOutcome(
        season=season.name, batch_rows=season.size, honest=honest_batches(gate, batches())
    )


def evaluate(plant: Subject, effort: Effort, progress: Progress) -> Outcome:
    """Mine and freeze the rules, then judge all batches."""
    task = progress.add_task(f"{plant.name}: mining", total=None)

    def report(what: str) -> None:
        progress.update(task, description=f"{plant.name}: {what}")

    fit, calibration = plant.slices()
    rules = mine(fit, calibration, profile=Profile.HARDENED)
    frozen = rules_hash(rules)
    gate = Gate.of(rules, HardenedPolicy())
    wide = Gate.of(
        mine(fit, calibration, profile=Profile.PAPER_WIDE), PaperPolicy(), allow_empty=True
    )
    report("coverage")
    labelled, clean = plant.labelled(), plant.clean()
    coverages = [covered(each, labelled, clean) for each in (gate, wide)]
    if plant.jitter:
        found = covered(gate, jittered(labelled, plant.jitter, SEED), clean)
        coverages.append(replace(found, profile=f"hardened, with jitter of {plant.jitter:g} m"))
    seasons = []
    for season in plant.seasons:
        report(f"honest batches, {season.name}")
        seasons.append(season_of(gate, season))
    report("honest originals")
    drawn = plant.pools()
    pools = tuple(admissible(gate, pool) for pool in drawn)
    fabrications = []
    for fabrication in FABRICATED:
        report(f"{fabrication.name}, by {fabrication.reach.value}")
        fabrications.append(fabricated(gate, pools, fabrication, wanted=effort.draws, seed=SEED))
    levels = [channel.name for channel in clean.of_role(Role.LEVEL)]
    freezes, ramps, unwatched = [], [], []
    for level in levels:
        report(f"{level} frozen and drifting")
        freezes += [freeze(gate, pools, level=level, rows=rows, seed=SEED) for rows in FREEZE_ROWS]
        rule = slowest_ramp(gate, level)
        if rule is None:
            unwatched.append(level)
        else:
            ramps += [ramp(gate, pools, rule=rule, multiple=multiple) for multiple in MULTIPLES]
    report("done")
    assert rules_hash(rules) == frozen, f"the rules of {plant.name} changed during the evaluation"
    return Outcome(
        plant=plant.name,
        mined_on=plant.mined_on,
        labelled_as=plant.labelled_as,
        clean_as=plant.clean_as,
        fabricated_from=plant.fabricated_from,
        rules_hash=frozen[:12],
        batch_rows=drawn[0].size,
        coverage=tuple(coverages),
        seasons=tuple(seasons),
        originals=sum(len(pool.starts) for pool in pools),
        originals_refused=sum(len(pool.starts) for pool in drawn)
        - sum(len(pool.starts) for pool in pools),
        fabrications=tuple(fabrications),
        freezes=tuple(freezes),
        ramps=tuple(ramps),
        unwatched=tuple(unwatched),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="file to write the page to")
    parser.add_argument("--json", action="store_true", help="also print all measurements as JSON")
    parser.add_argument("--quick", action="store_true", help="one seed and few batches")
    parser.add_argument("--plants", nargs="+", choices=NAMES, default=NAMES, metavar="PLANT")
    return parser.parse_args()


def main() -> None:
    """Evaluate every plant, then write the page."""
    arguments = _arguments()
    effort = QUICK if arguments.quick else FULL
    console = Console(stderr=True)
    began = time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    outcomes, skipped = [], []
    with Progress(*columns, console=console) as progress:
        for name in arguments.plants:
            why = absent(name)
            if why:
                skipped.append(why)
                console.print(why)
            else:
                outcomes.append(evaluate(subject(name, effort), effort, progress))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with atomically(arguments.out) as draft:
        draft.write_text(page(outcomes, skipped, quick=arguments.quick), encoding="utf-8")
    if arguments.json:
        print(json.dumps({"plants": [asdict(outcome) for outcome in outcomes], "skipped": skipped}))
    console.print(f"{arguments.out} written in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
