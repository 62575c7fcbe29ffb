"""`sluice attack`: falsify a record as a malicious client would, to test a gate or a detector."""

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
    reads_file,
    reads_record,
    refuse_overwriting,
    table,
    working,
    writes_file,
)
from sluice.errors import SettingError
from sluice.lab.attacks import DATA_ATTACKS, SHARE, Means, RollLasting
from sluice.lab.attacks import attack as attack_record
from sluice.telemetry import Record
from sluice.telemetry.writers import layout_for, write

__all__ = ["attack"]

ADAPTIVE_REPLAYS = ("untied-replay", "shaped-replay", "foreign-simulator")
ONLY_FOR: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "--target": frozenset({"replay", "projection", *ADAPTIVE_REPLAYS}),
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
            help=f"The attack: {', '.join(DATA_ATTACKS)}.",
        ),
    ],
    record: RecordPath,
    out_path: Annotated[
        Path,
        typer.Option(
            "--out",
            help="The file to write; its suffix selects the format.",
            click_type=writes_file(),
        ),
    ],
    rules: Annotated[
        Path | None,
        typer.Option(
            help="Rules to count violating rows with, and to project onto.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    policy: PolicyName = None,
    target: Annotated[
        Path | None,
        typer.Option(help="A record with labelled attacks, to replay.", click_type=reads_record()),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help=f"Share of the rows that the replay replaces; default {SHARE:g}."),
    ] = None,
    roll_seconds: Annotated[
        float | None,
        typer.Option(min=1e-3, help="Seconds to roll actuators by; default 300, at least 7 rows."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    allow_empty: AllowEmpty = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Falsify a record as a malicious client would, to test a gate or a detector.

    Projection moves RECORD, or a --target replayed into it, onto the --rules. Offset, low-pass,
    ar-noise, channel-swap, tank-swap and idle-flip tamper with what rules may not read; with
    --rules, each searches its strongest variant that the gate admits. Untied-replay, shaped-replay
    and foreign-simulator need --target and --rules, and plant as many rows as the gate admits.

    Times, channels and labels stay unchanged. With --rules, the command counts violating rows
    before and after. --skip-seconds applies to RECORD only, not to --target.

    Example: [bold]sluice attack replay may.csv --target incident.csv --out replayed.csv[/bold]
    """
    quiet = quiet or json
    _refuse_unused(name, {"--target": target, "--share": share, "--roll-seconds": roll_seconds})
    layout = layout_for(out_path)
    refuse_overwriting(out_path, record, target, rules, plant, Path(policy) if policy else None)
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
        counts = {
            "rows_changed": _rows_changed(clean, attacked),
            "violating_before": gate.judge(clean).violating_rows if gate else None,
            "violating_after": gate.judge(attacked).violating_rows if gate else None,
        }
    write(attacked, out_path, layout)
    if json:
        emit(counts)
    else:
        _show(name, len(clean), counts)
        out.print(
            f"\n{out_path} contains falsified readings; keep it separate from the plant's records."
        )


def _refuse_unused(name: str, given: Mapping[str, object]) -> None:
    for option, value in given.items():
        if value is not None and name not in ONLY_FOR[option]:
            users = _listed(sorted(ONLY_FOR[option] & DATA_ATTACKS.keys()))
            raise SettingError(f"{option} is for {users}; {name} does not use it")


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _gate(rules: Path | None, policy: str | None, *, allow_empty: bool) -> Gate | None:
    if rules is None:
        if policy is not None:
            raise SettingError("--policy judges with rules; give --rules too")
        return None
    return open_gate(rules, policy, allow_empty=allow_empty)


def _rows_changed(before: Record, after: Record) -> int:
    same = (before.values == after.values) | (before.missing & after.missing)
    return int(np.count_nonzero(~same.all(axis=1)))


def _show(name: str, rows: int, counts: Mapping[str, int | None]) -> None:
    shown = table(f"{name} on {rows:,} rows", "", "rows", "share")
    for what, count in counts.items():
        if count is not None:
            shown.add_row(what.replace("_", " "), f"{count:,}", f"{count / rows:.2%}")
    out.print(shown)
