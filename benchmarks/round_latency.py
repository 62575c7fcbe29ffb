"""Measure where a round's time goes, in a federation of real processes on one machine.

The coordinator runs in this process, with Flower and nginx beside it. The plants run in a few other
processes, one thread each, and reach the coordinator over TLS through the proxy. The first round is
left out, because it includes admission and compilation.

A round has two phases: in the first, plants train and send tokens; in the second, they send their
updates. The rows of each phase add up to its time in the wire. Times of the plants overlap with the
wire's: the table shows the slowest plant. Processor times count all threads, so they do not depend
on what else the machine does.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import cycle, pairwise
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sluice.admission import HardenedPolicy, judge
from sluice.attestation.log import Log, LogTerms
from sluice.attestation.messages import APPROVALS, SigningKey, approve
from sluice.detector import Descent
from sluice.files import atomically
from sluice.invariants import Profile, RuleSet, load_rules, rules_hash, save_rules
from sluice.invariants.mining import mine
from sluice.lab.plants import simulate
from sluice.network import JoinRequest, TrainingRows, read_document
from sluice.network.coordinator import (
    CoordinatorFolder,
    CoordinatorStore,
    FederationPlan,
    coordinator_service,
    found_federation,
    hosted,
    wait_for_plants,
)
from sluice.network.plant import PlantFolder, node_of, take_part
from sluice.network.wire import QUESTIONS, Answerer, FlowerWire, bound_to_us
from sluice.telemetry import read_record
from sluice.telemetry.writers import FileLayout, write

CLEAN, ROWS, DAY_ROWS = 8_640, 256, 1_440
APPROVER = SigningKey.generate()
LIMITS_S = {5: 3.0, 50: 20.0}  # plants -> seconds that a round may take
HEAD = """# Latency of a round

Written on a machine with {cores} cores by

    python -m benchmarks round-latency --plants {plants} --rounds {rounds} \\
      --processes {processes} --system {system} --out docs/results/latency.md

The coordinator, Flower {flower}, the filter and nginx are real processes. The plants run in
{processes} other processes, one thread each, and reach the coordinator over TLS through nginx. Each
plant trains one epoch on {rows} rows of `line` (seed 0). No plant is slow. The first round is left
out, because it includes admission and compilation.

A round has two phases: in the first, plants train and send tokens; in the second, they send their
updates. The rows of each phase add up to its time in the wire. Times of the plants overlap with the
wire's: the table shows the slowest plant. Processor times are sums over all threads.
"""
PHASES = {
    "batch": "admission",
    "token": "tokens",
    "update": "updates",
    "model": "model",
    "log": "log",
}
console = Console(highlight=False)

Times = dict[str, float]  # what -> seconds


class MeteredWire:
    """A wire that adds up the time of each phase, without the time of the coordinator's work."""

    def __init__(self, wire: FlowerWire) -> None:
        self._wire = wire
        self.times: Times = defaultdict(float)

    def present(self) -> frozenset[str]:
        """Return the plants that are online."""
        with _timed(self.times, "presence"):
            return self._wire.present()

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,
        quorum: int | None = None,
        grace_s: float = 0.0,
    ) -> Iterator[tuple[str, bytes]]:
        """Ask the plants; count the time between two answers, and what the wire spent it on."""
        kind = QUESTIONS.read(next(iter(questions.values()))).content.ask.kind
        phase, spent = PHASES[kind], self._wire.spent
        before = (spent.sending_s, spent.pulling_s, spent.waiting_s)
        answers = self._wire.ask(questions, seconds=seconds, quorum=quorum, grace_s=grace_s)
        try:
            while True:
                with _timed(self.times, f"{phase}: total"):
                    answer = next(answers, None)
                if answer is None:
                    return
                yield answer
        finally:
            after = (spent.sending_s, spent.pulling_s, spent.waiting_s)
            for part, was, now in zip(
                ("sending", "pulling", "waiting"), before, after, strict=True
            ):
                self.times[f"{phase}: {part}"] += now - was


