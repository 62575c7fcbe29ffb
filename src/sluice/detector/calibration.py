"""A calibrated detector: a model, how it reads records, and a threshold from clean windows."""

import math
from dataclasses import InitVar, dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from sluice.detector.alarms import Scored
from sluice.detector.autoencoder import Descent
from sluice.detector.blame import MOST_NAMES, Blame, tags_to_blame
from sluice.detector.fusion import Fusion, OrRules
from sluice.detector.model import Model
from sluice.detector.physics import STANDS_OUT, Physics
from sluice.detector.tails import ScoreTail, rarest_rate, threshold_for
from sluice.detector.threshold import QUANTILE, AlarmThreshold, RateThreshold, Threshold
from sluice.errors import RecordError, SettingError
from sluice.telemetry import WINDOW_ROWS, Label, Record, Scaler, Windows, windows

__all__ = [
    "PHYSICS",
    "Calibration",
    "Detector",
    "Framing",
    "MemberContribution",
    "TrainingSummary",
    "calibrated",
    "calibrated_with_rules",
    "refuse_attacks",
]

PHYSICS = "physics+"
"""A kind of detector that begins so also reads the plant's rules."""

_SEAL = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """How a record is cut into the windows that a model reads."""

    scaler: Scaler
    stride_s: float
    window_rows: int = WINDOW_ROWS

    def __post_init__(self) -> None:
        if not 0 < self.stride_s < np.inf or self.window_rows < 1:
            raise SettingError(
                "a window needs at least 1 row and a stride above 0 s, got "
                f"{self.window_rows} rows at {self.stride_s} s"
            )

    @property
    def width(self) -> int:
        """Number of values per window: rows x channels."""
        return self.window_rows * len(self.scaler.names)

    def windows(self, record: Record) -> Windows:
        """Cut a record into windows; raise if its channels, stride or rows do not fit the model."""
        for name in self.scaler.names:
            record.index(name, needed_by="the model")
        if not np.isclose(record.stride_s, self.stride_s, rtol=1e-6, atol=0):
            raise RecordError(
                f"record {record.name!r} has a row every {record.stride_s:g} s; the model reads "
                f"one every {self.stride_s:g} s: thin the record (--every), or train on its stride"
            )
        cut = windows(record, self.scaler, length=self.window_rows)
        if not len(cut):
            raise RecordError(
                f"record {record.name!r} has no {self.window_rows} consecutive rows without a "
                "missing reading or a time jump; give a longer or filled record"
            )
        return cut


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberContribution:
    """What one member of a federation shared, by the hashes that its log names."""

    member: str
    statistic: str  # the hash of its canonical form
    attestation: str
    windows: int
    plants: Annotated[tuple[str, ...], Field(exclude_if=lambda plants: not plants)] = ()
    """The plants of a group; empty for a member that is one plant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSummary:
    """How a model was trained; stored in its card for information only."""

    records: tuple[str, ...]
    windows: int
    seed: int
    clients: int = 1
    rounds: int = 1
    rule: str = "alone"  # how the clients' updates were aggregated
    descent: Descent | None = None  # per round; None for a subspace, which needs no descent
    federation: str | None = None  # that trained it between sites
    model: str | None = None  # the hash by which that federation's log names the weights
    contributions: Annotated[
        tuple[MemberContribution, ...], Field(exclude_if=lambda contributions: not contributions)
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """An operator's act: the threshold of a detector, and the tails if it reads rules."""

    time: str | None  # when, as ISO 8601; None: when it was trained
    act: str  # what the operator did, such as "recalibrated" or "restored"
    record: str  # the name of the clean record
    threshold: AlarmThreshold
    model_tail: ScoreTail | None = None
    rules_tail: ScoreTail | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Detector:
    """Scores and alarms for a plant's records.

    Only `calibrated` and `load_detector` create it, so its threshold comes from clean windows.
    """

    model: Model
    framing: Framing
    threshold: AlarmThreshold
    training: TrainingSummary
    fusion: Fusion | OrRules | None = None  # None: it reads no rules
    calibrations: tuple[Calibration, ...] = ()  # from the first to the one in use; empty: one only
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError(
                "create a detector with `calibrated` or `load_detector`: its threshold must come "
                "from clean windows"
            )
        if self.framing.width != self.model.width:
            raise SettingError(
                f"the model reads {self.model.width} values a window; {self.framing.window_rows} "
                f"rows of {len(self.framing.scaler.names)} channels are {self.framing.width}"
            )

    @property
    def kind(self) -> str:
        """The name by which it is trained: the model's, with `physics+` if it reads rules."""
        return f"{PHYSICS}{self.model.kind}" if self.fusion else str(self.model.kind)

    @property
    def shortfall(self) -> str | None:
        """What is missing for the rate of false alarms that was asked for; None if nothing is."""
        threshold, stride_s = self.threshold, self.framing.stride_s
        if not isinstance(threshold, RateThreshold):
            return None
        asked = threshold.false_alarms_per_week
        rarest = rarest_rate(threshold.clean_windows, stride_s=stride_s)
        if asked >= rarest:
            return None
        needed = math.ceil(threshold.clean_windows * rarest / asked)
        return (
            f"{threshold.clean_windows:,} clean windows are too few for {asked:g} false alarms a "
            f"week, so the threshold is that of {rarest:.3g} a week; give {needed:,} clean windows "
            f"or more, or ask for {rarest:.3g} a week"
        )

    def score(self, record: Record) -> Scored:
        """Score every window of a record and mark the alarms."""
        cut = self.framing.windows(record)
        scores, last = self.model.scores(cut), cut.last_rows
        if self.fusion:
            rounded = self.framing.scaler.rounded(record)
            scores = self.fusion.surprises(scores, rounded, last, rows=cut.length).fused
        return Scored(
            last_rows=last,
            times=record.times[last],
            scores=scores,
            alarms=self.threshold.alarms(scores),
            labels=cut.labels,
            threshold=self.threshold,
            stride_s=self.framing.stride_s,
        )

    def blame(self, record: Record, scored: Scored) -> tuple[Blame, ...]:
        """Return the tags and rules behind each alarm of a scored record, in time order."""
        cut = self.framing.windows(record)
        alarmed = cut.take(scored.alarms)
        if not len(alarmed):
            return ()
        tags = tags_to_blame(self.model.blame(alarmed), self.framing.scaler.names)
        if self.fusion is None:
            return tuple(Blame(tags=own) for own in tags)
        rows, last = alarmed.length, alarmed.last_rows
        rounded = self.framing.scaler.rounded(record)
        seen = self.fusion.surprises(self.model.scores(alarmed), rounded, last, rows=rows)
        rules = self.fusion.physics.blame(rounded, last, rows=rows, most=MOST_NAMES)
        return tuple(
            Blame(
                tags=own if model >= STANDS_OUT * broken else (),
                rules=checks if broken >= STANDS_OUT * model else (),
                rules_first=bool(broken > model),
            )
            for own, checks, model, broken in zip(tags, rules, seen.model, seen.rules, strict=True)
        )


