"""Run every attack against both gates, and write who is admitted and with what effect.

The effect is how much of a shard an admitted client plants, and what that does to the detector.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.evidence.study import DESCENT, Study, batadal, gates, treatment
from benchmarks.red_team_damage import Damage, damage_table, damages
from sluice.admission import EmptyRulesWarning, HardenedPolicy, PaperPolicy
from sluice.errors import SluiceError
from sluice.files import atomically
from sluice.lab.attacks import LOOSENINGS, POISONS, Knowledge, projected
from sluice.lab.audits import loosening
from sluice.lab.plants import simulate
from sluice.lab.trials import NamedGate, Scenario, Setup, scenario
from sluice.seeding import stream
from sluice.telemetry import Record

console = Console(stderr=True, highlight=False)
GATES = ("paper", "hardened")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The seeds of a run."""

    seeds: tuple[int, ...]  # of the admissions
    damage_seeds: tuple[int, ...]  # of the trained federations
    attacks: tuple[str, ...]


def network(seed: int) -> Study:
    """A simulated network with four tanks, hourly: five clients, two of them malicious."""
    return Study(
        name="network:Terraces",
        clean=simulate("network:Terraces", seed=seed, days=400),
        test=simulate("network:Terraces", seed=seed + 1, days=60, attacks=True),
        setup=Setup(clients=5, malicious=2, descent=DESCENT),
        seeds=8,
    )


