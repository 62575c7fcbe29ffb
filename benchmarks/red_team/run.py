"""Run every attack against the gate, and write who is admitted and with what effect.

A run can be stopped and continued: results are stored attack by attack, with the hash of the rules
that they were made against.
"""

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.evidence.study import Study
from benchmarks.red_team.attempts import Attackers, names_of
from benchmarks.red_team.loosened import loosened
from benchmarks.red_team.page import HALVED, Size, page
from benchmarks.red_team.store import Key, Result, Store
from benchmarks.red_team.subjects import FIRST_KINDS, GATES, HARDENED, PLANTS, gate_of
from sluice.admission import EmptyRulesWarning
from sluice.files import atomically
from sluice.invariants import rules_hash
from sluice.lab.attacks import POISONS, UPDATE_ATTACKS
from sluice.lab.trials import NamedGate, scenario

console = Console(stderr=True, highlight=False)
DETECTORS = ("autoencoder", "subspace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What a run does."""

    seeds: tuple[int, ...]
    attacks: tuple[str, ...]
    gates: tuple[str, ...]
    clients: int
    detectors: tuple[str, ...]
    commit: str = ""

    def attacks_at(self, gate: str) -> Iterator[str]:
        """Yield the attacks tried at a gate; the first kinds are the reference of three."""
        for attack in self.attacks:
            if gate != FIRST_KINDS or attack in HALVED:
                yield from names_of(attack)


def run(study: Study, effort: Effort, store: Store) -> None:
    """Try every attack that the store does not hold."""
    # Slices do not depend on the seed, so every seed faces the same gate.
    shared = scenario(study.clean, study.test, setup=study.setup, seed=effort.seeds[0])
    gates = [gate_of(name, shared) for name in effort.gates]
    for gate in gates:
        console.print(f"{study.name}: gate {gate.name} has {len(gate.gate.rules.invariants)} rules")
    for seed in effort.seeds:
        for gate in gates:
            _run_seed(study, effort, store, seed, gate)


def _run_seed(study: Study, effort: Effort, store: Store, seed: int, gate: NamedGate) -> None:
    attackers = Attackers(study, seed, gate, effort.clients, effort.detectors)
    for name in effort.attacks_at(gate.name):
        key = Key(
            plant=study.name,
            seed=seed,
            gate=gate.name,
            rules=rules_hash(gate.gate.rules),
            attack=name,
        )
        if key in store:
            continue
        attempts, damages, seconds = attackers.attempt(name)
        store.add(Result(key=key, attempts=attempts, damages=damages, seconds=seconds))
        said = ", ".join(f"{each.admitted} ({each.touched:.0%})" for each in attempts)
        hurt = ", ".join(
            f"{each.detector} {each.targeted_before:.2f} to {each.targeted_after:.2f}"
            for each in damages
        )
        console.print(
            f"{study.name} seed {seed}: {name} at {gate.name}: {said} {hurt} ({seconds:.0f} s)"
        )


def main() -> None:
    """Try every attack, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/red-team.md"))
    parser.add_argument("--store", type=Path, default=Path("build/red-team.jsonl"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--clients", type=int, default=2, help="malicious clients that try")
    known = [name for name in POISONS if name not in UPDATE_ATTACKS or name == "scaling"]
    parser.add_argument("--attacks", nargs="+", choices=known, default=known)
    parser.add_argument("--plants", nargs="+", choices=list(PLANTS), default=list(PLANTS))
    parser.add_argument("--gates", nargs="+", choices=GATES, default=[HARDENED, FIRST_KINDS])
    parser.add_argument("--detectors", nargs="+", default=list(DETECTORS))
    parser.add_argument("--rule-poisoning", nargs="*", choices=list(PLANTS), default=[])
    parser.add_argument("--commit", default="", help="commit of the code that made all results")
    parser.add_argument("--page-only", action="store_true", help="write the page from the store")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", EmptyRulesWarning)
    first = arguments.first_seed
    effort = Effort(
        seeds=tuple(range(first, first + arguments.seeds)),
        attacks=tuple(arguments.attacks),
        gates=tuple(arguments.gates),
        clients=arguments.clients,
        detectors=tuple(arguments.detectors),
        commit=arguments.commit,
    )
    store = Store(arguments.store)
    for plant in arguments.plants:
        if not arguments.page_only:
            run(PLANTS[plant](first), effort, store)
        write(arguments.out, store, effort)  # after every plant: a long run is not lost
    parts = [line for plant in arguments.rule_poisoning for line in loosened(PLANTS[plant](first))]
    if parts:
        write(arguments.out, store, effort, more=parts)


def write(out: Path, store: Store, effort: Effort, *, more: Sequence[str] = ()) -> None:
    """Write the page from all results of these seeds, each gate with its last rules."""
    results = [result for result in store.of_last_rules() if result.key.seed in effort.seeds]
    tried = {result.key.attack for result in results}
    size = Size(
        seeds=tuple(sorted({result.key.seed for result in results})),
        clients=max(len(result.attempts) for result in results),
        left_out=tuple(name for name in POISONS if not tried & set(names_of(name))),
        plants=tuple(dict.fromkeys(result.key.plant for result in results)),
        commit=effort.commit,
    )
    with atomically(out) as draft:
        draft.write_text("\n".join([*page(results, size), *more]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
