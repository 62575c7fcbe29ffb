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


SOAK_HEAD = """# Soak: many rounds with kills and malicious plants

Written by `make soak ROUNDS={rounds} SEED={seed}`, in {minutes:.0f} minutes on a machine with
{cores} cores on which other work ran. Real processes (coordinator, Flower {flower}, filter, nginx,
plants) communicate over TLS. Five honest plants on `line` hold full proofs of 600 rows each. A
malicious plant of each kind comes, stays for some rounds, and goes. A phase ends six seconds after
80 % of the asked plants have answered. The seed draws the schedule.

All {rounds} rounds ended. `sluice audit-log verify` accepts the log of {entries:,} entries from its
first entry. No malicious plant is a member of any round. The model's hash is that of a federation
in one process with the same members in each round.

Honest plants took part {taken:,} times of {possible:,} possible ones. They missed the other
{missing} because they, or a process between them and the coordinator, had just been killed. An
operator ended {reinstated} suspensions of honest plants.

| kill -9 of | times |
|---|---|
"""
SOAK_VISITS = """
| malicious plant | visits |
|---|---|
"""
SOAK_MEMORY = """
Memory (resident set) at the end, and its slope over the second half of the rounds by linear
regression. The measured processes are killed only in the first half, so that the second half is one
life of each; nginx and the other plants are also killed in the second half. The test fails if a
slope is {bound:g} MB in 100 rounds or more.

| process | MB at the end | MB in 100 rounds |
|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakPage:
    """The outcome of a soak."""

    rounds: int
    seed: int
    entries: int
    seconds: float
    kills: dict[str, int]
    visits: dict[str, int]
    missing: int
    possible: int
    reinstated: int
    slopes: dict[str, float]
    memory: dict[str, float]
    bound: float

    def __str__(self) -> str:
        head = SOAK_HEAD.format(
            rounds=self.rounds,
            seed=self.seed,
            minutes=self.seconds / 60,
            cores=os.cpu_count(),
            flower=version("flwr"),
            entries=self.entries,
            taken=self.possible - self.missing,
            possible=self.possible,
            missing=self.missing,
            reinstated=self.reinstated,
        )
        kills = "".join(f"| {what} | {count} |\n" for what, count in sorted(self.kills.items()))
        visits = "".join(f"| {what} | {count} |\n" for what, count in sorted(self.visits.items()))
        memory = "".join(
            f"| {what} | {mb:.0f} | {self.slopes[what]:+.2f} |\n"
            for what, mb in self.memory.items()
            if what != "its nginx"
        )
        return f"{head}{kills}{SOAK_VISITS}{visits}{SOAK_MEMORY.format(bound=self.bound)}{memory}"


def note_soak(page: SoakPage) -> None:
    """Write the page of a soak."""
    if "SLUICE_SOAK_PAGE" in os.environ:
        with atomically(PAGE.with_name("soak.md")) as draft:
            draft.write_text(str(page), encoding="utf-8")
