"""Why the filter refuses a call, and how often it did, for the coordinator's operators."""

import json
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import final

from sluice.files import atomically

__all__ = ["CallRefusal", "CallRefusedError", "RefusalCounts", "demand", "read_refusals"]

UNKNOWN = "(unknown)"
"""The caller of a call that did not come through the proxy."""
MOST_CALLERS = 1_000


class CallRefusal(StrEnum):
    """Why a call is refused."""

    NOT_FROM_PROXY = "not from the proxy"
    NO_SUCH_CALL = "no such call"
    NOT_ENROLLED = "plant not enrolled or not active"
    CERTIFICATE = "certificate not valid for the plant"
    NODE_KEY = "key of another node"
    SIGNATURE = "node signature"
    CLOCK = "clock"
    REGISTRATION = "registration of a node"
    MALFORMED = "malformed call"
    NODE = "id of another node"
    SENDER = "sender of a message is another node"
    NO_QUESTION = "no open question"
    ANSWERED = "question answered already"
    NOT_ANNOUNCED = "object of no announced message"
    NOT_AN_ANSWER = "message without an answer"
    HEARTBEAT = "heartbeat interval"
    TOO_LARGE = "too large"
    TOO_SLOW = "too slow"
    QUOTA = "quota"


STATUS = {
    CallRefusal.NO_SUCH_CALL: 404,
    CallRefusal.SIGNATURE: 401,
    CallRefusal.CLOCK: 401,
    CallRefusal.MALFORMED: 400,
    CallRefusal.ANSWERED: 409,
    CallRefusal.TOO_LARGE: 413,
    CallRefusal.TOO_SLOW: 408,
    CallRefusal.QUOTA: 429,
}
"""The HTTP status of each refusal; 403 for all others."""


class CallRefusedError(Exception):
    """The filter refuses a call; nothing of it reaches Flower."""

    def __init__(self, refusal: CallRefusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal
        self.status = STATUS.get(refusal, 403)


def demand(holds: bool, refusal: CallRefusal) -> None:  # noqa: FBT001 - reads as a sentence
    """Refuse the call unless a condition holds."""
    if not holds:
        raise CallRefusedError(refusal)


@final
class RefusalCounts:
    """Counts refusals by plant and reason, in a file that outlives the filter."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = False
        self._counts = {plant: Counter(of) for plant, of in read_refusals(path).items()}

    def count(self, plant: str, refusal: CallRefusal) -> None:
        """Count one refusal. `plant` is the name in a certificate of our authority, or empty."""
        name = plant or UNKNOWN
        if name not in self._counts and len(self._counts) >= MOST_CALLERS:
            name = UNKNOWN
        self._counts.setdefault(name, Counter())[refusal.value] += 1
        self._changed = True

    def of(self, plant: str) -> Mapping[str, int]:
        """Return the counts of one plant, by reason."""
        return dict(self._counts.get(plant or UNKNOWN, {}))

    def save(self) -> None:
        """Write the file if a count has changed."""
        if not self._changed:
            return
        self._changed = False
        text = json.dumps({plant: dict(of) for plant, of in self._counts.items()}, indent=1)
        with atomically(self._path) as draft:
            draft.write_text(f"{text}\n", encoding="utf-8")


def read_refusals(path: Path) -> dict[str, dict[str, int]]:
    """Return the refusals that the filter has counted: plant, reason, number of calls."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return {
        str(plant): {str(reason): int(count) for reason, count in counts.items()}
        for plant, counts in content.items()
    }
