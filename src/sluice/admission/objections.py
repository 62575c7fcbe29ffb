"""Objections: what can be wrong with a rules file, in words and with the command that cures it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Objection", "ObjectionKind", "commands"]


class ObjectionKind(StrEnum):
    """What is wrong with a rules file."""

    DUPLICATE_NAME = "duplicate-name"
    BAD_TOLERANCE = "bad-tolerance"
    UNDESCRIBED_CHANNEL = "undescribed-channel"
    CLEAN_FACTS = "clean-facts"
    NOT_ENCODABLE = "not-encodable"
    NO_PHYSICS = "no-physics"
    TOO_FEW_RULES = "too-few-rules"
    NO_CLEAN_FACTS = "no-clean-facts"
    LOOSE_TOLERANCE = "loose-tolerance"
    WIDE_LIMITS = "wide-limits"
    UNCOVERED_TANK = "uncovered-tank"
    UNCOVERED_ACTUATOR = "uncovered-actuator"
    UNEXPLAINED_STANDBY = "unexplained-standby"
    REFUSES_CLEAN_BATCHES = "refuses-clean-batches"
    CLAIMED_RESIDUAL = "claimed-residual"
    CLAIMED_TRANSITIONS = "claimed-transitions"
    CLAIMED_WINDOWS = "claimed-windows"
    CLAIMED_REPEATS = "claimed-repeats"
    CLAIMED_JUMPS = "claimed-jumps"
    CLAIMED_SWITCHES = "claimed-switches"
    CLAIMED_BLOCKS = "claimed-blocks"
    UNTIED_CHANNELS = "untied-channels"
    MAY_STAND_STILL = "may-stand-still"
    LONGER_THAN_BATCHES = "longer-than-batches"
    NOT_COMPARABLE = "not-comparable"
    MISSING_SINCE_LAST = "missing-since-last"
    WIDER_RANGE = "wider-range"
    LONGER_SETTLING = "longer-settling"
    LOOSER_THAN_LAST = "looser-than-last"
    OTHER_PREDICTION = "other-prediction"
    LARGER_RESIDUAL = "larger-residual"
    MORE_JUMPS = "more-jumps"
    MORE_TRANSITIONS = "more-transitions"
    MORE_WINDOWS = "more-windows"
    MORE_REPEATS = "more-repeats"
    MORE_SWITCHES = "more-switches"
    MORE_BLOCKS = "more-blocks"
    LESS_MOVEMENT = "less-movement"
    CHANGED_CHANNEL = "changed-channel"
    WIDER_SPAN = "wider-span"
    CHANGED_CODES = "changed-codes"


_WORDS = {
    ObjectionKind.DUPLICATE_NAME: "{found} rules are named {subject!r}",
    ObjectionKind.BAD_TOLERANCE: "{subject}: the tolerance is {found}; it must be above {allowed}",
    ObjectionKind.UNDESCRIBED_CHANNEL: "{subject} reads {found}, which the file does not describe",
    ObjectionKind.CLEAN_FACTS: "{subject}: {found}; it must be {allowed}",
    ObjectionKind.NOT_ENCODABLE: "{found}",
    ObjectionKind.NO_PHYSICS: (
        "the rules hold no coupling, balance or window: every batch in range would be admitted"
    ),
    ObjectionKind.TOO_FEW_RULES: (
        "{found} rules relate channels to each other; the policy requires {allowed}"
    ),
    ObjectionKind.NO_CLEAN_FACTS: (
        "the rules are of profile {found!r}, which states nothing about clean batches"
    ),
    ObjectionKind.LOOSE_TOLERANCE: (
        "{subject}: tolerance {found}; the policy allows less than {allowed}"
    ),
    ObjectionKind.WIDE_LIMITS: "{subject}: {found}; the policy allows {allowed}",
    ObjectionKind.UNCOVERED_TANK: (
        "{subject} has no balance or window tight enough to detect {allowed} of the change that "
        "its flows can make"
    ),
    ObjectionKind.UNCOVERED_ACTUATOR: "no coupling or balance reads {subject}",
    ObjectionKind.UNEXPLAINED_STANDBY: (
        "{subject} is not checked while {found} runs, and nothing declares that {found} is on "
        "standby"
    ),
    ObjectionKind.REFUSES_CLEAN_BATCHES: (
        "{found} of clean batches would be refused; the policy allows {allowed}"
    ),
    ObjectionKind.CLAIMED_RESIDUAL: (
        "{subject}: the file claims clean residuals up to {found}; the policy accepts {allowed}"
    ),
    ObjectionKind.CLAIMED_TRANSITIONS: (
        "{subject}: the file claims {found} of clean rows in transition; the policy accepts "
        "{allowed}"
    ),
    ObjectionKind.CLAIMED_WINDOWS: (
        "{subject}: the file claims that {found} of clean windows do not balance; the policy "
        "accepts {allowed}"
    ),
    ObjectionKind.CLAIMED_REPEATS: (
        "{subject}: the file claims that {found} of clean rows repeat; the policy accepts {allowed}"
    ),
    ObjectionKind.CLAIMED_JUMPS: (
        "the file claims that {found} of clean rows follow a time jump; the policy accepts "
        "{allowed}"
    ),
    ObjectionKind.CLAIMED_SWITCHES: (
        "{subject}: the file claims that {found} of clean rows have a switch out of band; the "
        "policy accepts {allowed}"
    ),
    ObjectionKind.CLAIMED_BLOCKS: (
        "{subject}: the file claims that {found} of clean blocks are out of their limits; the "
        "policy accepts {allowed}"
    ),
    ObjectionKind.UNTIED_CHANNELS: (
        "no rule besides a bound or a rate reads {found}; the policy allows {allowed}"
    ),
    ObjectionKind.MAY_STAND_STILL: (
        "{subject} may stand still: the file has it move by {found}; the policy requires {allowed}"
    ),
    ObjectionKind.LONGER_THAN_BATCHES: (
        "the longest window or block of the rules needs {found} rows; the longest batch has "
        "{allowed}"
    ),
    ObjectionKind.NOT_COMPARABLE: (
        "the rules cannot be compared with the last accepted ones: {found}; expected {allowed}"
    ),
    ObjectionKind.MISSING_SINCE_LAST: "{subject} is missing; the last accepted file has it",
    ObjectionKind.WIDER_RANGE: "{subject}: {found} is wider than the last accepted {allowed}",
    ObjectionKind.LONGER_SETTLING: (
        "{subject} settles in {found} rows; the last accepted file has {allowed}"
    ),
    ObjectionKind.OTHER_PREDICTION: (
        "{subject}: its coefficients or nominal flows moved; it accepts readings up to {found} "
        "from what the last accepted file predicts, which allows {allowed}"
    ),
    ObjectionKind.LOOSER_THAN_LAST: (
        "{subject}: tolerance {found} is looser than the last accepted file allows ({allowed})"
    ),
    ObjectionKind.LARGER_RESIDUAL: (
        "{subject}: residuals up to {found} would not be severe; the last accepted file allows "
        "{allowed}"
    ),
    ObjectionKind.MORE_JUMPS: (
        "a batch may have {found} segments; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_TRANSITIONS: (
        "{subject} may be in transition on {found} rows; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_WINDOWS: (
        "{subject}: {found} windows may be out of balance; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_REPEATS: (
        "{subject} may repeat on {found} rows; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_SWITCHES: (
        "{subject}: {found} switches may be out of band; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_BLOCKS: (
        "{subject}: {found} blocks may be out of their limits; the last accepted file allows "
        "{allowed}"
    ),
    ObjectionKind.LESS_MOVEMENT: (
        "{subject} needs to move by {found}; the last accepted file requires {allowed}"
    ),
    ObjectionKind.CHANGED_CHANNEL: (
        "channel {subject} is no longer described as a {allowed} with its span"
    ),
    ObjectionKind.WIDER_SPAN: "the span of channel {subject} grew from {allowed} to {found}",
    ObjectionKind.CHANGED_CODES: "the codes of actuator {subject} changed",
}


_MINE = "sluice mine RECORD --out {rules}"
_UPDATE = "sluice mine RECORD --out {rules} --update {last}"
_EDIT = "sluice rules seal {rules}"
_APPROVE = "sluice rules approve {rules} --key approver.key --out approval.json"
_PLANT_FILE = "sluice data inspect RECORD --write-plant plant.toml"
_COMMANDS = {
    ObjectionKind.DUPLICATE_NAME: _EDIT,
    ObjectionKind.UNDESCRIBED_CHANNEL: _EDIT,
    ObjectionKind.NO_CLEAN_FACTS: _MINE + " --profile hardened",
    ObjectionKind.WIDER_SPAN: _PLANT_FILE,
    ObjectionKind.CHANGED_CODES: _PLANT_FILE,
    ObjectionKind.NOT_COMPARABLE: _UPDATE,
    ObjectionKind.WIDER_RANGE: _UPDATE,
    ObjectionKind.LONGER_SETTLING: _UPDATE,
    ObjectionKind.LOOSER_THAN_LAST: _UPDATE,
    ObjectionKind.OTHER_PREDICTION: _UPDATE,
    ObjectionKind.LARGER_RESIDUAL: _UPDATE,
    ObjectionKind.MORE_JUMPS: _UPDATE,
    ObjectionKind.MORE_TRANSITIONS: _UPDATE,
    ObjectionKind.MORE_WINDOWS: _UPDATE,
    ObjectionKind.MORE_REPEATS: _UPDATE,
    ObjectionKind.MORE_SWITCHES: _UPDATE,
    ObjectionKind.MORE_BLOCKS: _UPDATE,
    ObjectionKind.LESS_MOVEMENT: _UPDATE,
}
"""The command for an objection that no declaration cures; `_MINE`, on other rows, for the rest."""
_DECLARED = {
    ObjectionKind.UNCOVERED_TANK,
    ObjectionKind.UNCOVERED_ACTUATOR,
    ObjectionKind.UNEXPLAINED_STANDBY,
    ObjectionKind.MAY_STAND_STILL,
    ObjectionKind.MISSING_SINCE_LAST,
    ObjectionKind.CHANGED_CHANNEL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """One thing that is wrong with a rules file, and what to do about it."""

    kind: ObjectionKind
    subject: str = ""  # the rule or channel; empty where the whole file is meant
    found: str = ""  # in the plant's units
    allowed: str = ""
    remedy: str

    @property
    def sentence(self) -> str:
        """The objection in words."""
        problem = _WORDS[self.kind].format(
            subject=self.subject, found=self.found, allowed=self.allowed
        )
        return f"{problem}; {self.remedy}"

    @property
    def declares(self) -> str:
        """The channel or rule for which an approver can declare a reason; empty if none can."""
        if self.kind not in _DECLARED:
            return ""
        return self.found if self.kind is ObjectionKind.UNEXPLAINED_STANDBY else self.subject


def commands(
    objections: Sequence[Objection],
    *,
    rules: str = "rules.json",
    last: str = "accepted.json",
) -> tuple[str, ...]:
    """Return a command for each objection; the user fills in what is in capitals.

    One approval declares every reason, so all objections that a reason cures have one command.
    """
    files = {"rules": shlex.quote(rules), "last": shlex.quote(last)}
    names = dict.fromkeys(each.declares for each in objections if each.declares)
    reasons = "".join(f" --declare {shlex.quote(name)}=REASON" for name in names)
    return tuple(
        (_APPROVE + reasons if each.declares else _COMMANDS.get(each.kind, _MINE)).format(**files)
        for each in objections
    )
