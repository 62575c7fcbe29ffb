"""Attack the members of a vote, beside its certificate and beside an autoencoder.

Each result is stored as soon as it is known, so a stopped run continues where it stopped.
"""

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.evidence.study import STUDIES, Study, gates
from benchmarks.vote.page import page
from benchmarks.vote.remembered import Remembered
from benchmarks.vote.statistics import STATISTIC_ATTACKS
from benchmarks.vote.store import OR_RULES, SUM, VOTE, Result, Store
from sluice.admission import EmptyRulesWarning
from sluice.arrays import Bools
from sluice.detector import (
    SUMMED,
    Detector,
    DetectorKind,
    Physics,
    SummedDetector,
    TrainingSummary,
    calibrated,
    with_rules,
)
from sluice.errors import SettingError
from sluice.evaluation import Ballots, CertifiedFigures, certify
from sluice.federation import VoteSettings, ballots_of, hold_vote
from sluice.files import atomically
from sluice.lab.trials import MODES, Contributions, NamedGate, Scenario, Trial, scenario
from sluice.seeding import stream
from sluice.telemetry import Label, Windows

console = Console(stderr=True, highlight=False)
DATA_ATTACKS = ("replay", "ramp", "aligned", "feasible", "attest-clean")
AGGREGATION = ("fedavg", "median", "krum", "fltrust")
RIVAL_ATTACKS = ("none", *DATA_ATTACKS, "min-max")
SEEDS = 20
FALSE_ALARMS_PER_WEEK = {"BATADAL": 1.0, "treatment": 7.0}
"""One a week of an hourly record, one a day of a record with a row every 10 s."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One seed of a study: the scenario, its gate, and the labelled windows."""

    study: Study
    shared: Scenario
    trial: Trial
    kind: SummedDetector  # of the vote
    asked: float  # false alarms a week

    @property
    def targets(self) -> Any:
        """Which labelled windows touch a row that malicious members hide."""
        windows = self.shared.framing.windows(self.shared.test)
        return windows.touching(self.shared.targets.rows)

    @property
    def untied(self) -> tuple[str, ...]:
        """The channels that the rules leave untied, which a vote does not read."""
        gate = self.trial.gate
        return tuple(gate.gate.rules.untied or ()) if gate else ()


def case(study: Study, seed: int, detector: str) -> Case:
    """Return one seed of a study; `moments` reads only channels that the rules tie."""
    setup = replace(study.setup, detector=detector)
    shared = scenario(study.clean, study.test, setup=setup, seed=seed)
    gate = _hardened(study.name, shared)
    if detector == DetectorKind.MOMENTS:
        shared = shared.tied(gate.gate.rules)
    trial = Trial(contributions=Contributions(shared, own=gate.gate), gate=gate)
    asked = FALSE_ALARMS_PER_WEEK.get(study.name, 7.0)
    kind = Remembered(trial.kind or SUMMED[DetectorKind.MOMENTS])
    return Case(study=study, shared=shared, trial=trial, kind=kind, asked=asked)


_GATES: dict[str, NamedGate] = {}


def _hardened(name: str, shared: Scenario) -> NamedGate:
    """Mine the hardened rules once per study: its slices do not depend on the seed."""
    if name not in _GATES:
        _GATES[name] = gates(shared)["hardened"]
    return _GATES[name]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Voting:
    """A way to hold the vote, and its certificate from the federation with honest members."""

    rule: str
    share: float  # of the false alarms that are asked for, for each voter
    rules: Bools | None  # windows of the labelled record on which the receiver's rules alarm
    certified: CertifiedFigures
    targeted: CertifiedFigures


def _votings(one: Case, honest: Mapping[str, Any]) -> tuple[Voting, ...]:
    """Certify the vote alone, and beside the receiver's rules with half of the budget each."""
    found = []
    for rule, share in ((VOTE, 1.0), (OR_RULES, 0.5)):
        rules = _rule_alarms(one, honest) if rule == OR_RULES else None
        every, hidden = _ballots(_vote(one, honest, share=share), one, rules=rules)
        f = one.shared.setup.malicious
        found.append(
            Voting(
                rule=rule,
                share=share,
                rules=rules,
                certified=certify(every, malicious=f).certified,
                targeted=certify(hidden, malicious=f).certified,
            )
        )
    return tuple(found)


