"""Measure how long a coordinator takes to open a long log: from its signed snapshot, or whole.

The log is synthetic. Every entry is in canonical form, chained, and signed with the keys of the
coordinator and of each plant, so it verifies. Its snapshot is as old as it can be: the log has
almost `SNAPSHOT_EVERY` entries more. Plants renew their batches before these expire. A process of
its own opens the log each time, with the code that `sluice coordinator resume` runs.

Verifying the whole log takes time in proportion to its entries. By default it is measured on a log
of fewer rounds, and the time for the long one is computed from that.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console

from sluice.attestation.log import (
    COORDINATOR,
    ENTRIES,
    HEADS,
    SNAPSHOT_EVERY,
    BatchAttested,
    BatchCommitted,
    Body,
    ClientRegistered,
    Entry,
    Head,
    HeadCountersigned,
    Ledger,
    LedgerSnapshot,
    Log,
    LogOpened,
    LogTerms,
    ModelAggregated,
    PledgesClosed,
    RoundOpened,
    UpdatePledged,
    UpdateRevealed,
    entry_digest,
    save_snapshot,
    snapshot_path,
)
from sluice.attestation.messages import (
    Commit,
    Interval,
    Registration,
    RegistrationTerms,
    Signed,
    SigningKey,
    Token,
    approve,
    instant,
    sign,
)
from sluice.files import atomically

FEDERATION = "many"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ROUND, ENTRY = timedelta(hours=1), timedelta(milliseconds=1)
RENEW_ROUNDS = 24 * 24  # the batches of a plant hold for 30 days
ROWS = 600
LIMIT_S = 10.0
console = Console(highlight=False)


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass(kw_only=True)
class Written:
    """A log that is being written: its file, and the ledger of its entries."""

    file: BinaryIO
    coordinator: SigningKey
    keys: dict[str, SigningKey]
    ledger: Ledger
    now: datetime = BEGAN
    last: str = "0" * 64
    length: int = 0
    last_length: int = 0
    read_back: int = 0  # entries that the real reader has read

    def add(self, body: Body, content: dict[str, Any]) -> None:
        """Write an entry; `content` is its body as JSON."""
        self.now += ENTRY
        index, at = self.ledger.size, instant(self.now)
        document = {
            "body": content,
            "index": index,
            "previous": self.last,
            "schema": 1,
            "time": at,
        }
        line = _canonical(document)
        entry = Entry(index=index, previous=self.last, time=at, body=body)
        if self.read_back < 2_000:  # the same entry and bytes as the real code's
            self.read_back += 1
            if ENTRIES.read(line) != entry:
                raise SystemExit(f"entry {index} of the synthetic log is not what it should be")
        self.last = entry_digest(line)
        self.ledger.note(entry, self.last)
        self.file.write(line + b"\n")
        self.last_length = len(line) + 1
        self.length += self.last_length

    def plain(self, body: Body) -> None:
        """Write an entry by way of the real writer, which is slower."""
        line = ENTRIES.write(Entry(index=0, previous=self.last, time=instant(self.now), body=body))
        self.add(body, json.loads(line)["body"])

    def snapshot(self, path: Path) -> None:
        """Save the ledger's state, as a coordinator does now and then."""
        snapshot = LedgerSnapshot(
            state=self.ledger.state, length=self.length, last_length=self.last_length
        )
        save_snapshot(path, snapshot, self.coordinator)

    def end(self) -> None:
        """Write the signed head."""
        head = Head(
            federation=FEDERATION, signer=COORDINATOR, size=self.ledger.size, last=self.last
        )
        self.file.write(HEADS.write(sign(head, self.coordinator)) + b"\n")


