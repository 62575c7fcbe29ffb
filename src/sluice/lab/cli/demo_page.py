"""How `sluice demo` tells what it lived through: in words, as JSON, and on a page."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice.admission import Verdict
from sluice.cli import out, table
from sluice.invariants import RuleSet, rule_in_words
from sluice.lab.trials import MODES, CellResult, Scenario

__all__ = ["Knock", "Story", "draw", "payload", "tell"]

RULES_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """One plant at the door: what the gate found, and the proof the plant could make."""

    client: str
    lies: bool
    verdict: Verdict
    admitted: bool  # on the proof alone: the coordinator sees no reading
    proof_bytes: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The whole demonstration, before it is told."""

    shared: Scenario
    rules: RuleSet
    knocks: tuple[Knock, ...]
    modes: Mapping[str, CellResult]


def draw(story: Story, report: Path) -> None:
    """Write the page."""
    from sluice.lab.reports import Plant, StoryPage, Way, write_story_page

    plants = tuple(
        Plant(
            name=knock.client,
            lies=knock.lies,
            admitted=knock.admitted,
            violating_share=knock.verdict.violating_share,
            why=_why(knock.verdict),
            proof_bytes=knock.proof_bytes,
            seconds=knock.seconds,
        )
        for knock in story.knocks
    )
    ways = tuple(
        Way(
            name=name,
            recall=result.score.targeted_recall or 0.0,
            precision=result.score.targeted_auc_pr or 0.0,
            other_recall=result.score.untargeted_recall,
            liars_in=result.liars_admitted if MODES[name].attacked else 0,
        )
        for name, result in story.modes.items()
    )
    page = StoryPage(
        plants=plants,
        ways=ways,
        rules=tuple(_rules_in_words(story.rules)),
        rounds=story.shared.setup.rounds,
        seed=story.shared.seed,
    )
    write_story_page(page, report)


def _rules_in_words(rules: RuleSet) -> list[str]:
    physical = [rule for rule in rules.invariants if rule.kind.physical]
    return [rule_in_words(rule, rules) for rule in physical]


def _why(verdict: Verdict) -> str:
    """Return the first reason, and how many more there are."""
    if not verdict.reasons:
        return ""
    first, *more = verdict.reasons
    return f"{first} (and {len(more)} more)" if more else first


def payload(story: Story, report: Path) -> dict[str, object]:
    """Return what --json prints."""
    return {
        "admitted": [knock.client for knock in story.knocks if knock.admitted],
        "refused": [knock.client for knock in story.knocks if not knock.admitted],
        "liars": list(story.shared.liars),
        "reasons": {
            knock.client: list(knock.verdict.reasons)
            for knock in story.knocks
            if not knock.admitted
        },
        "rules": len(_rules_in_words(story.rules)),
        "recall": {name: result.score.targeted_recall for name, result in story.modes.items()},
        "average_precision": {
            name: result.score.targeted_auc_pr for name, result in story.modes.items()
        },
        "proofs": [
            {"client": knock.client, "bytes": knock.proof_bytes, "seconds": knock.seconds}
            for knock in story.knocks
            if knock.proof_bytes is not None
        ],
        "report": str(report),
    }


def tell(story: Story, report: Path) -> None:
    """Print it in words."""
    worded = _rules_in_words(story.rules)
    out.print(f"[bold]{len(worded)} rules of physics were mined[/bold], among them:")
    step = max(1, len(worded) // RULES_SHOWN)
    for rule in worded[::step][:RULES_SHOWN]:
        out.print(f"  {rule}", markup=False)
    proven = [knock for knock in story.knocks if knock.admitted]
    out.print(
        f"\n[bold]{len(proven)} of {len(story.knocks)} plants proved[/bold] in zero knowledge that "
        "their batch obeys them. The others could not, and see why:"
    )
    for knock in story.knocks:
        if not knock.admitted:
            lies = " (it replays attacks)" if knock.lies else ""
            out.print(f"  {knock.client}{lies}: {_why(knock.verdict)}", markup=False)
    drawn = table(
        "\nOn the attacks the liars would hide",
        *("trained", "liars in", "recall", "average precision"),
    )
    for name, result in story.modes.items():
        score = result.score
        inside = str(result.liars_admitted) if MODES[name].attacked else "0"
        figures = (score.targeted_recall, score.targeted_auc_pr)
        told = ["none there" if figure is None else f"{figure:.3f}" for figure in figures]
        drawn.add_row(name, inside, *told)
    out.print(drawn)
    out.print(
        f"\nSeed {story.shared.seed}; another seed is another plant and gives other numbers. "
        f"The picture is in {report}",
        markup=False,
    )
