"""Import plants' files: a join request, or an attestation carried through a one-way gateway."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation.messages import SigningKey
from sluice.errors import DocumentError, SettingError
from sluice.federation import Attestation
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.intake import Intake
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.terms import ExportedAttestation, JoinRequest, read_document
from sluice.network.wire import Direct

__all__ = ["Taken", "take_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The result of an import."""

    plant: str
    what: str


def take_in(folder: Path, file: Path, *, at: datetime) -> Taken:
    """Import a plant's file: a join request or an exported attestation."""
    site = CoordinatorFolder(folder)
    try:
        request = read_document(JoinRequest, file)
    except DocumentError:
        return _import_attestation(site, read_document(ExportedAttestation, file), at=at)
    site.enrol(request, at=at)
    return Taken(plant=request.plant, what="joined")


def _import_attestation(
    site: CoordinatorFolder, exported: ExportedAttestation, *, at: datetime
) -> Taken:
    store = CoordinatorStore(site.base)
    try:
        agreements = site.agreements(store)
        if exported.plant not in agreements:
            raise SettingError(
                f"plant {exported.plant!r} has not joined; import its request.json first"
            )
        requests = Requests(
            terms=site.terms,
            key=SigningKey.load(site.key),
            wire=Direct({}),
            store=store,
            clock=lambda: at,
        )
        intake = Intake(protocol=site.protocol(), requests=requests, agreements=agreements)
        batch = Attestation(commit=exported.commit.encode(), proof=exported.proof.encode())
        intake.take(exported.plant, batch, round_=0)
        attestations = {member.name: member.attestation for member in store.members()}
    finally:
        store.close()
    attestation = attestations[exported.plant] or ""
    return Taken(plant=exported.plant, what=f"attested ({attestation[:12]}...)")