def _canonical(document: object) -> bytes:
    """Return canonical JSON; its texts are ASCII and its numbers integers."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def write_log(path: Path, key: SigningKey, *, rounds: int, plants: int) -> Written:
    """Write a log of so many rounds with all plants in each, and its snapshot."""
    names = [f"plant-{at:03d}" for at in range(plants)]
    keys = {name: SigningKey.generate() for name in names}
    entries = rounds * (3 * plants + 3) + plants + 1
    entries += 2 * plants * (1 + (rounds - 1) // RENEW_ROUNDS)
    saved_at = max(1, entries - SNAPSHOT_EVERY + 1)
    approver = SigningKey.generate()
    with path.open("wb", buffering=1 << 20) as file:
        log = Written(file=file, coordinator=key, keys=keys, ledger=Ledger())
        log.plain(
            LogOpened(
                federation=FEDERATION,
                coordinator=key.public,
                approvers=(approver.public,),
                terms=LogTerms(),
            )
        )
        for name in names:
            registration = _registration(name, keys[name])
            approval = approve(registration.rules, approver)
            signed = sign(registration, keys[name])
            log.plain(ClientRegistered(registration=signed, looser=False, approvals=(approval,)))
        began = time.monotonic()
        for round_ in range(1, rounds + 1):
            log.now = max(log.now, BEGAN + round_ * ROUND)
            if (round_ - 1) % RENEW_ROUNDS == 0:
                for name in names:
                    _attest(log, name, round_)
            _round(log, names, round_, path, saved_at)
            if round_ % 500 == 0:
                spent = time.monotonic() - began
                console.print(f"{round_} rounds are written, {spent:.0f} s", style="dim")
        log.end()
    if log.ledger.size != entries:
        raise SystemExit(f"the log has {log.ledger.size} entries and not {entries}")
    return log


def _registration(name: str, key: SigningKey) -> Registration:
    return Registration(
        federation=FEDERATION,
        client=name,
        key=key.public,
        system="full",
        circuit=_hash("circuit"),
        rules=_hash("rules"),
        policy=_hash("policy"),
        terms=RegistrationTerms(rows_min=1, rows_max=1_024, stride_us=60_000_000, overlaps=False),
    )


def _attest(log: Written, name: str, round_: int) -> None:
    """Write a plant's commitment to a new batch, and its attestation."""
    end = log.now.replace(tzinfo=None) - timedelta(hours=1)
    start = end - ROWS * timedelta(minutes=1)
    commitment = _hash("commitment", name, round_)
    registration = log.ledger.client(name, step="2")
    commit = Commit(
        federation=FEDERATION,
        client=name,
        key=registration.key,
        system=registration.system,
        circuit=registration.circuit,
        rules=registration.rules,
        policy=registration.policy,
        commitment=commitment,
        rows=ROWS,
        interval=Interval(
            start=start.isoformat(timespec="microseconds"),
            end=end.isoformat(timespec="microseconds"),
        ),
    )
    log.plain(BatchCommitted(commit=sign(commit, log.keys[name])))
    attestation = _hash("attestation", name, round_)
    log.plain(BatchAttested(client=name, commitment=commitment, attestation=attestation))


def _round(log: Written, names: list[str], round_: int, path: Path, saved_at: int) -> None:
    """Write one round: every plant pledges, reveals and countersigns."""
    before, after = _hash("model", round_ - 1), _hash("model", round_)

    def add(body: Body, content: dict[str, Any]) -> None:
        log.add(body, content)
        if log.ledger.size == saved_at:
            log.snapshot(path)

    deadline = instant(log.now + ROUND)
    opened = {"deadline": deadline, "kind": "round opened", "model": before, "round": round_}
    add(RoundOpened(round=round_, model=before, deadline=deadline), opened)
    attested = (round_ - 1) // RENEW_ROUNDS * RENEW_ROUNDS + 1
    for name in names:
        update = _hash("update", name, round_)
        token = {
            "attestation": _hash("attestation", name, attested),
            "client": name,
            "federation": FEDERATION,
            "model": before,
            "protocol": 1,
            "round": round_,
            "schema": 1,
            "update": update,
        }
        signature = log.keys[name].sign(Token.TAG, _canonical(token))
        made = Token(
            federation=FEDERATION,
            client=name,
            round=round_,
            model=before,
            attestation=str(token["attestation"]),
            update=update,
        )
        signed = {"content": token, "signature": signature}
        body = UpdatePledged(token=Signed(content=made, signature=signature))
        add(body, {"kind": "pledged", "token": signed})
    add(PledgesClosed(round=round_), {"kind": "pledges closed", "round": round_})
    for name in names:
        update = _hash("update", name, round_)
        revealed = {"client": name, "kind": "revealed", "round": round_, "update": update}
        add(UpdateRevealed(round=round_, client=name, update=update), revealed)
        size, last = log.ledger.size, log.last
        seen = {
            "federation": FEDERATION,
            "last": last,
            "protocol": 1,
            "schema": 1,
            "signer": name,
            "size": size,
        }
        signature = log.keys[name].sign(Head.TAG, _canonical(seen))
        head = Head(federation=FEDERATION, signer=name, size=size, last=last)
        content = {"kind": "countersigned", "head": {"content": seen, "signature": signature}}
        add(HeadCountersigned(head=Signed(content=head, signature=signature)), content)
    aggregated = {"clients": names, "kind": "aggregated", "model": after, "round": round_}
    add(ModelAggregated(round=round_, model=after, clients=tuple(names)), aggregated)


# -- measuring --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One opening, in a process of its own."""

    seconds: float
    size: int  # entries
    before_mb: float  # memory before
    peak_mb: float

    @classmethod
    def of(cls, path: Path, key: Path, *, replay: bool) -> "Opening":
        """Open a log in another process."""
        command = [sys.executable, "-m", "benchmarks.log_open", "--open", str(path), str(key)]
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, *(["--replay"] if replay else [])], check=True, capture_output=True
        )
        return cls(**json.loads(done.stdout))


def open_once(path: Path, key: Path, *, replay: bool) -> None:
    """Open a log in this process, and print how long it took and its memory."""
    signing = SigningKey.load(key)
    before = _memory_mb("VmRSS")
    began = time.perf_counter()
    log = Log.open(path, signing, replay=replay)
    seconds = time.perf_counter() - began
    opening = {"seconds": seconds, "size": log.ledger.size, "before_mb": before}
    sys.stdout.write(json.dumps({**opening, "peak_mb": _memory_mb("VmHWM")}))


