"""The worst that f malicious members can do to a vote on one record, for each set of f members.

For a set F of malicious members, a voter that depends on a member of F votes as F likes on
every window. The other voters vote as they do. So, with c voters that depend on F,

    a window's alarm *survives*  if the other voters give `needed` votes
    a window can be *forced*     if the other voters give `needed` - c votes

and every sequence of alarms between the two is possible. A window on which the receiver's own rules
alarm survives and is forced, whatever members vote. More malicious members only make the first
set smaller and the second one larger, so sets of exactly f members are enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints, runs
from sluice.errors import SettingError
from sluice.evaluation.ballots import Ballots
from sluice.telemetry import Label

__all__ = ["Damage", "MaliciousSets", "damage_of", "most_false_events"]

MOST_SETS = 100_000
CHUNK_CELLS = 20_000_000  # sets x windows that are computed at once
UNREACHABLE = -(1 << 30)

Members = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaliciousSets:
    """All sets of f members, and the voters that depend on each."""

    sets: tuple[Members, ...]
    corrupted: Bools  # sets x voters

    @classmethod
    def of(cls, ballots: Ballots, *, malicious: int) -> "MaliciousSets":
        """List the sets; refuse a number of sets that cannot be counted one by one."""
        members = ballots.members
        if not 0 <= malicious <= len(members):
            raise SettingError(
                f"{malicious} malicious members of {len(members)}; expected 0 to {len(members)}"
            )
        count = comb(len(members), malicious)
        if count > MOST_SETS:
            raise SettingError(
                f"{malicious} of {len(members)} members are {count:,} sets, and the certificate "
                f"counts at most {MOST_SETS:,} exactly; put members into groups that vote together"
            )
        sets = tuple(combinations(members, malicious))
        depends = np.array([[m in voter for m in members] for voter in ballots.voters])
        places = {member: at for at, member in enumerate(members)}
        chosen = np.zeros((len(sets), len(members)), dtype=np.bool_)
        for at, members_of_set in enumerate(sets):
            chosen[at, [places[member] for member in members_of_set]] = True
        corrupted: Bools = (chosen.astype(np.int64) @ depends.T.astype(np.int64)) > 0
        return cls(sets=sets, corrupted=corrupted)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Damage:
    """What each set of malicious members can reach at worst, one entry per set."""

    surviving_attack_windows: Ints
    forced_attack_windows: Ints
    forced_normal_windows: Ints
    attack_delays: Floats  # sets x attacks: windows until the first alarm that survives, or inf
    false_events: Ints
    batadal: Floats


def damage_of(ballots: Ballots, sets: MaliciousSets, *, merge_rows: int) -> Damage:
    """Count the worst case of every set.

    Different behaviours reach the worst figures of one set: the longest time in alarm needs every
    alarm that can be forced, and the most false events need pauses between alarms.
    """
    parts = [_damage_of(ballots, corrupted, merge_rows) for corrupted in _chunks(ballots, sets)]
    return Damage(
        surviving_attack_windows=np.concatenate([p.surviving_attack_windows for p in parts]),
        forced_attack_windows=np.concatenate([p.forced_attack_windows for p in parts]),
        forced_normal_windows=np.concatenate([p.forced_normal_windows for p in parts]),
        attack_delays=np.concatenate([p.attack_delays for p in parts]),
        false_events=np.concatenate([p.false_events for p in parts]),
        batadal=np.concatenate([p.batadal for p in parts]),
    )


def _chunks(ballots: Ballots, sets: MaliciousSets) -> Iterator[Bools]:
    size = max(CHUNK_CELLS // max(len(ballots.labels), 1), 1)
    for start in range(0, len(sets.sets), size):
        yield sets.corrupted[start : start + size]


def _damage_of(ballots: Ballots, corrupted: Bools, merge_rows: int) -> Damage:
    # int32, because sets x windows can be many.
    honest = (~corrupted).astype(np.int32) @ ballots.votes.astype(np.int32)
    survives = honest >= ballots.needed
    forced = honest + corrupted.sum(axis=1, dtype=np.int32)[:, np.newaxis] >= ballots.needed
    if ballots.rules is not None:  # no member has a say in the receiver's own rules
        survives |= ballots.rules
        forced |= ballots.rules
    attack, normal = ballots.labels == Label.ATTACK, ballots.labels == Label.NORMAL
    attacks = ballots.outcome.attacks
    delays = np.empty((len(survives), len(attacks)))
    for at, (start, stop) in enumerate(zip(attacks.starts, attacks.stops, strict=True)):
        delays[:, at] = _first(survives[:, start:stop])
    return Damage(
        surviving_attack_windows=survives[:, attack].sum(axis=1),
        forced_attack_windows=forced[:, attack].sum(axis=1),
        forced_normal_windows=forced[:, normal].sum(axis=1),
        attack_delays=delays,
        false_events=most_false_events(
            survives, forced, normal=normal, last_rows=ballots.last_rows, merge_rows=merge_rows
        ),
        batadal=_batadal(ballots, survives, forced),
    )


def _first(marked: Bools) -> Floats:
    """Return the place of the first mark of each row; infinity if it has none."""
    return np.where(marked.any(axis=1), marked.argmax(axis=1), np.inf)


def _batadal(ballots: Ballots, survives: Bools, forced: Bools) -> Floats:
    """Return BATADAL's score of each set with every term at its worst; NaN without normal rows."""
    labels, rows = ballots.row_labels, ballots.last_rows
    attack = labels == Label.ATTACK
    normal = int((labels == Label.NORMAL).sum())
    found, late = np.zeros(len(survives)), np.zeros(len(survives))
    segments = runs(attack)
    for segment in segments:
        inside = (rows >= segment.start) & (rows < segment.stop)
        alarms = survives[:, inside]
        found += alarms.sum(axis=1)
        first = np.append(rows[inside] - segment.start, segment.rows)
        place = np.where(alarms.any(axis=1), alarms.argmax(axis=1), len(first) - 1)
        late += first[place] / segment.rows
    false = forced[:, labels[rows] == Label.NORMAL].sum(axis=1)
    if not normal or not segments:
        return np.full(len(survives), np.nan)
    classified = (found / attack.sum() + 1 - false / normal) / 2
    score: Floats = (1 - late / len(segments)) / 2 + classified / 2
    return score