@contextmanager
def _timed(times: Times, what: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        times[what] += time.monotonic() - began


@dataclass
class Clocked:
    """A plant's agent that writes how long each of its answers took."""

    agent: Answerer
    path: Path

    def answer(self, question: bytes) -> bytes:
        """Answer, and append the duration to a file."""
        ask = QUESTIONS.read(question).content.ask
        began = time.monotonic()
        answer = self.agent.answer(question)
        line = {
            "kind": ask.kind,
            "round": getattr(ask, "round", 0),
            "seconds": time.monotonic() - began,
        }
        with self.path.open("a", encoding="utf-8") as written:
            written.write(json.dumps(line) + "\n")
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The seconds of each part of each round, without the first round."""

    rounds: list[Times] = field(default_factory=list)
    plants: int
    weights: int
    load: str  # before and after

    @property
    def parts(self) -> list[str]:
        """The parts of a round, in order."""
        return sorted({what for each in self.rounds for what in each}, key=_order)

    def numbers(self, what: str) -> tuple[float, float, float, float]:
        """Return the mean, the standard deviation, the least and the most seconds of a part."""
        values = [each.get(what, 0.0) for each in self.rounds]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return statistics.fmean(values), spread, min(values), max(values)

    def markdown(self) -> str:
        """Return the table for a page."""
        head = (
            f"## {self.plants} plants\n\n{len(self.rounds)} rounds, {self.weights:,} weights; load "
            f"average {self.load}. {self.verdict}\n\n"
            "| part of a round | mean s | sd s | least s | most s |\n|---|---:|---:|---:|---:|\n"
        )
        rows = (
            f"| {what} | {' | '.join(f'{number:.2f}' for number in self.numbers(what))} |\n"
            for what in self.parts
        )
        return head + "".join(rows)

    @property
    def verdict(self) -> str:
        """Whether a round takes as long as it may."""
        limit = LIMITS_S.get(self.plants)
        if limit is None:
            return ""
        met = "met" if self.numbers("round")[0] <= limit else "MISSED"
        return f"Target: at most {limit:.0f} s a round: {met}."

    def table(self) -> Table:
        """Return a table with the mean, the spread and the share of each part."""
        table = Table(
            title=f"{self.plants} plants, {len(self.rounds)} rounds, {self.weights:,} weights"
        )
        for name in ("part of a round", "mean s", "sd s", "least s", "most s"):
            table.add_column(name, justify="left" if name.startswith("part") else "right")
        for what in self.parts:
            table.add_row(what, *(f"{number:.2f}" for number in self.numbers(what)))
        return table


def _order(what: str) -> tuple[int, str]:
    parts = [
        "round",
        "tokens",
        "updates",
        "admission",
        "presence",
        "log writes",
        "other",
        "processors",
    ]
    first = next((at for at, part in enumerate(parts) if what.startswith(part)), len(parts))
    return first, what if not what.endswith("total") else ""


def main() -> None:
    """Run one federation and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plants", type=int, nargs="+", default=[5])
    parser.add_argument("--rounds", type=int, default=10, help="rounds that are measured")
    parser.add_argument("--processes", type=int, default=2, help="processes of the plants")
    parser.add_argument("--system", default="unsafe", help="proof system of the admission")
    parser.add_argument("--out", type=Path, help="the page to write")
    parser.add_argument("--serve", type=Path, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    tables = []
    for plants in arguments.plants:
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(
                Path(folder),
                plants=plants,
                rounds=arguments.rounds,
                processes=arguments.processes,
                system=arguments.system,
            )
        console.print(measured.table())
        console.print(f"load average {measured.load}. {measured.verdict}", style="dim")
        tables.append(measured.markdown())
    if arguments.out:
        head = HEAD.format(
            plants=" ".join(map(str, arguments.plants)),
            rounds=arguments.rounds,
            processes=arguments.processes,
            system=arguments.system,
            cores=os.cpu_count(),
            flower=version("flwr"),
            rows=ROWS,
        )
        with atomically(arguments.out) as draft:
            draft.write_text(head + "\n" + "\n".join(tables), encoding="utf-8")


def measure(folder: Path, *, plants: int, rounds: int, processes: int, system: str) -> Measured:
    """Found a federation, run it, and return the times of its rounds."""
    load = _load()
    record, rules, starts = _files(folder, most=plants)
    site = _founded(folder / "coordinator", record, system=system)
    names = [f"plant-{at:02d}" for at in range(plants)]
    for name, start in zip(names, starts, strict=False):
        rows = TrainingRows(record=str(record), start=start, stop=start + ROWS)
        _join(site, folder / name, rules, rows)
    logged: Times = defaultdict(float)
    write_entry = Log.append

    def append(log: Log, *given: object, **named: object) -> object:
        with _timed(logged, "log writes"):
            return write_entry(log, *given, **named)  # type: ignore[arg-type]

    Log.append = append  # type: ignore[method-assign,assignment]
    store = CoordinatorStore(site.base)
    workers: list[subprocess.Popen[bytes]] = []
    marks: list[tuple[float, Times]] = []
    try:
        with hosted(site, store, proxy=True) as wire:
            metered = MeteredWire(wire)
            groups = [names[at::processes] for at in range(min(processes, plants))]
            workers += [_start([folder / name for name in group]) for group in groups]
            present = wait_for_plants(wire, store, seconds=300)
            if len(present) != plants:
                raise SystemExit(f"{len(present)} of {plants} plants are connected")
            service = coordinator_service(site, store, metered, clock=lambda: datetime.now(UTC))

            def mark(_: object) -> None:
                marks.append((time.monotonic(), {**metered.times, **logged, **_spent(workers)}))
                console.print(f"round {len(marks)}", style="dim")

            service.run(rounds=rounds + 1, on_round=mark)
    finally:
        Log.append = write_entry  # type: ignore[method-assign]
        store.close()
        for worker in workers:
            worker.terminate()
            worker.wait()
    training = _training(folder, names)
    each = [
        _round(before, after, training[number])
        for number, (before, after) in enumerate(pairwise(marks), start=2)
    ]
    return Measured(
        rounds=each,
        plants=plants,
        weights=site.terms.weights,
        load=f"{load} before and {_load()} after",
    )


def _round(before: tuple[float, Times], after: tuple[float, Times], plants: Times) -> Times:
    """Return the parts of one round."""
    times = {what: seconds - before[1].get(what, 0.0) for what, seconds in after[1].items()}
    times = {what: seconds for what, seconds in times.items() if seconds > 0}
    whole = after[0] - before[0]
    counted = sum(
        seconds
        for what, seconds in times.items()
        if what.endswith("total") or what in {"presence", "log writes"}
    )
    return {**times, **plants, "round": whole, "other: store, aggregation": whole - counted}


def _spent(workers: list[subprocess.Popen[bytes]]) -> Times:
    """Return the processor time so far of the coordinator, its other processes, and the plants."""
    plants = {worker.pid for worker in workers}
    tick = os.sysconf("SC_CLK_TCK")
    spent: Times = defaultdict(float)
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            seconds[int(entry.name)] = (int(fields[11]) + int(fields[12])) / tick
    for process, used in seconds.items():
        line = _ancestors(process, parents)
        if plants & line:
            spent["processors: plants"] += used
        elif process == os.getpid():
            spent["processors: coordinator"] += used
        elif os.getpid() in line:
            spent[f"processors: {_program(process)}"] += used
    return dict(spent)


def _program(process: int) -> str:
    """Return which of the coordinator's other processes this is."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        command = b""
    names = {b"flower-superlink": "Flower", b"filter_process": "filter", b"nginx": "nginx"}
    return next((name for part, name in names.items() if part in command), "others")


def _ancestors(process: int, parents: Mapping[int, int]) -> set[int]:
    line: set[int] = set()
    while process and process not in line:
        line.add(process)
        process = parents.get(process, 0)
    return line


def _training(folder: Path, names: list[str]) -> dict[int, Times]:
    """Return the slowest plant's seconds for its answers of each round."""
    slowest: dict[int, Times] = defaultdict(lambda: defaultdict(float))
    for name in names:
        for line in (folder / f"{name}.answers").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            what = {"token": "tokens: slowest training", "update": "updates: slowest reading"}
            if entry["kind"] in what:
                times = slowest[entry["round"]]
                part = what[entry["kind"]]
                times[part] = max(times[part], entry["seconds"])
    return slowest


def serve(folders: list[Path]) -> None:
    """Run these plants, one thread each, until this process is stopped."""
    _spread_over_loopback()
    running: list[Callable[[], None]] = []
    for folder in folders:
        plant = PlantFolder(folder)
        clocked = Clocked(plant.agent(reveal_rows=True), folder.with_suffix(".answers"))
        running.append(partial(take_part, node_of(plant), clocked))
    threads = [threading.Thread(target=each, daemon=True) for each in running]
    for thread in threads:
        thread.start()
    threading.Event().wait()


def _spread_over_loopback() -> None:
    """Let each connection come from another address, as those of plants at their own sites do."""
    connect, addresses = socket.create_connection, cycle(range(2, 250))
    lock = threading.Lock()

    def spread(address: tuple[str, int], timeout: float, *_: object, **__: object) -> socket.socket:
        with lock:
            source = f"127.0.{os.getpid() % 250}.{next(addresses)}"
        return connect(address, timeout, (source, 0))

    vars(socket)["create_connection"] = spread


def _start(folders: list[Path]) -> subprocess.Popen[bytes]:
    command = [*bound_to_us(), sys.executable, "-m", "benchmarks.round_latency", "--serve"]
    # Each process trains on one core, so that plants do not compete inside a process.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XLA_FLAGS": _ONE_THREAD}
    return subprocess.Popen([*command, *map(str, folders)], env=environment)  # noqa: S603


_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def _founded(folder: Path, record: Path, *, system: str) -> CoordinatorFolder:
    plan = FederationPlan(
        members_min=1,
        federation="latency",
        host="127.0.0.1",
        port=_free_port(),
        link_port=_free_port(),
        filter_port=_free_port(),
        reference=TrainingRows(record=str(record), start=CLEAN // 2, stop=CLEAN),
        policy='kind = "hardened"\n',
        system=system,
        rows_max=ROWS,
        descent=Descent(epochs=1, batch=256),
        round_deadline_s=300.0,
        batch_deadline_s=600.0,
        log=LogTerms(history=True),
        approvers=(APPROVER.public,),
    )
    return found_federation(folder, plan, at=datetime.now(UTC))


def _join(site: CoordinatorFolder, folder: Path, rules: Path, rows: TrainingRows) -> None:
    invitation = site.invite(folder.name, at=datetime.now(UTC))
    text = rules.read_text(encoding="utf-8")
    mined, now = load_rules(rules), datetime.now(UTC)
    plant = PlantFolder.create(
        folder, invitation, mined, text, rows, at=now, reveal_rows=site.terms.system == "unsafe"
    )
    request = read_document(JoinRequest, plant.folder / "request.json", private=True)
    declared = [("S_PU4", "runs only if S_PU3 fails")]
    approval = APPROVALS.write(approve(rules_hash(mined), APPROVER, declared=declared))
    site.enrol(request, approvals=[approval], at=now)


def _files(folder: Path, *, most: int) -> tuple[Path, Path, list[int]]:
    """Simulate one long record and mine its rules; each plant gets a stretch that is admitted."""
    stretches = 2 * most
    days = 1 + (CLEAN + stretches * ROWS) // DAY_ROWS
    record, rules = folder / "line.parquet", folder / "rules.json"
    write(simulate("line", seed=0, days=days), record, FileLayout.PARQUET)
    line = read_record(record)
    mined: RuleSet = mine(
        line.rows(0, CLEAN // 2), line.rows(CLEAN // 2, CLEAN), profile=Profile.HARDENED
    )
    save_rules(mined, rules)
    starts = [CLEAN + at * ROWS for at in range(stretches)]
    admitted = [
        start
        for start in starts
        if judge(line.rows(start, start + ROWS), mined, HardenedPolicy()).admitted
    ]
    return record, rules, admitted


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _load() -> str:
    return ", ".join(f"{each:.1f}" for each in os.getloadavg())


if __name__ == "__main__":
    main()
