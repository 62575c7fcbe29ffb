"""What plants send as files: a request to join, or an attestation through a one-way gateway."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation.messages import SigningKey
from sluice.errors import DocumentError, SettingError
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.intake import Intake
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.terms import ExportedAttestation, JoinRequest, read_document
from sluice.network.wire import Batch, Direct

__all__ = ["Taken", "take_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a file."""

    plant: str
    what: str


def take_in(folder: Path, file: Path, *, at: datetime) -> Taken:
    """Take in a plant's file, whichever of the two it is."""
    site = CoordinatorFolder(folder)
    try:
        request = read_document(JoinRequest, file)
    except DocumentError:
        return _attestation(site, read_document(ExportedAttestation, file), at=at)
    site.enrol(request, at=at)
    return Taken(plant=request.plant, what="joined")


def _attestation(site: CoordinatorFolder, exported: ExportedAttestation, *, at: datetime) -> Taken:
    store = CoordinatorStore(site.base)
    try:
        agreements = site.agreements(store)
        if exported.plant not in agreements:
            raise SettingError(f"no plant {exported.plant!r} has joined")
        requests = Requests(
            federation=site.terms.federation,
            key=SigningKey.load(site.key),
            wire=Direct({}),
            store=store,
            clock=lambda: at,
        )
        intake = Intake(protocol=site.protocol(), requests=requests, agreements=agreements)
        batch = Batch(commit=exported.commit.encode(), proof=exported.proof.encode())
        intake.take(exported.plant, batch, round_=0)
        named = {member.name: member.attestation for member in store.members()}[exported.plant]
    finally:
        store.close()
    return Taken(plant=exported.plant, what=f"attested ({(named or '')[:12]}...)")
