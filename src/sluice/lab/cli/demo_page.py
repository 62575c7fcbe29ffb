"""The result of `sluice demo` in words, as JSON and as an HTML page."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice.admission import Verdict
from sluice.cli import certificate_payload, out, table
from sluice.evaluation import VoteCertificate
from sluice.invariants import RuleSet, rule_in_words
from sluice.lab.trials import MODES, CellResult, Scenario

__all__ = ["Attempt", "Story", "payload", "show", "write_page"]

RULES_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One plant's attempt to join: the gate's verdict, and the proof that the plant made."""

    client: str
    malicious: bool
    verdict: Verdict
    admitted: bool  # by the proof alone: the coordinator sees no reading
    proof_bytes: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All results of the demonstration."""

    shared: Scenario
    rules: RuleSet
    attempts: tuple[Attempt, ...]
    modes: Mapping[str, CellResult]
    certificate: VoteCertificate  # of a vote of all plants


def write_page(story: Story, report: Path, *, self_contained: bool = False) -> None:
    """Write the HTML page."""
    from sluice.lab.reports import StoryPage, StoryPlant, Way, write_story_page

    plants = tuple(
        StoryPlant(
            name=attempt.client,
            lies=attempt.malicious,
            admitted=attempt.admitted,
            violating_share=attempt.verdict.violating_share,
            why=_why(attempt.verdict),
            proof_bytes=attempt.proof_bytes,
            seconds=attempt.seconds,
        )
        for attempt in story.attempts
    )
    ways = tuple(
        Way(
            name=name,
            recall=result.score.targeted_recall or 0.0,
            precision=result.score.targeted_auc_pr or 0.0,
            other_recall=result.score.untargeted_recall,
            malicious_in=result.liars_admitted if MODES[name].attacked else 0,
        )
        for name, result in story.modes.items()
    )
    page = StoryPage(
        plants=plants,
        ways=ways,
        rules=tuple(_rules_in_words(story.rules)),
        rounds=story.shared.setup.rounds,
        seed=story.shared.seed,
        certificate=story.certificate,
    )
    write_story_page(page, report, self_contained=self_contained)


def _rules_in_words(rules: RuleSet) -> list[str]:
    physical = [rule for rule in rules.invariants if rule.kind.physical]
    return [rule_in_words(rule, rules) for rule in physical]


def _why(verdict: Verdict) -> str:
    """Return the first reason and the number of further reasons."""
    if not verdict.reasons:
        return ""
    first, *more = verdict.sentences
    return f"{first} (and {len(more)} more)" if more else first


def payload(story: Story, report: Path) -> dict[str, object]:
    """Return the object that `--json` prints."""
    return {
        "admitted": [attempt.client for attempt in story.attempts if attempt.admitted],
        "refused": [attempt.client for attempt in story.attempts if not attempt.admitted],
        "liars": list(story.shared.malicious),
        "reasons": {
            attempt.client: list(attempt.verdict.sentences)
            for attempt in story.attempts
            if not attempt.admitted
        },
        "rules": len(_rules_in_words(story.rules)),
        "recall": {name: result.score.targeted_recall for name, result in story.modes.items()},
        "average_precision": {
            name: result.score.targeted_auc_pr for name, result in story.modes.items()
        },
        "proofs": [
            {"client": attempt.client, "bytes": attempt.proof_bytes, "seconds": attempt.seconds}
            for attempt in story.attempts
            if attempt.proof_bytes is not None
        ],
        "certificate": certificate_payload(story.certificate),
        "report": str(report),
    }


def show(story: Story, report: Path) -> None:
    """Print the result in words."""
    worded = _rules_in_words(story.rules)
    out.print(f"[bold]{len(worded)} rules of physics were mined[/bold], among them:")
    step = max(1, len(worded) // RULES_SHOWN)
    for rule in worded[::step][:RULES_SHOWN]:
        out.print(f"  {rule}", markup=False)
    proven = [attempt for attempt in story.attempts if attempt.admitted]
    out.print(
        f"\n[bold]{len(proven)} of {len(story.attempts)} plants proved[/bold] in zero "
        f"knowledge that their batch satisfies the rules. "
        f"The other {len(story.attempts) - len(proven)} failed:"
    )
    for attempt in story.attempts:
        if not attempt.admitted:
            attack = " (it replays attacks)" if attempt.malicious else ""
            out.print(f"  {attempt.client}{attack}: {_why(attempt.verdict)}", markup=False)
    modes = table(
        "\nDetection of the attacks that malicious plants try to hide",
        *("mode", "malicious plants admitted", "recall", "average precision"),
    )
    for name, result in story.modes.items():
        score = result.score
        admitted = str(result.liars_admitted) if MODES[name].attacked else "0"
        figures = (score.targeted_recall, score.targeted_auc_pr)
        cells = ["no such attack" if figure is None else f"{figure:.3f}" for figure in figures]
        modes.add_row(name, admitted, *cells)
    out.print(modes)
    vote = story.certificate
    out.print(
        f"\nIf the plants vote instead ({vote.needed} of {vote.voters} votes are an alarm), a "
        "certificate says what malicious plants can do at worst, without a gate:"
    )
    out.print(f"  {vote.sentences[0]}", markup=False)
    out.print(
        f"  With no malicious plant: recall {vote.actual.recall:.3f}, "
        f"{vote.actual.attacks_detected} of {len(vote.attacks)} attacks.",
        markup=False,
    )
    out.print(
        f"\nSeed {story.shared.seed}. Another seed simulates another plant and gives other numbers."
        f"\nThe report is {report}",
        markup=False,
    )