PLANTS: Mapping[str, Callable[[int], Study]] = {
    "BATADAL": lambda _: batadal(),
    "treatment": treatment,
    "network:Terraces": network,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One malicious client at one gate."""

    attack: str
    gate: str
    admitted: bool | None  # None: the attack made no batch
    planted: float  # share of the rows trained on
    channels: int  # that it changes
    shift: float  # root mean square of the changes, in standard deviations of each channel
    reason: str


def attempts(study: Study, seed: int, attacks: tuple[str, ...]) -> Iterator[Attempt]:
    """Try every attack of each malicious client, non-adaptive and projected, at every gate."""
    shared = scenario(study.clean, study.test, setup=study.setup, seed=seed)
    known = gates(shared)
    for client in shared.malicious:
        for gate in (known[name] for name in GATES):
            for name in attacks:
                maker = POISONS[name]
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
        return Attempt(
            attack=name,
            gate=gate.name,
            admitted=None,
            planted=0.0,
            channels=0,
            shift=0.0,
            reason=str(error),
        )
    channels, shift = _change(shared.shards[client], poison.trained)
    verdict = gate.gate.judge(poison.shown)
    return Attempt(
        attack=name,
        gate=gate.name,
        admitted=verdict.admitted,
        planted=float(np.mean(poison.planted)),
        channels=channels,
        shift=shift,
        reason=verdict.sentences[0] if verdict.reasons else "",
    )


def _change(own: Record, poisoned: Record) -> tuple[int, float]:
    """Return how many channels differ from the client's own rows, and by how much."""
    rows = min(len(own), len(poisoned))
    spread = np.nanstd(own.values, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = (poisoned.values[:rows] - own.values[:rows]) / np.where(spread > 0, spread, np.nan)
    changed = np.nan_to_num(apart) != 0
    differs = (poisoned.values[:rows] != own.values[:rows]).any(axis=0)
    size = float(np.sqrt(np.mean(apart[changed] ** 2))) if changed.any() else 0.0
    return int(differs.sum()), size


def _count_admitted(attempted: list[Attempt]) -> str:
    judged = [attempt for attempt in attempted if attempt.admitted is not None]
    admitted = sum(bool(attempt.admitted) for attempt in judged)
    failed = len(attempted) - len(judged)
    return f"{admitted} of {len(judged)}" + (f" ({failed} made no batch)" if failed else "")


def study_page(study: Study, effort: Effort) -> Iterator[str]:
    """Write one plant's tables."""
    tried: list[Attempt] = []
    for seed in effort.seeds:
        for each in attempts(study, seed, effort.attacks):
            console.print(
                f"{study.name} seed {seed}: {each.attack} at {each.gate}: {each.admitted}"
            )
            tried.append(each)
    yield (
        f"\n## {study.name}\n\n{study.setup.clients} plants, {study.setup.malicious} of them "
        f"malicious, seeds {effort.seeds[0]} to {effort.seeds[-1]}. The last three columns "
        "describe the batches that the hardened gate admits: *planted* is the share of a malicious "
        "client's rows that contain an attack or are tampered with, *channels* is how many "
        "channels differ from its own rows, and *shift* is the root mean square of the changes in "
        "standard deviations of each channel (idle channels have none and are left out).\n"
    )
    yield (
        "| attack | "
        + " | ".join(f"{gate} gate admits" for gate in GATES)
        + " | planted | channels | shift |"
    )
    yield "|---|" + "---|" * (len(GATES) + 3)
    for attack in dict.fromkeys(each.attack for each in tried):
        of_attack = [each for each in tried if each.attack == attack]
        counts = (
            _count_admitted([each for each in of_attack if each.gate == gate]) for gate in GATES
        )
        yield f"| {attack} | {' | '.join(counts)} | {' | '.join(_described(of_attack))} |"
    yield from _damaged(study, effort)
    yield from _loosened(study)


def _described(tried: list[Attempt]) -> tuple[str, str, str]:
    passed = [each for each in tried if each.gate == "hardened" and each.admitted]
    if not passed:
        return "", "", ""
    planted = np.mean([each.planted for each in passed])
    channels = np.mean([each.channels for each in passed])
    shift = np.mean([each.shift for each in passed])
    return f"{planted:.0%}", f"{channels:.0f}", f"{shift:.2f}"


def _damaged(study: Study, effort: Effort) -> Iterator[str]:
    found: list[Damage] = []
    for seed in effort.damage_seeds:
        for each in damages(study, seed, effort.attacks):
            console.print(
                f"{study.name} seed {seed}: {each.attack}, {each.detector}: targets detected "
                f"{each.targeted_before:.2f} to {each.targeted_after:.2f}"
            )
            found.append(each)
    yield (
        "\nWhat the admitted clients do to the detector, trained by federated averaging behind the "
        "hardened gate. Clients that know the gate project other attacks onto its rules. Each cell "
        "goes from the federation without malicious clients to the federation with those that the "
        "gate admits (means over seeds, in brackets the range over seeds). Attacks that are not "
        "listed have no client admitted.\n"
    )
    yield from damage_table(found)


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
gate. Adaptive attacks adapt to the gate that judges them, and search for their strongest variant
that it admits. For every attack the page states who is admitted, how much of a shard is planted,
and what it does to the detector. [The evidence](evidence.md) compares more aggregation rules."""


def main() -> None:
    """Try every attack, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/red-team.md"))
    parser.add_argument("--seeds", type=int, default=2, help="of the admissions")
    parser.add_argument("--damage-seeds", type=int, default=2, help="of the trained federations")
    parser.add_argument("--attacks", nargs="+", choices=list(POISONS), default=list(POISONS))
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--only", choices=sorted(PLANTS), help="run one plant only")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EmptyRulesWarning)
    first = arguments.first_seed
    effort = Effort(
        seeds=tuple(range(first, first + arguments.seeds)),
        damage_seeds=tuple(range(first, first + arguments.damage_seeds)),
        attacks=tuple(arguments.attacks),
    )
    parts = [HEAD]
    left_out = [name for name in POISONS if name not in effort.attacks]
    if left_out:
        parts.append(f"\nThis run is reduced. It leaves out {', '.join(left_out)}.")
    for name, study in PLANTS.items():
        if arguments.only in (None, name):
            parts += study_page(study(first), effort)
            with atomically(arguments.out) as draft:  # after every plant: a long run is not lost
                draft.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
