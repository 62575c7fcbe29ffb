"""Let every attacker come to both gates, on two plants, and write down who gets in."""

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

said = Console(stderr=True, highlight=False)
GATES = ("paper", "hardened")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One liar at one gate."""

    attack: str
    gate: str
    admitted: bool | None  # none where the attacker found nothing to show
    planted: float  # share of the rows trained on
    reason: str


def attempts(study: Study, seed: int) -> Iterator[Attempt]:
    """Let each liar of a seed try every attack, heedless and projected, at every gate."""
    shared = scenario(study.clean, study.test, setup=study.setup, seed=seed)
    known = gates(shared)
    for client in shared.liars:
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
        reason=verdict.reasons[0] if verdict.reasons else "",
    )


def _told(found: list[Attempt]) -> str:
    came = [one for one in found if one.admitted is not None]
    within = sum(bool(one.admitted) for one in came)
    none = len(found) - len(came)
    return f"{within} of {len(came)}" + (f" ({none} found no way)" if none else "")


def study_page(study: Study, seeds: int) -> Iterator[str]:
    """Write one plant's tables."""
    found: list[Attempt] = []
    for seed in range(seeds):
        for one in attempts(study, seed):
            said.print(f"{study.name} seed {seed}: {one.attack} at {one.gate}: {one.admitted}")
            found.append(one)
    yield (
        f"\n## {study.name}\n\n{study.setup.clients} plants, {study.setup.liars} of whom lie, "
        f"seeds 0 to {seeds - 1}. *Planted* is the share of a liar's rows that hold an attack.\n"
    )
    yield "| attack | planted | " + " | ".join(f"{gate} gate admits" for gate in GATES) + " |"
    yield "|---|---|" + "---|" * len(GATES)
    for attack in dict.fromkeys(one.attack for one in found):
        tried = [one for one in found if one.attack == attack]
        planted = np.mean([one.planted for one in tried])
        at = (_told([one for one in tried if one.gate == gate]) for gate in GATES)
        yield f"| {attack} | {planted:.0%} | {' | '.join(at)} |"
    yield from _loosened(study)


def _loosened(study: Study) -> Iterator[str]:
    shared = scenario(study.clean, study.test, setup=study.setup, seed=0)
    poison = POISONS["replay"](
        shared.shards[shared.liars[0]], Knowledge(targets=shared.targets), seed=0
    )
    yield (
        "\nRule poisoning: the plant prepares the clean rows its tolerances are calibrated on, "
        "then shows a replay. Acceptance looks at the file alone, and beside the last accepted.\n"
    )
    yield (
        "| rules | prepared by | rules wider, and by how much at most | rules gone "
        "| replay violates, before and after | admitted after | file accepted alone | "
        "beside the last |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, policy in (("paper", PaperPolicy()), ("hardened", HardenedPolicy())):
        for how, prepare in LOOSENINGS.items():
            parts = shared.parts
            told = loosening(
                parts.fit, parts.calibration, poison.shown, prepare=prepare, policy=policy, seed=0
            )
            most = told.widened[0].ratio if told.widened else None
            wider = f"{len(told.widened)} of {len(told.rules)}, " + (
                f"{most:.1f} times" if most else "none"
            )
            yield (
                f"| {name} | {how} | {wider} | {len(told.gone)} "
                f"| {told.violating_before:.1%}, {told.violating_after:.1%} "
                f"| {_yes(told.admitted_after)} | {_yes(not told.refused_alone)} "
                f"| {_yes(not told.refused_beside_last)} |"
            )


def _yes(holds: bool) -> str:  # noqa: FBT001 - a word for a flag
    return "yes" if holds else "no"


HEAD = """# Who gets past the gate

Written by `make red-team`. Every attacker of [the red team](../explanation/red-team.md) shows its
batch to the paper's gate and to the hardened one, each minding the very gate it faces where it
minds one. Getting in is not yet doing damage: [the evidence](evidence.md) says what comes of it."""


def main() -> None:
    """Try everybody, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/red-team.md"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", choices=sorted(STUDIES), help="one plant alone")
    told = parser.parse_args()
    warnings.simplefilter("ignore", EmptyRulesWarning)
    parts = [HEAD]
    for name, study in STUDIES.items():
        if told.only in (None, name):
            parts += study_page(study(), told.seeds)
    with atomically(told.out) as draft:
        draft.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
