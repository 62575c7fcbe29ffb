"""`reading`: time to read a SWaT-sized CSV into a record, parsed and cached, beside pandas.

pandas reads the same file into a frame with parsed time stamps; it infers no roles, checks no
clock and translates no labels.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from sluice.lab.plants import simulate
from sluice.telemetry import read_record
from sluice.telemetry.writers import FileLayout, write

REPEATS = 3
CLOCK = " %d/%m/%Y %I:%M:%S %p"


def least(work: Callable[[], object]) -> float:
    """Return the shortest of a few times."""
    taken = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def with_pandas(path: Path) -> pd.DataFrame:
    """Read as most scripts do: skip the title row, parse the clock."""
    frame = pd.read_csv(path, skiprows=1)
    frame.index = pd.to_datetime(frame.iloc[:, 0], format=CLOCK)
    return frame


def main() -> None:
    """Write the clean treatment record as SWaT writes it, then read it three ways."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "SWaT_Dataset_Normal_v1.csv"
        record = simulate("treatment", seed=0)
        write(record, path, FileLayout.SWAT)
        os.environ["SLUICE_CACHE"] = str(Path(folder) / "cache")

        def parsed() -> None:
            for cached_file in Path(folder, "cache").glob("*"):
                cached_file.unlink()
            read_record(path)

        cold, rival = least(parsed), least(lambda: with_pandas(path))
        cached = least(lambda: read_record(path))
    rows = f"{len(record):,} x {len(record.channels)}"
    print(f"read {rows}: parsed {cold:.2f} s, pandas {rival:.2f} s ({rival / cold:.1f} times)")
    print(f"read {rows}: from the cache {cached:.2f} s ({rival / cached:.1f} times)")


if __name__ == "__main__":
    main()
