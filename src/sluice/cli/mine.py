"""`sluice mine`: fit rules to clean rows and calibrate their tolerances on other clean rows."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import HardenedPolicy, Objection, accept, read_policy
from sluice.arrays import Run
from sluice.cli.console import (
    Json,
    Quiet,
    emit,
    objection_payloads,
    out,
    show_objections,
    working,
)
from sluice.cli.drifting import cause_payloads, show_causes
from sluice.cli.options import (
    Declare,
    Every,
    FillWith,
    FormatName,
    PlantPath,
    RecordPaths,
    SkipSeconds,
    declarations,
    listed,
    open_record,
    refuse_overwriting,
    slice_of,
)
from sluice.cli.paths import PolicyPath, reads_file, writes_file
from sluice.cli.prediction import advice, refusal_payload, show_summary
from sluice.cli.rules import change_payload, refuse_unknown_tags, rule_payload, show_rules
from sluice.errors import SettingError
from sluice.invariants import (
    Change,
    Moved,
    Profile,
    Redefined,
    RuleSet,
    What,
    causes,
    load_rules,
    rules_hash,
    save_rules,
)
from sluice.invariants.mining import TARGET, KeptRule, Mined, clean_parts, mine_record
from sluice.telemetry import Record

__all__ = ["mine"]

DEFAULT_SHARE = "0.15"  # of a record, for each stretch that a paper profile needs
WORTH_SHOWING = 0.01  # smaller changes are counted, not listed


def mine(
    record: RecordPaths,
    out_path: Annotated[
        Path, typer.Option("--out", help="The rules file to write.", click_type=writes_file())
    ],
    profile: Annotated[
        Profile, typer.Option(help="How rules are mined: hardened, or as the paper did.")
    ] = Profile.HARDENED,
    fit: Annotated[
        str | None,
        typer.Option(
            help="Clean rows: a share from the start, or A:B. Default: all rows that are not "
            "labelled as attack; for a paper profile 0.15."
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            help="More clean rows: a share after --fit, or A:B. A paper profile sets tolerances "
            "on them; default 0.15."
        ),
    ] = None,
    update: Annotated[
        Path | None,
        typer.Option(
            help="Earlier rules: report what drifted, and loosen no rule.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    widen: Annotated[
        bool, typer.Option("--widen", help="With --update: allow rules to loosen.")
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Also check the rules against this policy: hardened, or a file.",
            click_type=PolicyPath(),
        ),
    ] = None,
    declare: Declare = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Do not write rules that the policy refuses, or for which the target is not "
            "promised: too many clean batches are refused, or too few were tried. Exit 3 then.",
        ),
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

    All rows that are not labelled as attack are used. Limits are set by cross-validation, and the
    share of honest batches that the rules would refuse is predicted; exit 3 if it is above the
    target (0.5 %, or the policy's refused_max). A short record promises nothing, and says so; with
    --strict this is exit 3 too. Rows are counted from 0 after --skip-seconds and
    --every; B of A:B is excluded. With --policy, exit 3 also if the policy refuses the rules; every
    objection is listed, with the commands that cure them. --declare shows what the verdict would be
    if the approver declared these reasons.

    Example: [bold]sluice mine march.csv --out rules.json[/bold]
    """
    quiet = quiet or json
    refuse_overwriting(out_path, *record, plant)
    required = _required(policy, needed=bool(declare))
    if widen and not update:
        raise SettingError("--widen allows rules looser than those of --update; give --update too")
    old, declared = load_rules(update) if update else None, declarations(declare)
    with working(f"reading {listed(record)}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
    parts = _parts(fit, calibrate, loaded, profile)
    with working(f"mining {sum(run.rows for run in parts):,} rows", quiet=quiet):
        mined = mine_record(
            loaded,
            *parts,
            profile=profile,
            earlier=old,
            widen=widen,
            margins=required.margins if required else None,
            target=required.acceptance.refused_max if required else TARGET,
        )
    rules = mined.rules
    objections: tuple[Objection, ...] = ()
    if required is not None:
        refuse_unknown_tags(declared, rules, *([old] if old else []))
        objections = accept(rules, required, last=old, declared=declared)
    promised = _promised(mined, strict=strict)
    written = not (strict and (objections or not promised))
    digest = save_rules(rules, out_path) if written else rules_hash(rules)
    if rules.empty:
        _warn_empty(rules)
    if json:
        payload = _payload(mined, digest, updated=old is not None)
        if old is not None:
            payload["drift"] = cause_payloads(causes(old, loaded))
        if required is not None:
            payload["objections"] = objection_payloads(objections, rules=out_path, last=update)
        emit(payload)
    else:
        _show(mined, loaded, objections, out_path, update, old)
        state = f"hash {digest[:12]}" if written else "not written (--strict)"
        out.print(f"\n{out_path}: {len(rules.invariants)} rules, {state}", markup=False)
    if mined.honest is not None and not promised:
        for line in advice(mined.honest, rules):
            typer.echo(f"sluice: {line}", err=True)
    if objections or not promised:
        raise typer.Exit(3)


def _promised(mined: Mined, *, strict: bool) -> bool:
    """Whether the target is kept; under --strict, on enough batches to say so."""
    if mined.honest is None:
        return True
    return mined.honest.shown if strict else mined.honest.kept


def _show(
    mined: Mined,
    record: Record,
    objections: tuple[Objection, ...],
    out_path: Path,
    update: Path | None,
    earlier: RuleSet | None,
) -> None:
    show_rules(mined.rules)
    show_summary(mined, record)
    if earlier is not None:
        _show_drift(mined.changes, mined.kept, mined.rules)
        show_causes(causes(earlier, record))
    if objections:
        out.print(f"\n[bold]the policy refuses the rules[/bold]: {len(objections)} objections")
        show_objections(objections, rules=out_path, last=update)


def _parts(
    fit: str | None, calibrate: str | None, record: Record, profile: Profile
) -> tuple[Run, ...]:
    """Return the rows to use; for hardened rules all clean rows, unless the user names some."""
    if profile is Profile.HARDENED and fit is None and calibrate is None:
        return clean_parts(record)
    fitted = slice_of(fit or DEFAULT_SHARE, record, after=0, option="--fit")
    if profile is Profile.HARDENED and calibrate is None:
        middle = (fitted.start + fitted.stop) // 2
        return Run(fitted.start, middle), Run(middle, fitted.stop)
    calibration = calibrate or DEFAULT_SHARE
    return fitted, slice_of(calibration, record, after=fitted.stop, option="--calibrate")


def _required(policy: str | None, *, needed: bool) -> HardenedPolicy | None:
    """Return the policy to check the rules against, if the user names one."""
    if policy is None:
        if needed:
            raise SettingError("--declare is about a policy; give --policy too")
        return None
    required = read_policy(policy)
    if not isinstance(required, HardenedPolicy):
        raise SettingError("the paper policy requires nothing of rules; give a hardened policy")
    return required


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
        "untied": list(rules.untied or ()),
        "used": [f"{run.start}:{run.stop}" for run in mined.parts],
        "honest_refusal": refusal_payload(mined.honest) if mined.honest else None,
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
