"""What a watch judges by: a plant's rules, a detector, or both, and the channels these read."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.detector import Detector, borrows_thresholds
from sluice.errors import MissingChannelError, SettingError
from sluice.invariants import RuleSet, rules_hash
from sluice.watch.by_detector import channels_of

__all__ = ["Blaming", "Subject", "columns_of", "subject_of"]


class Blaming(Protocol):
    """A model that states which channels its scores come from."""

    def blame(self, windows: object) -> Floats:
        """Return each channel's share of each window's score: windows x channels."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """The rules and the detector of one plant; at least one of them is there."""

    plant: str
    rules: RuleSet | None
    detector: Detector | None
    names: tuple[str, ...]  # of the channels that they read
    stride_s: float
    identity: str  # hash of rules and model: a state belongs to exactly these
    lacking: tuple[str, ...] = ()  # points whose provisional limits are left out: no tag is one

    @property
    def borrowed(self) -> tuple[str, ...]:
        """What other plants lend, until this plant has enough clean rows of its own."""
        lent = self.detector is not None and borrows_thresholds(self.detector)
        provisional = self.rules is not None and self.rules.provisional
        return (*(("thresholds",) if lent else ()), *(("rules",) if provisional else ()))


def subject_of(
    rules: RuleSet | None,
    detector: Detector | None,
    *,
    plant: str = "",
    points: Collection[str] | None = None,
) -> Subject:
    """Combine rules and detector; refuse a pair that reads rows at different strides.

    Without rules of its own, a watch takes those that the detector was calibrated with. `points`
    are what the tags of a mapped plant are: provisional limits of others are left out.
    """
    lacking: tuple[str, ...] = ()
    if rules is not None and rules.provisional and points is not None:
        rules, lacking = _limits_of(rules, points)
    if rules is None and detector is not None and detector.fusion:
        rules = detector.fusion.physics.rules
    if rules is None and detector is None:
        raise SettingError("a watch needs something to judge by; give --model, --rules, or both")
    if rules is not None and not rules.invariants:
        raise SettingError(f"the rules of {rules.plant!r} are empty; mine other rows")
    names: dict[str, None] = {}
    strides = []
    digest = hashlib.sha256()
    if rules is not None:
        names |= dict.fromkeys(name for r in rules.invariants for name in r.relation.channels)
        strides.append(rules.stride_s)
        digest.update(rules_hash(rules).encode())
    if detector is not None:
        names |= dict.fromkeys(channels_of(detector))
        strides.append(detector.framing.stride_s)
        digest.update(_fingerprint(detector))
    if not np.isclose(strides[0], strides[-1], rtol=1e-6, atol=0):
        raise SettingError(
            f"the rules have a row every {strides[0]:g} s and the model one every "
            f"{strides[-1]:g} s; train the model, or mine the rules, at the stride of the other"
        )
    return Subject(
        plant=plant or (rules.plant if rules is not None else "plant"),
        rules=rules,
        detector=detector,
        names=tuple(names),
        stride_s=strides[0],
        identity=digest.hexdigest(),
        lacking=lacking,
    )


def _limits_of(rules: RuleSet, points: Collection[str]) -> tuple[RuleSet, tuple[str, ...]]:
    """Return provisional rules without the limits of points that a plant lacks, and those points.

    Other plants have these points. Rules of the plant's own never name a channel that it lacks.
    """
    read = {name for rule in rules.invariants for name in rule.relation.channels}
    lacking = tuple(sorted(read - set(points)))
    kept = tuple(
        rule for rule in rules.invariants if not set(rule.relation.channels) & set(lacking)
    )
    if not kept:
        raise SettingError(
            "the plant file maps no tag to a point that the provisional rules limit; map the tags "
            "('sluice plant map')"
        )
    return replace(rules, invariants=kept), lacking


def _fingerprint(detector: Detector) -> bytes:
    digest = hashlib.sha256(detector.model.kind.encode())
    for name, tensor in sorted(detector.model.tensors().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor).tobytes())
    scaler = detector.framing.scaler
    digest.update("\x1f".join(scaler.names).encode())
    digest.update(scaler.mean.tobytes() + scaler.spread.tobytes())
    digest.update(repr((detector.framing.window_rows, detector.threshold)).encode())
    if detector.fusion:
        digest.update(detector.fusion.physics.digest.encode())
    return digest.digest()


def columns_of(names: Sequence[str], subject: Subject, *, source: str) -> Ints:
    """Return where the watch's channels stand among a source's columns; each must be there."""
    known = {name: column for column, name in enumerate(names)}
    for name in subject.names:
        if name not in known:
            raise MissingChannelError(
                source, name, needed_by="the watch's rules or model", known=tuple(names)
            )
    return np.array([known[name] for name in subject.names], np.int64)
