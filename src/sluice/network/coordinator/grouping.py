"""Plants share in groups: the coordinator and a helper learn the sum of a group, and no more.

A round belongs to an epoch. The epoch is in the log and at the helper before any plant pledges. A
plant pledges its share and reveals it after the log shows that every member of its group has
pledged. It hands the helper's share to the helper itself. The coordinator compares the two answers,
asks the helper to release whole groups, and logs each sum. A group without a sum is given up until
a later epoch, in which its members share later rows.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sluice.attestation.hidden import GroupSums, HiddenContribution
from sluice.attestation.log import (
    EpochDrawn,
    GroupGivenUp,
    GroupInForce,
    Groups,
    GroupSummed,
    Ledger,
)
from sluice.attestation.messages import (
    HELPER_ENTRIES,
    EpochOrder,
    HelperEntry,
    RetireOrder,
    Signed,
    SigningKey,
    Token,
    content_digest,
    context_of,
    instant,
    sign,
)
from sluice.attestation.protocol import (
    Agreement,
    ProtocolCoordinator,
    statistic_hash,
    step_in_words,
)
from sluice.attestation.systems.full import core_identity, statistic_settings
from sluice.detector import MomentSettings, MomentStatistic, Parameters
from sluice.errors import CheckpointError, RefusedError, SettingError, VerificationError
from sluice.federation import Checkpoint, Contributed, Reply, Train, Transport
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.sharing import TOO_FEW, statistics_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.helper import HelperClient
from sluice.network.statistics import MemberStatistic, MemberStatistics
from sluice.network.terms import FederationTerms

__all__ = ["GROUP_OVER", "OTHER_SHARES", "SharedGroups", "totals_bytes"]

OTHER_SHARES = "6.9.1"
"""The step of a plant whose shares do not open what it committed to, or do not match its proof."""
GROUP_OVER = "6.9.2"
"""The step of a plant whose group gets no sum because of another member, or of the helper."""
SILENT = "6"
TOTALS = 24
"""Bytes of the totals with which a proof of hidden sums begins."""


def totals_bytes(proof: bytes) -> bytes:
    """Return what the coordinator keeps of a verified proof of hidden sums: its totals."""
    return proof[:TOTALS]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summed:
    """The sum of a group, and the helper's signed entry about it."""

    released: Signed[HelperEntry]
    statistic: MomentStatistic


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedGroups:
    """Plants share the sums of their attested rows in groups, once for each batch."""

    terms: FederationTerms
    protocol: ProtocolCoordinator
    requests: Requests
    agreements: Mapping[str, Agreement]
    helper: HelperClient
    key: SigningKey = field(repr=False)

    @property
    def _ledger(self) -> Ledger:
        return self.protocol.log.ledger

    @property
    def _groups(self) -> Groups:
        return self._ledger.groups

    @property
    def _store(self) -> CoordinatorStore:
        return self.requests.store

    def first(self) -> Parameters:
        """Return the model without groups."""
        return MemberStatistics(settings=None).parameters

    def asked(self, before: Checkpoint) -> tuple[str, ...]:
        """Return the admitted plants with attested rows that were not shared.

        If groups are in force, a later epoch waits until there are enough of these plants.
        """
        attested = {member.name: member.attestation for member in self._store.members()}
        fresh = tuple(
            name
            for name in before.admitted
            if (held := attested[name]) is not None and not self._groups.used(held)
        )
        waits = self._groups.in_force and len(fresh) < self.terms.members_min
        return () if waits else fresh

    def in_model(self, parameters: Parameters) -> Mapping[str, str]:  # noqa: ARG002
        """Return the plants of the groups in force, each with the attestation of its rows."""
        found = {}
        for group in self._groups.in_force:
            for client in group.members:
                for commitment in self._ledger.commitments(client):
                    commit = self._ledger.committed(commitment, step=SILENT).commit.content
                    attestation = self._ledger.attestation(commitment)
                    if attestation and content_digest(commit) in group.commits:
                        found[client] = attestation
        return found

    def settled(self, parameters: Parameters) -> frozenset[str]:  # noqa: ARG002
        """Return the plants that wait for a later epoch, or have done their part of this one."""
        number = self._ledger.rounds.last
        return frozenset(
            member.name
            for member in self._store.members()
            if member.attestation is not None
            and (
                self._groups.used(member.attestation)
                or self._ledger.rounds.token(number, member.name) is not None
            )
        )

    def accounted(self, after: Checkpoint) -> frozenset[str]:
        """Return the same plants: one whose group was given up is not absent."""
        return self.settled(after.parameters)

    def can_begin(self, parameters: Parameters, plants: Collection[str], *, at: str) -> bool:  # noqa: ARG002
        """Whether groups can be drawn from these plants."""
        return len(plants) >= self.terms.members_min

    def enough(self, parameters: Parameters, plants: Collection[str], *, at: str) -> bool:  # noqa: ARG002
        """Whether these plants complete so many groups that a vote withstands f malicious ones."""
        whole = [group for group in self._groups.drawn if set(plants).issuperset(group)]
        return bool(whole) and self._enough(whole)

    def _enough(self, groups: Iterable[Collection[str]]) -> bool:
        statistic = self.terms.statistic
        assert statistic is not None
        return self._groups.after(groups) >= 2 * statistic.malicious + 1

    def left_out(self) -> Mapping[str, str]:
        """Return the plants that pledged and whose group is incomplete."""
        pledged = set(self._ledger.rounds.pledged)
        broken = (group for group in self._groups.drawn if not pledged.issuperset(group))
        return {client: GROUP_OVER for group in broken for client in group if client in pledged}

    def handed(self, parameters: Parameters) -> bytes:  # noqa: ARG002 - of the interface
        """Return nothing: a statistic does not depend on the model."""
        return b""

    def read(self, train: Train, token: Token, raw: bytes) -> Reply:  # noqa: ARG002
        """Read a share that opens the sealed statistic of the attested commitment."""
        contribution = self._contribution(token.client, token.attestation, raw)
        try:
            self._sums().accept(contribution)
        except VerificationError as error:
            raise VerificationError(OTHER_SHARES, f"{token.client!r}: {error.why}") from None
        return Contributed(member=contribution)

    def _contribution(self, client: str, attestation: str, share: bytes) -> HiddenContribution:
        commit = self._ledger.attested_commit(client, attestation, step=OTHER_SHARES)
        kept = self._store.statistic(client, attestation) or b""
        sealed, totals = kept[:-TOTALS], kept[-TOTALS:]
        if statistic_hash(sealed) != commit.statistic:
            raise CheckpointError(
                f"the store does not hold the sealed statistic that {client!r} has attested; "
                "restore store and log from the same backup"
            )
        circuit = self.agreements[client].circuit
        return HiddenContribution(
            commit=commit,
            sealed=sealed,
            share=share,
            identity=core_identity(circuit),
            context=context_of(commit, circuit).digest(),
            proof=totals,
        )

    def _sums(self) -> GroupSums:
        epoch = self._groups.epoch
        assert epoch is not None  # of every open round
        return GroupSums(epoch, self._settings(epoch.members))

    def _settings(self, members: Iterable[str]) -> MomentSettings:
        """Return what these plants sum; their sums can be added only if it is the same."""
        found = {name: statistic_settings(self.agreements[name].circuit) for name in members}
        first, settings = next(iter(found.items()))
        for name, other in found.items():
            if other != settings:
                raise RefusedError(
                    f"the rules of {name!r} sum other channels or registers than those of "
                    f"{first!r}, so their sums cannot be added; give both rules with the same "
                    "channels and ranges"
                )
        assert settings is not None
        return settings

    # -- a round ------------------------------------------------------------------------------

    def take(self, before: Checkpoint, transport: Transport) -> Checkpoint:
        """Draw an epoch, collect shares, and take the sums of whole groups into the model."""
        number = before.round + 1
        epoch = self._open_epoch(before)
        request = Train(round=number, parameters=before.parameters)
        replies = transport.exchange(dict.fromkeys(epoch.members, request))
        summed = self._summed(replies)
        whole = [self._groups.drawn[group] for group in summed]
        if not whole or not self._enough(whole):
            self._give_up_others((), step=TOO_FEW if summed else GROUP_OVER)
            return replace(before, round=number, unchanged=TOO_FEW if summed else None)
        self._log_sums(summed, number)
        self._give_up_others(summed, step=GROUP_OVER)
        after = self._model(before, summed)
        return replace(
            before,
            round=number,
            parameters=after.parameters,
            influence=dict.fromkeys(after.names, 1 / len(after.names)),
            passed=dict.fromkeys(after.names, 1),
        )

    def _open_epoch(self, before: Checkpoint) -> EpochOrder:
        """Draw an epoch of the plants that are online, in the log and at the helper.

        An epoch that was drawn before a crash is used if its round is open or can still begin.
        """
        helper, groups = self.helper.catch_up(), self._groups
        if not self._usable(groups.epoch, before):
            online = self.requests.wire.present()
            members = tuple(sorted(set(self.asked(before)) & online))
            settings, now = self._settings(members), self.requests.clock()
            lasts = timedelta(seconds=2 * self.terms.round_deadline_s)
            statistic = self.terms.statistic
            assert statistic is not None
            earlier = (each.epoch for each in (groups.epoch, helper.epoch) if each is not None)
            order = EpochOrder(
                federation=self.terms.federation,
                epoch=1 + max(earlier, default=0),
                malicious=statistic.malicious,
                members=members,
                settings=settings.digest,
                channels=len(settings.registers),
                lags=settings.lags,
                deadline=instant(now + lasts),
                head=self._ledger.head("coordinator").last,
            )
            self.protocol.log.append(EpochDrawn(order=sign(order, self.key)), at=now)
        epoch = self._groups.epoch
        assert epoch is not None
        if helper.epoch != epoch:
            self.helper.open_epoch(sign(epoch, self.key))
        return epoch

    def _usable(self, epoch: EpochOrder | None, before: Checkpoint) -> bool:
        """Whether the last epoch in the log is that of the next round."""
        if epoch is None:
            return False
        if self._groups.round:
            return not self._ledger.rounds.between
        now = instant(self.requests.clock())
        return epoch.deadline > now and set(epoch.members) <= set(self.asked(before))

    def _summed(self, replies: Mapping[str, Reply]) -> dict[int, _Summed]:
        """Compare the answers of each whole group, and ask the helper for its sum."""
        sums, round_ = self._sums(), self._groups.round
        excluded = self._ledger.rounds.excluded
        accepted = {
            client: reply.member
            for client, reply in replies.items()
            if isinstance(reply, Contributed) and client not in excluded
        }
        for contribution in accepted.values():
            sums.accept(contribution)
        self.helper.catch_up()
        summed = {}
        for number in self._groups.sharing:
            members = self._groups.drawn[number]
            wrong = {client: SILENT for client in members if client not in accepted}
            wrong |= dict.fromkeys(self._unmatched(sums, accepted, members), OTHER_SHARES)
            if not wrong:
                found = self._released(sums, number)
                if found is not None:
                    summed[number] = found
                    continue
            for client in members:
                self._exclude(client, wrong.get(client, GROUP_OVER), round_)
        return summed

    def _unmatched(
        self, sums: GroupSums, accepted: Collection[str], members: Iterable[str]
    ) -> list[str]:
        """Return the members whose shares do not fit their proof, or did not reach the helper."""
        wrong = []
        for client in members:
            if client in accepted:
                expected, taken = sums.answers[client], self.helper.ledger.shares.get(client)
                found = None if taken is None else (taken.commit, taken.values)
                if found != (expected.commit, expected.values):
                    wrong.append(client)
        return wrong

    def _released(self, sums: GroupSums, number: int) -> _Summed | None:
        """Return a group's sum; None if the helper refuses it, or releases no sum of R."""
        try:
            order = sums.release_order(number, self.helper.ledger)
            released, content = self.helper.release(sign(order, self.key))
            statistic = sums.total(released, content)
        except VerificationError as error:
            self._note(f"group {number} has no sum: {error.why}"[:200])
            return None
        line = self.helper.ledger.release_lines[number]
        return _Summed(released=HELPER_ENTRIES.read(line), statistic=statistic)

    def _log_sums(self, summed: Mapping[int, _Summed], round_: int) -> None:
        logged = {each.group for each in self._groups.pending}
        for number, each in summed.items():
            if number not in logged:
                body = GroupSummed(
                    round=round_, released=each.released, statistic=each.statistic.digest
                )
                self.protocol.log.append(body, at=self.requests.clock())

    def _give_up_others(self, summed: Collection[int], *, step: str) -> None:
        """Give up the groups without a sum, in the log and at the helper, which erases seeds."""
        epoch = self._groups.epoch
        assert epoch is not None
        for number in range(len(self._groups.drawn)):
            if number not in summed and number not in self._groups.given_up:
                body = GroupGivenUp(epoch=epoch.epoch, group=number, step=step)
                self.protocol.log.append(body, at=self.requests.clock())
                self._note(f"group {number} given up at step {step}")
            if number not in summed and number in self.helper.ledger.open_groups:
                reason = step_in_words(self._groups.given_up[number])[:200]
                order = RetireOrder(
                    federation=epoch.federation, epoch=epoch.epoch, group=number, reason=reason
                )
                try:
                    self.helper.retire(sign(order, self.key))
                except (SettingError, VerificationError) as error:
                    self._note(f"the helper did not retire group {number}: {error}"[:200])

    def _model(self, before: Checkpoint, summed: Mapping[int, _Summed]) -> MemberStatistics:
        """Return the model: the groups that stay in force, and the new ones."""
        new = {each.group: each for each in self._groups.pending}
        members = {client for group in new.values() for client in group.members}
        staying = {
            group.name for group in self._groups.in_force if not members & set(group.members)
        }
        shared = statistics_in(before.parameters, self.terms)
        for name in set(shared.names) - staying:
            shared = shared.without(name)
        return shared.joined_by(
            voter(new[number], each.statistic) for number, each in summed.items()
        )

    def _exclude(self, client: str, step: str, round_: int) -> None:
        if client not in self._ledger.rounds.excluded:
            now = self.requests.clock()
            self.protocol.revealing(round_).exclude(client, step, at=now)
            kind = f"excluded at step {step}"
            self._store.note(kind, plant=client, round_=round_, at=now)

    def _note(self, kind: str) -> None:
        round_ = self._groups.round
        self._store.note(kind, plant="", round_=round_, at=self.requests.clock())


def voter(group: GroupInForce, statistic: MomentStatistic) -> MemberStatistic:
    """Return a group as a member of the model."""
    return MemberStatistic(
        name=group.name, attestation=group.order, round=group.round, statistic=statistic
    )
