"""Votes of detectors on the windows of one labelled record.

An alarm needs `needed` votes. Each voter is a detector, and depends on the contributions of some
members. Three ways of sharing a detector are special cases:

    vote            each voter depends on one member, or on one group of members that share no
                    member with another group; an alarm needs q votes
    any-of-subsets  each voter depends on a subset of the members; one vote is an alarm
    pooled sum      one voter depends on all members; its vote is the alarm
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Ints
from sluice.errors import SettingError
from sluice.evaluation.outcome import Outcome

__all__ = ["Ballots", "covering_groups"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ballots:
    """Who votes, what they vote on each window, and the labels of windows and rows.

    The threshold of every voter was set without this record.
    """

    members: tuple[str, ...]
    voters: tuple[frozenset[str], ...]  # the members on which each voter depends
    votes: Bools  # voters x windows
    needed: int  # votes that an alarm needs
    labels: NDArray[np.int8]  # Label of each window
    last_rows: Ints  # of each window
    row_labels: NDArray[np.int8]  # Label of each row of the record
    stride_s: float
    rules: Bools | None = None  # windows on which the receiver's own rules alarm

    def __post_init__(self) -> None:
        if not self.members or len(set(self.members)) < len(self.members):
            named = ", ".join(self.members) or "none"
            raise SettingError(f"a vote needs members with different names, got {named}")
        if strangers := sorted(set().union(*self.voters) - set(self.members)):
            raise SettingError(
                f"a voter depends on {', '.join(strangers)}, who is no member; members are "
                f"{', '.join(self.members)}"
            )
        if not all(self.voters):
            raise SettingError("a voter depends on no member; name the members of each voter")
        if not 1 <= self.needed <= len(self.voters):
            raise SettingError(
                f"an alarm needs {self.needed} votes of {len(self.voters)}; expected 1 to "
                f"{len(self.voters)}"
            )
        if self.votes.dtype != np.bool_ or self.votes.shape != (len(self.voters), len(self.labels)):
            raise SettingError(
                f"votes are {self.votes.dtype} of shape {self.votes.shape}; expected true or false "
                f"for {len(self.voters)} voters x {len(self.labels)} windows"
            )
        if self.rules is not None and (
            self.rules.dtype != np.bool_ or self.rules.shape != self.labels.shape
        ):
            raise SettingError(
                f"alarms of rules are {self.rules.dtype} of shape {self.rules.shape}; expected "
                f"true or false for {len(self.labels)} windows"
            )
        self.outcome  # noqa: B018 - it checks labels, rows and stride
        if len(self.last_rows) and int(self.last_rows[-1]) >= len(self.row_labels):
            raise SettingError(
                f"a window ends at row {int(self.last_rows[-1])} of {len(self.row_labels)} "
                "labelled rows; give the labels of the record that was scored"
            )

    @property
    def alarms(self) -> Bools:
        """The windows with enough votes, or with an alarm of the receiver's own rules."""
        enough: Bools = self.votes.sum(axis=0) >= self.needed
        return enough if self.rules is None else enough | self.rules

    @property
    def outcome(self) -> Outcome:
        """The alarms as votes stand; a window's score is its number of votes."""
        return Outcome(
            scores=self.votes.sum(axis=0).astype(np.float64),
            alarms=self.alarms,
            labels=self.labels,
            last_rows=self.last_rows,
            stride_s=self.stride_s,
        )


def covering_groups(members: Sequence[str], *, malicious: int) -> tuple[frozenset[str], ...]:
    """Split the members into `malicious` + 1 groups, so that one group is honest in any case.

    So many malicious members reach at most so many groups. Fewer groups cannot cover: one malicious
    member in each would reach all.
    """
    groups = malicious + 1
    if not 0 <= malicious < len(members):
        raise SettingError(
            f"{malicious} malicious members of {len(members)} leave no honest group; expected 0 to "
            f"{len(members) - 1}"
        )
    return tuple(frozenset(members[at::groups]) for at in range(groups))
