"""`sluice demo`: the whole paper in miniature, on a simulated plant.

Ten plants of one kind share a detector; three of them lie. Read this file from the top: it mines
the physics, lets the gate judge and every plant prove, trains the detector in five ways, and writes
a page that opens with what came of it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import Gate, HardenedPolicy, Verdict
from sluice.attestation import circuit_for, find_system
from sluice.cli.console import Json, Quiet, counted, emit, out, table, working
from sluice.detector import Descent
from sluice.errors import SettingError
from sluice.federation import Attestor, ProofGate
from sluice.invariants import Profile, RuleSet, mine
from sluice.invariants.words import rule_in_words
from sluice.lab import MODES, Scenario, Setup, scenario
from sluice.lab.cell import CellResult, run_cell
from sluice.lab.contributions import Contributions, NamedGate
from sluice.lab.trial import Trial
from sluice.plants import simulate
from sluice.telemetry import Shares

__all__ = ["demo"]

FIVE = ("clean", "honest-only", "naive", "physics-aware", "gated")
ATTACK, RULE, FEDERATION = "replay", "fedavg", "demo"
START_UP_S = 21_600
EVERY = 10
RULES_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything: enough for the story, little enough to wait for."""

    clean_days: float
    test_days: float
    rounds: int


WHOLE = Size(clean_days=5.5, test_days=2.0, rounds=25)
FAST = Size(clean_days=3.25, test_days=1.0, rounds=8)
DESCENT = Descent(batch=64)  # shards are small: larger batches leave too few steps to learn from
SHARES = Shares(invariants=0.5, validation=0.1, root=0.05)
"""Half of so short a record is mined: rules that have seen too little refuse faithful plants."""


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


def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the report.")] = Path("demo"),
    fast: Annotated[bool, typer.Option("--fast", help="A shorter record, fewer rounds.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another plant.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate ten plants of whom three lie: mine, gate, prove, train, and draw what came of it.

    Example: [bold]sluice demo --out demo[/bold]
    """
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {out_dir}: {error.strerror}") from None
    story = _lived(FAST if fast else WHOLE, seed=seed, quiet=quiet or json)
    report = out_dir / "report.html"
    with working(f"drawing {report}", quiet=quiet or json):
        _draw(story, report)
    if json:
        emit(_payload(story, report))
    else:
        _tell(story, report)


def _lived(size: Size, *, seed: int, quiet: bool) -> Story:
    with working("simulating a treatment plant with SWaT's tags, clean and attacked", quiet=quiet):
        clean = simulate("treatment", seed=2 * seed, days=size.clean_days)
        clean = clean.without_first(START_UP_S).every(EVERY)
        test = simulate("treatment", seed=2 * seed + 1, days=size.test_days, attacks=True)
        setup = Setup(clients=10, liars=3, rounds=size.rounds, descent=DESCENT, shares=SHARES)
        shared = scenario(clean, test.every(EVERY), setup=setup, seed=seed)
    with working("mining its physics", quiet=quiet):
        rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.HARDENED)
        gate = Gate.of(rules, HardenedPolicy())
    brought = Contributions(shared, own=gate)
    trial = Trial(contributions=brought, gate=NamedGate(name="hardened", gate=gate))
    with counted("plants that prove", len(shared.shards), quiet=quiet) as tick:
        knocks = _knocks(trial, gate, tick)
    modes = {}
    with counted("ways to train", len(FIVE), quiet=quiet) as tick:
        for name in FIVE:
            plan = trial.plan(MODES[name], ATTACK)
            modes[name] = run_cell(trial, plan, RULE)
            tick()
    return Story(shared=shared, rules=rules, knocks=knocks, modes=modes)


def _knocks(trial: Trial, gate: Gate, tick: Callable[[], None]) -> tuple[Knock, ...]:
    """Let every plant prove its batch; the liars bring replayed attacks, heedless of the rules."""
    plan = trial.plan(MODES["naive"], ATTACK)
    system = find_system("full")
    longest = max(len(found.batch) for found in plan.invited.values())
    circuit = circuit_for(system, gate.rules, gate.policy, rows_max=longest)
    attest = Attestor(federation=FEDERATION, system=system, circuit=circuit)
    door = ProofGate(federation=FEDERATION, system=system, circuit=circuit)
    knocks = []
    for client, found in plan.invited.items():
        begun = time.monotonic()
        shown = attest(client, found.batch)
        seconds = time.monotonic() - begun
        knocks.append(
            Knock(
                client=client,
                lies=client in trial.scenario.liars,
                verdict=gate.judge(found.batch),
                admitted=door.decide(client, shown).admitted,
                proof_bytes=len(shown.proof) if shown else None,
                seconds=seconds,
            )
        )
        tick()
    return tuple(knocks)


def _draw(story: Story, report: Path) -> None:
    from sluice.reports.story_page import Plant, StoryPage, Way, write_story_page  # noqa: PLC0415

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


def _payload(story: Story, report: Path) -> dict[str, object]:
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


def _tell(story: Story, report: Path) -> None:
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
    out.print(f"\nThe picture is in {report}", markup=False)
