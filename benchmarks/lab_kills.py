"""Kill a grid of 200 BATADAL cells ten times at random and compare it with an undisturbed run.

Every kill is SIGKILL on the runner; its workers die with it. The exported cells must agree byte
for byte, and no more work may have been repeated than was in flight.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
from rich.console import Console

from sluice.seeding import stream

GRID = """
name = "kills"
[training]
rounds = {rounds}
[record.batadal]
clean = "batadal/dataset03.csv"
test = "batadal/dataset04_full_labels.csv"
clients = 5
[[study]]
name = "kills"
records = ["batadal"]
rules = ["fedavg", "median", "trimmed-mean", "krum", "norm-clipping"]
attacks = ["replay", "channel-roll"]
modes = ["clean", "honest-only", "naive", "physics-aware", "gated"]
invariants = ["paper-wide"]
seeds = [0, 1, 2, 3]
"""
said = Console(highlight=False)


def started(*told: object) -> subprocess.Popen[bytes]:
    """Start a command as a user would."""
    program = "import sys; from sluice.cli import main; main(sys.argv[1:])"
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", program, "lab", *map(str, told)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main() -> None:
    """Run both ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("kills"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SLUICE_DATA", "data")))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    told.folder.mkdir(parents=True)
    grid = told.folder / "grid.toml"
    grid.write_text(GRID.format(rounds=told.rounds), encoding="utf-8")
    whole, killed = told.folder / "whole", told.folder / "killed"
    begun = time.monotonic()
    if started("run", grid, "--data", told.data, "--out", whole).wait():
        raise SystemExit("the undisturbed run failed")
    lasted = time.monotonic() - begun
    said.print(f"undisturbed: {lasted:.0f} s")
    drawn = stream(told.seed, "kills")
    running = started("run", grid, "--data", told.data, "--out", killed)
    done = 0
    while done < told.kills:
        time.sleep(drawn.uniform(0.5, 2.0) * lasted / told.kills)
        if running.poll() is not None:
            break
        running.kill()
        running.wait()
        done += 1
        running = started("resume", killed)
    if running.wait():
        raise SystemExit("the killed run did not end well")
    for folder in (whole, killed):
        if started("export", folder).wait():
            raise SystemExit(f"{folder} cannot be exported")
    attempts = pl.read_parquet(killed / "times.parquet")["attempts"]
    said.print(
        f"killed {done} times; {int((attempts - 1).sum())} pieces of work begun again of "
        f"{len(attempts)}"
    )
    same = (whole / "cells.parquet").read_bytes() == (killed / "cells.parquet").read_bytes()
    said.print("the exported cells agree byte for byte" if same else "THE EXPORTED CELLS DIFFER")
    raise SystemExit(0 if same and done == told.kills else 1)


if __name__ == "__main__":
    main()
