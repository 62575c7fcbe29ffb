"""Mine a record: check the rows, mine, and compare with earlier rules."""

from dataclasses import dataclass, replace
from itertools import chain, pairwise, repeat

import numpy as np

from sluice.arrays import Run, runs
from sluice.errors import SettingError
from sluice.invariants.budgets import Margins
from sluice.invariants.drift import Change, drift
from sluice.invariants.mining.folds import clean_record
from sluice.invariants.mining.hardened import mine_hardened
from sluice.invariants.mining.joint import with_rate
from sluice.invariants.mining.profiles import mine
from sluice.invariants.mining.renewal import KeptRule, keep_tolerances
from sluice.invariants.mining.trial import TARGET, HonestRefusal, tried
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry import Label, Record

__all__ = ["Mined", "clean_parts", "mine_record"]

FEWEST_ROWS = {Profile.HARDENED: 200}  # with fewer, a batch's first row alone is close to alpha
FEWEST_ROWS_PAPER = 20
FEWEST_PARTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """The rules of a record, and how they differ from the earlier ones."""

    rules: RuleSet
    parts: tuple[Run, ...] = ()  # the rows that were used
    honest: HonestRefusal | None = None  # hardened profiles only
    changes: tuple[Change, ...] = ()
    kept: tuple[KeptRule, ...] = ()  # rules that stay as tight as they were


def clean_parts(record: Record) -> tuple[Run, ...]:
    """Return the stretches of a record without rows labelled as attack, in two parts or more."""
    attacked = np.asarray(record.labels == Label.ATTACK)
    fewest = FEWEST_ROWS[Profile.HARDENED]
    parts = tuple(run for run in runs(~attacked) if run.rows >= fewest)
    if len(parts) == 1 and parts[0].rows >= 2 * fewest:
        start, stop = parts[0]
        return Run(start, (start + stop) // 2), Run((start + stop) // 2, stop)
    if len(parts) < FEWEST_PARTS:
        raise SettingError(
            f"record {record.name!r} has {int((~attacked).sum()):,} rows that are not labelled as "
            f"attack; hardened rules need stretches of at least {2 * fewest}: give more clean rows"
        )
    return parts


def mine_record(  # noqa: PLR0913 - the options of `sluice mine`
    record: Record,
    *parts: Run,
    profile: Profile = Profile.HARDENED,
    earlier: RuleSet | None = None,
    widen: bool = False,
    margins: Margins | None = None,
    target: float = TARGET,
) -> Mined:
    """Mine the rules of a record from stretches of clean rows.

    Hardened rules use all of them alike; without any, the whole record but for rows labelled as
    attack. A paper profile fits to the first and calibrates on the second. Rows that are labelled
    as attack, too few rows, and overlapping stretches are refused. With `earlier` rules, the
    changes are listed and no rule gets looser unless `widen` allows it.
    """
    if earlier is not None:
        _refuse_other(earlier, record, profile)
    parts = parts or clean_parts(record)
    _refuse_overlap(parts, profile)
    for name, run in zip(chain(("fit",), repeat("calibration")), parts, strict=False):
        _refuse_few(run, name, profile)
        _refuse_attacks(record, run, name)
        if profile is not Profile.HARDENED:
            _refuse_holes(record, run, name)
    clean = [record.rows(*run) for run in parts]
    if profile is Profile.HARDENED:
        calibrated = mine_hardened(*clean, margins=margins, target=target)
        mined = Mined(rules=calibrated.rules, parts=parts, honest=calibrated.honest)
    else:
        fit, calibration = clean
        mined = Mined(rules=mine(fit, calibration, profile=profile), parts=parts)
    if earlier is None:
        return mined
    mined = replace(mined, changes=drift(earlier, mined.rules))
    if widen:
        return mined
    whole = clean_record(*clean)
    rules, kept = keep_tolerances(earlier, mined.rules, whole.record)
    if kept and mined.honest and rules.clean:
        # The kept limits did not come from these rows, so the blocks can be judged by them as is.
        pairs = [(rules, fold.held_out) for fold in whole.folds]
        honest = tried(pairs, margins or Margins(), target)
        rules = replace(rules, clean=with_rate(rules.clean, honest))
        mined = replace(mined, honest=honest)
    return replace(mined, rules=rules, kept=kept)


def _refuse_other(earlier: RuleSet, record: Record, profile: Profile) -> None:
    """Refuse to update the rules of another plant or of another profile."""
    known = {channel.name for channel in earlier.channels}
    shared = len(known & set(record.names))
    if shared * 2 < len(known):
        raise SettingError(
            f"the earlier rules are those of {earlier.plant!r}, which shares {shared} of its "
            f"{len(known)} channels with record {record.name!r}; mine this record without --update"
        )
    if earlier.profile is not profile:
        raise SettingError(
            f"the earlier rules were mined with profile {earlier.profile.value}, not "
            f"{profile.value}; give --profile {earlier.profile.value} or mine without --update"
        )


def _refuse_overlap(parts: tuple[Run, ...], profile: Profile) -> None:
    if profile is not Profile.HARDENED:
        return
    for fit, calibration in pairwise(sorted(parts)):
        shared = fit.stop - calibration.start
        if shared > 0:
            raise SettingError(
                f"the fit rows {fit.start}:{fit.stop} and the calibration rows "
                f"{calibration.start}:{calibration.stop} share {min(shared, calibration.rows)} "
                "rows; a tolerance set on the rows a rule was fitted to is too narrow: give rows "
                "that do not overlap, or mine with a paper profile"
            )


def _refuse_few(run: Run, name: str, profile: Profile) -> None:
    fewest = FEWEST_ROWS.get(profile, FEWEST_ROWS_PAPER)
    if run.rows < fewest:
        raise SettingError(
            f"there are {run.rows} {name} rows; {profile.value} rules need at least {fewest}: "
            "give more"
        )


def _refuse_attacks(record: Record, run: Run, name: str) -> None:
    attacked = np.flatnonzero(record.labels[run.slice] == Label.ATTACK) + run.start
    if attacked.size:
        raise SettingError(
            f"the {name} rows {run.start}:{run.stop} of {record.name!r} contain {attacked.size} "
            f"rows labelled as attack, from row {attacked[0]} to row {attacked[-1]}; rules are "
            "mined from clean rows: give other rows"
        )


def _refuse_holes(record: Record, run: Run, name: str) -> None:
    missing = record.missing[run.slice]
    incomplete = np.flatnonzero(missing.any(axis=1))
    if incomplete.size:
        channel = record.names[int(missing[incomplete[0]].argmax())]
        raise SettingError(
            f"the {name} rows {run.start}:{run.stop} of {record.name!r} miss readings on "
            f"{incomplete.size} rows, first {channel!r} at row {incomplete[0] + run.start}; paper "
            "profiles need every reading: give --fill or other rows"
        )
