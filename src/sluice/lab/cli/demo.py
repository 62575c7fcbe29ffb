"""`sluice demo`: the whole paper in miniature, on a simulated plant.

Ten plants of one kind train a shared detector; three of them are malicious. Read this file from the
top: it mines the physics, lets the gate judge and every plant prove its batch, trains the detector
in five modes, lets the plants vote, and writes a page that starts with the result and ends with the
certificate of the vote.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import Gate, HardenedPolicy
from sluice.attestation.systems import circuit_for, find_system
from sluice.cli import Json, Quiet, SelfContained, counted, emit, working, writes_folder
from sluice.detector import Descent
from sluice.errors import SettingError
from sluice.evaluation import VoteCertificate
from sluice.federation import Attestor, ProofGate, certificate_of
from sluice.files import demand_room
from sluice.invariants import Profile
from sluice.invariants.mining import mine
from sluice.lab.cli.demo_page import Attempt, Story, payload, show, write_page
from sluice.lab.plants import simulate
from sluice.lab.results import Score
from sluice.lab.trials import (
    MODES,
    Contributions,
    NamedGate,
    Scenario,
    Setup,
    Trial,
    run_cell,
    scenario,
)
from sluice.telemetry import Shares

__all__ = ["demo"]

FIVE = ("clean", "honest-only", "naive", "physics-aware", "gated")
ATTACK, RULE, FEDERATION = "replay", "fedavg", "demo"
VOTED, VOTE = "moments", "vote"
FALSE_ALARMS_PER_WEEK = 84.0  # of each voter, twelve a day: the clean rows are a few hours
START_UP_S = 21_600
EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The amount of data and training: enough to show the effect, short enough to wait for."""

    clean_days: float
    test_days: float
    rounds: int


WHOLE = Size(clean_days=5.5, test_days=2.0, rounds=25)
FAST = Size(clean_days=3.25, test_days=1.0, rounds=10)
DESCENT = Descent(batch=32, learning_rate=3e-3)
"""Shards are small: with the paper's batches and steps a detector would not learn them in time."""
SHARES = Shares(invariants=0.5, validation=0.1, root=0.05)
"""Half of this short record is mined: rules mined from fewer rows refuse honest clients."""
TARGET_SHARE = 0.5
"""All attacks of a day fit into half a shard: malicious clients hide all of them, as on BATADAL."""


class FinishedScores:
    """Scores of federations that have run, so that an equal one does not run again.

    If the gate refuses all malicious clients, the federation of mode gated equals honest-only.
    """

    def __init__(self) -> None:
        self._scores: dict[str, Score] = {}

    def recall(self, key: str) -> Score | None:
        """Return the score of a federation, or None if it has not run."""
        return self._scores.get(key)

    def note(self, key: str, score: Score) -> None:
        """Store the score of a federation."""
        self._scores[key] = score


def demo(
    out_dir: Annotated[
        Path, typer.Option("--out", help="Folder for the report.", click_type=writes_folder())
    ] = Path("demo"),
    fast: Annotated[
        bool, typer.Option("--fast", help="Use a shorter record and fewer rounds.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed; another seed simulates another plant.")
    ] = 0,
    self_contained: SelfContained = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate ten plants, three of them malicious: mine, prove, gate, train, report.

    Example: [bold]sluice demo --out demo[/bold]
    """
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {out_dir}: {error.strerror}") from None
    demand_room(out_dir)
    story = _run(FAST if fast else WHOLE, seed=seed, quiet=quiet or json)
    report = out_dir / "report.html"
    with working(f"drawing {report}", quiet=quiet or json):
        write_page(story, report, self_contained=self_contained)
    if json:
        emit(payload(story, report))
    else:
        show(story, report)


def _run(size: Size, *, seed: int, quiet: bool) -> Story:
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
        shared = shared.tied(rules)
    contributions = Contributions(shared, own=gate)
    trial = Trial(contributions=contributions, gate=NamedGate(name="hardened", gate=gate))
    with counted("plants judged", len(shared.shards), quiet=quiet) as tick:
        attempts = _attempts(trial, gate, tick)
    modes, finished = {}, FinishedScores()
    with counted("modes trained", len(FIVE), quiet=quiet) as tick:
        for name in FIVE:
            plan = trial.plan(MODES[name], ATTACK)
            modes[name] = run_cell(trial, plan, RULE, memory=finished)
            tick()
    with working("letting the plants vote", quiet=quiet):
        voted = replace(setup, detector=VOTED, false_alarms_per_week=FALSE_ALARMS_PER_WEEK)
        voters = scenario(clean, test.every(EVERY), setup=voted, seed=seed).tied(rules)
        certificate = _certificate(voters)
    return Story(
        shared=shared, rules=rules, attempts=attempts, modes=modes, certificate=certificate
    )


def _certificate(shared: Scenario) -> VoteCertificate:
    """Let all ten plants vote, and count what any three of them can do at worst."""
    trial = Trial(contributions=Contributions(shared))
    (done,) = trial.run(trial.plan(MODES["clean"]), VOTE)
    return certificate_of(done.detector, shared.test, malicious=shared.setup.malicious)


def _attempts(trial: Trial, gate: Gate, tick: Callable[[], None]) -> tuple[Attempt, ...]:
    """Let every plant prove its batch; malicious clients replay attacks and ignore the rules."""
    plan = trial.plan(MODES["naive"], ATTACK)
    system = find_system("full")
    longest = max(len(contribution.batch) for contribution in plan.invited.values())
    circuit = circuit_for(system, gate.rules, gate.policy, rows_max=longest)
    attest = Attestor(federation=FEDERATION, system=system, circuit=circuit)
    admission = ProofGate(federation=FEDERATION, system=system, circuit=circuit)
    attempts = []
    for client, contribution in plan.invited.items():
        begun = time.monotonic()
        attestation = attest(client, contribution.batch)
        seconds = time.monotonic() - begun
        attempts.append(
            Attempt(
                client=client,
                malicious=client in trial.scenario.malicious,
                verdict=gate.judge(contribution.batch),
                admitted=admission.decide(client, attestation).admitted,
                proof_bytes=len(attestation.proof) if attestation else None,
                seconds=seconds,
            )
        )
        tick()
    return tuple(attempts)
