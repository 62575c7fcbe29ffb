"""Groups recorded in the log: an epoch is drawn, whole groups share, each is summed or given up.

The next round takes the shares of an epoch. A plant is in at most one group in force: a new group
ends the earlier groups of its members. So f malicious plants spoil at most f groups.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from sluice.attestation.log.entries import (
    EpochDrawn,
    GroupGivenUp,
    GroupSummed,
    ModelAggregated,
    StatisticTerms,
)
from sluice.attestation.log.rounds import Rounds
from sluice.attestation.messages import (
    EpochOrder,
    GroupReleased,
    ReleaseOrder,
    content_digest,
    groups_of,
)
from sluice.errors import SettingError, VerificationError

__all__ = ["GROUP_OVER", "GroupInForce", "Groups", "GroupsState"]

STEP = "6"
TOO_FEW = "6.6"
GROUP_OVER = "6.9.2"
"""The step of a plant whose group gets no sum because of another member, or of the helper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInForce:
    """A group whose sum is, or was, one voter of the model."""

    epoch: int
    group: int
    round: int  # that took its shares
    members: tuple[str, ...]
    commits: tuple[str, ...]  # digests of the members' commitments
    order: str  # digest of the coordinator's order, which names them
    statistic: str  # the hash of its sum
    until: int = 0  # the round after whose model it is over; 0: none

    @property
    def name(self) -> str:
        """Its name as a voter."""
        return f"group-{self.epoch}-{self.group}"


@dataclass(slots=True, kw_only=True)
class GroupsState:
    """The last epoch in detail, and the groups of all models."""

    epoch: EpochOrder | None = None
    round: int = 0  # that takes the shares of the epoch; 0: it is not open yet
    sharing: list[int] = field(default_factory=list)  # groups whose members have all pledged
    given_up: dict[int, str] = field(default_factory=dict)  # by group: the step
    pending: list[GroupInForce] = field(default_factory=list)  # summed in the open round
    summed: list[GroupInForce] = field(default_factory=list)  # of finished rounds
    used: list[str] = field(default_factory=list)  # attestations whose shares may be known


