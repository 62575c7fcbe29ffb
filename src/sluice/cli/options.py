"""Options that several commands share, and functions that open records, rows and gates."""

import math
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.cli.paths import PolicyPath, reads_file, reads_record
from sluice.errors import SettingError
from sluice.telemetry import Fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.admission import Gate
    from sluice.arrays import Run
    from sluice.telemetry import Record

__all__ = [
    "AllowEmpty",
    "Declare",
    "Every",
    "FillWith",
    "FormatName",
    "PlantPath",
    "PolicyName",
    "RecordPath",
    "RecordPaths",
    "SelfContained",
    "SkipSeconds",
    "declarations",
    "listed",
    "open_gate",
    "open_record",
    "range_of",
    "refuse_overwriting",
    "refuse_without_page",
    "slice_of",
    "thinned",
]

RANGE = re.compile(r"(\d*):(\d*)")


def slice_of(text: str, record: "Record", *, after: int, option: str) -> "Run":
    """Return the rows that an option selects; a share starts at row `after`."""
    from sluice.arrays import Run

    if ":" in text:
        return range_of(text, record, option=option)
    try:
        share = float(text)
    except ValueError:
        raise SettingError(
            f"{option} is {text!r}; it must be a share such as 0.15 or rows such as 0:5000"
        ) from None
    if not 0 < share <= 1:
        raise SettingError(f"{option} is {text}; a share must be above 0 and at most 1")
    rows = int(share * len(record) + 1e-9)  # 0.15 of 94,680 rows is 14,202, also in floats
    if rows < 1 or after + rows > len(record):
        raise SettingError(
            f"{option} {text} selects rows {after}:{after + rows}; record {record.name!r} has "
            f"rows 0:{len(record)}"
        )
    return Run(after, after + rows)


def range_of(text: str, record: "Record", *, option: str) -> "Run":
    """Parse rows A:B as a Python slice: B is excluded, and either end may be omitted."""
    from sluice.arrays import Run

    match = RANGE.fullmatch(text.strip())
    if not match:
        raise SettingError(f"{option} is {text!r}; write rows as A:B, such as 0:5000")
    start = int(match[1] or 0)
    stop = int(match[2] or len(record))
    if not start < stop <= len(record):
        raise SettingError(f"{option} is {text}; record {record.name!r} has rows 0:{len(record)}")
    return Run(start, stop)


RecordPath = Annotated[
    Path,
    typer.Argument(metavar="RECORD", help="A record's file or folder.", click_type=reads_record()),
]
RecordPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="RECORD...",
        help="A record's file or folder, or several: one record.",
        click_type=reads_record(),
    ),
]
PlantPath = Annotated[
    Path | None,
    typer.Option(
        "--plant",
        help="Plant file (TOML) that declares channels.",
        click_type=reads_file("a plant file"),
    ),
]
FormatName = Annotated[
    str | None,
    typer.Option("--format", help="Format of the record (see 'data list'); default: detected."),
]
FillWith = Annotated[
    Fill | None,
    typer.Option(
        help="How to fill missing readings; default: only where the record's documentation does."
    ),
]
SkipSeconds = Annotated[
    float,
    typer.Option(
        "--skip-seconds", min=0, help="Seconds to drop from the start (start-up of SWaT: 21600)."
    ),
]
SelfContained = Annotated[
    bool,
    typer.Option(
        "--self-contained",
        help="Include the drawing script in the page (5 MB), instead of one file beside it.",
    ),
]
Every = Annotated[int, typer.Option(min=1, help="Keep every n-th row (SWaT and WADI: 5).")]


def listed(paths: "Sequence[Path]") -> str:
    """Return paths as one text, shortened if there are many."""
    shown = ", ".join(map(str, paths[:3]))
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more"


