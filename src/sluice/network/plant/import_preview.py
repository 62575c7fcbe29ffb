"""A preview: what the coordinator will ask when it imports this plant's request and batch.

The plant opens a log of its own in a temporary folder, under the terms and the approvers that its
invitation names, and registers and commits there. So the same code asks the same questions. Nothing
is sent, and the temporary log is deleted.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.admission import Objection, accept
from sluice.attestation.log import Ledger, Log, LogOpened
from sluice.attestation.messages import (
    APPROVALS,
    COMMITS,
    REGISTRATIONS,
    Commit,
    Signed,
    SigningKey,
    instant,
)
from sluice.attestation.protocol import Agreement, ProtocolCoordinator, Registered, declared_in
from sluice.errors import RecordError, RefusedError
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import Invitation
from sluice.telemetry import Record

__all__ = ["ImportPreview", "preview_import"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPreview:
    """What the coordinator would answer, before it sees a proof."""

    registered: bool  # under these rules, in the log that this plant has seen
    objections: tuple[Objection, ...] = ()  # to the rules
    approvals_missing: int = 0
    refused: str = ""  # why it would refuse the request or the batch; empty if it would not

    @property
    def passes(self) -> bool:
        """Whether the coordinator would object to nothing; approvals may be missing."""
        return not self.objections and not self.refused


def preview_import(
    plant: PlantFolder, batch: Record, *, approvals: Sequence[bytes] = (), at: datetime
) -> ImportPreview:
    """Return what the coordinator would object to, with these approvals."""
    registered, invitation = plant.registered(), plant.invitation
    registration, ledger = registered.registration(), plant.ledger()
    sharing = plant.statistic_sharing()
    try:
        signed_off = None if sharing is None else sharing.signed_off(batch)
        commit = registered.commit(batch, signed_off=signed_off).message
        if ledger.size and ledger.registration_logged(registration.content):
            _commit_to(ledger, commit, at=at)
            return ImportPreview(registered=True)
        given = tuple(APPROVALS.read(each) for each in approvals)
        objections = accept(
            registered.circuit.rules,
            registered.circuit.policy,
            declared=declared_in(given, registration.content),
        )
        signers = {each.content.approver for each in given} & set(invitation.approvers)
        missing = max(invitation.log.approvals - len(signers), 0)
        if not objections and not missing:
            _join(registered, invitation, approvals, commit, at=at)
    except (RecordError, RefusedError) as error:
        return ImportPreview(registered=False, refused=str(error))
    return ImportPreview(registered=False, objections=objections, approvals_missing=missing)


def _commit_to(ledger: Ledger, commit: Signed[Commit], *, at: datetime) -> None:
    """Check the batch against the log that this plant has seen; its last batch stays valid."""
    client, interval = commit.content.client, commit.content.interval
    earlier = (ledger.committed(each, step="2") for each in ledger.commitments(client))
    if interval not in {logged.commit.content.interval for logged in earlier}:
        ledger.check_committed(commit, at=instant(at))


def _join(
    registered: Registered,
    invitation: Invitation,
    approvals: Sequence[bytes],
    commit: Signed[Commit],
    *,
    at: datetime,
) -> None:
    """Register and commit in a log of this plant's own."""
    key = SigningKey.generate()
    opened = LogOpened(
        federation=invitation.terms.federation,
        coordinator=key.public,
        approvers=invitation.approvers,
        terms=invitation.log,
        statistic=invitation.terms.statistic,
    )
    agreement = Agreement(system=registered.system, circuit=registered.circuit)
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        log = Log.create(Path(folder) / "log.jsonl", opened, key, at=at)
        raw = REGISTRATIONS.write(registered.registration())
        enrolled = ProtocolCoordinator(log=log).register(raw, agreement, approvals=approvals, at=at)
        enrolled.receive(COMMITS.write(commit), at=at)
