"""`sluice mine`: fit rules to clean rows and calibrate their tolerances on other clean rows."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import Json, Quiet, emit, out, working
from sluice.cli.options import (
    Every,
    FillWith,
    FormatName,
    PlantPath,
    RecordPaths,
    SkipSeconds,
    listed,
    open_record,
    refuse_overwriting,
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
    load_rules,
    save_rules,
)
from sluice.invariants.mining import KeptRule, Mined, mine_record

__all__ = ["mine"]

WORTH_SHOWING = 0.01  # smaller changes are counted, not listed


def mine(
    record: RecordPaths,
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
    refuse_overwriting(out_path, *record, plant)
    if widen and not update:
        raise SettingError("--widen allows rules looser than those of --update; give --update too")
    old = load_rules(update) if update else None
    with working(f"reading {listed(record)}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
    fitted = slice_of(fit, loaded, after=0, option="--fit")
    calibrated = slice_of(calibrate, loaded, after=fitted.stop, option="--calibrate")
    with working(f"mining {fitted.rows:,} rows, calibrating on {calibrated.rows:,}", quiet=quiet):
        mined = mine_record(loaded, fitted, calibrated, profile=profile, earlier=old, widen=widen)
    rules = mined.rules
    digest = save_rules(rules, out_path)
    if rules.empty:
        _warn_empty(rules)
    if json:
        emit(_payload(mined, digest, updated=old is not None))
        return
    show_rules(rules)
    if old is not None:
        _show_drift(mined.changes, mined.kept, rules)
    out.print(f"\n{out_path}: {len(rules.invariants)} rules, hash {digest[:12]}", markup=False)


def _warn_empty(rules: RuleSet) -> None:
    typer.echo(
        f"sluice: no physics found: no rule relates the channels of {rules.plant!r}, so every "
        "batch in range would be admitted. Mine more or other rows, or declare roles in a plant "
        "file (sluice data inspect --write-plant)",
        err=True,
    )


def _payload(mined: Mined, digest: str, *, updated: bool) -> dict[str, object]:
    rules = mined.rules
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
        payload["changes"] = [change_payload(change) for change in mined.changes]
        payload["kept"] = [asdict(rule) for rule in mined.kept]
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
