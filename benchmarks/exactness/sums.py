"""`python -m benchmarks sums`: whether the circuit's sums are the integers of NumPy.

Random batches of random registers and codes, with and without violating rows, with a second segment
now and then, of lengths at and around powers of two. For each, the core must find every constraint
satisfied by NumPy's sums, and some constraint broken by sums in which one integer is one off. A
share of the batches is proven and verified as a whole.
"""

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sluice import _attest
from sluice.arrays import Ints
from sluice.detector.moments import MomentSettings, MomentStatistic, sum_windows, trapezoid
from sluice.invariants import REGISTER_TOP, Register
from sluice.seeding import stream

__all__ = ["RandomBatch", "main", "random_batch", "try_batch"]

HEADER = 16 + 32 + 24
SALT, CONTEXT = bytes(32), bytes(range(32))
CODES = (0, 1, 5)
LENGTHS = (255, 256, 257, 511, 512, 513)
KINDS = (
    "bounds", "rates", "couplings", "balances", "windows", "liveness", "idle", "ties", "spectra",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomBatch:
    """Rows of a plant without rules, and their statistic."""

    core: _attest.FullCircuit
    planes: _attest.FullBatch
    budgets: bytes
    rows: int
    statistic: MomentStatistic
    segments: int


@lru_cache(maxsize=128)
def _circuit(registers: int, lags: int) -> tuple[_attest.FullCircuit, MomentSettings]:
    """Lay out a statement of registers that may be anything, and of one actuator.

    A switch band reads the actuator, and its budget is as large as there are rows.
    """
    names = [*(f"C{at}" for at in range(registers)), "S"]
    settings = MomentSettings(
        registers=tuple(Register(channel=name, low=0.0, step=1.0) for name in names), lags=lags
    )
    sources: list[object] = [*({"register": at} for at in range(registers)), {"actuator": 0}]
    lanes = [[{"source": source, "weight": 1}] for source in (*sources, "start")]
    band = {
        "actuator": 0, "codes": [1, 2], "register": 0, "before": False,
        "on": [0, 65_541], "off": [0, 65_541],
    }  # fmt: skip
    summed = [
        *({"register": at} for at in range(registers)),
        {"actuator": {"actuator": 0, "codes": list(CODES)}},
    ]
    statement = {
        "version": 2,
        "encoding": "0" * 64,
        "registers": [{"low": 0, "high": REGISTER_TOP}] * registers,
        "actuators": [{"codes": len(CODES), "legal": [0, 1, 2], "read": True}],
        "lanes": lanes,
        "jumps": True,
        "severe": False,
        "switches": [band],
        "statistic": {"settings": settings.digest, "lags": lags, "channels": summed},
        **{kind: [] for kind in KINDS},
    }
    return _attest.FullCircuit(json.dumps(statement).encode()), settings


def random_batch(rng: np.random.Generator) -> RandomBatch:
    """Draw a batch."""
    registers, lags = int(rng.integers(1, 5)), int(rng.integers(1, 13))
    core, settings = _circuit(registers, lags)
    rows = int(rng.choice(LENGTHS)) if rng.random() < 0.2 else int(rng.integers(lags + 1, 256))
    held = rng.integers(0, REGISTER_TOP + 1, (rows, registers), dtype=np.int64)
    if rng.random() < 0.1:
        held[:] = REGISTER_TOP  # the largest sums there are
    shown = rng.integers(0, len(CODES), rows)
    starts = np.zeros(rows, np.uint8)
    starts[0] = 1
    if rng.random() < 0.1:
        starts[int(rng.integers(1, rows))] = 1
    flagged = ((rng.random(rows) < 0.2) | (starts == 1)).astype(np.uint8)
    planes = _attest.FullBatch(
        rows,
        held.astype("<u2").tobytes(),
        shown.astype(np.uint8).tobytes(),
        starts.tobytes(),
        flagged.tobytes(),
    )
    budgets = {
        "violating": rows, "severe": 0, "segments": 2, "unsteady": [], "windows": [],
        "switches": [rows], "blocks": [],
    }  # fmt: skip
    weights = np.zeros(rows, np.int64)
    weights[lags - 1 :] = trapezoid(rows - lags + 1)
    integers: Ints = np.column_stack([held, np.asarray(CODES)[shown]])
    return RandomBatch(
        core=core,
        planes=planes,
        budgets=json.dumps(budgets).encode(),
        rows=rows,
        statistic=sum_windows(integers, weights, settings),
        segments=int(starts.sum()),
    )


def try_batch(batch: RandomBatch, rng: np.random.Generator, *, prove: bool) -> str:
    """Return how the core and NumPy compare: "agree", "jump refused", or what went wrong."""
    content = batch.statistic.canonical()
    core, budgets, planes = batch.core, batch.budgets, batch.planes
    if batch.segments > 1:
        try:
            core.examine(budgets, planes, content)
        except _attest.RefusedBatchError:
            broken = core.forced(budgets, planes, content)
            return "jump refused" if broken else "a jump breaks no constraint"
        return "a jump is taken"
    try:
        core.examine(budgets, planes, content)
    except (RuntimeError, _attest.RefusedBatchError) as refused:
        return f"NumPy's sums are refused: {refused}"
    wrong = _one_off(batch, rng)
    if core.forced(budgets, planes, wrong) == 0:
        return "one off breaks no constraint"
    return _prove(batch, wrong) if prove else "agree"


def _one_off(batch: RandomBatch, rng: np.random.Generator) -> bytes:
    """Return the statistic with one integer one less, or one more if it is zero."""
    sums, lagged = batch.statistic.sums.copy(), batch.statistic.lagged.copy()
    lags, channels, _ = lagged.shape
    if rng.random() < 0.2:
        at = int(rng.integers(channels))
        sums[at] += -1 if sums[at] else 1
    else:
        lag, row, column = (int(rng.integers(size)) for size in (lags, channels, channels))
        value = lagged[lag, row, column] + (-1 if lagged[lag, row, column] else 1)
        lagged[lag, row, column] = value
        if lag == 0:
            lagged[lag, column, row] = value
    body = b"".join(part.astype("<i8").tobytes() for part in (sums, lagged))
    return batch.statistic.canonical()[:HEADER] + body


def _prove(batch: RandomBatch, wrong: bytes) -> str:
    content = batch.statistic.canonical()
    commitment = batch.core.commit(batch.planes, SALT)
    proof = batch.core.prove(batch.budgets, batch.planes, SALT, CONTEXT, content)
    claims: list[tuple[bytes, int, bytes, bytes, bytes, bytes | None]] = [
        (batch.budgets, batch.rows, commitment, CONTEXT, proof, each) for each in (content, wrong)
    ]
    right, lied = batch.core.verify_many(claims)
    if right is not None:
        return f"a proof is refused: {right}"
    return "agree, proven" if lied is not None else "one off is verified"


def main() -> None:
    """Compare, print the counts, and end with an error if there is a disagreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--proofs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=100)
    asked = parser.parse_args()
    rng = stream(asked.seed, "sums")
    found: Counter[str] = Counter()
    began = time.perf_counter()
    for at in range(asked.batches):
        batch = random_batch(rng)
        prove = found["agree, proven"] < asked.proofs and at % 2 == 0
        found[try_batch(batch, rng, prove=prove)] += 1
    seconds = time.perf_counter() - began
    print(f"{asked.batches:,} batches, seed {asked.seed}, {seconds:.0f} s")
    for what, count in found.most_common():
        print(f"{count:>7,}  {what}")
    if set(found) - {"agree", "agree, proven", "jump refused"}:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
