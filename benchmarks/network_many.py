"""Measure what a coordinator spends on each plant in each round, as the federation grows.

The plants are simulated in this process, without a network. Each has its own keys, folder and
`full` proof, which the coordinator verifies. The coordinator's processor time, over all threads, is
that of the process less that used while a plant answers. Writes a page.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from sluice.admission import HardenedPolicy, judge
from sluice.attestation.log import LogTerms, read_log
from sluice.attestation.messages import APPROVALS, SigningKey, approve
from sluice.detector import Descent
from sluice.files import atomically
from sluice.invariants import Profile, load_rules, rules_hash, save_rules
from sluice.invariants.mining import mine
from sluice.lab.plants import simulate
from sluice.network import JoinRequest, TrainingRows, read_document
from sluice.network.coordinator import (
    CoordinatorFolder,
    CoordinatorStore,
    FederationPlan,
    coordinator_service,
    found_federation,
)
from sluice.network.plant import PlantFolder
from sluice.network.wire import QUESTIONS, Answerer, AskToken, Direct
from sluice.telemetry import read_record
from sluice.telemetry.writers import FileLayout, write

CLEAN, ROWS, DAY_ROWS = 8_640, 256, 1_440
APPROVER = SigningKey.generate()
HEAD = """# Cost of many plants to their coordinator

Written by `make many` (`python -m benchmarks many`). The plants are simulated in one process. Each
makes a `{system}` proof of {rows} rows of `line`, which the coordinator verifies. There are \
{rounds} rounds.
Times are the coordinator's processor time: the time of the whole process minus the time used while
a plant answers. Figures per round leave out the first round. The column *of the smallest* is the
cost per plant and round, relative to the smallest federation.

"""
console = Console(highlight=False)


class Metered(Direct):
    """Plants in this process; counts the time of their answers and the bytes sent to them."""

    def __init__(self, plants: Mapping[str, Answerer]) -> None:
        super().__init__(plants)
        self.answering_s = 0.0
        self.sent = 0
        self.admitted_s = 0.0  # the coordinator's time when it asks for the first token

    def spent(self) -> float:
        """Return the processor time used while no plant answers."""
        return time.process_time() - self.answering_s

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,
        quorum: int | None = None,
        grace_s: float = 0.0,
    ) -> Iterator[tuple[str, bytes]]:
        """Ask the plants one by one, and add up the processor time they take."""
        for plant, question in questions.items():
            if not self.admitted_s and isinstance(QUESTIONS.read(question).content.ask, AskToken):
                self.admitted_s = self.spent()
            began = time.process_time()
            one = {plant: question}
            answers = list(super().ask(one, seconds=seconds, quorum=quorum, grace_s=grace_s))
            self.answering_s += time.process_time() - began
            self.sent += len(question)
            yield from answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one federation to its coordinator."""

    plants: int
    attest_s: float  # to take one commitment and verify one proof
    round_s: float  # for one plant in one round
    sent: float  # bytes to one plant in one round
    logged: float  # bytes in the log for one plant in one round


