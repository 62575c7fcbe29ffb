"""The coordinator's side of hidden sums: what it holds, what it compares, what it may add up."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from sluice.attestation.hidden.elements import (
    ORDER,
    REPETITIONS,
    Draw,
    Elements,
    Shape,
    added,
    element_bytes,
    negated,
    read_elements,
)
from sluice.attestation.hidden.ledger import STEP, HelperLedger
from sluice.attestation.hidden.shares import CoordinatorShare
from sluice.attestation.messages import (
    Commit,
    EpochOrder,
    GroupReleased,
    MemberAnswer,
    ReleaseOrder,
    ShareTaken,
    content_digest,
    groups_of,
)
from sluice.attestation.systems.full import SealedStatistic
from sluice.detector import MomentSettings, MomentStatistic, trapezoid
from sluice.errors import SettingError, VerificationError

__all__ = ["GroupSums", "HiddenContribution", "proof_totals"]


def proof_totals(proof: bytes) -> tuple[int, ...]:
    """Return what a proof of hidden sums begins with: the masked form, for each repetition."""
    size = 8 * REPETITIONS
    totals = [int.from_bytes(proof[at : at + 8], "little") for at in range(0, size, 8)]
    if len(proof) < size or max(totals) >= ORDER:
        raise VerificationError(STEP, "the proof does not begin with canonical totals")
    return tuple(totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenContribution:
    """What a member sends the coordinator, after its proof was verified."""

    commit: Commit
    sealed: bytes
    share: bytes = field(repr=False)
    identity: bytes  # of the circuit's constraints, derived by the coordinator
    context: bytes  # recomputed by the coordinator
    proof: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    rows: int
    share: CoordinatorShare
    answer: MemberAnswer


class GroupSums:
    """The contributions of one epoch, and the sums of its groups."""

    def __init__(self, order: EpochOrder, settings: MomentSettings) -> None:
        if (order.settings, order.channels, order.lags) != (
            settings.digest,
            len(settings.registers),
            settings.lags,
        ):
            raise SettingError("the epoch is of other settings")
        self.order, self.settings = order, settings
        self.groups = groups_of(order)
        self._shape = Shape.of(settings)
        self._held: dict[str, _Held] = {}

    def accept(self, contribution: HiddenContribution) -> None:
        """Hold a member's share, if it opens the sealed statistic that the commitment names.

        The caller has verified the proof. Whether the sums are those of the proven rows is known
        after the helper's answer.
        """
        commit = contribution.commit
        if commit.federation != self.order.federation or commit.client not in self.order.members:
            raise VerificationError(STEP, f"{commit.client!r} has no part in this epoch")
        if commit.client in self._held:
            raise VerificationError(STEP, f"{commit.client!r} has contributed to this epoch before")
        if hashlib.sha256(contribution.sealed).hexdigest() != commit.statistic:
            raise VerificationError(
                STEP, "it is not the sealed statistic that the commitment names"
            )
        try:
            sealed = SealedStatistic.from_canonical(
                contribution.sealed, self.settings, rows=commit.rows
            )
            share = CoordinatorShare.from_canonical(contribution.share, self._shape)
        except SettingError as error:
            raise VerificationError(STEP, str(error)) from None
        if share.commitment != sealed.coordinator:
            raise VerificationError(STEP, "the share does not open the sealed statistic")
        draw = Draw(
            identity=contribution.identity,
            commitment=bytes.fromhex(commit.commitment),
            context=contribution.context,
            sealed=contribution.sealed,
        )
        expected = share.expected(self._shape, draw, proof_totals(contribution.proof))
        answer = MemberAnswer(
            client=commit.client,
            commit=content_digest(commit),
            values=element_bytes(expected).hex(),
        )
        self._held[commit.client] = _Held(rows=commit.rows, share=share, answer=answer)

    def demand_match(self, taken: ShareTaken) -> None:
        """Raise unless the helper's answer is the expected one.

        If it is not, the member's shares are not those of the rows that it proved, or the helper
        lied. The member can show its submission to an auditor, who recomputes the answer.
        """
        held = self._held.get(taken.client)
        if held is None:
            raise VerificationError(STEP, f"{taken.client!r} has not contributed")
        if (held.answer.commit, held.answer.values) != (taken.commit, taken.values):
            raise VerificationError(
                STEP,
                f"the forms of {taken.client!r} do not match: its shares are not those of the rows "
                "that it proved, or the helper's answer is false",
            )

    def release_order(self, group: int, ledger: HelperLedger) -> ReleaseOrder:
        """Return the order for a group in which every member contributed and every form matches."""
        for client in self.groups[group]:
            taken = ledger.shares.get(client)
            if taken is None or client not in self._held:
                raise VerificationError(STEP, f"group {group} is incomplete: {client!r} is missing")
            self.demand_match(taken)
        return ReleaseOrder(
            federation=self.order.federation,
            epoch=self.order.epoch,
            group=group,
            members=tuple(self._held[client].answer for client in self.groups[group]),
        )

    def total(self, released: GroupReleased, content: bytes) -> MomentStatistic:
        """Return the sum of a group's statistics from the sum of R that the helper released."""
        order = released.order.content
        if (order.federation, order.epoch) != (self.order.federation, self.order.epoch):
            raise VerificationError(STEP, "the sum is of another epoch")
        members = self.groups[order.group]
        if order.members != tuple(self._held[client].answer for client in members):
            raise VerificationError(STEP, "the sum is not of the order that was given")
        if hashlib.sha256(content).hexdigest() != released.sum:
            raise VerificationError(STEP, "the helper's log names another sum")
        try:
            masks = read_elements(content)
            return self._unmasked([self._held[client] for client in members], masks)
        except (SettingError, ValueError) as error:
            raise VerificationError(
                STEP, f"what the helper released for group {order.group} is no sum of R: {error}"
            ) from None

    def _unmasked(self, held: list[_Held], masks: Elements) -> MomentStatistic:
        if masks.shape != (self._shape.size,):
            raise SettingError(f"it has {masks.size:,} elements, not {self._shape.size:,}")
        total = added(reduce(added, (each.share.sums for each in held)), negated(masks))
        if (total >= np.uint64(1 << 63)).any():
            raise SettingError("an integer is larger than any rows give")
        numbers = total.astype(np.int64)
        channels, lags = self._shape.channels, self._shape.lags
        windows = [each.rows - lags + 1 for each in held]
        return MomentStatistic(
            settings=self.settings,
            count=sum(windows),
            weight=sum(int(trapezoid(each).sum()) for each in windows),
            sums=numbers[:channels],
            lagged=numbers[channels:].reshape(lags, channels, channels),
        )

    @property
    def answers(self) -> Mapping[str, MemberAnswer]:
        """What the helper must have published, by member."""
        return {client: held.answer for client, held in self._held.items()}