_RULE_ALARMS: dict[str, Bools] = {}


def _rule_alarms(one: Case, honest: Mapping[str, Any]) -> Bools:
    """Return where the receiver's rules alarm; they depend neither on the seed nor on members."""
    name, shared = one.study.name, one.shared
    if name not in _RULE_ALARMS:
        rules = _hardened(name, shared).gate.rules
        vote = with_rules(
            _vote(one, honest, share=0.5), Physics(rules=rules), shared.parts.validation
        )
        alarms = ballots_of(vote, shared.test).rules
        assert alarms is not None
        _RULE_ALARMS[name] = alarms
    return _RULE_ALARMS[name]


def votes(one: Case, attacks: tuple[str, ...]) -> Iterator[Result]:
    """Attack the members of a vote in every way; the certificate is of the honest federation."""
    shared, kind = one.shared, one.kind
    honest = {
        client: kind.summarise(one.trial.contributions.honest(client).windows)
        for client in shared.shards
    }
    labelled = shared.framing.windows(shared.test)
    votings = _votings(one, honest)
    for attack in attacks:
        begun = time.monotonic()
        sums = dict(honest)
        try:
            for client in shared.malicious:
                sums[client] = _sent(one, attack, client, honest, labelled)
        except SettingError as error:  # the attack makes no rows of this shard
            console.print(f"{one.study.name} seed {shared.seed}: {attack}: {error}")
            continue
        made = time.monotonic() - begun
        for voting in votings:
            yield replace(_attacked(one, voting, attack, sums), seconds=made)
    if "none" in attacks:
        yield from _summed(one, honest, labelled)


def _attacked(one: Case, voting: Voting, attack: str, sums: Mapping[str, Any]) -> Result:
    """Measure a vote of these sums beside its certificate."""
    vote = _vote(one, sums, share=voting.share)
    every, hidden = _ballots(vote, one, rules=voting.rules)
    figures = certify(every, malicious=0).actual
    targeted = certify(hidden, malicious=0).actual.recall
    return Result(
        study=one.study.name,
        seed=one.shared.seed,
        detector="moments",
        rule=voting.rule,
        attack=attack,
        figures=figures,
        targeted_recall=targeted,
        certified=voting.certified,
        targeted_recall_certified=voting.targeted.recall,
        holds=_holds(figures, voting.certified) and targeted >= voting.targeted.recall - 1e-12,
        untied=one.untied,
    )


def _summed(one: Case, honest: Mapping[str, Any], labelled: Windows) -> Iterator[Result]:
    """Attack the pooled sum, which has no certificate."""
    shared, kind = one.shared, one.kind
    clean = shared.framing.windows(shared.parts.validation)
    for attack in ("none", "replay", "statistic: of the attacks", "statistic: wide"):
        sums = dict(honest)
        for client in shared.malicious:
            sums[client] = _sent(one, attack, client, honest, labelled)
        try:
            model = kind.fit(reduce(add, sums.values()), clean)
        except (ValueError, np.linalg.LinAlgError):
            continue
        detector = calibrated(
            model,
            shared.framing,
            clean,
            training=_training(one),
            false_alarms_per_week=one.asked,
        )
        yield _measured(one, detector, rule=SUM, attack=attack)


def _sent(one: Case, attack: str, client: str, honest: Mapping[str, Any], labelled: Windows) -> Any:
    """Return the statistic that a malicious client sends."""
    if attack == "none":
        return honest[client]
    if attack in STATISTIC_ATTACKS:
        others = [honest[name] for name in one.shared.honest]
        rng = stream(one.shared.seed, "statistic", client)
        hidden = one.kind.summarise(labelled.take(labelled.labels == Label.ATTACK))
        return STATISTIC_ATTACKS[attack](honest[client], others, hidden, rng)
    plan = one.trial.contributions.malicious(client, attack, onto=one.trial.gate, project=False)
    return one.kind.summarise(plan.windows)


def _training(one: Case) -> TrainingSummary:
    return TrainingSummary(records=tuple(one.shared.shards), windows=1, seed=one.shared.seed)


def _vote(one: Case, sums: Mapping[str, Any], *, share: float) -> Detector:
    shared = one.shared
    return hold_vote(
        sums,
        one.kind,
        shared.framing,
        shared.framing.windows(shared.parts.validation),
        settings=VoteSettings.on(
            shared.parts.validation,
            rule="vote",
            malicious=shared.setup.malicious,
            false_alarms_per_week=share * one.asked,
        ),
        training=_training(one),
    )


