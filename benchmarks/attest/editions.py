"""`attest-editions`: what a proof costs with the rules of each edition of the gate.

The first edition states couplings, balances, windows, bounds and rates, and allows no severe row.
The second edition adds ties, constants, switch bands and spectra, and allows a few severe rows.
Both are mined from the same rows and prove the same batch. Proofs of the two take turns, so that
other work on the machine slows both down. Processor time and memory are those of the prover.
"""

import argparse
import json
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field, replace

from benchmarks.attest.full import CONTEXT, SALT, STARTUP_S, measure_usage
from sluice.admission import HardenedPolicy
from sluice.attestation.systems import Circuit
from sluice.attestation.systems.full import Full
from sluice.invariants import RuleSet
from sluice.invariants.mining import TYING_KINDS, mine_hardened
from sluice.lab.plants import simulate
from sluice.telemetry import Record

ROWS = (1_024, 4_096)
RUNS = 5
MINED = 2 * 14_202


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What each run cost, for one edition and one number of rows."""

    cpu_s: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    verify_s: list[float] = field(default_factory=list)
    proof_bytes: int = 0


def editions(seed: int, rows_max: int) -> tuple[dict[str, Circuit], Record]:
    """Return the circuit of each edition, and clean rows that no rule was mined from."""
    record = simulate("treatment", seed=seed).without_first(STARTUP_S).every(5)
    mined, policy = record.rows(0, MINED), HardenedPolicy()
    strict = replace(policy, margins=replace(policy.margins, severe_share=0.0))
    stated: dict[str, tuple[RuleSet, HardenedPolicy]] = {
        "first": (mine_hardened(mined, kinds=frozenset()).rules, strict),
        "second": (mine_hardened(mined, kinds=TYING_KINDS).rules, policy),
    }
    circuits = {
        name: Full().circuit(rules, terms, rows_max=rows_max)
        for name, (rules, terms) in stated.items()
    }
    return circuits, record.rows(MINED, len(record))


def measure(circuits: dict[str, Circuit], batch: Record, runs: int) -> dict[str, Costs]:
    """Prove and verify a batch `runs` times with each circuit, in turns."""
    system, costs = Full(), {name: Costs() for name in circuits}
    for name, circuit in circuits.items():
        proof = system.prove(batch, circuit, salt=SALT, context=CONTEXT)
        costs[name] = replace(costs[name], proof_bytes=len(proof))
        commitment = system.commit(batch, circuit, salt=SALT)
        for _ in range(runs):
            began = time.process_time()
            system.verify(
                circuit, commitment=commitment, rows=len(batch), context=CONTEXT, proof=proof
            )
            costs[name].verify_s.append(time.process_time() - began)
    requests = {
        name: system.request(batch, circuit, salt=SALT, context=CONTEXT)
        for name, circuit in circuits.items()
    }
    for _ in range(runs):
        for name, request in requests.items():
            usage = measure_usage(request)
            costs[name].cpu_s.append(usage.cpu_s)
            costs[name].peak_bytes.append(usage.peak_bytes)
    return costs


def main() -> None:
    """Measure, and print one line of a table for each edition and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, action="append", help="default: 1,024 and 4,096")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=0, help="of the simulated plant")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    sizes: tuple[int, ...] = tuple(chosen.rows or ROWS)
    circuits, unseen = editions(chosen.seed, max(sizes))
    found = [(rows, measure(circuits, unseen.rows(0, rows), chosen.runs)) for rows in sizes]
    if chosen.json:
        print(json.dumps(_payload(circuits, found)))
        return
    for line in _lines(circuits, found):
        print(line)


def _payload(
    circuits: dict[str, Circuit], found: list[tuple[int, dict[str, Costs]]]
) -> list[dict[str, object]]:
    return [
        {
            "rows": rows,
            "edition": name,
            "columns": circuits[name].columns,
            "constraints": circuits[name].constraints,
            "rules": dict(Counter(rule.kind.value for rule in circuits[name].rules.invariants)),
            "cpu_seconds": cost.cpu_s,
            "peak_bytes": cost.peak_bytes,
            "verify_seconds": cost.verify_s,
            "proof_bytes": cost.proof_bytes,
        }
        for rows, costs in found
        for name, cost in costs.items()
    ]


def _lines(circuits: dict[str, Circuit], found: list[tuple[int, dict[str, Costs]]]) -> list[str]:
    lines = [
        "| rows | edition | columns | constraints | processor time | memory | verify | proof |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rows, costs in found:
        base = costs["first"]
        for name, cost in costs.items():
            seconds, peak = statistics.median(cost.cpu_s), statistics.median(cost.peak_bytes)
            times = seconds / statistics.median(base.cpu_s)
            larger = peak / statistics.median(base.peak_bytes)
            lines.append(
                f"| {rows:,} | {name} | {circuits[name].columns} | {circuits[name].constraints} | "
                f"{seconds:.2f} s ({min(cost.cpu_s):.2f} to {max(cost.cpu_s):.2f}), "
                f"x {times:.2f} | {peak / 1e6:.0f} MB, x {larger:.2f} | "
                f"{statistics.median(cost.verify_s) * 1e3:.1f} ms | "
                f"{cost.proof_bytes / 1e3:.0f} kB |"
            )
    return lines
