"""Inject leaks, drifting meters and changed set-points into clean records; count what is said.

Rules are mined from seed 0. The records have seeds 100 and up, which no threshold was chosen on.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import TypeAdapter
from rich.console import Console

from sluice.files import atomically
from sluice.invariants import (
    Balance,
    Cause,
    CauseKind,
    Profile,
    RuleSet,
    Term,
    causes,
    rules_hash,
)
from sluice.invariants.mining import mine
from sluice.lab.plants import distribution, simulate
from sluice.lab.plants.distribution import BUNDLED
from sluice.telemetry import Record

console = Console(stderr=True, highlight=False)
LEAKS = (0.05, 0.1, 0.2)  # of what a tank's meters count
METERS = (0.95, 0.9, 0.8)  # times the true flow
MINED_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One plant: how long its records are, and what is left out at their start."""

    plant: str
    mined_days: float
    days: float
    start_up_s: float = 0.0
    every: int = 1

    def record(self, seed: int, *, days: float) -> Record:
        """Return a clean record."""
        made = simulate(self.plant, seed=seed, days=days).every(self.every)
        return made.without_first(self.start_up_s) if self.start_up_s else made


SUBJECTS = (
    Subject(plant="line", mined_days=20, days=14),
    Subject(plant="treatment", mined_days=3, days=2, start_up_s=6 * 3600, every=5),
    *(
        Subject(plant=f"network:{name}", mined_days=90, days=40, start_up_s=100 * 3600)
        for name in BUNDLED
        if name not in ("Net2", "Net6")  # one without pumps, one that takes minutes
    ),
)

SET_POINTS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "Ridge": (
        ("S_PU3", "PU3 CLOSED IF NODE T2 ABOVE 6.0", "PU3 CLOSED IF NODE T2 ABOVE 4.8"),
        ("S_PU1", "PU1 OPEN IF NODE T1 BELOW 3.4", "PU1 OPEN IF NODE T1 BELOW 4.4"),
    ),
    "Terraces": (
        ("S_P2", "P2 CLOSED IF NODE T1 ABOVE 4.6", "P2 CLOSED IF NODE T1 ABOVE 3.6"),
        ("S_PU1", "PU1 OPEN IF NODE T4 BELOW 1.6", "PU1 OPEN IF NODE T4 BELOW 2.6"),
    ),
    "Wells": (("S_SP1", "SP1 OPEN IF NODE TW BELOW 3.0", "SP1 OPEN IF NODE TW BELOW 4.2"),),
}
"""Per network: the actuator, and its control before and after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One record with one injected change, or with none."""

    what: str
    kind: CauseKind | None
    subject: str
    record: Record

    def judged(self, found: tuple[Cause, ...]) -> str:
        """Return whether the change was said, something else, or nothing."""
        if any((cause.kind, cause.subject) == (self.kind, self.subject) for cause in found):
            return "named"
        return "other" if found else "nothing"


def cases(rules: RuleSet, record: Record) -> Iterator[Case]:
    """Yield the record as it is, and with each change, from its middle on."""
    yield Case(what="nothing", kind=None, subject="", record=record)
    for balance in [r.relation for r in rules.invariants if isinstance(r.relation, Balance)]:
        flows = [term for term in balance.terms if not term.on]
        counted = sum(_drive(term, record) for term in flows) / 2
        if not counted:
            continue
        for share in LEAKS:
            lost = share * counted
            leaking = _changed(record, balance.level, add=-lost)
            what = f"leak of {share:.0%}"
            yield Case(what=what, kind=CauseKind.LEAK, subject=balance.level, record=leaking)
        for term in flows:
            if _drive(term, record) < 0.2 * counted:
                continue  # a meter that hardly counts says nothing
            for factor in METERS:
                drifting = _changed(record, term.channel, times=factor)
                what = f"meter {factor - 1:+.0%}"
                yield Case(what=what, kind=CauseKind.METER, subject=term.channel, record=drifting)


def _drive(term: Term, record: Record) -> float:
    return abs(term.coefficient) * float(np.abs(record.column(term.channel)).mean())


def _changed(record: Record, channel: str, *, add: float = 0.0, times: float = 1.0) -> Record:
    values, middle = record.values.copy(), len(record) // 2
    column = record.index(channel)
    values[middle:, column] *= times
    values[middle:, column] += add * np.arange(1, len(record) - middle + 1)
    return record.with_values(values)


