"""`sluice federate`: run one federation in one process and measure its detector."""

import hashlib
import json as jsonlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import Gate, default_policy, read_policy
from sluice.aggregation import RULES
from sluice.attestation.messages import ROWS_MIN, SPAN_MIN_S, StatisticLimits
from sluice.attestation.systems import find_system
from sluice.attestation.systems.full import StatisticName
from sluice.attestation.systems.sampled import Sampling, violation_budget
from sluice.cli import (
    Json,
    PolicyPath,
    Quiet,
    certificate_payload,
    counted,
    emit,
    known,
    open_record,
    out,
    reads_file,
    reads_record,
    show_certificate,
    table,
    warn,
    working,
    writes_folder,
)
from sluice.detector import Descent, DetectorKind, VotedModel, detector_names, save_detector
from sluice.errors import SettingError
from sluice.evaluation import Unlabelled, VoteCertificate
from sluice.federation import (
    VOTE_RULES,
    CheckpointFile,
    DrawnRows,
    Federated,
    Keyless,
    Proofs,
    certificate_of,
    demand_bound,
    votes_needed,
)
from sluice.files import alone_in, atomically, demand_room, public_folder
from sluice.invariants import Profile, RuleSet, load_rules
from sluice.invariants.mining import mine
from sluice.lab.plants import simulate
from sluice.lab.trials import (
    MODES,
    Contributions,
    NamedGate,
    Scenario,
    Score,
    Setup,
    Trial,
    TrialPlan,
    admitted_and_refused,
    scenario,
    score_of,
)
from sluice.telemetry import Record

__all__ = ["federate"]

SWAT_START_UP_S = 21_600
SWAT_EVERY = 5
TEST_SEED = 1
DEFAULT_MODE = "clean"
BOUND = "bound"
FIGURES = (
    "targeted_recall",
    "untargeted_recall",
    "f1",
    "auc_pr",
    "precision",
    "recall",
    "detected_attacks",
    "attacks",
    "median_delay_s",
    "false_alarms_per_day",
)
"""The figures of a score that `--json` prints; null without a labelled record."""


class ProofChoice(StrEnum):
    """The proof that clients send to the gate in place of their batch."""

    NONE = "none"
    SAMPLED = "sampled"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    clean: Record
    test: Record | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """One federation: who took part, with which weight, and the score if it was measured."""

    mode: str
    attack: str | None
    rule: str
    seed: int
    admitted: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]  # client: reasons
    liars: tuple[str, ...]  # the malicious clients
    influence: Mapping[str, float]
    passed: Mapping[str, float]
    score: Score | None
    bound: str | None  # the statistic that proofs bind to the batches
    limits: StatisticLimits | None  # of a batch whose statistic is shared


