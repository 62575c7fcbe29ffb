"""`sluice demo`: what Sluice does, shown on an embedded simulated plant."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import Gate, HardenedPolicy, Verdict
from sluice.audits import Coverage, coverage
from sluice.cli.console import Json, Quiet, emit, out, working
from sluice.errors import SettingError
from sluice.invariants import Profile, RuleSet, mine
from sluice.invariants.words import rule_in_words
from sluice.plants import simulate
from sluice.reports.record_page import write_record_page
from sluice.telemetry import Record, summarise

__all__ = ["demo"]

START_UP_S = 21_600
EVERY = 5
BATCH_ROWS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The whole demonstration, before it is told."""

    clean: Record
    attacked: Record
    rules: RuleSet
    admitted: list[Verdict]
    refused: list[Verdict]
    covered: Coverage


def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the report.")] = Path("demo"),
    fast: Annotated[bool, typer.Option("--fast", help="A shorter record.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another plant.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a plant, mine its physics, and judge its batches under attack.

    Example: [bold]sluice demo --out demo[/bold]
    """
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {out_dir}: {error.strerror}") from None
    report = out_dir / "report.html"
    shown = _show(seed=seed, fast=fast, quiet=quiet or json)
    with working(f"drawing {report}", quiet=quiet or json):
        write_record_page(shown.attacked, summarise(shown.attacked), report)
    if json:
        emit(
            {
                "rules": len(shown.rules.invariants),
                "batches_admitted": len(shown.admitted),
                "batches_refused": len(shown.refused),
                "attacks": shown.covered.total,
                "attacks_covered": shown.covered.covered,
                "report": str(report),
            }
        )
    else:
        _tell(shown, report)


def _show(*, seed: int, fast: bool, quiet: bool) -> _Shown:
    with working("simulating a treatment plant with SWaT's tags, clean and attacked", quiet=quiet):
        clean = simulate("treatment", seed=seed, days=1.5 if fast else 3.0)
        clean = clean.without_first(START_UP_S).every(EVERY)
        attacked = simulate("treatment", seed=seed, days=0.5 if fast else 1.0, attacks=True)
        attacked = attacked.every(EVERY)
    with working("mining its physics", quiet=quiet):
        third = len(clean) // 3
        rules = mine(clean.rows(0, third), clean.rows(third, 2 * third), profile=Profile.HARDENED)
    with working("judging batches", quiet=quiet):
        gate = Gate.of(rules, HardenedPolicy())
        starts = range(2 * third, len(clean) - BATCH_ROWS, BATCH_ROWS)
        verdicts = [gate.judge(clean.rows(at, at + BATCH_ROWS)) for at in starts]
        starts = range(0, len(attacked) - BATCH_ROWS, BATCH_ROWS)
        verdicts += [gate.judge(attacked.rows(at, at + BATCH_ROWS)) for at in starts]
        covered = coverage(attacked, gate)
    return _Shown(
        clean=clean,
        attacked=attacked,
        rules=rules,
        admitted=[verdict for verdict in verdicts if verdict.admitted],
        refused=[verdict for verdict in verdicts if not verdict.admitted],
        covered=covered,
    )


def _tell(shown: _Shown, report: Path) -> None:
    physical = [rule for rule in shown.rules.invariants if rule.kind.physical]
    out.print(f"[bold]{len(physical)} rules of physics were mined[/bold], among them:")
    for rule in physical[:2] + [rule for rule in physical if rule.kind == "balance"][:2]:
        out.print(f"  {rule_in_words(rule, shown.rules)}")
    judged = len(shown.admitted) + len(shown.refused)
    out.print(
        f"[bold]{len(shown.admitted)} of {judged} batches were admitted[/bold]; "
        f"{len(shown.refused)} were refused. Why, for example:"
    )
    for verdict in shown.refused[:3]:
        loudest = max(verdict.findings, key=lambda finding: finding.violating_rows)
        out.print(f"  {loudest.sentence or verdict.reasons[0]}")
    out.print(
        f"[bold]{shown.covered.covered} of {shown.covered.total} attacks[/bold] leave a trace that "
        "the rules see."
    )
    out.print(f"Every channel is drawn in {report}")