def _ballots(
    detector: Detector, one: Case, *, rules: Bools | None = None
) -> tuple[Ballots, Ballots]:
    """Return the votes on all attacks, and on those that malicious members hide."""
    every = replace(ballots_of(detector, one.shared.test), rules=rules)
    other = (every.labels == Label.ATTACK) & ~one.targets
    hidden = np.where(other, Label.UNLABELLED, every.labels).astype(np.int8)
    return every, replace(every, labels=hidden)


def _holds(now: CertifiedFigures, certified: CertifiedFigures) -> bool:
    """Whether no figure is worse than certified."""
    pairs = (
        (now.recall, certified.recall),
        (now.attacks_detected, certified.attacks_detected),
        (now.precision, certified.precision),
        (now.batadal_score, certified.batadal_score),
    )
    least = all(a is None or b is None or a >= b - 1e-12 for a, b in pairs)
    return (
        least
        and now.false_events <= certified.false_events
        and (now.time_in_alarm or 0) <= (certified.time_in_alarm or 0) + 1e-12
    )


def _measured(one: Case, detector: Detector, *, rule: str, attack: str) -> Result:
    every, hidden = _ballots(detector, one)
    return Result(
        study=one.study.name,
        seed=one.shared.seed,
        detector=str(detector.model.kind),
        rule=rule,
        attack=attack,
        figures=certify(every, malicious=0).actual,
        targeted_recall=certify(hidden, malicious=0).actual.recall,
    )


def autoencoders(one: Case, attacks: tuple[str, ...]) -> Iterator[Result]:
    """Attack the autoencoder under the aggregation rules; its threshold asks for the same rate."""
    clean = one.shared.framing.windows(one.shared.parts.validation)
    for attack in attacks:
        mode = MODES["clean" if attack == "none" else "naive"]
        plan = one.trial.plan(mode, None if attack == "none" else attack)
        for rule in AGGREGATION:
            begun = time.monotonic()
            (done,) = one.trial.run(plan, rule)
            detector = calibrated(
                done.detector.model,
                one.shared.framing,
                clean,
                training=done.detector.training,
                false_alarms_per_week=one.asked,
            )
            result = _measured(one, detector, rule=rule, attack=attack)
            yield replace(result, seconds=time.monotonic() - begun)


@cache
def _study(name: str) -> Study:
    return STUDIES[name]()


def _page(store: Store, attacks: tuple[str, ...]) -> str:
    return page(
        store.results, plants=tuple(STUDIES), attacks=attacks, rivals=RIVAL_ATTACKS, seeds=SEEDS
    )


def main() -> None:
    """Run the missing seeds, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/vote.md"))
    parser.add_argument("--store", type=Path, default=Path("build/vote.jsonl"))
    parser.add_argument("--only", choices=sorted(STUDIES), help="run one plant only")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds 100, 101, ... of the vote")
    parser.add_argument("--rival-seeds", type=int, default=SEEDS, help="seeds of the autoencoder")
    parser.add_argument("--skip", nargs="*", default=(), help="attacks that are left out")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to stop")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EmptyRulesWarning)
    store = Store(arguments.store)
    every = ("none", *DATA_ATTACKS, *STATISTIC_ATTACKS)
    wanted = tuple(attack for attack in every if attack not in arguments.skip)
    rivals = tuple(attack for attack in RIVAL_ATTACKS if attack not in arguments.skip)
    begun = time.monotonic()
    for name in STUDIES:
        if arguments.only not in (None, name):
            continue
        for detector, runs, attacks, seeds in (
            (DetectorKind.MOMENTS, votes, wanted, arguments.seeds),
            (DetectorKind.AUTOENCODER, autoencoders, rivals, arguments.rival_seeds),
        ):
            for seed in range(100, 100 + seeds):
                missing = store.missing(name, seed, detector, attacks)
                if not missing or time.monotonic() - begun > arguments.limit:
                    continue
                one = case(_study(name), seed, detector)
                found = list(runs(one, missing))
                store.add(name, seed, detector, found)
                console.print(f"{name} seed {seed}: {detector}, {len(found)} results")
    with atomically(arguments.out) as draft:
        draft.write_text(_page(store, every) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
