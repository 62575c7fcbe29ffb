"""`watch`: rows a second and the latency of alarms on one core, beside a naive pandas loop.

Rows are those of the simulated treatment plant, 51 channels, judged by its rules and a detector.
Each figure is given for two detectors: `physics+moments`, which `sluice train` makes by default,
and `subspace`, which the rival evaluates too.

- Throughput: a watch with its state on disk takes rows in parts of 64, as it does when it lags.
- Latency: rows are written one by one to `sluice watch -`, a process of its own. It is the time
  from writing the row that raises an alarm to reading the alarm's line. It includes reading the
  text.
- Rival: a loop that appends each row to a pandas frame, and evaluates the same couplings, ranges,
  rates and detector on its last rows. It has no state, no alarms and no windows of rules.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from sluice.detector import DEFAULT_KIND, Detector, Subspace, save_detector, train
from sluice.invariants import Bound, Coupling, Rate, RuleSet, mine, save_rules
from sluice.lab.plants import simulate
from sluice.telemetry import Record
from sluice.watch import (
    Store,
    Subject,
    Watch,
    WatchParts,
    WatchSettings,
    store_identity,
    subject_of,
)
from sluice.watch.sinks import Delivery
from sluice.watch.sources import HistorySource, SourceState

PART_ROWS = 64
ATTACK_EVERY, ATTACK_ROWS = 400, 12
FLOWS = ("FIT101", "FIT201", "FIT301")  # each is stopped in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The plant's rules and detector, and rows in which a flow meter stops now and then."""

    name: str  # of the detector
    rules: RuleSet
    detector: Detector
    rows: Record

    def first(self, rows: int) -> "Ground":
        """Return the same with only the first rows."""
        return replace(self, rows=self.rows.rows(0, min(rows, len(self.rows))))


