"""Kill a grid of 200 BATADAL cells ten times at random and compare it with an undisturbed run.

Every kill is SIGKILL on the runner, at a random moment after a random piece of work was finished;
its workers die with it. The exported cells must agree byte for byte, and no more work may have been
repeated than was in flight.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
from rich.console import Console

from sluice.lab.results import ResultStore
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
LONGEST_WAIT_S = 3.0  # from a finished piece of work to the kill
said = Console(highlight=False)


def started(*told: object) -> subprocess.Popen[bytes]:
    """Start a command as a user would."""
    program = "import sys; from sluice.cli import main; main(sys.argv[1:])"
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", program, "lab", *map(str, told)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def finished(folder: Path) -> tuple[int, int]:
    """Return how many pieces of work are done, and of how many; none before there is a store."""
    if not (folder / "cells.sqlite").exists():
        return 0, 1
    store = ResultStore(folder, read_only=True)
    counts = store.counts()
    store.close()
    return counts.done, counts.works


def undisturbed(grid: Path, data: Path, folder: Path) -> None:
    """Run the grid in peace."""
    begun = time.monotonic()
    if started("run", grid, "--data", data, "--out", folder).wait():
        raise SystemExit("the undisturbed run failed")
    said.print(f"undisturbed: {time.monotonic() - begun:.0f} s")


def disturbed(grid: Path, data: Path, folder: Path, *, kills: int, seed: int) -> int:
    """Run the grid and kill it again and again; return how often it was killed."""
    drawn, begun = stream(seed, "kills"), time.monotonic()
    moments = sorted(drawn.uniform(0, 0.95, kills))  # shares of the work
    running, done = started("run", grid, "--data", data, "--out", folder), 0
    while done < kills and running.poll() is None:
        finished_works, works = finished(folder)
        if finished_works < moments[done] * works:
            time.sleep(0.1)
            continue
        time.sleep(drawn.uniform(0, LONGEST_WAIT_S))
        running.kill()
        running.wait()
        done += 1
        running = started("resume", folder)
    if running.wait():
        raise SystemExit("the killed run did not end well")
    said.print(f"killed: {time.monotonic() - begun:.0f} s")
    return done


def main() -> None:
    """Run both ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("kills"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SLUICE_DATA", "data")))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    told.folder.mkdir(parents=True, exist_ok=True)
    grid = told.folder / "grid.toml"
    grid.write_text(GRID.format(rounds=told.rounds), encoding="utf-8")
    whole, killed = told.folder / "whole", told.folder / "killed"
    if not whole.exists():  # else it was run before
        undisturbed(grid, told.data, whole)
    done = disturbed(grid, told.data, killed, kills=told.kills, seed=told.seed)
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
