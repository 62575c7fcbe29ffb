"""`sluice mine`: fit rules to clean rows and calibrate their tolerances on other clean rows."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sluice.arrays import Run
from sluice.cli.console import Json, Quiet, emit, out, working
from sluice.cli.options import (
    Every,
    FillWith,
    FormatName,
    PlantPath,
    RecordPath,
    SkipSeconds,
    open_record,
    slice_of,
)
from sluice.cli.rules import change_payload, rule_payload, show_rules
from sluice.errors import SettingError
from sluice.invariants import (
    Change,
    Moved,
    Profile,
    Redefined,
    RuleSet,
    What,
    drift,
    load_rules,
    save_rules,
)
from sluice.invariants.mining import KeptRule, keep_tolerances
from sluice.invariants.mining import mine as mine_rules
from sluice.telemetry import Label, Record

__all__ = ["mine"]

FEWEST_ROWS = {Profile.HARDENED: 200}  # with fewer, a batch's first row alone is close to alpha
FEWEST_ROWS_PAPER = 20
WORTH_SHOWING = 0.01  # smaller changes are counted, not listed


def mine(
    record: RecordPath,
    out_path: Annotated[Path, typer.Option("--out", help="The rules file to write.")],
    profile: Annotated[
        Profile, typer.Option(help="How rules are mined: hardened, or as the paper did.")
    ] = Profile.HARDENED,
    fit: Annotated[
        str, typer.Option(help="Rows to fit rules to: a share from the start, or A:B.")
    ] = "0.15",
    calibrate: Annotated[
        str, typer.Option(help="Rows that set tolerances: a share after --fit, or A:B.")
    ] = "0.15",
    update: Annotated[
        Path | None,
        typer.Option(help="Earlier rules: report what drifted, and loosen no rule."),
    ] = None,
    widen: Annotated[
        bool, typer.Option("--widen", help="With --update: allow rules to loosen.")
    ] = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Mine a plant's rules from clean rows of its record.

    Rows are counted from 0 after --skip-seconds and --every; B of A:B is excluded.

    Example: [bold]sluice mine march.csv --out rules.json --fit 0.4 --calibrate 0.4[/bold]
    """
    quiet = quiet or json
    if widen and not update:
        raise SettingError("--widen allows rules looser than those of --update; give --update too")
    old = load_rules(update) if update else None
    with working(f"reading {record}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
    if old is not None:
        _refuse_other(old, loaded, profile, update)
    fitted, calibrated = _slices(loaded, fit, calibrate, profile)
    with working(f"mining {fitted.rows:,} rows, calibrating on {calibrated.rows:,}", quiet=quiet):
        clean = loaded.rows(*calibrated)
        mined = mine_rules(loaded.rows(*fitted), clean, profile=profile)
        changes: tuple[Change, ...] = ()
        kept: tuple[KeptRule, ...] = ()
        if old is not None:
            changes = drift(old, mined)
            if not widen:
                mined, kept = keep_tolerances(old, mined, clean)
    digest = save_rules(mined, out_path)
    if mined.empty:
        _warn_empty(mined)
    if json:
        emit(_payload(mined, digest, changes, kept, updated=old is not None))
        return
    show_rules(mined)
    if old is not None:
        _show_drift(changes, kept, mined)
    out.print(f"\n{out_path}: {len(mined.invariants)} rules, hash {digest[:12]}", markup=False)


def _refuse_other(old: RuleSet, record: Record, profile: Profile, path: Path | None) -> None:
    """Refuse to update the rules of another plant or of another profile."""
    known = {channel.name for channel in old.channels}
    if len(known & set(record.names)) * 2 < len(known):
        raise SettingError(
            f"{path} contains the rules of {old.plant!r}, which shares "
            f"{len(known & set(record.names))} of its {len(known)} channels with record "
            f"{record.name!r}; mine this record without --update"
        )
    if old.profile is not profile:
        raise SettingError(
            f"{path} was mined with profile {old.profile.value}, not {profile.value}; give "
            f"--profile {old.profile.value} or mine without --update"
        )


def _slices(record: Record, fit: str, calibrate: str, profile: Profile) -> tuple[Run, Run]:
    """Return the rows to fit and to calibrate on; refuse rows that cannot be mined."""
    fitted = slice_of(fit, record, after=0, option="--fit")
    calibrated = slice_of(calibrate, record, after=fitted.stop, option="--calibrate")
    shared = min(fitted.stop, calibrated.stop) - max(fitted.start, calibrated.start)
    if profile is Profile.HARDENED and shared > 0:
        raise SettingError(
            f"--fit {fit} and --calibrate {calibrate} share {shared} rows; a tolerance set on the "
            "rows a rule was fitted to is too narrow: give rows that do not overlap, or mine with "
            "a paper profile"
        )
    fewest = FEWEST_ROWS.get(profile, FEWEST_ROWS_PAPER)
    for option, run in (("--fit", fitted), ("--calibrate", calibrated)):
        if run.rows < fewest:
            raise SettingError(
                f"{option} has {run.rows} rows; {profile.value} rules need at least {fewest}: "
                "give more"
            )
        _refuse_attacks(record, run, option)
        if profile is not Profile.HARDENED:
            _refuse_holes(record, run, option)
    return fitted, calibrated


def _refuse_attacks(record: Record, run: Run, option: str) -> None:
    attacked = np.flatnonzero(record.labels[run.slice] == Label.ATTACK) + run.start
    if attacked.size:
        raise SettingError(
            f"{option} rows {run.start}:{run.stop} of {record.name!r} contain {attacked.size} rows "
            f"labelled as attack, from row {attacked[0]} to row {attacked[-1]}; rules are mined "
            "from clean rows: give other rows"
        )


def _refuse_holes(record: Record, run: Run, option: str) -> None:
    missing = record.missing[run.slice]
    incomplete = np.flatnonzero(missing.any(axis=1))
    if incomplete.size:
        channel = record.names[int(missing[incomplete[0]].argmax())]
        raise SettingError(
            f"{option} rows {run.start}:{run.stop} of {record.name!r} miss readings on "
            f"{incomplete.size} rows, first {channel!r} at row {incomplete[0] + run.start}; paper "
            "profiles need every reading: give --fill or other rows"
        )


def _warn_empty(rules: RuleSet) -> None:
    typer.echo(
        f"sluice: no physics found: no rule relates the channels of {rules.plant!r}, so every "
        "batch in range would be admitted. Mine more or other rows, or declare roles in a plant "
        "file (sluice data inspect --write-plant)",
        err=True,
    )


def _payload(
    rules: RuleSet,
    digest: str,
    changes: tuple[Change, ...],
    kept: tuple[KeptRule, ...],
    *,
    updated: bool,
) -> dict[str, object]:
    payload: dict[str, object] = {
        "rules": [rule_payload(rule, rules) for rule in rules.invariants],
        "hash": digest,
        "dropped": [asdict(candidate) for candidate in rules.dropped],
        "empty": rules.empty,
        "profile": rules.profile.value,
        "fit_rows": rules.fit_rows,
        "calibration_rows": rules.calibration_rows,
        "refused_share": rules.clean.refused_share if rules.clean else None,
    }
    if updated:
        payload["changes"] = [change_payload(change) for change in changes]
        payload["kept"] = [asdict(rule) for rule in kept]
    return payload


def _show_drift(changes: tuple[Change, ...], kept: tuple[KeptRule, ...], rules: RuleSet) -> None:
    out.print("\n[bold]Changes since the earlier rules[/bold]")
    small = 0
    for change in changes:
        if isinstance(change, Moved | Redefined) and change.what in (What.CLEAN, What.SPAN):
            continue  # these change with the rows that are mined; 'sluice rules diff' lists them
        if isinstance(change, Moved) and abs(change.share) < WORTH_SHOWING:
            small += 1
        else:
            out.print(f"  {change.sentence}", markup=False)
    if small:
        out.print(f"  and {small} changes of less than {WORTH_SHOWING:.0%}")
    if not kept:
        return
    out.print("\n[bold]Kept unchanged (--widen allows these rules to loosen)[/bold]")
    for rule in kept:
        out.print(f"  {rule.sentence}", markup=False)
    warning = "Clean data of this plant may now be refused"
    if rules.clean:
        warning += f": {rules.clean.refused_share:.1%} of clean batches in the calibration rows"
    out.print(f"  {warning}.")