def grounds(rows: int) -> tuple[Ground, Ground]:
    """Simulate, mine and train the default detector and the rival's."""
    plant = simulate("treatment", seed=0, days=2)
    half = len(plant) // 2
    clean = plant.rows(0, half)
    rules = mine(clean.rows(0, half // 2), clean.rows(half // 2, half))
    later = plant.rows(half, half + rows)
    values = later.values.copy()
    for number, start in enumerate(range(ATTACK_EVERY, rows, ATTACK_EVERY)):
        column = later.index(FLOWS[number % len(FLOWS)])
        values[start : start + ATTACK_ROWS, column] += 3.0
    default = train(clean, rules=rules, false_alarms_per_week=1.0)
    subspace = train(clean, kind="subspace", false_alarms_per_week=1.0)
    return (
        Ground(name=DEFAULT_KIND, rules=rules, detector=default, rows=later.with_values(values)),
        Ground(name="subspace", rules=rules, detector=subspace, rows=later.with_values(values)),
    )


@contextmanager
def one_core() -> Iterator[None]:
    """Run on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """How fast a watch is."""

    rows_per_s: float
    rows_per_cpu_s: float  # what a busy machine does not change
    alarms: int


def throughput(found: Ground, subject: Subject, *, part: int) -> Throughput:
    """Run a watch with its state on disk."""
    settings = WatchSettings()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder, "watch.db"), identity=store_identity(subject, settings))
        parts = WatchParts(
            subject=subject, settings=settings, store=store, delivery=Delivery(store, ())
        )
        watch = Watch(parts)
        source = HistorySource(found.rows, subject, chunk=part)
        began, began_cpu = time.perf_counter(), time.process_time()
        while source.state is not SourceState.OVER:
            watch.step(source, wait_s=0.0)
        took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
        store.close()
    return Throughput(
        rows_per_s=len(found.rows) / took,
        rows_per_cpu_s=len(found.rows) / took_cpu,
        alarms=watch.raised,
    )


def latencies(found: Ground, *, rows_per_s: float) -> list[float]:
    """Return the time from each row that raises an alarm to the alarm's line, in milliseconds."""
    record = found.rows
    written: dict[str, float] = {}
    seen: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        rules, model = Path(folder, "rules.json"), Path(folder, "model.safetensors")
        save_rules(found.rules, rules)
        save_detector(found.detector, model)
        words = [sys.executable, "-m", "sluice", "watch", "-", "--rules", str(rules)]
        words += ["--model", str(model), "--state", str(Path(folder, "watch.db")), "--json"]
        process = subprocess.Popen(  # noqa: S603 - our own command
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        assert process.stdin is not None
        assert process.stdout is not None
        output = process.stdout

        def read() -> None:
            for line in output:
                seen.append((json.loads(line)["last"], time.perf_counter()))

        reading = threading.Thread(target=read)
        reading.start()
        process.stdin.write("time," + ",".join(record.names) + "\n")
        for number, (at, values) in enumerate(zip(record.times, record.values, strict=True)):
            stamp = str(at.astype("datetime64[s]"))
            line = f"{stamp}," + ",".join(map(repr, values.tolist())) + "\n"
            written[stamp] = time.perf_counter()
            process.stdin.write(line)
            time.sleep(2.0 if number == 8 else 1 / rows_per_s)  # the process starts meanwhile
        process.stdin.close()
        process.wait()
        reading.join()
    return [1e3 * (arrived - written[stamp]) for stamp, arrived in seen]


def with_pandas(found: Ground) -> tuple[float, int]:
    """Return rows a second of a loop over rows, and how many rows broke something."""
    rules, detector, record = found.rules, found.detector, found.rows
    model, scaler = detector.model, detector.framing.scaler
    assert isinstance(model, Subspace)
    frame = pd.DataFrame(columns=list(record.names), dtype=float)
    broken = 0
    began = time.perf_counter()
    for number, values in enumerate(record.values):
        frame.loc[number] = values
        last = frame.iloc[-max(detector.framing.window_rows, 2) :]
        now = last.iloc[-1]
        wrong = False
        for rule in rules.invariants:
            match rule.relation:
                case Coupling() as coupling:
                    states = {state.code: state.nominal for state in coupling.states}
                    nominal = states.get(round(now[coupling.actuator]), 0.0)
                    wrong |= abs(now[coupling.flow] - nominal) > rule.tolerance
                case Bound() as bound:
                    wrong |= not bound.low <= now[bound.channel] <= bound.high
                case Rate() as rate if len(last) > 1:
                    wrong |= abs(last[rate.channel].diff().iloc[-1]) > rule.tolerance
        if len(last) == detector.framing.window_rows:
            scaled = (last[list(scaler.names)] - scaler.mean) / scaler.spread
            off = scaled.to_numpy().ravel() - model.mean
            rest = off - (off @ model.basis.T) @ model.basis
            wrong |= float(rest @ rest) / len(rest) > detector.threshold.score
        broken += wrong
        if len(frame) > 1_000:
            frame = frame.iloc[-100:]
    return len(record) / (time.perf_counter() - began), broken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks watch", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the throughput")
    parser.add_argument("--live-rows", type=int, default=3_000, help="rows written one by one")
    parser.add_argument("--rival-rows", type=int, default=600, help="rows of the pandas loop")
    options = parser.parse_args()
    default, subspace = grounds(options.rows)
    with one_core():
        rival, _ = with_pandas(subspace.first(options.rival_rows))
    print(f"naive pandas loop, subspace: {rival:,.0f} rows/s, {1e3 / rival:.1f} ms a row")
    for found in (default, subspace):
        _measure(found, live_rows=options.live_rows, rival=rival)


def _measure(found: Ground, *, live_rows: int, rival: float) -> None:
    """Measure and print one detector's figures."""
    subject = subject_of(found.rules, found.detector)
    short = found.first(live_rows)
    with one_core():
        ours = throughput(found, subject, part=PART_ROWS)
        single = throughput(short, subject, part=1)
    live = latencies(short, rows_per_s=200.0)
    print(
        f"watch with {found.name}, {len(found.rows):,} x {len(found.rows.channels)}, "
        f"{len(found.rules.invariants)} rules, one core: {ours.rows_per_s:,.0f} rows/s in parts of "
        f"{PART_ROWS} ({ours.rows_per_cpu_s:,.0f} per CPU second), {single.rows_per_s:,.0f} rows/s "
        f"one by one ({single.rows_per_cpu_s:,.0f} per CPU second), {ours.rows_per_s / rival:,.0f} "
        f"and {single.rows_per_s / rival:,.1f} times as fast as the loop; {ours.alarms} alarms"
    )
    print(
        f"  row to line: {len(live)} alarms of {len(short.rows):,} rows at 200 a second: "
        f"median {statistics.median(live):.1f} ms, 95 % below {np.quantile(live, 0.95):.1f} ms, "
        f"most {max(live):.1f} ms"
    )


if __name__ == "__main__":
    main()