def _memory_mb(what: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Opening one log from its snapshot and verifying a log as a whole, side by side."""

    rounds: int
    plants: int
    entries: int
    log_mb: float
    snapshot_mb: float
    opened: tuple[Opening, ...]
    replay_rounds: int
    replayed: Opening
    load: str

    @property
    def open_s(self) -> float:
        """The median time from the snapshot."""
        return statistics.median(each.seconds for each in self.opened)

    @property
    def replay_s(self) -> float:
        """The time to verify the whole log, in proportion to what was measured."""
        return self.replayed.seconds * self.entries / self.replayed.size

    def page(self) -> str:
        """Return the outcome as a page."""
        times = sorted(each.seconds for each in self.opened)
        measured = self.replay_rounds == self.rounds
        note = "measured" if measured else f"computed from {self.replay_rounds:,} rounds"
        peak = max(each.peak_mb for each in self.opened)
        verdict = "at most" if self.open_s <= LIMIT_S else "MORE THAN"
        cost = 1e6 * self.replayed.seconds / self.replayed.size
        return f"""# Opening a long log

Written on a machine with {os.cpu_count()} cores and a load of {self.load} by

    python -m benchmarks log-open --rounds {self.rounds} --plants {self.plants} \\
      --replay-rounds {self.replay_rounds} --repeats {len(times)} --out docs/results/log-open.md

The log has {self.rounds:,} rounds of {self.plants} plants: {self.entries:,} entries, \
{self.log_mb:,.0f} MB.
Every entry is chained and signed as in a real federation. Each plant renews its batch every
{RENEW_ROUNDS} rounds. The coordinator's signed snapshot is {SNAPSHOT_EVERY - 1:,} entries old, the
most that it can be, and has {self.snapshot_mb:.1f} MB. A process of its own opens the log each \
time.

| opened | seconds | least | most | memory before, MB | peak, MB |
|---|---:|---:|---:|---:|---:|
| from the snapshot, median of {len(times)} | {self.open_s:.2f} | {times[0]:.2f} | \
{times[-1]:.2f} | {self.opened[0].before_mb:.0f} | {peak:.0f} |
| as a whole, {note} | {self.replay_s:,.0f} | | | {self.replayed.before_mb:.0f} | \
{self.replayed.peak_mb:.0f} |

Ratio: {self.replay_s / self.open_s:,.0f}. Opening takes {verdict} {LIMIT_S:.0f} s.

Verifying the whole log costs {cost:.0f} microseconds an entry, measured on \
{self.replayed.size:,} entries in
{self.replayed.seconds:.0f} s. The peak memory in that row is of that log. `sluice audit-log verify`
always verifies every entry. A snapshot that the coordinator's own key has not signed is not used.
"""


def compare(
    folder: Path, *, rounds: int, plants: int, replay_rounds: int, repeats: int
) -> Comparison:
    """Write the logs and open them."""
    key, path = SigningKey.generate(), folder / "log.jsonl"
    saved = folder / "coordinator.key"
    key.save(saved)
    log = write_log(path, key, rounds=rounds, plants=plants)
    whole = path
    if replay_rounds < rounds:
        whole = folder / "shorter.jsonl"
        write_log(whole, key, rounds=replay_rounds, plants=plants)
    opened = tuple(Opening.of(path, saved, replay=False) for _ in range(repeats))
    if {each.size for each in opened} != {log.ledger.size}:
        raise SystemExit("the log was not opened as a whole")
    console.print(f"opened in {[round(each.seconds, 2) for each in opened]} s", style="dim")
    return Comparison(
        rounds=rounds,
        plants=plants,
        entries=log.ledger.size,
        log_mb=path.stat().st_size / 1e6,
        snapshot_mb=snapshot_path(path).stat().st_size / 1e6,
        opened=opened,
        replay_rounds=min(rounds, replay_rounds),
        replayed=Opening.of(whole, saved, replay=True),
        load=f"{os.getloadavg()[0]:.1f}",
    )


def main() -> None:
    """Measure one size, print the page, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--plants", type=int, default=100)
    parser.add_argument(
        "--replay-rounds", type=int, default=200, help="rounds of the log that is verified whole"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the logs are written (3 GB)")
    parser.add_argument("--out", type=Path, help="the page to write")
    parser.add_argument("--open", type=Path, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--replay", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.open:
        open_once(*arguments.open, replay=arguments.replay)
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        compared = compare(
            Path(folder),
            rounds=arguments.rounds,
            plants=arguments.plants,
            replay_rounds=arguments.replay_rounds,
            repeats=arguments.repeats,
        )
    console.print(compared.page(), markup=False)
    if arguments.out:
        with atomically(arguments.out) as draft:
            draft.write_text(compared.page(), encoding="utf-8")
    if compared.open_s > LIMIT_S:
        raise SystemExit(f"opening takes {compared.open_s:.1f} s; the limit is {LIMIT_S:.0f} s")


if __name__ == "__main__":
    main()
