"""`sluice attack`: a record as a lying client would write it, to try a gate or a detector with."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import click
import numpy as np
import typer

from sluice.admission import Gate
from sluice.cli import (
    AllowEmpty,
    Every,
    FillWith,
    FormatName,
    Json,
    PlantPath,
    PolicyName,
    Quiet,
    RecordPath,
    SkipSeconds,
    emit,
    open_gate,
    open_record,
    out,
    refuse_overwriting,
    table,
    working,
)
from sluice.errors import SettingError
from sluice.lab.attacks import DATA_ATTACKS, SHARE, Means, RollLasting
from sluice.lab.attacks import attack as attack_record
from sluice.telemetry import Record
from sluice.telemetry.writers import layout_for, write

__all__ = ["attack"]

ONLY_FOR: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "--target": frozenset({"replay", "projection"}),
        "--share": frozenset({"replay", "projection"}),
        "--roll-seconds": frozenset({"channel-roll"}),
    }
)


def attack(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            click_type=click.Choice(list(DATA_ATTACKS)),
            help=", ".join(DATA_ATTACKS),
        ),
    ],
    record: RecordPath,
    out_path: Annotated[Path, typer.Option("--out", help="The file to write, by its suffix.")],
    rules: Annotated[
        Path | None, typer.Option(help="Rules to count violating rows by, and to project onto.")
    ] = None,
    policy: PolicyName = None,
    target: Annotated[
        Path | None, typer.Option(help="A record with labelled attacks, to replay.")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help=f"Share of the rows to replay over; default {SHARE:g}.")
    ] = None,
    roll_seconds: Annotated[
        float | None,
        typer.Option(min=1e-3, help="How far actuators are rolled; default 300, 7 rows at least."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same readings.")] = 0,
    allow_empty: AllowEmpty = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a record as a lying client would; clock, channels and labels stay as they were.

    NAME is replay, channel-roll, permutation, scaling, splicing, perturbation or projection; the
    last moves RECORD, or a --target replayed into it, onto the --rules. Violating rows are counted
    where there are --rules. --skip-seconds cuts RECORD alone, not the --target.

    Example: [bold]sluice attack replay may.csv --target incident.csv --out replayed.csv[/bold]
    """
    quiet = quiet or json
    _refuse_unused(name, {"--target": target, "--share": share, "--roll-seconds": roll_seconds})
    layout = layout_for(out_path)
    refuse_overwriting(out_path, record, target, rules, plant, Path(policy) if policy else None)
    if not out_path.parent.is_dir():
        raise SettingError(f"cannot write {out_path}: there is no folder {out_path.parent}")
    gate = _gate(rules, policy, allow_empty=allow_empty)
    with working(f"reading {record}", quiet=quiet):
        clean = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        labelled = (
            open_record(target, plant=plant, format_name=format_, fill=fill, every=every)
            if target
            else None
        )
    means = Means(
        labelled=labelled,
        share=SHARE if share is None else share,
        rules=gate.rules if gate else None,
        policy=gate.policy if gate else None,
        roll=RollLasting(seconds=roll_seconds, least_rows=1) if roll_seconds else RollLasting(),
    )
    with working(f"attacking {len(clean):,} rows ({name})", quiet=quiet):
        attacked = attack_record(clean, name, seed=seed, means=means)
        found = {
            "rows_changed": _rows_changed(clean, attacked),
            "violating_before": gate.judge(clean).violating_rows if gate else None,
            "violating_after": gate.judge(attacked).violating_rows if gate else None,
        }
    write(attacked, out_path, layout)
    if json:
        emit(found)
    else:
        _show(name, len(clean), found)
        out.print(f"\n{out_path} holds falsified readings; keep it apart from the plant's records.")


def _refuse_unused(name: str, given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value is not None and name not in ONLY_FOR[option]:
            users = " and ".join(sorted(ONLY_FOR[option] & DATA_ATTACKS.keys()))
            raise SettingError(f"{option} is for {users}; {name} does not use it")


def _gate(rules: Path | None, policy: str | None, *, allow_empty: bool) -> Gate | None:
    if rules is None:
        if policy is not None:
            raise SettingError("a policy judges by rules; give --rules beside --policy")
        return None
    return open_gate(rules, policy, allow_empty=allow_empty)


def _rows_changed(before: Record, after: Record) -> int:
    same = (before.values == after.values) | (before.missing & after.missing)
    return int(np.count_nonzero(~same.all(axis=1)))


def _show(name: str, rows: int, found: Mapping[str, int | None]) -> None:
    drawn = table(f"{name} on {rows:,} rows", "", "rows", "share")
    for what, count in found.items():
        if count is not None:
            drawn.add_row(what.replace("_", " "), f"{count:,}", f"{count / rows:.2%}")
    out.print(drawn)
