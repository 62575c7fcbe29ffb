"""How fast commands start, beside the start of the interpreter and of its heaviest import."""

import argparse
import json
import statistics
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

LIMIT_S = 0.5
COMMANDS = (("--help",), ("--version",), ("check", "--help"))
RIVALS = {
    "python -c pass": "pass",
    "import numpy": "import numpy",
    "import every module of the runtime's commands": (
        "import sluice.cli.check, sluice.admission.gate, sluice.attestation.protocol.alone, "
        "sluice.reports.verdict_page"
    ),
}


def main() -> None:
    """Start each command several times; exit 1 where the median is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    settings = parser.parse_args()
    ours = {
        " ".join(("sluice", *words)): _median([sys.executable, "-m", "sluice", *words], settings)
        for words in COMMANDS
    }
    rivals = {
        name: _median([sys.executable, "-c", code], settings) for name, code in RIVALS.items()
    }
    slow = [name for name, seconds in ours.items() if seconds > LIMIT_S]
    if settings.json:
        print(json.dumps({"seconds": ours | rivals, "limit_s": LIMIT_S, "over": slow}))
    else:
        drawn = Table("what", "seconds", "x interpreter", title="startup, medians", box=None)
        for name, seconds in (ours | rivals).items():
            drawn.add_row(name, f"{seconds:.3f}", f"{seconds / rivals['python -c pass']:.1f}")
        Console().print(drawn)
    if slow:
        sys.exit(f"over {LIMIT_S} s: {', '.join(slow)}")


def _median(command: list[str], settings: argparse.Namespace) -> float:
    times = []
    for _ in range(settings.repeats):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own commands
        times.append(time.perf_counter() - started)
    return statistics.median(times)
