"""`unlike-plants`: what plants of other kinds give a plant for its detector.

Each plant is described by its assets, in numbers without a unit that mean the same in every plant.
A detector of the others' assets is compared, plant by plant, with one that has no data of others.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.spatial import cKDTree

from benchmarks.evidence.study import data_folder
from benchmarks.worth.draws import Draw
from benchmarks.worth.page import COLUMNS, Column, interval
from benchmarks.worth.ways import Measured, alone, measured
from sluice.arrays import Floats
from sluice.detector import WEEK_S, alarm_events
from sluice.evaluation import Outcome, attacks_found, average_precision
from sluice.files import atomically
from sluice.lab.plants import simulate
from sluice.seeding import stream
from sluice.telemetry import Label, Record, Role, read_record

__all__ = ["PLANTS", "WAYS", "Kind", "Site", "main", "measure", "page"]

FEW_ROWS = 500  # clean rows of its own that a plant has
FIT_SHARE = 0.7  # of them: these give its sizes, the others its threshold
LAG = 10  # rows of a moving mean
SAMPLE = 2_000  # rows of the assets of one plant that neighbours are searched in
NEIGHBOURS = 5
RIDGE = 1e-3
SHRINK = 0.05
DRAWS = 4
FIRST_SEED = 100
ASKED = 1.0  # false alarms a week
START_UP_S, NETWORK_START_UP_S = 6 * 3_600.0, 100 * 3_600.0

CONTROL = "no data of others"
OTHERS = ("others, Gaussian", "others, neighbours")
OWN = ("its own rows, Gaussian", "its own rows, moments")
ALL = "all its clean rows, moments"
WAYS = (CONTROL, *OTHERS, *OWN, ALL)

HEAD = f"""# Plants of other kinds

Written by `python -m benchmarks unlike-plants`; do not edit. Can a plant get its detector from
plants of *other* kinds? Each plant is described by its assets, in numbers without a unit:

