"""Mine a record: check the rows, mine, and compare with earlier rules."""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Run
from sluice.errors import SettingError
from sluice.invariants.drift import Change, drift
from sluice.invariants.mining.profiles import mine
from sluice.invariants.mining.renewal import KeptRule, keep_tolerances
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry import Label, Record

__all__ = ["Mined", "mine_record"]

FEWEST_ROWS = {Profile.HARDENED: 200}  # with fewer, a batch's first row alone is close to alpha
FEWEST_ROWS_PAPER = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """The rules of a record, and how they differ from the earlier ones."""

    rules: RuleSet
    changes: tuple[Change, ...] = ()
    kept: tuple[KeptRule, ...] = ()  # rules that stay as tight as they were


def mine_record(  # noqa: PLR0913 - the options of `sluice mine`
    record: Record,
    fit: Run,
    calibration: Run,
    *,
    profile: Profile = Profile.HARDENED,
    earlier: RuleSet | None = None,
    widen: bool = False,
) -> Mined:
    """Mine the rules of a record from two stretches of clean rows.

    Rows that are labelled as attack, too few rows, and overlapping stretches are refused. With
    `earlier` rules, the changes are listed and no rule gets looser unless `widen` allows it.
    """
    if earlier is not None:
        _refuse_other(earlier, record, profile)
    _refuse_overlap(fit, calibration, profile)
    for name, run in (("fit", fit), ("calibration", calibration)):
        _refuse_few(run, name, profile)
        _refuse_attacks(record, run, name)
        if profile is not Profile.HARDENED:
            _refuse_holes(record, run, name)
    clean = record.rows(*calibration)
    rules = mine(record.rows(*fit), clean, profile=profile)
    if earlier is None:
        return Mined(rules=rules)
    changes = drift(earlier, rules)
    if widen:
        return Mined(rules=rules, changes=changes)
    rules, kept = keep_tolerances(earlier, rules, clean)
    return Mined(rules=rules, changes=changes, kept=kept)


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


def _refuse_overlap(fit: Run, calibration: Run, profile: Profile) -> None:
    shared = min(fit.stop, calibration.stop) - max(fit.start, calibration.start)
    if profile is Profile.HARDENED and shared > 0:
        raise SettingError(
            f"the fit rows {fit.start}:{fit.stop} and the calibration rows "
            f"{calibration.start}:{calibration.stop} share {shared} rows; a tolerance set on the "
            "rows a rule was fitted to is too narrow: give rows that do not overlap, or mine with "
            "a paper profile"
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