def moved_set_points(subject: Subject, seed: int) -> Iterator[Case]:
    """Yield records of a network whose control has another set-point from the middle on."""
    network = subject.plant.removeprefix("network:")
    folder = Path(distribution.__file__).with_name("networks")
    for actuator, old, new in SET_POINTS.get(network, ()):
        with TemporaryDirectory() as scratch:
            path = Path(scratch) / f"{network}.inp"
            path.write_text((folder / f"{network}.inp").read_text().replace(old, new))
            changed = replace(subject, plant=f"network:{path}").record(seed, days=subject.days)
        before, middle = subject.record(seed, days=subject.days), len(changed) // 2
        values = np.vstack([before.values[:middle], changed.values[middle:]])
        yield Case(
            what="set-point",
            kind=CauseKind.SET_POINT,
            subject=actuator,
            record=before.with_values(values),
        )


def mined(subject: Subject) -> RuleSet:
    """Mine a plant's rules."""
    clean = subject.record(MINED_SEED, days=subject.mined_days)
    half = len(clean) // 2
    return mine(clean.rows(0, half), clean.rows(half, len(clean)), profile=Profile.HARDENED)


def counts(subject: Subject, rules: RuleSet, seeds: tuple[int, ...]) -> dict[str, dict[str, int]]:
    """Return how often each change was named, something else was said, and nothing was."""
    said: dict[str, dict[str, int]] = {}
    for seed in seeds:
        record = subject.record(seed, days=subject.days)
        for case in (*cases(rules, record), *moved_set_points(subject, seed)):
            verdict = case.judged(causes(rules, case.record))
            counted = said.setdefault(case.what, dict.fromkeys(("named", "other", "nothing"), 0))
            counted[verdict] += 1
        console.print(f"{subject.plant} seed {seed}: {said}")
    return said


HEAD = """# What is said about drift

Written by `python -m benchmarks drift`. A change begins in the middle of a clean record: a tank
loses a share of what its meters count, a flow meter reads too little, or a control has another
set-point. Rules are mined from seed 0. *Named* counts records in which the change is called by its
name, with the right channel; *other* counts records in which only something else is said. A meter
that always reads the same cannot be distinguished from a leak. It counts as *other*, and the
sentence about the leak mentions the meter. In the rows called *nothing*, nothing was changed: every
sentence there is a false claim.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What was said about one plant; the rules' hash tells which rules were asked."""

    plant: str
    days: float
    rules: str
    seeds: tuple[int, ...]
    said: dict[str, dict[str, int]]


STORED = TypeAdapter(dict[str, Counted])


def page(counted: Mapping[str, Counted]) -> Iterator[str]:
    """Write the page from what was counted."""
    yield HEAD
    left_out = [subject.plant for subject in SUBJECTS if subject.plant not in counted]
    if left_out:
        yield f"This run leaves out {', '.join(left_out)}.\n"
    yield "| plant | seeds | days | change | records | named | other | nothing said |"
    yield "|---|---|---|---|---|---|---|---|"
    for each in (counted[subject.plant] for subject in SUBJECTS if subject.plant in counted):
        seeds = f"{each.seeds[0]} to {each.seeds[-1]}" if each.seeds[1:] else str(each.seeds[0])
        for what, said in each.said.items():
            named = "" if what == "nothing" else said["named"]
            yield (
                f"| {each.plant} | {seeds} | {each.days:g} | {what} | {sum(said.values())} "
                f"| {named} | {said['other']} | {said['nothing']} |"
            )


def main() -> None:
    """Count plant by plant, and write the page after each."""
    names = [subject.plant for subject in SUBJECTS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/drift.md"))
    parser.add_argument("--store", type=Path, default=Path("build/drift.json"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--plants", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    seeds = tuple(range(arguments.first_seed, arguments.first_seed + arguments.seeds))
    counted: dict[str, Counted] = {}
    if arguments.store.exists():
        counted = STORED.validate_json(arguments.store.read_bytes())
    for subject in [each for each in SUBJECTS if each.plant in arguments.plants]:
        some = seeds[: max(1, len(seeds) // 4)] if subject.plant == "treatment" else seeds
        rules = mined(subject)
        stored = counted.get(subject.plant)
        if not stored or (stored.rules, stored.seeds) != (rules_hash(rules), some):
            counted[subject.plant] = Counted(
                plant=subject.plant,
                days=subject.days,
                rules=rules_hash(rules),
                seeds=some,
                said=counts(subject, rules, some),
            )
        for path, text in (
            (arguments.store, STORED.dump_json(counted).decode()),
            (arguments.out, "\n".join(page(counted)) + "\n"),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomically(path) as draft:  # after every plant: a long run is not lost
                draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
