"""A long run of real processes over TLS, with kills and malicious plants: `make soak`.

Five honest plants take part. A seed draws the schedule: which process is killed in which round, and
which malicious plant comes when. At the end the log verifies from its first entry, the model is
that of the honest plants alone, and the memory of the processes has not grown.

In the first half of the rounds every kind of process is killed. In the second half the processes
whose memory is measured are not killed, so that each is measured in one long life; nginx and the
other plants are still killed, and malicious plants still come and go.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.gate import judge
from sluice.admission.policy import parse_policy
from sluice.attestation.log.entries import ENTRIES, Body, ClientExcluded, ModelAggregated
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.seeding import stream

from .conftest import Ground
from .outcomes import SoakPage, note_soak
from .sites import FLEET_ATTACKER, MALICIOUS, Draft, Sites, memory_of, running

pytestmark = pytest.mark.skipif(
    not {"SLUICE_NETWORK", "SLUICE_SOAK"} & set(os.environ),
    reason="make soak and make test-network run it",
)

ROUNDS = int(os.environ.get("SLUICE_SOAK", "30"))
SEED = int(os.environ.get("SLUICE_SOAK_SEED", "0"))
HONEST = ("east", "middle", "north", "south", "west")
MEASURED = "north"  # the plant whose memory is measured
ATTACKS: dict[str, tuple[Path, frozenset[str]]] = {
    "copied": (MALICIOUS, frozenset({"5.8"})),
    "forged": (MALICIOUS, frozenset({"5.7", "5.8"})),
    "overflow": (MALICIOUS, frozenset({"6.4"})),
    "silent": (MALICIOUS, frozenset({"4"})),
    "stale": (MALICIOUS, frozenset({"2", "5.7", "5.8"})),
    "swapped": (MALICIOUS, frozenset({"6.3"})),
    "flood": (FLEET_ATTACKER, frozenset({"6"})),
    "garbage": (FLEET_ATTACKER, frozenset({"6"})),
    "impersonator": (FLEET_ATTACKER, frozenset({"6"})),
    "large": (FLEET_ATTACKER, frozenset({"6"})),
    "withheld": (FLEET_ATTACKER, frozenset({"6"})),
}
"""The malicious plants: their program, and the steps at which the log leaves them out."""
AWAY = frozenset({"4", "6"})  # the steps of a plant that is not there, or suspended
VICTIMS = ("the coordinator", "its SuperLink", "its filter", "its nginx", "a plant")
CALM = ("its nginx", "a plant")  # killed in the second half too
ROWS, CALIBRATED = 600, 8_640
SUSPEND_AFTER = 5
STARTING_S = 12.0  # a malicious plant starts before an operator ends its suspension
STAY = 6  # rounds for which it then stays
STUCK_S = 600.0
LATEST_S = 3.0  # a kill comes up to so many seconds after the round before it has ended
RECOVERY = 6  # rounds after a kill in which an honest plant may be missing
MOST_GROWTH = 8.0  # MB in 100 rounds
WARM = 20  # rounds before the second half in which a measured process is not killed any more
LEAST_MEASURED = 100  # rounds; fewer show how a process warms up, not whether it grows


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What happens after which round."""

    kills: dict[int, str]
    visits: dict[int, str]

    @classmethod
    def draw(cls, seed: int, rounds: int) -> "Schedule":
        draw = stream(seed, "soak")
        apart = max(3, min(12, rounds // 6))
        kills = dict(zip(_moments(draw, rounds, apart), _cycled(draw, VICTIMS), strict=False))
        calm = _cycled(draw, CALM)
        second = {at: next(calm) for at in kills if at > rounds // 2 - WARM}
        visits = _moments(draw, rounds - 2 * STAY - SUSPEND_AFTER, max(2, min(14, rounds // 8)))
        visits = [at + SUSPEND_AFTER for at in visits]  # until then the absent are not suspended
        return cls(
            kills=kills if rounds < 2 * LEAST_MEASURED else kills | second,
            visits=dict(zip(visits, _cycled(draw, tuple(ATTACKS)), strict=False)),
        )


def _moments(draw: np.random.Generator, rounds: int, apart: int) -> list[int]:
    """Return rounds that are `apart` from each other on average."""
    moments = [1 + int(draw.integers(apart))]
    while (last := moments[-1]) < rounds:
        moments.append(last + int(draw.integers(max(2, 2 * apart // 3), 4 * apart // 3 + 1)))
    return moments[:-1]


def _cycled(draw: np.random.Generator, names: tuple[str, ...]) -> Iterator[str]:
    """Yield all names again and again, each time in another order."""
    while True:
        yield from (names[at] for at in draw.permutation(len(names)))


class Tail:
    """Reads the entries of a growing log, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def __iter__(self) -> Iterator[Body]:
        with self._path.open("rb") as log:
            log.seek(self._read)
            for line in log:
                if not (line.startswith(b'{"body":') and line.endswith(b"\n")):
                    return  # the signed head, or an entry that is being written
                self._read += len(line)
                yield ENTRIES.read(line[:-1]).body


@dataclass(kw_only=True)
class Soak:
    """The runner: it kills, lets malicious plants come and go, and measures memory."""

    sites: Sites
    schedule: Schedule
    rounds: int
    draw: np.random.Generator
    tell: Callable[[str], None]
    memory: dict[str, list[tuple[int, int, float]]] = field(default_factory=dict)
    killed: dict[str, int] = field(default_factory=dict)
    visited: dict[str, int] = field(default_factory=dict)
    missing: dict[int, set[str]] = field(default_factory=dict)  # round -> honest plants
    disturbed: set[int] = field(default_factory=set)  # rounds in which a process was killed
    steps: dict[str, set[str]] = field(default_factory=dict)  # malicious plant -> steps
    reinstated: int = 0  # honest plants
    stayed: set[str] = field(default_factory=set)  # malicious plants that came and went
    _starting: dict[str, float] = field(default_factory=dict)  # malicious plant -> since when
    _leaves: dict[str, int] = field(default_factory=dict)  # malicious plant -> round

    def run(self) -> None:
        """Run until the coordinator has done all rounds."""
        self.sites.start_coordinator(wait=60)
        for name in HONEST:
            self.sites.start_plant(name)
        tail, done, excluded = Tail(self.sites.site.log), 0, dict[str, str]()
        progress = time.monotonic()
        while done < self.rounds:
            time.sleep(0.2)
            coordinator = self.sites.coordinator
            assert coordinator is not None
            ended = coordinator.poll()
            for body in tail:
                if isinstance(body, ClientExcluded):
                    excluded[body.client] = body.step
                    self.steps.setdefault(body.client, set()).add(body.step)
                if isinstance(body, ModelAggregated):
                    done, progress = body.round, time.monotonic()
                    self._after(done, body.clients, excluded)
                    excluded = {}
            assert ended in {None, 0}, f"round {done}: {self.sites.words()}"
            assert time.monotonic() - progress < STUCK_S, f"round {done}: {self.sites.words()}"

    def _after(self, done: int, members: tuple[str, ...], excluded: dict[str, str]) -> None:
        """Measure, and do what the schedule says after a round."""
        self._measure(done)
        if absent := set(HONEST) - set(members):
            self.missing[done] = absent
        if done % 10 == 0 or done == self.rounds:
            now = {what: rows[-1][2] for what, rows in self.memory.items()}
            sizes = ", ".join(f"{what} {mb:.0f} MB" for what, mb in now.items())
            here = {*HONEST, *self._leaves}
            out = [f"{name} at {step}" for name, step in sorted(excluded.items()) if name in here]
            seconds = time.monotonic() - self.sites.began
            self.tell(
                f"round {done} after {seconds:.0f} s: members {', '.join(members)}; "
                f"excluded {', '.join(out) or 'none of those there'}; {sizes}"
            )
        if done >= self.rounds:
            return
        self._reinstate(*HONEST)
        for name in [name for name, leaves in self._leaves.items() if leaves <= done]:
            self._end(name)
            del self._leaves[name]
            self.stayed.add(name)
        for name, started in list(self._starting.items()):
            if time.monotonic() - started > STARTING_S:
                self._reinstate(name)
                del self._starting[name]
                self._leaves[name] = done + STAY
        if attack := self.schedule.visits.get(done):
            self._visit(attack, done)
        if victim := self.schedule.kills.get(done):
            self.disturbed.add(done + 1)
            time.sleep(float(self.draw.uniform(0, LATEST_S)))
            self.tell(f"after round {done}: kill -9 of {self._kill(victim, done)}")

    def _measure(self, done: int) -> None:
        with suppress(AssertionError, OSError, StopIteration):  # one is being restarted
            for what, pid in self.sites.processes(MEASURED).items():
                self.memory.setdefault(what, []).append((done, pid, memory_of(pid, "VmRSS")))

    def _kill(self, victim: str, done: int) -> str:
        sites = self.sites
        self.killed[victim] = self.killed.get(victim, 0) + 1
        if victim == "the coordinator":
            assert sites.coordinator is not None
            sites.coordinator.kill()
            sites.coordinator.wait()
            sites.start_coordinator(wait=15)
        elif victim == "a plant":
            spared = {MEASURED} if done > self.rounds // 2 - WARM else set()
            name = str(self.draw.choice([name for name in HONEST if name not in spared]))
            self._end(name)
            sites.start_plant(name)
            return f"plant {name}"
        else:
            with suppress(AssertionError, OSError):  # it is being restarted
                pid = {
                    "its SuperLink": lambda: sites.superlink,
                    "its filter": lambda: sites.filter,
                    "its nginx": lambda: sites.nginx,
                }[victim]()
                os.kill(pid, signal.SIGKILL)
        return victim

    def _visit(self, attack: str, done: int) -> None:
        if attack in self._leaves or attack in self._starting:
            return
        self.visited[attack] = self.visited.get(attack, 0) + 1
        other = str(self.sites.folder / MEASURED)
        self.sites.start_malicious(attack, attack, other, program=ATTACKS[attack][0])
        self._starting[attack] = time.monotonic()
        self.tell(f"after round {done}: the malicious plant {attack!r} comes")

    def _end(self, name: str) -> None:
        process = self.sites.plants.pop(name)
        process.kill()
        process.wait()

    def _reinstate(self, *names: str) -> None:
        """End suspensions, as an operator would."""
        store = CoordinatorStore(self.sites.site.base)
        try:
            for member in store.members():
                if member.name in names and member.suspended:
                    store.reinstate(member.name)
                    self.reinstated += member.name in HONEST
        finally:
            store.close()

    # -- outcome ------------------------------------------------------------------------------

    def slopes(self) -> dict[str, float]:
        """Return MB in 100 rounds of each process over the second half, by linear regression."""
        slopes = {}
        for what, rows in self.memory.items():
            second = [(at, mb) for at, _, mb in rows if at > self.rounds // 2]
            rounds, sizes = zip(*second, strict=True)
            slopes[what] = 100 * float(np.polyfit(rounds, sizes, 1)[0])
        return slopes

    def lives(self) -> dict[str, int]:
        """Return how many processes of each kind were measured in the second half."""
        return {
            what: len({pid for at, pid, _ in rows if at > self.rounds // 2})
            for what, rows in self.memory.items()
        }

    def unexplained(self) -> dict[int, set[str]]:
        """Return the rounds without a kill shortly before, in which honest plants were missing."""
        near = {at + later for at in self.disturbed for later in range(RECOVERY)}
        return {at: names for at, names in self.missing.items() if at > 1 and at not in near}


@pytest.fixture
def soak_draft(tmp_path: Path) -> Draft:
    """Five honest plants and a malicious one of each kind; phases are short."""
    names = (*HONEST, *ATTACKS)
    ground = Ground.make(tmp_path, simulate("line", seed=0, days=16), (4_320, CALIBRATED))
    whole, policy = ground.share(0, 1_440 * 16).read(), parse_policy(ground.policy, name="soak")
    starts = [
        start
        for start in range(CALIBRATED, len(whole) - ROWS, ROWS)
        if judge(whole.rows(start, start + ROWS), ground.rules, policy).admitted
    ]
    shares = {name: ground.share(at, at + ROWS) for name, at in zip(names, starts, strict=False)}
    assert len(shares) == len(names), f"only {len(starts)} stretches are admitted"
    draft = ground.draft(
        tmp_path / "draft",
        shares,
        rounds=ROUNDS,
        deadline_s=60.0,
        batch_deadline_s=10.0,
        rows_max=1_024,
        suspend_after=SUSPEND_AFTER,
        quorum=0.8,
        grace_s=6.0,
    )
    for name in names:
        PlantFolder(draft.folder / name).agent().attest()  # the deadline is for the transfer
    return draft


def test_honest_plants_finish_every_round_despite_kills_and_malicious_plants(
    soak_draft: Draft, jax_cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def tell(words: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"{words}\n")
            sys.stdout.flush()

    with running(soak_draft, tmp_path / "sites", jax_cache) as sites:
        soak = Soak(
            sites=sites,
            schedule=Schedule.draw(SEED, ROUNDS),
            rounds=ROUNDS,
            draw=stream(SEED, "soak moments"),
            tell=tell,
        )
        soak.run()
        ending = sites.end()
        slopes, lives = soak.slopes(), soak.lives()
        for what, slope in slopes.items():
            tell(f"{what}: {slope:+.2f} MB in 100 rounds, {lives[what]} processes measured")
        tell(f"killed: {soak.killed}; visits: {soak.visited}; reinstated: {soak.reinstated}")
        tell(f"honest plants were missing in {len(soak.missing)} rounds: {soak.missing}")
        tell(f"malicious plants were left out at steps {soak.steps}")
        assert len(ending.members) == ROUNDS
        assert all(members and set(members) <= set(HONEST) for members in ending.members)
        assert ending.model == sites.expected(ending.members)
        assert soak.unexplained() == {}
        assert soak.stayed
        for attack in soak.visited:
            assert soak.steps[attack] <= ATTACKS[attack][1] | AWAY, attack
        for attack in soak.stayed:
            program, steps = ATTACKS[attack]
            assert soak.steps[attack] & steps, attack
            if program is FLEET_ATTACKER:
                said = (sites.folder / f"{attack}.err").read_text(encoding="utf-8")
                assert "attacked in round" in said, attack
        if ROUNDS >= 2 * LEAST_MEASURED:
            for what in set(slopes) - {"its nginx"}:
                assert lives[what] == 1, f"{what} was restarted"
                assert slopes[what] < MOST_GROWTH, what
        note_soak(
            SoakPage(
                rounds=ROUNDS,
                seed=SEED,
                entries=ending.entries,
                seconds=sites.seconds,
                kills=soak.killed,
                visits=soak.visited,
                missing=sum(map(len, soak.missing.values())),
                possible=ROUNDS * len(HONEST),
                reinstated=soak.reinstated,
                slopes=slopes,
                memory={what: rows[-1][2] for what, rows in soak.memory.items()},
                bound=MOST_GROWTH,
            )
        )