def open_record(
    path: "Path | Sequence[Path]",
    *,
    plant: Path | None = None,
    format_name: str | None = None,
    fill: Fill | None = None,
    skip_s: float = 0.0,
    every: int = 1,
) -> "Record":
    """Read a record with the shared options."""
    from sluice.telemetry import read_plant_file, read_record

    declared = read_plant_file(plant) if plant else None
    record = read_record(path, plant=declared, format_name=format_name, fill=fill)
    return thinned(record, skip_s=skip_s, every=every)


def thinned(record: "Record", *, skip_s: float, every: int) -> "Record":
    """Drop the start of a record, and keep every n-th row."""
    if not math.isfinite(skip_s) or skip_s >= len(record) * record.stride_s:
        lasts = f"{len(record) * record.stride_s:g} s"
        raise SettingError(
            f"--skip-seconds {skip_s:g} drops all of record {record.name!r}, which lasts {lasts}; "
            "give less"
        )
    if skip_s:
        record = record.without_first(skip_s)
    return record.every(every) if every > 1 else record


def ties_in(rules_path: Path | None, record: "Record") -> list[tuple[str, ...]]:
    """Return which of a record's channels its rules tie; nothing without rules.

    Rules of other channels say nothing about these: with them, a mapping would be a silent guess.
    """
    from sluice.invariants import load_rules

    if rules_path is None:
        return []
    ties = [tuple(rule.relation.channels) for rule in load_rules(rules_path).invariants]
    strange = sorted({name for tied in ties for name in tied} - set(record.names))
    if strange:
        raise SettingError(
            f"the rules {rules_path} read {strange[0]!r}, which record {record.name!r} does not "
            "have; give rules that were mined from these tags, before they were mapped"
        )
    return ties


def refuse_overwriting(written: Path, *reads: Path | None) -> None:
    """Refuse to overwrite an input file, or a file in an input folder."""
    if not written.exists():
        return
    for read in reads:
        if read is None or not read.exists():
            continue
        inside = read.is_dir() and written.resolve().is_relative_to(read.resolve())
        if inside or written.samefile(read):
            raise SettingError(f"{written} is an input of this command; write another file")


def refuse_without_page(page: Path | None, *, self_contained: bool, option: str) -> None:
    """Refuse `--self-contained` if no page is written: it would have no effect."""
    if self_contained and (page is None or page.suffix.lower() == ".png"):
        raise SettingError(f"--self-contained is about a page, and none is written; give {option}")


PolicyName = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="paper, hardened or a policy file; default: hardened if the rules support it, else "
        "paper.",
        click_type=PolicyPath(),
    ),
]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Continue even if the rules contain no physics.")
]


Declare = Annotated[
    list[str] | None,
    typer.Option(
        "--declare",
        metavar="TAG=REASON",
        help="Why a channel has no rule, or may stand still; repeatable.",
    ),
]


def declarations(texts: list[str] | None) -> dict[str, str]:
    """Return the reasons of `--declare TAG=REASON`, by tag."""
    declared: dict[str, str] = {}
    for text in texts or ():
        tag, tie, reason = (part.strip() for part in text.partition("="))
        if not (tag and tie and reason):
            raise SettingError(f"--declare is {text!r}; write TAG=REASON, such as P102='standby'")
        if tag in declared:
            raise SettingError(f"--declare names {tag!r} twice; give one reason for it")
        declared[tag] = reason
    return declared


def open_gate(rules_path: Path, policy_name: str | None, *, allow_empty: bool) -> "Gate":
    """Open a gate, by default as strict as its rules support; print warnings on stderr."""
    from sluice.admission import Gate, default_policy, read_policy
    from sluice.invariants import load_rules

    rules = load_rules(rules_path)
    policy = read_policy(policy_name) if policy_name is not None else default_policy(rules)
    if policy_name is None and not policy.integers:
        typer.echo(
            f"sluice: warning: {rules_path} states nothing about clean batches, so the paper's "
            "policy applies, which is weaker; --policy hardened refuses such rules",
            err=True,
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gate = Gate.of(rules, policy, allow_empty=allow_empty)
    for warning in caught:
        typer.echo(f"sluice: warning: {warning.message}", err=True)
    return gate
