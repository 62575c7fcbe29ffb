"""A plant's part in a group: what it checks before it shares, and its share for the helper.

The plant trusts neither the coordinator nor the helper alone. It shares only if its copy of the
coordinator's log and the helper's log have the same epoch, the same members with the same keys, and
if every member of its group has pledged.
"""

from pathlib import Path

from sluice.attestation.log import Ledger
from sluice.attestation.messages import (
    COMMITS,
    EpochOrder,
    Submission,
    context_of,
    sign,
)
from sluice.attestation.protocol import Registered
from sluice.attestation.systems.full import core_identity
from sluice.errors import SettingError, VerificationError
from sluice.network.helper import HelperClient
from sluice.network.plant.batch_archive import ArchivedBatch
from sluice.network.terms import FederationTerms

__all__ = ["GroupMember"]

STEP = "6"
COPY = "helper.log"


class GroupMember:
    """A plant that shares in groups."""

    def __init__(self, folder: Path, plant: Registered, terms: FederationTerms) -> None:
        self._copy, self._plant, self._terms = folder / COPY, plant, terms
        self._client: tuple[str, HelperClient] | None = None  # for a coordinator's key

    def share_of(self, archived: ArchivedBatch) -> bytes:
        """Return the coordinator's share of a batch."""
        if archived.shares is None:
            raise SettingError("the batch has no shares; its files were changed")
        return archived.shares.coordinator.canonical()

    def demand_epoch(self, ledger: Ledger, round_: int) -> EpochOrder:
        """Raise unless log and helper agree on the epoch of a round that this plant is in."""
        groups, helper = ledger.groups, self._helper(ledger)
        epoch = groups.epoch
        if epoch is None or groups.round != round_ or groups.number_of(self._plant.client) is None:
            raise VerificationError(
                STEP, f"the log has no epoch for round {round_} with {self._plant.client!r} in it"
            )
        theirs = helper.catch_up()
        if theirs.epoch != epoch:
            raise VerificationError(
                STEP, f"the helper's log has another epoch than the coordinator's in round {round_}"
            )
        strange = [
            client
            for client in epoch.members
            if theirs.key_of(client) != ledger.client(client, step=STEP).key
        ]
        if strange:
            raise VerificationError(
                STEP, f"the helper knows {', '.join(strange)} under another key than the log"
            )
        return epoch

    def hand_in(self, archived: ArchivedBatch, ledger: Ledger, round_: int) -> None:
        """Give the helper its share, if its group shares.

        By the log, every member of the group has then pledged, and the groups that share are
        enough for a vote.
        """
        epoch, groups = self.demand_epoch(ledger, round_), ledger.groups
        statistic = self._terms.statistic
        assert statistic is not None
        if groups.number_of(self._plant.client) not in groups.sharing:
            raise VerificationError(
                "6.9.2",
                "a member of this plant's group has not pledged, or too few groups are whole; "
                "nothing is shared",
            )
        assert archived.shares is not None
        commit, circuit = COMMITS.read(archived.commit), self._plant.circuit
        submission = Submission(
            federation=epoch.federation,
            epoch=epoch.epoch,
            client=self._plant.client,
            commit=commit,
            sealed=archived.shares.sealed.canonical(),
            identity=core_identity(circuit).hex(),
            context=context_of(commit.content, circuit).digest().hex(),
            share=archived.shares.helper.seed,
        )
        signed = sign(submission, self._plant.key)
        self._helper(ledger).share(signed, malicious=statistic.malicious)

    def _helper(self, ledger: Ledger) -> HelperClient:
        statistic = self._terms.statistic
        assert statistic is not None
        assert statistic.helper is not None
        key = ledger.coordinator
        if self._client is None or self._client[0] != key:
            client = HelperClient(statistic.helper, coordinator=key, copy=self._copy)
            self._client = key, client
        return self._client[1]
