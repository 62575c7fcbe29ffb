"""Send signed questions to plants, read their answers strictly, and count what is not valid.

A phase ends when a quorum of the asked plants has given valid answers and a short grace is over, or
at its deadline. Only valid answers count for the quorum: a plant that answers nonsense at once
leaves the others no less time. A plant without a valid answer at the end is absent in the round.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sluice.attestation.messages import SigningKey, sign
from sluice.errors import DocumentError
from sluice.network.coordinator.pages import LogPages
from sluice.network.coordinator.store import CoordinatorStore, Member
from sluice.network.terms import FederationTerms
from sluice.network.wire import (
    ANSWERS,
    QUESTIONS,
    Ask,
    AskLog,
    Declined,
    LogSeen,
    Payload,
    Question,
    Wire,
)

__all__ = ["Requests"]

PAGES_A_ROUND = 64
"""Pages that a plant which is far behind gets before a round."""
ROUNDING = 1e-9  # 0.3 of 10 plants is 3 despite float rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Sends the coordinator's questions over the wire and reads the answers."""

    terms: FederationTerms
    key: SigningKey = field(repr=False)
    pages: LogPages
    wire: Wire
    store: CoordinatorStore
    clock: Callable[[], datetime]

    def ask(  # noqa: PLR0913 - one phase
        self,
        asks: Mapping[str, Ask],
        *,
        round_: int,
        seconds: float,
        accept: Callable[[str, Payload], bool],
        absences: bool = True,
        deadlines: Mapping[str, datetime] | None = None,
    ) -> None:
        """Ask each plant, and give well-formed answers to `accept`, which says if they are valid.

        Every other outcome is recorded as an event. A plant without a valid answer is absent,
        unless `absences` says not to count it, or it is silent and the phase ends before its
        deadline.
        """
        began, valid, refused = self.clock(), set[str](), set[str]()
        members = {member.name: member for member in self.store.members()}
        pending = {plant: self._signed(members[plant], ask) for plant, ask in asks.items()}
        while pending:
            left = seconds - (self.clock() - began).total_seconds()
            missing = self._quorum(len(asks) - len(refused)) - len(valid)
            if left <= 0 or missing <= 0:
                break
            arrived = 0
            for plant, raw in self.wire.ask(
                pending, seconds=left, quorum=missing, grace_s=self.terms.grace_s
            ):
                arrived += 1
                answer = self._read(plant, raw, round_=round_, began=began)
                accepted = answer is not None and accept(plant, answer)
                (valid if accepted else refused).add(plant)
            pending = {p: q for p, q in pending.items() if p not in valid | refused}
            if arrived < missing:  # the time is up, or the wire has given the others up
                break
        for plant in sorted(pending):
            self._note("silent", plant, round_)
        ended = self.clock()
        proving = {plant for plant in pending if deadlines and ended < deadlines[plant]}
        for plant in sorted(proving):
            self.store.proves(plant, max(round_, 1))
        absent = set(asks) - valid - proving | self._gone_back(members, asks)
        for plant in sorted(absent if absences else ()):
            self.store.absent(plant, max(round_, 1))  # the first round includes the start

    def _gone_back(self, before: Mapping[str, Member], asked: Iterable[str]) -> set[str]:
        """Return the plants that say they have lost more of the log than a page.

        They cost the others the time in which they are shown it again.
        """
        now = {each.name: each for each in self.store.members()}
        return {
            plant
            for plant in asked
            if now[plant].seen < before[plant].seen and self.behind(now[plant])
        }

    def seconds_for(self, asked: int, *, settled: int, most: float) -> float:
        """Return the time for a phase in which some plants need not be asked.

        If those make a quorum, the asked plants have a grace: the others do not wait longer. Terms
        without a grace would leave them no time at all, so it is not shortened there.
        """
        grace_s = self.terms.grace_s
        short = grace_s > 0 and settled >= self._quorum(asked + settled)
        return min(most, grace_s) if short else most

    def _quorum(self, asked: int) -> int:
        return math.ceil(self.terms.quorum * asked - ROUNDING)

    def compare(self, plants: Iterable[str], *, round_: int) -> None:
        """Show the log to plants before it is written to; raise if one of them follows another.

        A coordinator that was restored from a backup would otherwise fork its log.
        """
        asks = dict.fromkeys(plants, AskLog())
        seconds = self.terms.grace_s

        def accept(plant: str, answer: Payload) -> bool:
            if isinstance(answer, LogSeen) and answer.renews:
                self.store.renews(plant, renews=True)
            return _took(plant, answer)

        self.ask(asks, round_=round_, seconds=seconds, accept=accept, absences=False)

    def catch_up(self, plants: Iterable[str], *, round_: int) -> None:
        """Send the log to plants that are more than a page behind, for the time of one grace.

        A plant that takes a page as a whole is not absent, and goes on in the next round. A plant
        that takes none is.
        """
        began, asked = self.clock(), set(plants)
        for number in range(PAGES_A_ROUND):
            ends = {
                each.name: page.start + len(page.lines)
                for each in self.store.members()
                if each.name in asked and not self.pages.whole(page := self.pages.page(each.seen))
            }
            left = self.terms.grace_s - (self.clock() - began).total_seconds()
            if not ends or left <= 0:
                return
            took: set[str] = set()

            def accept(
                plant: str,
                answer: Payload,
                ends: Mapping[str, int] = ends,
                took: set[str] = took,
            ) -> bool:
                if isinstance(answer, LogSeen) and self._seen(plant) >= ends[plant]:
                    took.add(plant)
                return plant in took

            asks = dict.fromkeys(ends, AskLog())
            self.ask(asks, round_=round_, seconds=left, accept=accept, absences=number == 0)
            asked = took

    def _seen(self, plant: str) -> int:
        """Return how many log entries a plant says that it has verified."""
        return next(each.seen for each in self.store.members() if each.name == plant)

    def behind(self, member: Member) -> bool:
        """Whether a plant misses more of the log than one page."""
        return not self.pages.whole(self.pages.page(member.seen))

    def _signed(self, member: Member, ask: Ask) -> bytes:
        question = Question(
            federation=self.terms.federation,
            client=member.name,
            page=self.pages.page(member.seen),
            copied=member.copied,
            ask=ask,
        )
        return QUESTIONS.write(sign(question, self.key))

    def _read(self, plant: str, raw: bytes, *, round_: int, began: datetime) -> Payload | None:
        try:
            read = ANSWERS.read(raw)
        except DocumentError:
            self._note("malformed", plant, round_)
            return None
        answer = read.answer
        self.store.seen(plant, min(read.seen, self.pages.log.ledger.size))
        if self.store.answered_by(plant, read.instance):
            self._note("copied", plant, round_)
        if isinstance(answer, Declined):
            self._note("declined", plant, round_)
            if answer.head is not None:
                self.pages.refuse_other(plant, answer.head)
            return None
        lasted = (self.clock() - began).total_seconds()
        self.store.note(
            f"answered {answer.kind}", plant=plant, round_=round_, at=self.clock(), seconds=lasted
        )
        return answer

    def _note(self, kind: str, plant: str, round_: int) -> None:
        self.store.note(kind, plant=plant, round_=round_, at=self.clock())


def _took(_: str, answer: Payload) -> bool:
    return isinstance(answer, LogSeen)