def federate(
    plant: Annotated[
        str,
        typer.Option("--plant", help="A clean record, or a simulated plant (see 'data list')."),
    ],
    out_dir: Annotated[
        Path, typer.Option("--out", help="Folder for model and result.", click_type=writes_folder())
    ],
    test: Annotated[
        Path | None,
        typer.Option(
            help="The labelled record to measure on. Simulated plants have one; without one, a "
            "record's federation is trained and not measured.",
            click_type=reads_record(),
        ),
    ] = None,
    unlabelled: Annotated[
        Unlabelled, typer.Option(help="How unlabelled rows of the test record are counted.")
    ] = Unlabelled.EXCLUDE,
    rules: Annotated[
        Path | None,
        typer.Option(
            help="Rules of the gate; default: mined from the record's first part.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="paper, hardened or a policy file; default: hardened if the rules support it, "
            "else paper.",
            click_type=PolicyPath(),
        ),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(help=f"Aggregation rule: {', '.join((*RULES, *VOTE_RULES))}."),
    ] = "fedavg",
    detector: Annotated[
        str, typer.Option(help=f"Detector: {', '.join(detector_names())}.")
    ] = DetectorKind.AUTOENCODER.value,
    attack: Annotated[
        str | None,
        typer.Option(help="Attack of the malicious clients: replay, channel-roll, min-max, ..."),
    ] = None,
    mode: Annotated[
        str, typer.Option(help=f"Whether clients attack and a gate judges: {', '.join(MODES)}.")
    ] = DEFAULT_MODE,
    clients: Annotated[
        int, typer.Option(min=1, help="Number of clients; they share the record's rows.")
    ] = 10,
    malicious: Annotated[
        int | None,
        typer.Option(min=0, help="Number of malicious clients; default: three in ten."),
    ] = None,
    proof: Annotated[
        ProofChoice,
        typer.Option(
            help="none: the gate judges batches. full: it verifies zero-knowledge proofs of all "
            "rows. sampled: of rows drawn after commitments are logged (paper policy only)."
        ),
    ] = ProofChoice.NONE,
    bound: Annotated[
        bool,
        typer.Option(
            "--bound",
            help="Clients share only the statistic that their proof binds to their batch (mode "
            "bound; implies --proof full; needs --detector moments and a vote).",
        ),
    ] = False,
    rows_min: Annotated[
        int,
        typer.Option(
            "--statistic-rows-min", min=1, help="Rows that a shared statistic covers (--bound)."
        ),
    ] = ROWS_MIN,
    span_min: Annotated[
        int,
        typer.Option(
            "--statistic-span-min",
            min=0,
            help="Seconds that a shared statistic covers (--bound).",
        ),
    ] = SPAN_MIN_S,
    false_alarms: Annotated[
        float,
        typer.Option(
            "--false-alarms-per-week", help="False alarms a week that a vote asks of each voter."
        ),
    ] = 1.0,
    samples: Annotated[int, typer.Option(min=2, help="Rows to draw (sampled).")] = 32,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 25,
    epochs: Annotated[int, typer.Option(min=1, help="Local epochs per round.")] = 2,
    batch: Annotated[
        int, typer.Option(min=1, help="Windows per training step; the paper's code: 128.")
    ] = 1024,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    every: Annotated[
        int | None, typer.Option(min=1, help="Keep every n-th row; default: 1 (treatment: 5).")
    ] = None,
    days: Annotated[
        float | None, typer.Option(help="Days to simulate; only for a simulated plant.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run one federation in this process and measure its detector.

    The mode decides whether clients attack and whether a gate judges them. The command writes the
    model, the result and, after each round, a checkpoint to --out. The same command on the same
    folder continues a run that was stopped.

    Example: [bold]sluice federate --plant line --attack replay --mode gated --out run[/bold]
    """
    quiet = quiet or json
    known("--rule", rule, (*RULES, *VOTE_RULES))
    known("--mode", mode, MODES)
    known("--detector", detector, detector_names())
    if bound or mode == BOUND:
        mode = _bound_mode(mode, proof, detector, rule)
    limits = StatisticLimits(rows_min=rows_min, span_min_s=span_min)
    if mode == BOUND and limits.lowered:
        warn(f"a statistic of few rows shows much of them: {limits.lowered}")
    if attack is not None and not MODES[mode].attacked:
        warn(f"mode {mode!r} has no attack, so --attack {attack} is not used")
    setup = Setup(
        clients=clients,
        malicious=round(0.3 * clients) if malicious is None else malicious,
        rounds=rounds,
        detector=detector,
        false_alarms_per_week=false_alarms,
        descent=Descent(epochs=epochs, batch=batch),
    )
    if rule == VOTE_RULES[0]:
        votes_needed(setup.clients, setup.malicious)  # it refuses a vote that promises nothing
    with _claimed(out_dir):
        with working("opening the records", quiet=quiet):
            records = _open(plant, test, days=days, every=every)
        if records.test is None and MODES[mode].attacked and not (mode == BOUND and attack is None):
            raise SettingError(
                f"malicious clients of mode {mode!r} hide attacks of a labelled record; give "
                "--test, or --mode clean"
            )
        shared = scenario(records.clean, records.test, setup=setup, seed=seed)
        if proof is ProofChoice.SAMPLED and policy is None:
            policy = "paper"  # the only policy that sampled proofs support
        gate = _gate(shared, rules, policy, quiet=quiet)
        shared = shared.tied(gate.gate.rules)
        own = gate.gate if gate.gate.policy.integers else None
        trial = Trial(
            contributions=Contributions(shared, own=own),
            gate=gate,
            proofs=_proofs(proof, out_dir, gate.gate, samples=samples),
            limits=limits,
        )
        proves = mode == BOUND or (trial.proofs and MODES[mode].gated)
        proving = " and proofs" if proves else ""
        with working(f"preparing the clients' batches{proving}", quiet=quiet):
            plan = trial.plan(MODES[mode], attack)
        with counted("rounds", rounds * len(plan.groups), quiet=quiet) as tick:
            finished = trial.run(
                plan,
                rule,
                keeper=lambda at: _keeper(out_dir, at, trial, plan, rule),
                on_round=lambda checkpoint: tick() if checkpoint.round else None,
            )
        score = certificate = None
        if records.test is not None:
            score = score_of(finished, trial, unlabelled=unlabelled)
            certificate = _certificate(finished, shared, unlabelled)
        result = _result(trial, plan, rule, finished, score)
        _write(out_dir, result, finished, certificate)
    if json:
        emit(_payload(result, out_dir) | {"certificate": _certified(certificate)})
    else:
        _show(result, out_dir)
        if certificate is not None and rule in VOTE_RULES:
            out.print("\n[bold]Certificate[/bold]")
            show_certificate(certificate, shared.test)


def _bound_mode(mode: str, proof: ProofChoice, detector: str, rule: str) -> str:
    """Return mode `bound`; refuse what does not go with it."""
    demand_bound(detector, rule)
    if mode not in (DEFAULT_MODE, BOUND):
        raise SettingError(
            f"--bound is mode {BOUND!r}, and --mode is {mode!r}; omit one of them (with --attack, "
            "clients of mode 'bound' attack)"
        )
    if proof is ProofChoice.SAMPLED:
        raise SettingError("only proofs of all rows bind a statistic; omit --proof sampled")
    return BOUND


def _open(plant: str, test: Path | None, *, days: float | None, every: int | None) -> _Records:
    path = Path(plant)
    if path.exists():
        if days is not None:
            raise SettingError(f"--days is for simulated plants, and {path} is a record; omit it")
        every = every or 1
        return _Records(
            clean=open_record(path, every=every),
            test=None if test is None else open_record(test, every=every),
        )
    swat_shaped = plant == "treatment"
    every = every or (SWAT_EVERY if swat_shaped else 1)
    clean = simulate(plant, seed=0, days=days)
    if swat_shaped and days is None:
        clean = clean.without_first(SWAT_START_UP_S)
    if test is not None:
        return _Records(clean=clean.every(every), test=open_record(test, every=every))
    attacked = simulate(plant, seed=TEST_SEED, days=days, attacks=True)
    return _Records(clean=clean.every(every), test=attacked.every(every))


def _gate(shared: Scenario, rules: Path | None, policy: str | None, *, quiet: bool) -> NamedGate:
    """Return the gate with the given rules, or with rules mined from the record's first part."""
    ruleset: RuleSet
    if rules is not None:
        ruleset = load_rules(rules)
    else:
        profile = Profile.PAPER_WIDE if policy == "paper" else Profile.HARDENED
        with working(f"mining {profile.value} rules", quiet=quiet):
            ruleset = mine(shared.parts.fit, shared.parts.calibration, profile=profile)
    chosen = read_policy(policy) if policy else default_policy(ruleset)
    return NamedGate(name=ruleset.profile.value, gate=Gate.of(ruleset, chosen))


def _proofs(proof: ProofChoice, folder: Path, gate: Gate, *, samples: int) -> Proofs | None:
    """Return how batches are proven; sampled proofs write keys and log to the folder."""
    match proof:
        case ProofChoice.NONE:
            return None
        case ProofChoice.FULL:
            return Keyless(system=find_system(proof.value))
        case ProofChoice.SAMPLED:
            violations = violation_budget(gate.rules, samples=samples)
            return DrawnRows(
                folder=folder,
                sampling=Sampling(samples=samples, violations=violations),
                clock=lambda: datetime.now(UTC),
            )


def _keeper(folder: Path, at: int, trial: Trial, plan: TrialPlan, rule: str) -> CheckpointFile:
    """Return the checkpoint of one federation; its fingerprint covers all that decides it."""
    group = plan.groups[at].items()
    settings = (
        rule,
        plan.mode.name,
        " ".join(sorted(f"{client}={contribution.key}" for client, contribution in group)),
        str(trial.scenario.setup.descent),
        str(trial.scenario.seed),
    )
    digest = hashlib.sha256("\n".join(settings).encode()).hexdigest()
    name = "checkpoint" if len(plan.groups) == 1 else f"checkpoint-{at}"
    return CheckpointFile(path=folder / f"{name}.safetensors", fingerprint=digest)


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Make the folder and lock it; remove it at the end if nothing was written to it."""
    public_folder(folder)
    try:
        with alone_in(
            folder,
            f"another 'sluice federate' runs in {folder}; wait for it, or give another --out",
        ):
            demand_room(folder)
            yield
    finally:
        with suppress(OSError):  # not empty
            folder.rmdir()


def _result(
    trial: Trial, plan: TrialPlan, rule: str, finished: tuple[Federated, ...], score: Score | None
) -> _Result:
    admitted, refused = admitted_and_refused(plan)
    return _Result(
        mode=plan.mode.name,
        attack=plan.attack,
        rule=rule,
        seed=trial.scenario.seed,
        admitted=admitted,
        refused=refused,
        liars=trial.scenario.malicious,
        influence={c: share for done in finished for c, share in done.influence.items()},
        passed={c: share for done in finished for c, share in done.passed.items()},
        score=score,
        bound=None if plan.summed is None else StatisticName.MOMENTS.value,
        limits=None if plan.summed is None else trial.limits,
    )


def _certificate(
    finished: tuple[Federated, ...], shared: Scenario, unlabelled: Unlabelled
) -> VoteCertificate | None:
    """Certify the detector; several detectors of plants that train alone have none together."""
    if len(finished) != 1:
        return None
    (done,) = finished
    model = done.detector.model
    admitted = len(done.detector.training.records)
    malicious = (
        model.malicious if isinstance(model, VotedModel) else min(shared.setup.malicious, admitted)
    )
    return certificate_of(done.detector, shared.test, malicious=malicious, unlabelled=unlabelled)


def _certified(certificate: VoteCertificate | None) -> dict[str, object] | None:
    return None if certificate is None else certificate_payload(certificate)


def _write(
    folder: Path,
    result: _Result,
    finished: tuple[Federated, ...],
    certificate: VoteCertificate | None,
) -> None:
    for at, done in enumerate(finished):
        name = "model" if len(finished) == 1 else f"model-{at}"
        save_detector(done.detector, folder / f"{name}.safetensors")
    with atomically(folder / "result.json") as draft:
        written = asdict(result) | {"certificate": _certified(certificate)}
        draft.write_text(jsonlib.dumps(written, indent=2, allow_nan=False) + "\n")


def _payload(result: _Result, folder: Path) -> dict[str, object]:
    return {
        "mode": result.mode,
        "rule": result.rule,
        "attack": result.attack,
        "seed": result.seed,
        **{name: getattr(result.score, name) if result.score else None for name in FIGURES},
        "admitted": list(result.admitted),
        "refused": list(result.refused),
        "reasons": {client: list(reasons) for client, reasons in result.refused.items()},
        "malicious": list(result.liars),
        "liars": list(result.liars),  # the old name of `malicious`
        "influence": dict(result.influence),
        "passed_the_rule": dict(result.passed),
        "bound": result.bound,
        "out": str(folder),
    }


def _format_reasons(reasons: tuple[str, ...]) -> str:
    first, *more = reasons
    return f"{first} (and {len(more)} more: result.json)" if more else first


def _show(result: _Result, folder: Path) -> None:
    attacked = f" under {result.attack}" if result.attack else ""
    out.print(f"[bold]{result.mode}[/bold]{attacked}, {result.rule}, seed {result.seed}")
    clients = table("", "client", "gate", "influence", "accepted by the rule")
    for client in (*result.admitted, *result.refused):
        malicious = " (malicious)" if client in result.liars else ""
        reasons = result.refused.get(client)
        share = result.influence.get(client)
        passed = result.passed.get(client)
        clients.add_row(
            client + malicious,
            "admitted" if reasons is None else f"refused: {_format_reasons(reasons)}",
            "" if share is None else f"{share:.1%}",
            "" if passed is None else f"{passed:.0%} of rounds",
        )
    out.print(clients)
    if result.score is None:
        out.print("\nThe detector was not measured: no labelled record was given (--test).")
    else:
        _show_figures(result.score)
    out.print(f"\n{folder}: model, result.json, checkpoint", markup=False)


def _show_figures(score: Score) -> None:
    figures = table("\nOn the labelled record", "figure", "value")
    for name, figure in (
        ("recall on the attacks that malicious clients try to hide", score.targeted_recall),
        ("recall on other attacks", score.untargeted_recall),
        ("F1", score.f1),
        ("average precision", score.auc_pr),
    ):
        figures.add_row(name, "no such attack" if figure is None else f"{figure:.3f}")
    figures.add_row("attacks detected", f"{score.detected_attacks:g} of {score.attacks}")
    if score.false_alarms_per_day is not None:
        figures.add_row("false alarms per day", f"{score.false_alarms_per_day:.2g}")
    out.print(figures)
