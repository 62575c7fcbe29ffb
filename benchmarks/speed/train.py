"""`train`: a whole federation's local training, beside the machine's ceiling.

The federation is as large as the paper's on SWaT. Products of large square matrices are timed in
the same run, in turns with it, and the best of each counts, because other load on the machine only
adds time.
"""

import sys
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.speed.ceiling import Ceiling, ceiling, needed_flop, training_flop
from sluice.cli import out, table
from sluice.detector import Descent, initial
from sluice.errors import SettingError
from sluice.federation import Fleet
from sluice.seeding import stream
from sluice.telemetry import WINDOW_ROWS, Windows

__all__ = ["TrainBench", "bench_train", "payload", "show"]

CHANNELS = 42
MATRIX_SIZES = (2_048, 4_096)
PRODUCTS = 3  # of each size, per turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainBench:
    """One federation: its size, its shortest time, and the machine's ceiling."""

    clients: int
    rows: int  # of each client
    rounds: int
    descent: Descent
    flop: int  # 6 per weight and window
    needed_flop: int  # without the gradient of the first layer's inputs
    seconds: float
    compile_seconds: float
    peak_bytes: int
    above: Ceiling

    @property
    def flops(self) -> float:
        """Operations per second, as training is usually counted."""
        return self.flop / self.seconds

    @property
    def share_of_peak(self) -> float:
        """The rate of training over the rate of large products."""
        return self.flops / self.above.flops

    @property
    def needed_share(self) -> float:
        """The same, counting only operations that the algorithm needs."""
        return self.share_of_peak * self.needed_flop / self.flop


def bench_train(*, clients: int, rows: int, rounds: int, repeats: int) -> TrainBench:
    """Train the federation `repeats` times, and multiply square matrices in between."""
    if min(clients, rounds, repeats) < 1 or rows < WINDOW_ROWS:
        raise SettingError(
            f"the bench trains at least 1 client of {WINDOW_ROWS} rows for 1 round, got {clients} "
            f"of {rows} rows for {rounds}"
        )
    descent = Descent()
    windows = {f"client {index}": _windows(rows, index) for index in range(clients)}
    fleet = Fleet.of(windows, descent=descent)
    first = _seconds(fleet, rounds=1)
    peak = _peak_bytes()
    seconds, above = np.inf, Ceiling(numpy=0, xla=0)
    for _ in range(repeats):
        for size in MATRIX_SIZES:
            above = above.or_higher(ceiling(size=size, repeats=PRODUCTS))
        seconds = min(seconds, _seconds(fleet, rounds=rounds))
    epochs = rounds * descent.epochs * clients
    count = rows - WINDOW_ROWS + 1
    return TrainBench(
        clients=clients,
        rows=rows,
        rounds=rounds,
        descent=descent,
        flop=epochs * training_flop(_width(), windows=count),
        needed_flop=epochs * needed_flop(_width(), windows=count),
        seconds=float(seconds),
        compile_seconds=max(0.0, first - float(seconds) / rounds),
        peak_bytes=peak,
        above=above,
    )


def _width() -> int:
    return WINDOW_ROWS * CHANNELS


def _windows(rows: int, index: int) -> Windows:
    """Return random standardised readings: the time of training does not depend on them."""
    count = rows - WINDOW_ROWS + 1
    readings = stream(0, "bench", index).standard_normal((rows, CHANNELS), dtype=np.float32)
    return Windows(
        rows=readings,
        starts=np.arange(count),
        length=WINDOW_ROWS,
        labels=np.zeros(count, np.int8),
    )


def _seconds(fleet: Fleet, *, rounds: int) -> float:
    """Time rounds of training; each starts from the mean of the previous round."""
    parameters = initial(_width(), seed=0)
    began = time.perf_counter()
    for number in range(rounds):
        shuffles = {client: stream(0, "shuffle", client, number) for client in fleet.shards}
        trained = fleet.train(parameters, shuffles=shuffles)
        parameters = np.mean(list(trained.values()), axis=0)
    return time.perf_counter() - began


def _peak_bytes() -> int:
    """Return the peak memory of this process, libraries and compiler included."""
    import resource  # noqa: PLC0415 - not every system has it

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def payload(measured: TrainBench) -> dict[str, object]:
    """Return what `--json` prints."""
    return {
        "bench": "train",
        "clients": measured.clients,
        "rows": measured.rows,
        "channels": CHANNELS,
        "rounds": measured.rounds,
        "epochs": measured.descent.epochs,
        "batch": measured.descent.batch,
        "tflop": measured.flop / 1e12,
        "needed_tflop": measured.needed_flop / 1e12,
        "seconds": measured.seconds,
        "compile_seconds": measured.compile_seconds,
        "gflops": measured.flops / 1e9,
        "gemm_gflops": {"numpy": measured.above.numpy / 1e9, "xla": measured.above.xla / 1e9},
        "peak_mib": measured.peak_bytes / 2**20,
        "ratios": {
            "share_of_peak": measured.share_of_peak,
            "needed_share_of_peak": measured.needed_share,
        },
    }


def show(measured: TrainBench) -> None:
    """Print a table of the training and of the two ceilings."""
    drawn = table(
        "python -m benchmarks train", "what", "time", "GFLOP/s", "share of peak", "memory peak"
    )
    drawn.add_row(
        f"{measured.clients} clients of {measured.rows:,} rows x {CHANNELS} channels, "
        f"{measured.rounds} rounds x {measured.descent.epochs} epochs",
        f"{measured.seconds:.2f} s",
        f"{measured.flops / 1e9:.1f}",
        f"{measured.share_of_peak:.1%}",
        f"{measured.peak_bytes / 2**20:,.0f} MiB",
    )
    for name, flops in (("NumPy", measured.above.numpy), ("XLA", measured.above.xla)):
        drawn.add_row(f"large square matrices in {name}", "", f"{flops / 1e9:.1f}", "", "")
    out.print(drawn)
    out.print(
        f"The training takes {measured.flop / 1e12:.2f} TFLOP at 6 per weight and window. "
        f"{measured.needed_flop / 1e12:.2f} of them are needed (the gradient of the readings is "
        f"not), which is {measured.needed_share:.1%} of the peak. Compiling took another "
        f"{measured.compile_seconds:.1f} s, once."
    )