- each **tank**: level as a share of its usual range; its change in one row; what flows and pumps do
  not explain of that change (the mass balance, fitted to the plant's own rows), now and as a mean
  over {LAG} rows; the share of pumps and valves that run; total flow as a share of the usual one;
- each **flow**: share of its usual largest; its change in one row; what pumps, valves and levels do
  not explain of it, now and as a mean; the share of pumps and valves that run.

A plant has {FEW_ROWS} clean rows. The first {FIT_SHARE:.0%} give mean and spread of each number,
the others the threshold: their highest score. The score of a row is that of its most unusual asset.
It is given in these ways:

- **{CONTROL}**: the control. The sum of the squared numbers; nothing is learned.
- **{OTHERS[0]}**: the correlations of the numbers are those of all other plants.
- **{OTHERS[1]}**: the distance to the nearest clean rows of the other plants' assets.
- **{OWN[0]}**: the correlations are those of the plant's own {FEW_ROWS} rows.
- **{OWN[1]}**: the `moments` detector of its channels, from the same rows.
- **{ALL}**: the same detector from all of its clean rows before those measured on.

Each plant is left out once: what is measured on it comes from the other plants. A cell is the mean
over draws with its 95 % interval (Student's t).
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Site:
    """One plant of one draw."""

    few: Record  # its own clean rows
    clean: Record  # what it lends to others: all its clean rows but those held out
    held: Record  # clean rows that no detector has read
    attacked: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of plant, and how a seed makes a site of it."""

    name: str
    says: str
    draw: Callable[[int], Site]


def _parted(clean: Record, attacked: Record, *, first: int = 0) -> Site:
    """Take the few rows from `first` on, and hold the last quarter out."""
    last = 3 * len(clean) // 4
    return Site(
        few=clean.rows(first, first + FEW_ROWS),
        clean=clean.rows(0, last),
        held=clean.rows(last, len(clean)),
        attacked=attacked,
    )


def _line(seed: int) -> Site:
    attacked = simulate("line", seed=seed + 50, days=8, attacks=True)
    return _parted(simulate("line", seed=seed, days=6), attacked)


def _treatment(seed: int) -> Site:
    clean = simulate("treatment", seed=seed, days=1.25).without_first(START_UP_S).every(10)
    return _parted(clean, simulate("treatment", seed=seed + 50, days=1, attacks=True).every(10))


def _network(name: str, seed: int) -> Site:
    clean, attacked = (
        simulate(f"network:{name}", seed=own, days=60, attacks=attacks)
        for own, attacks in ((seed, False), (seed + 50, True))
    )
    return _parted(
        clean.without_first(NETWORK_START_UP_S), attacked.without_first(NETWORK_START_UP_S)
    )


@cache
def _read(*parts: str) -> Record:
    return read_record(data_folder().joinpath(*parts))


def _recorded(clean: tuple[str, str], attacked: tuple[str, str], seed: int) -> Site:
    """The seed draws where the few rows begin."""
    record = _read(*clean)
    latest = 3 * len(record) // 4 - FEW_ROWS
    first = int(stream(seed, "unlike", *clean).integers(0, latest))
    return _parted(record, _read(*attacked), first=first)


_BATADAL = ("batadal", "dataset03.csv"), ("batadal", "dataset04_full_labels.csv")
_WDT = ("wdt", "phy_norm.csv"), ("wdt", "phy_att_1.csv")
PLANTS = (
    Kind(name="line", says="simulated, three tanks, a row a minute", draw=_line),
    Kind(name="treatment", says="simulated, six stages, a row every 10 s", draw=_treatment),
    *(
        Kind(name=name, says="simulated EPANET network, hourly", draw=partial(_network, name))
        for name in ("Net1", "Net3", "Ridge", "Terraces", "Wells")
    ),
    Kind(name="BATADAL", says="C-Town, hourly", draw=partial(_recorded, *_BATADAL)),
    Kind(name="WDT", says="hardware-in-the-loop testbed, 1 Hz", draw=partial(_recorded, *_WDT)),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assets:
    """The assets of a plant, sized by its own rows: how readings become numbers without a unit."""

    levels: tuple[str, ...]
    flows: tuple[str, ...]
    actuators: tuple[tuple[str, int], ...]
    places: Mapping[str, tuple[float, float]]  # usual low and high reading
    weights: Mapping[str, Floats]  # of the least-squares prediction of a level's change, or a flow
    usual: Mapping[str, tuple[Floats, Floats]]  # mean and spread of an asset's numbers

    @classmethod
    def of(cls, record: Record) -> "Assets":
        """Size the assets that move by these rows."""
        moving = {name for name in record.names if np.nanstd(record.column(name)) > 0}
        named = [
            tuple(each.name for each in record.of_role(role) if each.name in moving)
            for role in (Role.LEVEL, Role.FLOW)
        ]
        plain = cls(
            levels=named[0],
            flows=named[1],
            actuators=tuple(
                (each.name, each.codes.off)
                for each in record.of_role(Role.ACTUATOR)
                if each.codes is not None
            ),
            places={name: _range(record.column(name)) for group in named for name in group},
            weights={},
            usual={},
        )
        weights = {
            name: _fitted(plain._causes(record, name), plain._effect(record, name))
            for name in plain.places
        }
        predicting = replace(plain, weights=weights)
        usual = {}
        for name, numbers in predicting.plain(record):
            spread = numbers.std(axis=0)
            usual[name] = (numbers.mean(axis=0), np.where(spread > 1e-9, spread, 1.0))
        return replace(predicting, usual=usual)

    def numbers(self, record: Record) -> Iterator[tuple[str, bool, Floats]]:
        """Yield each asset's name, whether it is a tank, and its numbers: rows x numbers."""
        for name, numbers in self.plain(record):
            mean, spread = self.usual[name]
            yield name, name in self.levels, np.clip((numbers - mean) / spread, -50, 50)

    def _share(self, record: Record, name: str) -> Floats:
        low, high = self.places[name]
        return (_filled(record.column(name)) - low) / (high - low)

    def _effect(self, record: Record, name: str) -> Floats:
        share = self._share(record, name)
        return np.diff(share, prepend=share[0]) if name in self.levels else share

    def _causes(self, record: Record, name: str) -> Floats:
        states = [_filled(record.column(own)) != off for own, off in self.actuators]
        names = self.flows if name in self.levels else self.levels
        shares = [self._share(record, each) for each in names]
        return np.column_stack([np.ones(len(record)), *states, *shares]).astype(float)

    def plain(self, record: Record) -> Iterator[tuple[str, Floats]]:
        rows = len(record)
        states = [_filled(record.column(own)) != off for own, off in self.actuators]
        running = np.mean(states, axis=0) if states else np.zeros(rows)
        flows = [self._share(record, name) for name in self.flows]
        total = np.mean(flows, axis=0) if flows else np.zeros(rows)
        for name in self.places:
            share, effect = self._share(record, name), self._effect(record, name)
            left = effect - self._causes(record, name) @ self.weights[name]
            mean = uniform_filter1d(left, LAG, origin=(LAG - 1) // 2)  # of rows up to this one
            own = [share, np.diff(share, prepend=share[0]), left, mean, running]
            yield name, np.column_stack([*own, total] if name in self.levels else own)


def _filled(readings: Floats) -> Floats:
    return np.nan_to_num(readings, nan=float(np.nanmedian(readings)))


def _range(readings: Floats) -> tuple[float, float]:
    low, high = (float(each) for each in np.nanquantile(readings, (0.005, 0.995)))
    return (low, high) if high > low else (float(np.nanmin(readings)), float(np.nanmax(readings)))


def _fitted(causes: Floats, effect: Floats) -> Floats:
    square = causes.T @ causes + RIDGE * len(causes) * np.eye(causes.shape[1])
    return np.asarray(np.linalg.solve(square, causes.T @ effect), np.float64)


Scorer = Callable[[bool, Floats], Floats]
"""How unusual each row of an asset is; the first argument says whether it is a tank."""


def _gaussian(assets: Sequence[Mapping[bool, Floats]]) -> Scorer:
    """Return squared distances by the mean of the plants' correlations."""
    inverse = {}
    for tank in (True, False):
        found = [np.cov(each[tank].T) for each in assets if tank in each]
        if found:
            mean = np.mean(found, axis=0)
            inverse[tank] = np.linalg.inv((1 - SHRINK) * mean + SHRINK * np.eye(len(mean)))

    def score(tank: bool, numbers: Floats) -> Floats:  # noqa: FBT001
        if tank not in inverse:
            return _plain(tank, numbers)
        return np.asarray(np.einsum("ij,jk,ik->i", numbers, inverse[tank], numbers))

    return score


def _neighbours(assets: Sequence[Mapping[bool, Floats]]) -> Scorer:
    """Return squared distances to the nearest rows of the plants' assets."""
    trees = {
        tank: cKDTree(np.concatenate([each[tank] for each in assets if tank in each]))
        for tank in (True, False)
    }

    def score(tank: bool, numbers: Floats) -> Floats:  # noqa: FBT001
        distances, _ = trees[tank].query(numbers, k=NEIGHBOURS)
        return np.asarray(distances[:, -1] ** 2)

    return score


def _plain(_: bool, numbers: Floats) -> Floats:  # noqa: FBT001
    return np.asarray(np.square(numbers).sum(axis=1))


def _lent(record: Record, seed: int) -> dict[bool, Floats]:
    """Return a sample of the rows of a plant's assets: tanks, and flows."""
    found: dict[bool, list[Floats]] = {}
    for _, tank, numbers in Assets.of(record).numbers(record):
        found.setdefault(tank, []).append(numbers)
    rng = stream(seed, "unlike", "sample")
    sample = {}
    for tank, parts in found.items():
        rows = np.concatenate(parts)
        sample[tank] = rows[rng.choice(len(rows), min(SAMPLE, len(rows)), replace=False)]
    return sample


def measure(
    name: str, site: Site, others: Sequence[Mapping[bool, Floats]], *, seed: int
) -> list[Measured]:
    """Measure every way on one plant; `others` are the samples of the other plants."""
    fit = site.few.rows(0, int(FIT_SHARE * len(site.few)))
    assets = Assets.of(fit)
    scorers: dict[str, Scorer] = {
        CONTROL: _plain,
        OTHERS[0]: _gaussian(others),
        OTHERS[1]: _neighbours(others),
        OWN[0]: _gaussian([_lent(fit, seed)]),
    }
    lines = [
        _line_of(assets, scorer, site, name=name, seed=seed, way=way)
        for way, scorer in scorers.items()
    ]
    for way, clean in ((OWN[1], site.few), (ALL, site.clean)):
        draw = Draw(
            own=clean, contributes=False, members=(), held=(site.held,), attacked=site.attacked
        )
        made = alone(clean, ASKED)
        lines.append(measured(made, draw, subject=name, days=0, seed=seed, way=way))
    return lines


def _line_of(  # noqa: PLR0913 - a line of the table is these parts
    assets: Assets, scorer: Scorer, site: Site, *, name: str, seed: int, way: str
) -> Measured:
    fit, last = int(FIT_SHARE * len(site.few)), len(site.few)
    usual = {
        own: max(float(np.quantile(scorer(tank, numbers), 0.99)), 1e-9)
        for own, tank, numbers in assets.numbers(site.few.rows(0, fit))
    }

    def scores(record: Record) -> Floats:
        found = [scorer(tank, each) / usual[own] for own, tank, each in assets.numbers(record)]
        return np.asarray(np.max(found, axis=0), np.float64)

    threshold = float(scores(site.few.rows(fit, last)).max())
    clean, attacked = scores(site.held) > threshold, scores(site.attacked)
    labels = site.attacked.labels
    assert labels is not None
    found = attacks_found(
        Outcome(
            scores=attacked,
            alarms=attacked > threshold,
            labels=labels,
            last_rows=np.arange(len(labels)),
            stride_s=site.attacked.stride_s,
        )
    )
    weeks = len(clean) * site.held.stride_s / WEEK_S
    return Measured(
        subject=name,
        days=0,
        seed=seed,
        way=way,
        false_alarms_per_week=len(alarm_events(np.flatnonzero(clean))) / weeks,
        time_in_alarm=float(clean.mean()),
        average_precision=average_precision(attacked, labels == Label.ATTACK),
        attacks_found=sum(attack.delay_s is not None for attack in found),
        attacks=len(found),
        extrapolated=False,
    )


SHOWN = tuple(column for column in COLUMNS if not column.name.startswith("false alarms"))


def page(lines: Sequence[Measured], kinds: Sequence[Kind] = PLANTS) -> str:
    """Return the page of what is measured."""
    seeds = sorted({line.seed for line in lines})
    parts = [
        HEAD,
        f"{len(kinds)} plants, {len(seeds)} draws each (seeds {seeds[0]} to {seeds[-1]}).",
        "Of a recorded plant, a draw is where its own rows begin.\n",
        *(f"- **{kind.name}**: {kind.says}" for kind in kinds),
        "\n## What other plants add\n",
        *_verdicts(lines, kinds),
        "\n## Each plant\n",
        f"| plant | way | {' | '.join(column.name for column in SHOWN)} |",
        f"|---|---|{'---|' * len(SHOWN)}",
    ]
    for kind in kinds:
        for way in WAYS:
            own = [line for line in lines if (line.subject, line.way) == (kind.name, way)]
            cells = " | ".join(_shown(column, own) for column in SHOWN)
            parts.append(f"| {kind.name} | {way} (n = {len(own)}) | {cells} |")
    return "\n".join(parts) + "\n"


def _verdicts(lines: Sequence[Measured], kinds: Sequence[Kind]) -> Iterator[str]:
    """Compare each way with the control, with one number for each plant."""
    yield (
        "Each plant counts once: the mean over its draws, minus that of the control. Intervals are "
        f"over the {len(kinds)} plants.\n"
    )
    yield "| way | average precision | plants with more | share of attacks found |"
    yield "|---|---|---|---|"
    helped = False
    for way in WAYS[1:]:
        precise, found = (
            [_mean(lines, kind, way, of) - _mean(lines, kind, CONTROL, of) for kind in kinds]
            for of in (_precision, _found)
        )
        (gain, half), (more, wide) = interval(precise), interval(found)
        helped |= way in OTHERS and gain - half > 0
        yield (
            f"| {way} | {gain:+.3f} ± {half:.3f} | {sum(one > 0 for one in precise)} of "
            f"{len(kinds)} | {more:+.3f} ± {wide:.3f} |"
        )
    yield (
        "\n**Plants of other kinds help**: the interval of a gain in average precision lies above "
        "0."
        if helped
        else "\n**Plants of other kinds do not help**: no interval of a gain in average precision "
        "lies above 0. A control without any data of others does as well. So a federation is one "
        "of plants that are alike: `plant join` and `coordinator import` refuse others."
    )


def _precision(line: Measured) -> float:
    return line.average_precision


def _found(line: Measured) -> float:
    return line.attacks_found / max(line.attacks, 1)


def _mean(
    lines: Sequence[Measured], kind: Kind, way: str, of: Callable[[Measured], float]
) -> float:
    return float(
        np.mean([of(line) for line in lines if (line.subject, line.way) == (kind.name, way)])
    )


def _shown(column: Column, lines: Sequence[Measured]) -> str:
    mean, half = interval([column.of(line) for line in lines])
    form = column.form
    return f"{mean:{form}} [{max(mean - half, 0.0):{form}}, {mean + half:{form}}]"


def main() -> None:
    """Measure every draw and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks unlike-plants", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/unlike-plants.md"))
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="settings: below 100")
    parser.add_argument("--draws", type=int, default=DRAWS)
    given = parser.parse_args()
    lines: list[Measured] = []
    for seed in range(given.first_seed, given.first_seed + given.draws):
        sites = {kind.name: kind.draw(seed) for kind in PLANTS}
        lent = {name: _lent(site.clean, seed) for name, site in sites.items()}
        for name, site in sites.items():
            others = [sample for other, sample in lent.items() if other != name]
            lines += measure(name, site, others, seed=seed)
        print(f"seed {seed}: {len(lines)} lines")
    with atomically(given.out) as draft:
        draft.write_text(page(lines), encoding="utf-8")
    print(f"{given.out}: {len(lines)} lines")


if __name__ == "__main__":
    main()
