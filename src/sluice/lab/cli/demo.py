"""`sluice demo`: the whole paper in miniature, on a simulated plant.

Ten plants of one kind share a detector; three of them lie. Read this file from the top: it mines
the physics, lets the gate judge and every plant prove, trains the detector in five ways, and writes
a page that opens with what came of it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import Gate, HardenedPolicy
from sluice.attestation.systems import circuit_for, find_system
from sluice.cli import Json, Quiet, counted, emit, working
from sluice.detector import Descent
from sluice.errors import SettingError
from sluice.federation import Attestor, ProofGate
from sluice.invariants import Profile
from sluice.invariants.mining import mine
from sluice.lab.cli.demo_page import Attempt, Story, draw, payload, tell
from sluice.lab.plants import simulate
from sluice.lab.results import Score
from sluice.lab.trials import MODES, Contributions, NamedGate, Setup, Trial, run_cell, scenario
from sluice.telemetry import Shares

__all__ = ["demo"]

FIVE = ("clean", "honest-only", "naive", "physics-aware", "gated")
ATTACK, RULE, FEDERATION = "replay", "fedavg", "demo"
START_UP_S = 21_600
EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything: enough for the story, little enough to wait for."""

    clean_days: float
    test_days: float
    rounds: int


WHOLE = Size(clean_days=5.5, test_days=2.0, rounds=25)
FAST = Size(clean_days=3.25, test_days=1.0, rounds=10)
DESCENT = Descent(batch=32, learning_rate=3e-3)
"""Shards are small: with the paper's batches and steps a detector would not learn them in time."""
SHARES = Shares(invariants=0.5, validation=0.1, root=0.05)
"""Half of so short a record is mined: rules that have seen too little refuse faithful plants."""
TARGET_SHARE = 0.5
"""Every attack of a day fits into half a shard: the liars hide them all, as on BATADAL."""


class Known:
    """Federations that have run: where the gate refuses all liars, gated is honest-only."""

    def __init__(self) -> None:
        self._scores: dict[str, Score] = {}

    def recall(self, key: str) -> Score | None:
        """Return what a federation came to, if it has run."""
        return self._scores.get(key)

    def note(self, key: str, score: Score) -> None:
        """Keep what a federation came to."""
        self._scores[key] = score


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
        draw(story, report)
    if json:
        emit(payload(story, report))
    else:
        tell(story, report)


def _lived(size: Size, *, seed: int, quiet: bool) -> Story:
    with working("simulating a treatment plant with SWaT's tags, clean and attacked", quiet=quiet):
        clean = simulate("treatment", seed=2 * seed, days=size.clean_days)
        clean = clean.without_first(START_UP_S).every(EVERY)
        test = simulate("treatment", seed=2 * seed + 1, days=size.test_days, attacks=True)
        setup = Setup(
            clients=10,
            malicious=3,
            rounds=size.rounds,
            descent=DESCENT,
            shares=SHARES,
            target_share=TARGET_SHARE,
        )
        shared = scenario(clean, test.every(EVERY), setup=setup, seed=seed)
    with working("mining its physics", quiet=quiet):
        rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.HARDENED)
        gate = Gate.of(rules, HardenedPolicy())
    brought = Contributions(shared, own=gate)
    trial = Trial(contributions=brought, gate=NamedGate(name="hardened", gate=gate))
    with counted("plants that prove", len(shared.shards), quiet=quiet) as tick:
        attempts = _attempts(trial, gate, tick)
    modes, known = {}, Known()
    with counted("ways to train", len(FIVE), quiet=quiet) as tick:
        for name in FIVE:
            plan = trial.plan(MODES[name], ATTACK)
            modes[name] = run_cell(trial, plan, RULE, memory=known)
            tick()
    return Story(shared=shared, rules=rules, attempts=attempts, modes=modes)


def _attempts(trial: Trial, gate: Gate, tick: Callable[[], None]) -> tuple[Attempt, ...]:
    """Let every plant prove its batch; the liars bring replayed attacks, heedless of the rules."""
    plan = trial.plan(MODES["naive"], ATTACK)
    system = find_system("full")
    longest = max(len(found.batch) for found in plan.invited.values())
    circuit = circuit_for(system, gate.rules, gate.policy, rows_max=longest)
    attest = Attestor(federation=FEDERATION, system=system, circuit=circuit)
    admission = ProofGate(federation=FEDERATION, system=system, circuit=circuit)
    attempts = []
    for client, found in plan.invited.items():
        begun = time.monotonic()
        shown = attest(client, found.batch)
        seconds = time.monotonic() - begun
        attempts.append(
            Attempt(
                client=client,
                lies=client in trial.scenario.malicious,
                verdict=gate.judge(found.batch),
                admitted=admission.decide(client, shown).admitted,
                proof_bytes=len(shown.proof) if shown else None,
                seconds=seconds,
            )
        )
        tick()
    return tuple(attempts)