def main() -> None:
    """Measure federations of several sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plants", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--system", default="full")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record, rules, starts = _files(Path(folder), most=max(arguments.plants))
        costs = [
            Case(
                folder=Path(folder) / f"of-{plants}",
                plants=plants,
                record=record,
                rules=rules,
                starts=starts,
                system=arguments.system,
            ).measured(arguments.rounds)
            for plants in arguments.plants
        ]
    page = (
        HEAD.format(system=arguments.system, rows=ROWS, rounds=arguments.rounds)
        + table(costs)
        + "\n"
    )
    with atomically(arguments.out) as draft:
        draft.write_text(page, encoding="utf-8")
    console.print(f"{arguments.out} written", markup=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A federation of `plants` plants, all with the same rules."""

    folder: Path
    plants: int
    record: Path
    rules: Path
    starts: tuple[int, ...]  # the first row of each plant
    system: str

    def measured(self, rounds: int) -> Cost:
        """Run the federation: the plants join, prove and train."""
        site = self._founded()
        wire = Metered({f"plant-{at:02d}": self._joined(site, at) for at in range(self.plants)})
        store = CoordinatorStore(site.base)
        marks: list[tuple[float, int, int]] = []

        def mark(_: object) -> None:
            marks.append((wire.spent(), wire.sent, site.log.stat().st_size))
            console.print(f"{self.plants} plants, round {len(marks)}", style="dim")

        service = coordinator_service(site, store, wire, clock=lambda: datetime.now(UTC))
        began = wire.spent()
        service.run(rounds=rounds, on_round=mark)
        verified = len(store.mean_seconds("verified"))
        store.close()
        took_part = len(read_log(site.log).rounds.members)
        if (verified, took_part) != (self.plants, self.plants):
            raise SystemExit(
                f"{verified} of {self.plants} plants have a verified proof and {took_part} took "
                "part; all must"
            )
        shares = self.plants * (rounds - 1)  # the first round includes proofs and compilation
        spent, sent, logged = (marks[-1][at] - marks[0][at] for at in range(3))
        return Cost(
            plants=self.plants,
            attest_s=(wire.admitted_s - began) / self.plants,
            round_s=spent / shares,
            sent=sent / shares,
            logged=logged / shares,
        )

    def _founded(self) -> CoordinatorFolder:
        plan = FederationPlan(
            members_min=1,
            federation="many",
            host="127.0.0.1",
            port=18_443,
            link_port=18_000,
            reference=TrainingRows(record=str(self.record), start=CLEAN // 2, stop=CLEAN),
            policy='kind = "hardened"\n[acceptance.reasons]\nS_PU4 = "runs only if S_PU3 fails"\n',
            system=self.system,
            rows_max=ROWS,
            descent=Descent(epochs=1, batch=256),
            log=LogTerms(history=True),
            approvers=(APPROVER.public,),
        )
        return found_federation(self.folder / "coordinator", plan, at=datetime.now(UTC))

    def _joined(self, site: CoordinatorFolder, index: int) -> Answerer:
        name, start = f"plant-{index:02d}", self.starts[index]
        now, rules = datetime.now(UTC), load_rules(self.rules)
        plant = PlantFolder.create(
            self.folder / name,
            site.invite(name, at=now),
            rules,
            self.rules.read_text(encoding="utf-8"),
            TrainingRows(record=str(self.record), start=start, stop=start + ROWS),
            at=now,
            reveal_rows=self.system == "unsafe",
        )
        request = read_document(JoinRequest, plant.folder / "request.json", private=True)
        approval = APPROVALS.write(approve(rules_hash(rules), APPROVER))
        site.enrol(request, approvals=[approval], at=now)
        return plant.agent(reveal_rows=self.system == "unsafe")


def table(costs: list[Cost]) -> str:
    """Return the costs as a table in Markdown."""
    lines = [
        "| plants | attest a batch | per plant and round | of the smallest | sent | logged |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {cost.plants} | {1e3 * cost.attest_s:.0f} ms | {1e3 * cost.round_s:.1f} ms "
        f"| {cost.round_s / costs[0].round_s:.2f} x | {cost.sent / 1e3:.0f} kB "
        f"| {cost.logged / 1e3:.1f} kB |"
        for cost in costs
    ]
    return "\n".join(lines)


def _files(folder: Path, *, most: int) -> tuple[Path, Path, tuple[int, ...]]:
    """Simulate one long record and mine its rules; each plant gets a stretch that the gate admits.

    A real plant tests its rows with `sluice plant check` before it joins.
    """
    stretches = 2 * most
    days = 1 + (CLEAN + stretches * ROWS) // DAY_ROWS
    record, rules = folder / "line.parquet", folder / "rules.json"
    write(simulate("line", seed=0, days=days), record, FileLayout.PARQUET)
    line = read_record(record)
    mined = mine(line.rows(0, CLEAN // 2), line.rows(CLEAN // 2, CLEAN), profile=Profile.HARDENED)
    save_rules(mined, rules)
    starts = [CLEAN + at * ROWS for at in range(stretches)]
    admitted = [
        start
        for start in starts
        if judge(line.rows(start, start + ROWS), mined, HardenedPolicy()).admitted
    ]
    console.print(f"{len(admitted)} of {stretches} clean stretches are admitted", style="dim")
    return record, rules, tuple(admitted)


if __name__ == "__main__":
    main()
