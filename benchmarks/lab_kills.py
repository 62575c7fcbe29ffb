"""Kill a grid of 200 BATADAL cells ten times at random and compare it with an undisturbed run.

Each kill sends SIGKILL to the runner, at a random moment after a random piece of work has finished;
the workers die with the runner. The exported cells must agree byte for byte, and only work that was
in flight may be repeated.
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
console = Console(highlight=False)


def started(*arguments: object) -> subprocess.Popen[bytes]:
    """Start a `sluice lab` command as a user would."""
    program = "import sys; from sluice.cli import main; main(sys.argv[1:])"
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-c", program, "lab", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def finished(folder: Path) -> tuple[int, int]:
    """Return how many pieces of work are done, and of how many; (0, 1) before there is a store."""
    if not (folder / "cells.sqlite").exists():
        return 0, 1
    store = ResultStore(folder, read_only=True)
    counts = store.counts()
    store.close()
    return counts.done, counts.works


def undisturbed(grid: Path, data: Path, folder: Path) -> None:
    """Run the grid without kills."""
    begun = time.monotonic()
    if started("run", grid, "--data", data, "--out", folder).wait():
        raise SystemExit("the undisturbed run failed")
    console.print(f"undisturbed: {time.monotonic() - begun:.0f} s")


def disturbed(grid: Path, data: Path, folder: Path, *, kills: int, seed: int) -> int:
    """Run the grid and kill it repeatedly; return the number of kills."""
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
        raise SystemExit("the resumed run failed after its last kill")
    console.print(f"killed: {time.monotonic() - begun:.0f} s")
    return done


def main() -> None:
    """Run both ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("kills"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SLUICE_DATA", "data")))
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    grid = arguments.folder / "grid.toml"
    grid.write_text(GRID.format(rounds=arguments.rounds), encoding="utf-8")
    whole, killed = arguments.folder / "whole", arguments.folder / "killed"
    if not whole.exists():  # an earlier undisturbed run is reused
        undisturbed(grid, arguments.data, whole)
    done = disturbed(grid, arguments.data, killed, kills=arguments.kills, seed=arguments.seed)
    for folder in (whole, killed):
        if started("export", folder).wait():
            raise SystemExit(f"'sluice lab export {folder}' failed")
    attempts = pl.read_parquet(killed / "times.parquet")["attempts"]
    console.print(
        f"killed {done} times; {int((attempts - 1).sum())} of {len(attempts)} pieces of work "
        "were started again"
    )
    same = (whole / "cells.parquet").read_bytes() == (killed / "cells.parquet").read_bytes()
    console.print("the exported cells agree byte for byte" if same else "THE EXPORTED CELLS DIFFER")
    raise SystemExit(0 if same and done == arguments.kills else 1)


if __name__ == "__main__":
    main()