def calibrated(  # noqa: PLR0913 - a detector is these parts
    model: Model,
    framing: Framing,
    clean: Windows,
    *,
    training: TrainingSummary,
    quantile: float = QUANTILE,
    false_alarms_per_week: float | None = None,
) -> Detector:
    """Set a model's threshold on clean windows that it was not trained on.

    With `false_alarms_per_week`, the threshold gives so many alarm events on clean rows. Without,
    it is the paper's quantile of the clean scores. A window labelled attack is refused. The caller
    must know that unlabelled windows are clean.
    """
    refuse_attacks(clean)
    scores = model.scores(clean)
    threshold: AlarmThreshold
    if false_alarms_per_week is None:
        threshold = Threshold.from_clean(scores, quantile=quantile)
    else:
        threshold = threshold_for(
            scores,
            clean.last_rows,
            stride_s=framing.stride_s,
            false_alarms_per_week=false_alarms_per_week,
        )
    return sealed(model, framing, threshold=threshold, training=training)


def calibrated_with_rules(  # noqa: PLR0913 - a detector is these parts
    model: Model,
    framing: Framing,
    clean: Record,
    *,
    physics: Physics,
    training: TrainingSummary,
    false_alarms_per_week: float,
) -> Detector:
    """Fuse a model with a plant's rules, and set the threshold of both on clean rows."""
    cut = framing.windows(clean)
    refuse_attacks(cut)
    scores, last = model.scores(cut), cut.last_rows
    rounded = framing.scaler.rounded(clean)
    fusion = Fusion.fit(physics, scores, rounded, last, rows=cut.length)
    threshold = threshold_for(
        fusion.surprises(scores, rounded, last, rows=cut.length).fused,
        last,
        stride_s=framing.stride_s,
        false_alarms_per_week=false_alarms_per_week,
    )
    return sealed(model, framing, threshold=threshold, training=training, fusion=fusion)


def refuse_attacks(clean: Windows) -> None:
    """Raise if clean windows are labelled attack."""
    attacked = int(np.sum(clean.labels == Label.ATTACK))
    if attacked:
        raise SettingError(
            f"{attacked:,} of the {len(clean):,} windows given as clean are labelled attack; "
            "calibrate on attack-free rows"
        )


def sealed(  # noqa: PLR0913 - a detector is these parts
    model: Model,
    framing: Framing,
    *,
    threshold: AlarmThreshold,
    training: TrainingSummary,
    fusion: Fusion | OrRules | None = None,
    calibrations: tuple[Calibration, ...] = (),
) -> Detector:
    """Build a detector with a calibrated threshold; only for `calibrated` and `load_detector`."""
    return Detector(
        model=model,
        framing=framing,
        threshold=threshold,
        training=training,
        fusion=fusion,
        calibrations=calibrations,
        seal=_SEAL,
    )
