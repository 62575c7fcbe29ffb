"""The page of cases and outcomes that a run of the network tests writes."""

import os
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from sluice.files import atomically

PAGE = Path(__file__).parents[2] / "docs" / "results" / "network.md"
SIZES = PAGE.with_name("network-sizes.md")
SIZES_HEAD = """# Resources that a federation between sites needs

Written by `make test-network`. The test runs ten rounds on `treatment` (51 channels) on one
machine. Four plants make full proofs of 2,048 rows each, and a fifth plant cannot prove its batch.
In the table, SuperLink is the server process of Flower.

| what | size |
|---|---|
"""
HEAD = """# Fault-tolerance results of a federation between sites

Written by `make test-network`. Real processes run on one machine and communicate over TLS through
nginx, with Flower {flower}. Three plants on `line` with full proofs of 600 rows take part in three
rounds, unless a row says otherwise. After every case, `sluice audit-log verify` reads the log from
its first entry. The test also compares the model's hash with that of a federation in one process in
which the same plants took part in each round: the two are equal.

| what happened | who took part | log | seconds |
|---|---|---|---|
"""
FOOT = """
*kill -9* of the coordinator also ends Flower's SuperLink and nginx; the test then runs
`sluice coordinator resume`, as the systemd unit does. If a SuperLink or an nginx is killed, Sluice
restarts it. The test restarts a killed plant; in practice systemd does this. If a call arrives
twice, Flower loses the message that is being transferred: a duplicate of an answer's first call
invalidates the rest of the answer, and Flower delivers a message only once. Sluice then asks again.
TLS prevents outsiders from repeating calls; in this test the simulated network has the
coordinator's key, so it can repeat calls.

Seconds are from the first start to the last round, on a busy machine with two cores.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case."""

    case: str
    members: str
    entries: int
    seconds: float

    def __str__(self) -> str:
        log = f"verifies, {self.entries} entries"
        return f"| {self.case} | {self.members} | {log} | {self.seconds:.0f} |"


def format_members(members: tuple[tuple[str, ...], ...], plants: tuple[str, ...]) -> str:
    """Return in words which plants took part in which rounds."""
    away = {
        plant: [str(at) for at, each in enumerate(members, start=1) if plant not in each]
        for plant in plants
    }
    missing = [
        f"without {plant} in round{'s' * (len(rounds) > 1)} {', '.join(rounds)}"
        for plant, rounds in away.items()
        if rounds
    ]
    return f"{len(members)} rounds: {'; '.join(missing) or 'all'}"


def note(row: Row) -> None:
    """Write a case's outcome into the page, in place of its last one."""
    if "SLUICE_NETWORK_PAGE" not in os.environ:
        return
    rows = dict(_rows())
    rows[row.case] = str(row)
    text = HEAD.format(flower=version("flwr")) + "\n".join(rows.values()) + "\n" + FOOT
    with atomically(PAGE) as draft:
        draft.write_text(text, encoding="utf-8")


def note_sizes(sizes: dict[str, str]) -> None:
    """Write the page of sizes."""
    if "SLUICE_NETWORK_PAGE" in os.environ:
        rows = "".join(f"| {what} | {size} |\n" for what, size in sizes.items())
        with atomically(SIZES) as draft:
            draft.write_text(SIZES_HEAD + rows, encoding="utf-8")


def _rows() -> list[tuple[str, str]]:
    if not PAGE.exists():
        return []
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    matches = [(re.match(r"\| (.*?) \|", line), line) for line in lines]
    skipped = {"what happened", "---"}
    return [(m.group(1), line) for m, line in matches if m and m.group(1) not in skipped]