def most_false_events(
    survives: Bools,
    forced: Bools,
    *,
    normal: Bools,
    last_rows: Ints,
    merge_rows: int,
) -> Ints:
    """Return the largest number of false-alarm events of each set, by dynamic programming.

    Alarms less than `merge_rows` rows apart are one event, and an event is false if all its alarms
    are on normal windows. An alarm that never ends is one event, so a set that wants many events
    must pause, and it cannot pause where the other voters alarm. The state between two windows is
    the number of rows since the last alarm, and whether the open event is false so far.
    """
    active = np.flatnonzero(forced.any(axis=0))
    sets = len(forced)
    idle: NDArray[np.int32] = np.zeros(sets, dtype=np.int32)  # no open event
    # events counted so far: sets x (touched a window that is not normal, or false) x rows since
    open_: NDArray[np.int32] = np.full((sets, 2, merge_rows), UNREACHABLE, dtype=np.int32)
    last = -merge_rows
    for window in active:
        row = int(last_rows[window])
        idle, open_ = _advanced(idle, open_, row - last)
        last = row
        is_normal = bool(normal[window])
        touched, false = open_.max(axis=2).T
        alarm = np.full((sets, 2), UNREACHABLE, dtype=np.int32)
        if is_normal:
            alarm[:, 0] = touched
            alarm[:, 1] = np.maximum(false, idle + 1)
        else:
            alarm[:, 0] = np.maximum.reduce([touched, false - 1, idle])
        must = survives[:, window]
        open_[must] = UNREACHABLE
        idle = np.where(must, UNREACHABLE, idle).astype(np.int32)
        open_[:, :, 0] = np.where(forced[:, window, np.newaxis], alarm, open_[:, :, 0])
    most: Ints = np.maximum(idle, open_.max(axis=(1, 2))).astype(np.int64)
    return most


def _advanced(
    idle: NDArray[np.int32], open_: NDArray[np.int32], rows: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Let rows pass without an alarm; an event closes once the next alarm would open another."""
    merge_rows = open_.shape[2]
    kept = max(merge_rows - rows, 0)
    closed = open_[:, :, kept:].max(axis=(1, 2))
    later = np.full_like(open_, UNREACHABLE)
    later[:, :, merge_rows - kept :] = open_[:, :, :kept]
    return np.maximum(idle, closed), later
