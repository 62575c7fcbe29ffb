"""`moments`: a contribution, a fit and scores, beside scikit-learn's PCA on the same windows.

Both start from the same record in memory, with all channels that a detector reads. The rival
standardises it, cuts it into windows, and fits principal components that explain 99 % of the
variance; its score is the mean squared residual. It runs in the precision that we score in
(float64) and, as its fastest form, in float32. Times are processor time of all threads, the
shortest of several repetitions in turns.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from sluice.cli import out, table
from sluice.detector import (
    LAGS,
    Framing,
    MomentModel,
    fit_moments,
    moment_settings,
    moment_statistic,
    robust_scaler,
)
from sluice.lab.plants import simulate
from sluice.telemetry import Record, feature_names

__all__ = ["main"]

EXPLAINED = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsBench:
    """Shortest times in seconds."""

    rows: int
    channels: int
    contribution: float
    fit: float
    score: float
    rival_fit: float
    rival_score: float
    rival_fit_single: float
    rival_score_single: float

    @property
    def train_ratio(self) -> float:
        """How many times as fast as the rival we train: from readings to a model."""
        return self.rival_fit / (self.contribution + self.fit)

    @property
    def score_ratio(self) -> float:
        """How many times as fast as the rival we score."""
        return self.rival_score / self.score


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks moments", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    measured = bench_moments(_record(), repeats=given.repeats)
    if given.json:
        ratios = {"train": measured.train_ratio, "score": measured.score_ratio}
        print(json.dumps({"bench": "moments", **asdict(measured), "ratios": ratios}))
    else:
        _show(measured)


def _record() -> Record:
    """Return the simulated treatment plant: as many rows and channels as the paper's SWaT."""
    record = simulate("treatment", seed=0).without_first(6 * 3_600.0).every(5)
    return record.select(feature_names(record))


def bench_moments(record: Record, *, repeats: int) -> MomentsBench:
    """Time both in turns; the shortest counts."""
    times: dict[str, float] = {}
    names = record.names
    clean = record.rows(int(0.7 * len(record)), len(record))
    framing = Framing(scaler=robust_scaler(record, names), stride_s=record.stride_s)
    held_out, cut = framing.windows(clean), framing.windows(record)

    def timed(name: str, work: Callable[[], object]) -> object:
        began = time.process_time()
        done = work()
        times[name] = min(times.get(name, np.inf), time.process_time() - began)
        return done

    for _ in range(repeats):
        statistic = timed("contribution", lambda: moment_statistic(record, moment_settings(record)))
        model = timed("fit", lambda: fit_moments(statistic, framing.scaler, held_out))  # type: ignore[arg-type]  # noqa: B023
        assert isinstance(model, MomentModel)
        timed("score", lambda: model.scores(cut))  # noqa: B023
        for kind, suffix in ((np.float64, ""), (np.float32, "_single")):
            rival = timed(f"rival_fit{suffix}", lambda: _rival(record, kind))  # noqa: B023
            timed(f"rival_score{suffix}", lambda: _rival_scores(rival, record, kind))  # noqa: B023
    return MomentsBench(rows=len(record), channels=len(names), **times)


def _windows(record: Record, kind: type[np.floating]) -> NDArray[np.floating]:
    values = record.values
    spread = values.std(axis=0)
    spread[spread == 0] = 1.0
    scaled = np.ascontiguousarray((values - values.mean(axis=0)) / spread, kind)
    cut = sliding_window_view(scaled.ravel(), LAGS * scaled.shape[1])[:: scaled.shape[1]]
    return np.ascontiguousarray(cut)


def _rival(record: Record, kind: type[np.floating]) -> PCA:
    return PCA(n_components=EXPLAINED).fit(_windows(record, kind))


def _rival_scores(rival: object, record: Record, kind: type[np.floating]) -> object:
    assert isinstance(rival, PCA)
    windows = _windows(record, kind)
    off = windows - rival.inverse_transform(rival.transform(windows))
    return np.einsum("ij,ij->i", off, off) / windows.shape[1]


def _show(measured: MomentsBench) -> None:
    drawn = table("python -m benchmarks moments", "what", "ours", "PCA", "ratio", "PCA, float32")
    ours = measured.contribution + measured.fit
    drawn.add_row(
        f"train on {measured.rows:,} rows of {measured.channels} channels",
        f"{ours:.2f} s ({measured.contribution:.2f} s of it the contribution)",
        f"{measured.rival_fit:.2f} s",
        f"{measured.train_ratio:.1f} times as fast",
        f"{measured.rival_fit_single:.2f} s, {measured.rival_fit_single / ours:.1f} times",
    )
    drawn.add_row(
        f"score {measured.rows:,} rows",
        f"{measured.score:.2f} s",
        f"{measured.rival_score:.2f} s",
        f"{measured.score_ratio:.1f} times as fast",
        f"{measured.rival_score_single:.2f} s, "
        f"{measured.rival_score_single / measured.score:.1f} times",
    )
    out.print(drawn)
