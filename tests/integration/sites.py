"""A federation whose coordinator and plants are processes of their own, on this machine, over TLS.

`Draft` founds one and lets plants join, once. `Sites` runs a copy of it, can kill any of its
processes at a given log entry, and returns the outcome.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from sluice.aggregation.registry import RULES
from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import ENTRIES, Body, ClientExcluded, ModelAggregated
from sluice.attestation.messages.orders import APPROVALS, approve
from sluice.attestation.messages.signing import SigningKey
from sluice.detector.autoencoder import Parameters, initial
from sluice.federation.admission_check import Decision
from sluice.federation.messages import Reply, Request
from sluice.federation.rounds import begin, take_round
from sluice.federation.transport import InProcess
from sluice.invariants.ruleset import RuleSet
from sluice.invariants.rulesfile import rules_hash
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import FederationPlan, found_federation
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import JoinRequest, read_document, write_document
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.questions import model_hash
from sluice.network.wire.superlink import bound_to_us

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SLUICE = (sys.executable, "-c", "from sluice.cli import main; main()")
MALICIOUS = Path(__file__).parents[1] / "unit" / "network" / "malicious_plant.py"
CLOCK = Path(__file__).with_name("shifted_clock.c")
FLEET_ATTACKER = Path(__file__).with_name("fleet_attacker.py")
LONGEST_S = 600.0
APPROVER = SigningKey.generate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A federation that was founded and joined, and has not started."""

    folder: Path
    plants: tuple[str, ...]

    @classmethod
    def make(
        cls,
        folder: Path,
        plan: FederationPlan,
        rules: RuleSet,
        rules_file: Path,
        shares: Mapping[str, TrainingRows],
    ) -> "Draft":
        now = datetime.now(UTC)
        site = found_federation(folder / "water", plan, at=now)
        for name, share in shares.items():
            invitation = site.invite(name, at=now)
            text = rules_file.read_text(encoding="utf-8")
            plant = PlantFolder.create(folder / name, invitation, rules, text, share, at=now)
            request = read_document(JoinRequest, plant.folder / "request.json", private=True)
            approval = APPROVALS.write(approve(rules_hash(rules), APPROVER))
            site.enrol(request, approvals=[approval], at=now)
        return cls(folder=folder, plants=tuple(shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The outcome of a federation, from its log alone."""

    members: tuple[tuple[str, ...], ...]  # of each round
    excluded: tuple[dict[str, str], ...]  # of each round: plant -> step
    model: str  # hash
    entries: int


@dataclass(kw_only=True)
class Sites:
    """A running coordinator and its plants."""

    folder: Path
    cache: Path  # JAX's compiler cache, which all share, and the library that shifts the clock
    coordinator: subprocess.Popen[bytes] | None = None
    plants: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0  # from here to the end of the last round

    @property
    def site(self) -> CoordinatorFolder:
        return CoordinatorFolder(self.folder / "water")

    @property
    def said(self) -> Path:
        """The coordinator's output on stderr."""
        return self.folder / "coordinator.err"

    @property
    def clock(self) -> Path:
        """The library that shifts the clock of a process."""
        built = self.cache / "shifted_clock.so"
        if not built.exists():
            subprocess.run(("cc", "-shared", "-fPIC", "-o", built, CLOCK, "-ldl"), check=True)
        return built

    # -- processes ----------------------------------------------------------------------------

    def start(self, *flags: str) -> None:
        """Start the coordinator, and every plant that does not run yet."""
        self.start_coordinator(*flags)
        for entry in sorted(self.folder.iterdir()):
            running = self.plants.get(entry.name)
            ended = running is None or running.poll() is not None
            if (entry / "plant.json").exists() and ended:
                self.start_plant(entry.name)

    def start_coordinator(self, *flags: str, wait: float = 120, shift_s: int = 0) -> None:
        command = ("coordinator", "resume", str(self.site.folder), "--wait", str(wait), *flags)
        self.coordinator = self._start((*SLUICE, *command), self.said, shift_s)

    def start_plant(self, name: str, *, shift_s: int = 0) -> None:
        command = (*SLUICE, "plant", "run", str(self.folder / name))
        self.plants[name] = self._start(command, self.folder / f"{name}.err", shift_s)

    def start_malicious(
        self, name: str, attack: str, *more: str, program: Path = MALICIOUS
    ) -> None:
        command = (sys.executable, str(program), str(self.folder / name), attack, *more)
        self.plants[name] = self._start(command, self.folder / f"{name}.err", 0)

    def _start(self, command: tuple[str, ...], said: Path, shift_s: int) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}",
            "JAX_COMPILATION_CACHE_DIR": str(self.cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "OMP_NUM_THREADS": "1",
        }
        if shift_s:
            environment |= {"LD_PRELOAD": str(self.clock), "SLUICE_CLOCK_SHIFT": str(shift_s)}
        with said.open("ab") as err, said.with_suffix(".out").open("wb") as out:
            ours = (*bound_to_us(), *command)  # ends with the tests
            return subprocess.Popen(ours, env=environment, stdout=out, stderr=err)

    def type(self, *words: str) -> None:
        """Type a command of `sluice` in the folder, as an operator would."""
        done = subprocess.run(
            (*SLUICE, *words),
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    @property
    def superlink(self) -> int:
        """The process of Flower at the coordinator."""
        return self._found("flower-superlink", self.site.folder)

    @property
    def nginx(self) -> int:
        """The proxy's first process."""
        return int((self.site.folder / "proxy" / "nginx.pid").read_text(encoding="ascii"))

    @property
    def filter(self) -> int:
        """The process of the filter between the proxy and Flower."""
        own = (b"sluice.network.coordinator.filter_process", os.fsencode(self.site.folder))
        pids = [pid for pid in _pids() if all(each in _command(pid) for each in own)]
        assert pids, f"no filter of {self.site.folder} runs"
        return pids[0]

    def _found(self, program: str, folder: Path) -> int:
        pids = [pid for pid in _pids() if _runs(pid, program, folder)]
        assert pids, f"no {program} of {folder} runs"
        return pids[0]

    def stop(self) -> None:
        """Stop all processes; Flower and nginx end with the process that started them."""
        started = [*self.plants.values(), *([self.coordinator] if self.coordinator else [])]
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def processes(self, plant: str) -> dict[str, int]:
        """Return the process id of each kind of process."""
        assert self.coordinator is not None
        return {
            "the coordinator": self.coordinator.pid,
            "its SuperLink": self.superlink,
            "its filter": self.filter,
            "its nginx": self.nginx,
            "a plant": self.plants[plant].pid,
        }

    def memory_mb(self, plant: str) -> dict[str, float]:
        """Return the peak memory of each kind of process so far."""
        return {name: memory_of(pid, "VmHWM") for name, pid in self.processes(plant).items()}

    def agree(self, *, rounds: int, deadline_s: float | None = None) -> None:
        """Set another number of rounds, while the coordinator does not run."""
        terms = replace(self.site.terms, rounds=rounds)
        if deadline_s is not None:
            terms = replace(terms, round_deadline_s=deadline_s, batch_deadline_s=2 * deadline_s)
        write_document(terms, self.site.folder / "terms.json")

    # -- moments ------------------------------------------------------------------------------

    def await_said(self, words: str) -> None:
        self._await(lambda: words in self.said.read_text(encoding="utf-8"), words)

    def await_entry(self, kind: str, round_: int) -> None:
        """Wait until the log has such an entry of a round."""

        def there() -> bool:
            entries = (getattr(body, "round", None) for body in self.bodies() if body.kind == kind)
            return round_ in entries

        self._await(there, f"{kind} {round_}")

    def _await(self, there: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + LONGEST_S
        while not there():
            assert time.monotonic() < deadline, f"{what} never came"
            assert self.coordinator is None or self.coordinator.poll() is None, self.words()
            time.sleep(0.02)

    def words(self) -> str:
        return self.said.read_text(encoding="utf-8")[-2_000:]

    def end(self) -> Ending:
        """Wait until the coordinator has done all rounds, and read its log from the first entry."""
        assert self.coordinator is not None
        assert self.coordinator.wait(timeout=LONGEST_S) == 0, self.words()
        self.seconds = time.monotonic() - self.began
        return self.ending()

    # -- outcome ------------------------------------------------------------------------------

    def bodies(self) -> list[Body]:
        lines = self.site.log.read_bytes().split(b"\n")[:-1]
        return [ENTRIES.read(line).body for line in lines if line.startswith(b'{"body":')]

    def ending(self) -> Ending:
        ledger = read_log(self.site.log)
        verified = subprocess.run(
            (*SLUICE, "audit-log", "verify", str(self.site.log), "--json"),
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            check=True,
            capture_output=True,
        )
        assert json.loads(verified.stdout)["entries"] == ledger.size
        rounds = [body for body in self.bodies() if isinstance(body, ModelAggregated)]
        excluded: list[dict[str, str]] = [{} for _ in rounds]
        for body in self.bodies():
            if isinstance(body, ClientExcluded):
                excluded[body.round - 1][body.client] = body.step
        return Ending(
            members=tuple(body.clients for body in rounds),
            excluded=tuple(excluded),
            model=rounds[-1].model,
            entries=ledger.size,
        )

    def model(self) -> Parameters:
        """Return the weights that the store holds at the end."""
        store = CoordinatorStore(self.site.base)
        try:
            checkpoint = store.last(federation=self.site.terms.federation)
        finally:
            store.close()
        assert checkpoint is not None
        return checkpoint.parameters

    def in_one_process(self, members: tuple[tuple[str, ...], ...]) -> Parameters:
        """Return the weights of a federation in this process with these members in each round."""
        terms = self.site.terms
        names = sorted({name for each in members for name in each})
        transport = Apart({name: self._trainer(name) for name in names})
        start = initial(terms.framing.width, seed=terms.seed)
        admitted = {
            name: Decision(admitted=True, rows=len(PlantFolder(self.folder / name).share.read()))
            for name in names
        }
        checkpoint = begin(start, admitted)
        for each in members:
            if each:
                now = replace(checkpoint, decisions={name: admitted[name] for name in each})
                checkpoint = take_round(now, transport, RULES[terms.rule], None)
            else:
                checkpoint = replace(checkpoint, round=checkpoint.round + 1)
        return checkpoint.parameters

    def _trainer(self, name: str) -> InProcess:
        terms, batch = self.site.terms, PlantFolder(self.folder / name).share.read()
        windows = {name: terms.framing.windows(batch)}
        return InProcess(
            batches={name: batch}, windows=windows, descent=terms.descent, seed=terms.seed
        )

    def expected(self, members: tuple[tuple[str, ...], ...]) -> str:
        return model_hash(self.in_one_process(members))


@dataclass(frozen=True, slots=True)
class Apart:
    """Plants in this process, each trained separately, as plants at their own sites are."""

    plants: Mapping[str, InProcess]

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        replies: dict[str, Reply] = {}
        for name, request in requests.items():
            replies |= self.plants[name].exchange({name: request})
        return replies


@contextmanager
def running(draft: Draft, folder: Path, cache: Path) -> Iterator[Sites]:
    """Yield a copy of a drafted federation to run, and stop all of its processes at the end."""
    shutil.copytree(draft.folder, folder)
    sites = Sites(folder=folder, cache=cache)
    try:
        yield sites
    finally:
        sites.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def memory_of(pid: int, what: str) -> float:
    """Return a process's memory in MB: `VmRSS` is what it has now, `VmHWM` the most it had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if what in line) / 1024


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _command(pid: int) -> list[bytes]:
    """Return the command of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _runs(pid: int, program: str, folder: Path) -> bool:
    """Whether a process is this program, of this folder."""
    command = _command(pid)
    programs = {Path(os.fsdecode(part)).name for part in command[:2]}
    return program in programs and any(os.fsencode(folder) + b"/" in part for part in command)
