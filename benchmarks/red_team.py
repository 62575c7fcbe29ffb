"""Run every attack against both gates on two plants, and write which batches are admitted."""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.evidence.study import STUDIES, Study, gates
from sluice.admission import EmptyRulesWarning, HardenedPolicy, PaperPolicy
from sluice.errors import SluiceError
from sluice.files import atomically
from sluice.lab.attacks import LOOSENINGS, POISONS, Knowledge, projected
from sluice.lab.audits import loosening
from sluice.lab.trials import NamedGate, Scenario, scenario
from sluice.seeding import stream

console = Console(stderr=True, highlight=False)
GATES = ("paper", "hardened")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One malicious client at one gate."""

    attack: str
    gate: str
    admitted: bool | None  # None: the attack made no batch
    planted: float  # share of the rows trained on
    reason: str


def attempts(study: Study, seed: int) -> Iterator[Attempt]:
    """Try every attack of each malicious client, non-adaptive and projected, at every gate."""
    shared = scenario(study.clean, study.test, setup=study.setup, seed=seed)
    known = gates(shared)
    for client in shared.malicious:
        for gate in (known[name] for name in GATES):
            for name, maker in POISONS.items():
                yield _attempt(shared, client, gate, name, onto_rules=False)
                if not maker.shaped:
                    yield _attempt(shared, client, gate, name, onto_rules=True)


def _attempt(
    shared: Scenario, client: str, gate: NamedGate, attack: str, *, onto_rules: bool
) -> Attempt:
    maker = projected(POISONS[attack]) if onto_rules else POISONS[attack]
    name = f"{attack}, projected" if onto_rules else attack
    try:
        known = Knowledge(targets=shared.targets, gate=gate.gate)
        seed = int(stream(shared.seed, "poison", client).integers(2**31))
        poison = maker(shared.shards[client], known, seed=seed)
    except SluiceError as error:
        return Attempt(attack=name, gate=gate.name, admitted=None, planted=0.0, reason=str(error))
    verdict = gate.gate.judge(poison.shown)
    return Attempt(
        attack=name,
        gate=gate.name,
        admitted=verdict.admitted,
        planted=float(np.mean(poison.planted)),
        reason=verdict.sentences[0] if verdict.reasons else "",
    )


def _count_admitted(attempted: list[Attempt]) -> str:
    judged = [attempt for attempt in attempted if attempt.admitted is not None]
    admitted = sum(bool(attempt.admitted) for attempt in judged)
    failed = len(attempted) - len(judged)
    return f"{admitted} of {len(judged)}" + (f" ({failed} made no batch)" if failed else "")


def study_page(study: Study, seeds: int) -> Iterator[str]:
    """Write one plant's tables."""
    tried: list[Attempt] = []
    for seed in range(seeds):
        for each in attempts(study, seed):
            console.print(
                f"{study.name} seed {seed}: {each.attack} at {each.gate}: {each.admitted}"
            )
            tried.append(each)
    yield (
        f"\n## {study.name}\n\n{study.setup.clients} plants, {study.setup.malicious} of them "
        f"malicious, seeds 0 to {seeds - 1}. *Planted* is the share of a malicious client's rows "
        "that contain an attack.\n"
    )
    yield "| attack | planted | " + " | ".join(f"{gate} gate admits" for gate in GATES) + " |"
    yield "|---|---|" + "---|" * len(GATES)
    for attack in dict.fromkeys(each.attack for each in tried):
        of_attack = [each for each in tried if each.attack == attack]
        planted = np.mean([each.planted for each in of_attack])
        counts = (
            _count_admitted([each for each in of_attack if each.gate == gate]) for gate in GATES
        )
        yield f"| {attack} | {planted:.0%} | {' | '.join(counts)} |"
    yield from _loosened(study)


def _loosened(study: Study) -> Iterator[str]:
    shared = scenario(study.clean, study.test, setup=study.setup, seed=0)
    poison = POISONS["replay"](
        shared.shards[shared.malicious[0]], Knowledge(targets=shared.targets), seed=0
    )
    yield (
        "\nRule poisoning: the plant manipulates the clean rows that calibrate its tolerances, "
        "then submits a replay. Acceptance examines the rules file alone, and compares it with "
        "the last accepted file.\n"
    )
    yield (
        "| rules | manipulated by | rules widened, and by how much at most | rules lost "
        "| replay violates, before and after | admitted after | file accepted alone "
        "| accepted beside the last |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, policy in (("paper", PaperPolicy()), ("hardened", HardenedPolicy())):
        for how, prepare in LOOSENINGS.items():
            parts = shared.parts
            effect = loosening(
                parts.fit, parts.calibration, poison.shown, prepare=prepare, policy=policy, seed=0
            )
            most = effect.widened[0].ratio if effect.widened else None
            wider = f"{len(effect.widened)} of {len(effect.rules)}, " + (
                f"{most:.1f} times" if most else "none"
            )
            yield (
                f"| {name} | {how} | {wider} | {len(effect.gone)} "
                f"| {effect.violating_before:.1%}, {effect.violating_after:.1%} "
                f"| {_yes(effect.admitted_after)} | {_yes(not effect.refused_alone)} "
                f"| {_yes(not effect.refused_beside_last)} |"
            )


def _yes(holds: bool) -> str:  # noqa: FBT001 - a word for a flag
    return "yes" if holds else "no"


HEAD = """# Which attacks pass the gate

Written by `make red-team` (`python -m benchmarks red-team`). Every attack of
[the red team](../explanation/red-team.md) submits a batch to the paper's gate and to the hardened
gate. Adaptive attacks adapt to the gate that judges them. An admitted batch does not always do
damage: [the evidence](evidence.md) measures the damage."""


def main() -> None:
    """Try every attack, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/red-team.md"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", choices=sorted(STUDIES), help="run one plant only")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EmptyRulesWarning)
    parts = [HEAD]
    for name, study in STUDIES.items():
        if arguments.only in (None, name):
            parts += study_page(study(), arguments.seeds)
    with atomically(arguments.out) as draft:
        draft.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
