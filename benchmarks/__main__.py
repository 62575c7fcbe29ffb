"""`python -m benchmarks NAME [OPTIONS]`: measure speed, or write a page of docs/results.

Speed beside a rival:   gate, train, moments, watch, attest-full, attest-sampled, reading, startup
Cost of the rules:      attest-editions
Where a prover's time goes: profile-prover
Pages of docs/results:  evaluation, honest, detector, vote, exactness, evidence, red-team, drift,
                        sampling, parameters, many, verifiers, verify-many, bound,
                        bound-damage, worth, cold-start, mapping, unlike-plants, detectability
Sums of the circuit:    sums
Latency of a federation: round-latency
Opening a long log:     log-open
Crash test of the lab:  kills

`python -m benchmarks NAME --help` lists the options of one benchmark.
"""

import sys
from importlib import import_module

import typer

from benchmarks.command import bench
from sluice.cli import run_app

MODULES = {
    "attest-editions": "benchmarks.attest.editions",
    "bound": "benchmarks.bound",
    "bound-damage": "benchmarks.bound_damage",
    "drift": "benchmarks.drift",
    "detector": "benchmarks.detector.run",
    "evaluation": "benchmarks.gate.evaluation",
    "evidence": "benchmarks.evidence.run",
    "exactness": "benchmarks.exactness.run",
    "honest": "benchmarks.gate.honest",
    "kills": "benchmarks.lab_kills",
    "log-open": "benchmarks.log_open",
    "mapping": "benchmarks.mapping",
    "many": "benchmarks.network_many",
    "moments": "benchmarks.speed.moments",
    "parameters": "benchmarks.attest.parameters",
    "profile-prover": "benchmarks.attest.profile",
    "reading": "benchmarks.speed.reading",
    "red-team": "benchmarks.red_team.run",
    "round-latency": "benchmarks.round_latency",
    "sampling": "benchmarks.sampling",
    "startup": "benchmarks.speed.startup",
    "sums": "benchmarks.exactness.sums",
    "unlike-plants": "benchmarks.unlike_plants",
    "verifiers": "benchmarks.verifiers.run",
    "verify-many": "benchmarks.attest.verifying",
    "vote": "benchmarks.vote.run",
    "watch": "benchmarks.speed.watch",
    "worth": "benchmarks.worth.run",
    "cold-start": "benchmarks.cold_start.run",
    "detectability": "benchmarks.red_team.detectability",
}


app = typer.Typer(add_completion=False, rich_markup_mode="rich")
app.command()(bench)


def main(arguments: list[str]) -> None:
    """Run one benchmark by its name."""
    if arguments and arguments[0] in MODULES:
        name, *rest = arguments
        module = import_module(MODULES[name])
        sys.argv = [f"python -m benchmarks {name}", *rest]
        module.main()
        return
    run_app(app, arguments, name="python -m benchmarks")


if __name__ == "__main__":
    main(sys.argv[1:])
