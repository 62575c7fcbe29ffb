"""`python -m benchmarks NAME`: speed beside a rival, or evidence for docs/results.

gate, train, attest-full, attest-sampled     speed, each beside a rival
reading                                      speed of reading files
evaluation, exactness, evidence, red-team    evidence, written as pages
sampling, parameters, many, kills            more of it
"""

import sys
from importlib import import_module

import typer

from benchmarks.command import bench
from sluice.cli import run_app

PAGES = {
    "evaluation": "benchmarks.gate.evaluation",
    "evidence": "benchmarks.evidence.run",
    "exactness": "benchmarks.exactness.run",
    "kills": "benchmarks.lab_kills",
    "many": "benchmarks.network_many",
    "parameters": "benchmarks.attest.parameters",
    "reading": "benchmarks.speed.reading",
    "red-team": "benchmarks.red_team",
    "sampling": "benchmarks.sampling",
}


app = typer.Typer(add_completion=False, rich_markup_mode="rich")
app.command()(bench)


def main(arguments: list[str]) -> None:
    """Run one benchmark by its name."""
    if arguments and arguments[0] in PAGES:
        name, *rest = arguments
        module = import_module(PAGES[name])
        sys.argv = [f"benchmarks {name}", *rest]
        module.main()
        return
    run_app(app, arguments, name="python -m benchmarks")


if __name__ == "__main__":
    main(sys.argv[1:])