class Groups:
    """Every epoch so far; entries out of order are refused."""

    def __init__(self, state: GroupsState, rounds: Rounds) -> None:
        self._state, self._rounds = state, rounds

    # -- queries ------------------------------------------------------------------------------

    @property
    def epoch(self) -> EpochOrder | None:
        """The last epoch."""
        return self._state.epoch

    @property
    def round(self) -> int:
        """The round that takes the shares of the last epoch; 0 before it is opened."""
        return self._state.round

    @property
    def drawn(self) -> tuple[tuple[str, ...], ...]:
        """The groups of the last epoch."""
        return groups_of(self._state.epoch) if self._state.epoch else ()

    def number_of(self, client: str) -> int | None:
        """Return the number of a client's group in the last epoch; None if it has none."""
        return next((at for at, group in enumerate(self.drawn) if client in group), None)

    @property
    def sharing(self) -> tuple[int, ...]:
        """The groups of the last epoch that share: all members have pledged, none was given up."""
        return tuple(at for at in self._state.sharing if at not in self._state.given_up)

    @property
    def given_up(self) -> dict[int, str]:
        """The groups of the last epoch that get no sum, each with the step that says why."""
        return dict(self._state.given_up)

    @property
    def pending(self) -> tuple[GroupInForce, ...]:
        """The groups that were summed in the open round."""
        return tuple(self._state.pending)

    @property
    def in_force(self) -> tuple[GroupInForce, ...]:
        """The voters of the federation's model, by name."""
        removed = self._rounds.removed
        found = [
            each
            for each in self._state.summed
            if not each.until and not any(removed(client) for client in each.members)
        ]
        return tuple(sorted(found, key=lambda each: each.name))

    def of(self, client: str) -> GroupInForce | None:
        """Return the group in force that a client is in."""
        return next((each for each in self.in_force if client in each.members), None)

    def used(self, attestation: str) -> bool:
        """Whether the rows of this attestation were shared, or may have been."""
        return attestation in self._state.used

    @property
    def sentences(self) -> tuple[str, ...]:
        """The groups that vote, and those of the last epoch that were given up, for operators."""
        voting = [f"{each.name} votes: {', '.join(each.members)}" for each in self.in_force]
        epoch = self._state.epoch
        over = [
            f"group-{epoch.epoch}-{at} was given up at step {step}: {', '.join(self.drawn[at])}"
            for at, step in sorted(self._state.given_up.items())
            if epoch is not None
        ]
        return (*voting, *over) or ("no group has a sum yet",)

    def after(self, groups: Iterable[Collection[str]]) -> int:
        """Return how many groups are in force after groups of these members were summed."""
        new = list(groups)
        members = {client for group in new for client in group}
        return len(new) + sum(not members & set(each.members) for each in self.in_force)

    # -- checks -------------------------------------------------------------------------------

    def check_drawn(self, order: EpochOrder, terms: StatisticTerms, *, head: str, at: str) -> None:
        """An epoch is drawn between rounds, from this log, as the terms say."""
        earlier = self._state.epoch
        if not self._rounds.between or order.head != head:
            raise VerificationError(
                STEP, "an epoch is drawn between rounds, from the last entry of the log"
            )
        if earlier is not None and order.epoch <= earlier.epoch:
            raise VerificationError(
                STEP, f"epoch {order.epoch} does not follow epoch {earlier.epoch}"
            )
        if (order.malicious, order.lags) != (terms.malicious, terms.lags) or order.deadline <= at:
            raise VerificationError(
                STEP,
                f"epoch {order.epoch} withstands {order.malicious} malicious members and has "
                f"{order.lags} lags until {order.deadline}; the terms say {terms.malicious} and "
                f"{terms.lags}, and it is {at}",
            )
        try:
            groups_of(order)
        except SettingError as error:
            raise VerificationError(TOO_FEW, str(error)) from None

    def check_opened(self) -> None:
        """A round takes the shares of an epoch that no other round took."""
        if self._state.epoch is None or self._state.round:
            raise VerificationError(STEP, "a round takes the shares of an epoch; draw one first")

    def check_pledged(self, client: str, attestation: str) -> None:
        """A token is of a member of the epoch, for rows that were not shared before."""
        if self.number_of(client) is None or self.used(attestation):
            raise VerificationError(
                STEP,
                f"{client!r} is in no group of the epoch, or its rows were shared before: it must "
                "attest later rows",
            )

    def check_revealed(self, client: str) -> None:
        """A share is taken only if every member of the group has pledged."""
        if self.number_of(client) not in self.sharing:
            raise VerificationError(
                GROUP_OVER, f"the group of {client!r} is incomplete, or too few groups are whole"
            )

    def check_given_up(self, body: GroupGivenUp) -> None:
        """A group of the open epoch is given up once, before it has a sum."""
        state = self._state
        known = state.epoch is not None and body.epoch == state.epoch.epoch
        over = {*state.given_up, *(each.group for each in state.pending)}
        if not known or body.group >= len(self.drawn) or body.group in over or not state.round:
            raise VerificationError(
                STEP, f"group {body.group} of epoch {body.epoch} is not open, so it is not given up"
            )

    def check_summed(self, body: GroupSummed, commits: dict[str, str]) -> None:
        """A sum is of a whole group whose members revealed what their commitments name.

        `commits` are the digests of the commitments that members pledged.
        """
        order = _order_in(body)
        epoch = self._state.epoch
        if epoch is None or (order.epoch, body.round) != (epoch.epoch, self._state.round):
            raise VerificationError(STEP, f"the sum is of epoch {order.epoch}, not of this round")
        pending = {each.group for each in self._state.pending}
        if order.group not in self.sharing or order.group in pending:
            raise VerificationError(GROUP_OVER, f"group {order.group} is over, or has a sum")
        members = self.drawn[order.group]
        absent = set(members) - set(self._rounds.members)
        if tuple(each.client for each in order.members) != members or absent:
            raise VerificationError(
                GROUP_OVER,
                f"a sum is of the whole group {', '.join(members)}"
                + (f"; no share of {', '.join(sorted(absent))} was accepted" if absent else ""),
            )
        for each in order.members:
            if commits[each.client] != each.commit:
                raise VerificationError(
                    "6.9.1", f"the sum is of another batch of {each.client!r} than it pledged"
                )

    def check_aggregated(self, body: ModelAggregated, terms: StatisticTerms) -> None:
        """The model names the members of all summed groups, and has enough voters."""
        groups = [each.members for each in self._state.pending]
        named = tuple(sorted(client for group in groups for client in group))
        if body.clients != named:
            raise VerificationError(
                STEP, f"round {body.round} names clients whose group has no sum, or leaves some out"
            )
        needed = 2 * terms.malicious + 1
        if groups and self.after(groups) < needed:
            raise VerificationError(
                TOO_FEW,
                f"the model would have {self.after(groups)} groups; a vote that withstands "
                f"{terms.malicious} malicious members needs {needed}",
            )

    # -- notes --------------------------------------------------------------------------------

    def note(self, body: EpochDrawn | GroupSummed | GroupGivenUp) -> None:
        """Record an entry that was checked."""
        state = self._state
        match body:
            case EpochDrawn(order=order):
                state.epoch, state.round = order.content, 0
                state.sharing, state.given_up, state.pending = [], {}, []
            case GroupGivenUp(group=group, step=step):
                state.given_up[group] = step
            case GroupSummed():
                sums = _order_in(body)
                summed = GroupInForce(
                    epoch=sums.epoch,
                    group=sums.group,
                    round=body.round,
                    members=self.drawn[sums.group],
                    commits=tuple(each.commit for each in sums.members),
                    order=content_digest(sums),
                    statistic=body.statistic,
                )
                state.pending.append(summed)

    def note_opened(self, round_: int) -> None:
        """Record that a round takes the shares of the epoch."""
        self._state.round = round_

    def note_closed(self, terms: StatisticTerms) -> None:
        """Record which groups share: those in which every member has pledged.

        None does if they are too few for a vote. The rows of their members are used from now on.
        """
        pledged, number = set(self._rounds.pledged), self._state.round
        whole = [at for at, group in enumerate(self.drawn) if pledged.issuperset(group)]
        groups = [self.drawn[at] for at in whole]
        if self.after(groups) < 2 * terms.malicious + 1:
            return
        self._state.sharing = whole
        for client in (client for group in groups for client in group):
            token = self._rounds.token(number, client)
            assert token is not None  # of every client that has pledged
            self._state.used.append(token.attestation)

    def note_aggregated(self, round_: int) -> None:
        """Record that the summed groups are in force, and end earlier groups of their members."""
        state = self._state
        members = {client for each in state.pending for client in each.members}
        state.summed = [
            replace(each, until=round_) if not each.until and members & set(each.members) else each
            for each in state.summed
        ]
        state.summed += state.pending
        state.pending = []

    def note_discarded(self, model_of: int | None = None) -> None:
        """Record that the open round has no model, or that rounds after `model_of` are discarded.

        Rows that were shared stay used.
        """
        state = self._state
        state.pending = []
        if model_of is not None:
            kept = [each for each in state.summed if each.round <= model_of]
            state.summed = [
                replace(each, until=0) if each.until > model_of else each for each in kept
            ]


def _order_in(body: GroupSummed) -> ReleaseOrder:
    released = body.released.content.body
    if not isinstance(released, GroupReleased):
        raise VerificationError(STEP, "the helper's entry does not release a sum")
    return released.order.content
