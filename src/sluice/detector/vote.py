"""A vote of detectors: an alarm needs the votes of `needed` voters.

Each voter is a model of its own, made from the contribution of one member (or of one group of
members) and from clean rows of the plant that uses the vote. It has a threshold of its own, set on
the same clean rows. Nothing is pooled over members: no scale, no ridge, no choice of channels, no
threshold. So a malicious member controls its own vote and nothing else, and what it can do at worst
can be counted (`sluice.evaluation.certify`).

A window's score is the `needed`-th largest ratio of a voter's score to its threshold. It is above 1
if and only if `needed` voters vote for an alarm.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from sluice.arrays import Bools, Floats
from sluice.detector.model import Model, Weights
from sluice.detector.moments import LentTail
from sluice.detector.registry import SUMMED
from sluice.errors import ModelFileError, SettingError
from sluice.files import parse_json
from sluice.telemetry import Windows

__all__ = ["VOTE", "VoteCalibration", "VotedModel", "Voter"]

VOTE = "vote"
BALLOT = "vote"  # the name of the tensor that holds the JSON of the vote
MOST_VOTERS = 10_000
LEAST_THRESHOLD = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCalibration:
    """An operator's act: the thresholds of all voters, set on clean rows of one plant."""

    time: str  # when, as ISO 8601
    act: str  # what the operator did, such as "calibrated" or "restored"
    record: str  # the name of the clean record
    windows: int  # clean windows in it
    clean_events: int  # alarm events of the vote on them
    false_alarms_per_week: float  # asked of each voter, and of the rules if there are some
    thresholds: tuple[float, ...]  # one per voter
    rules_threshold: float | None = None  # of the plant's rules; None: the vote stands alone
    borrowed: Annotated[bool, Field(exclude_if=lambda borrowed: not borrowed)] = False
    """Whether the members' tails set the thresholds of the voters, on the plant's usual scores."""

    def __post_init__(self) -> None:
        if not all(LEAST_THRESHOLD <= score < math.inf for score in self.thresholds):
            raise SettingError(
                f"thresholds of voters must be finite and at least {LEAST_THRESHOLD:g}, got "
                f"{min(self.thresholds, default=None)} to {max(self.thresholds, default=None)}; "
                "calibrate on clean rows in which readings change"
            )
        if self.rules_threshold is not None and not (
            LEAST_THRESHOLD <= self.rules_threshold < math.inf
        ):
            raise SettingError(
                f"the threshold of the rules is {self.rules_threshold}; it must be finite and at "
                f"least {LEAST_THRESHOLD:g}: calibrate on clean rows"
            )
        if not 0 < self.false_alarms_per_week < math.inf:
            raise SettingError(
                "the number of false alarms a week must be above 0 and finite, got "
                f"{self.false_alarms_per_week}"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Voter:
    """A model, and the members on whose contributions it depends."""

    members: tuple[str, ...]
    model: Model
    tail: LentTail | None = None  # that its only member lends

    @property
    def name(self) -> str:
        """The names of its members."""
        return "+".join(self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ballot:
    """The JSON part of a saved vote."""

    kind: str  # of the voters' models
    members: tuple[str, ...]
    voters: tuple[tuple[str, ...], ...]
    abstaining: tuple[tuple[str, ...], ...]
    needed: int
    malicious: int
    calibrations: tuple[VoteCalibration, ...]
    tails: Annotated[
        tuple[LentTail | None, ...], Field(exclude_if=lambda tails: not any(tails))
    ] = ()  # one per voter, if any is lent


_ADAPTER = TypeAdapter(_Ballot)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VotedModel:
    """Voters, the votes that an alarm needs, and every calibration from the first to the last."""

    kind: ClassVar[str] = VOTE

    members: tuple[str, ...]
    voters: tuple[Voter, ...]
    abstaining: tuple[tuple[str, ...], ...] = ()  # members whose contribution gives no model
    needed: int
    malicious: int  # members that the vote is made to withstand
    calibrations: tuple[VoteCalibration, ...]

    def __post_init__(self) -> None:
        every = (*(voter.members for voter in self.voters), *self.abstaining)
        if not self.voters or len(every) > MOST_VOTERS or not 1 <= self.needed <= len(every):
            raise SettingError(
                f"an alarm needs {self.needed} votes of {len(every)}, {len(self.abstaining)} of "
                f"them abstaining; expected at least 1 vote of 1 to {MOST_VOTERS:,} voters"
            )
        strangers = {member for members in every for member in members} - set(self.members)
        if strangers or len(set(self.members)) < len(self.members):
            raise SettingError(
                f"members are {', '.join(self.members)}; each has a name of its own, and voters "
                f"name no others (found {', '.join(sorted(strangers)) or 'a name twice'})"
            )
        if not all(every):
            raise SettingError("a voter depends on no member; name the members of each voter")
        widths = {voter.model.width for voter in self.voters}
        if len(widths) > 1:
            raise SettingError(
                f"voters read windows of {sorted(widths)} values; all need the same channels"
            )
        if not 0 <= self.malicious < len(self.members):
            raise SettingError(
                f"a vote of {len(self.members)} members cannot withstand {self.malicious}; "
                f"expected 0 to {len(self.members) - 1}"
            )
        if not self.calibrations:
            raise SettingError("a vote has no thresholds; calibrate it on clean rows")
        if len({one.rules_threshold is None for one in self.calibrations}) > 1:
            raise SettingError(
                "some calibrations of the vote have a threshold of the plant's rules and others "
                "have none; make the detector again"
            )
        for calibration in self.calibrations:
            if len(calibration.thresholds) != len(self.voters):
                raise SettingError(
                    f"a calibration has {len(calibration.thresholds)} thresholds for "
                    f"{len(self.voters)} voters; give one each"
                )

    @property
    def calibration(self) -> VoteCalibration:
        """The calibration in use: the last one."""
        return self.calibrations[-1]

    @property
    def width(self) -> int:
        """Number of values per window."""
        return self.voters[0].model.width

    def ratios(self, windows: Windows) -> Floats:
        """Return each voter's score over its threshold: voters x windows; 0 if it has no score.

        A voter without a score withholds its vote. Ranked as it is, NaN would be the largest ratio,
        and an alarm could rise without the votes that it needs.
        """
        scores = np.stack([voter.model.scores(windows) for voter in self.voters])
        ratios: Floats = scores / np.array(self.calibration.thresholds)[:, np.newaxis]
        return np.where(np.isnan(ratios), 0.0, ratios)

    def votes(self, windows: Windows) -> Bools:
        """Return who votes for an alarm: voters x windows."""
        votes: Bools = self.ratios(windows) > 1
        return votes

    def named(self, which: Bools, *, silent: bool = False) -> tuple[str, ...]:
        """Return the names of some voters; with `silent`, those that abstain too."""
        names = (voter.name for voter, named in zip(self.voters, which, strict=True) if named)
        return (*names, *("+".join(own) for own in self.abstaining if silent))

    def scores(self, windows: Windows) -> Floats:
        """Return the `needed`-th largest ratio of each window; an alarm is a ratio above 1."""
        place = len(self.voters) - self.needed
        if place < 0:  # too many abstain for any alarm
            return np.zeros(len(windows))
        ranked: Floats = np.partition(self.ratios(windows), place, axis=0)[place]
        return ranked

    def blame(self, windows: Windows) -> Floats:
        """Return each channel's share: the median over the voters that vote for an alarm.

        Over all voters if none does. A median, because a malicious voter can blame any channel. If
        the voters agree on no channel, the mean, so that an alarm always names a tag.
        """
        shares = np.stack([voter.model.blame(windows) for voter in self.voters])
        votes = self.votes(windows)
        counted = np.where(votes.any(axis=0), votes, True)
        known = np.where(counted[:, :, np.newaxis], shares, np.nan)
        median: Floats = np.nanmedian(known, axis=0)
        agreed = median.any(axis=1, keepdims=True)
        blamed = np.where(agreed, median, np.nanmean(known, axis=0))
        total = blamed.sum(axis=1, keepdims=True)
        shared: Floats = np.divide(blamed, total, out=np.zeros_like(blamed), where=total > 0)
        return shared

    def with_calibration(self, calibration: VoteCalibration) -> "VotedModel":
        """Return the vote with one more calibration, which it uses from now on."""
        return replace(self, calibrations=(*self.calibrations, calibration))

    def tensors(self) -> dict[str, Weights]:
        """Return the arrays to save: those of each voter, and the vote as JSON."""
        ballot = _Ballot(
            kind=str(self.voters[0].model.kind),
            members=self.members,
            voters=tuple(voter.members for voter in self.voters),
            abstaining=self.abstaining,
            needed=self.needed,
            malicious=self.malicious,
            calibrations=self.calibrations,
            tails=tuple(voter.tail for voter in self.voters),
        )
        tensors: dict[str, Weights] = {
            BALLOT: np.frombuffer(_ADAPTER.dump_json(ballot), dtype=np.uint8)
        }
        for at, voter in enumerate(self.voters):
            for name, array in voter.model.tensors().items():
                tensors[f"{at}.{name}"] = array
        return tensors

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> "VotedModel":
        """Build the vote from the arrays of a model file."""
        ballot = _ballot(tensors)
        if ballot.kind not in SUMMED:
            raise ModelFileError(
                f"its voters are of kind {ballot.kind!r}; known are {', '.join(SUMMED)}"
            )
        parts: list[dict[str, Weights]] = [{} for _ in ballot.voters]
        for name, array in tensors.items():
            place, _, own = name.partition(".")
            if name == BALLOT:
                continue
            if not (place.isdecimal() and own and int(place) < len(parts)):
                raise ModelFileError(f"it holds {name!r}, which belongs to none of its voters")
            parts[int(place)][own] = array
        model = SUMMED[ballot.kind].model
        tails = ballot.tails or (None,) * len(parts)
        if len(tails) != len(parts):
            raise ModelFileError(f"it has {len(tails)} lent tails for {len(parts)} voters")
        return cls(
            members=ballot.members,
            voters=tuple(
                Voter(members=members, model=model.from_tensors(part), tail=tail)
                for members, part, tail in zip(ballot.voters, parts, tails, strict=True)
            ),
            abstaining=ballot.abstaining,
            needed=ballot.needed,
            malicious=ballot.malicious,
            calibrations=ballot.calibrations,
        )


def _ballot(tensors: Mapping[str, Weights]) -> _Ballot:
    saved = tensors.get(BALLOT)
    if saved is None or saved.dtype != np.uint8 or saved.ndim != 1:
        raise ModelFileError("it holds no vote; it is not a complete model of kind 'vote'")
    text = saved.tobytes().decode(errors="replace")
    parse_json(text, "its vote", error=ModelFileError)  # it refuses text that nests too deeply
    try:
        return _ADAPTER.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelFileError(f"its vote is damaged: {where}: {first['msg']}") from None
