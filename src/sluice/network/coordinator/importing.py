"""Import files: join requests, attestations carried through a one-way gateway, approved orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation.log import GateSet, KeyRotated, WaiverGranted
from sluice.attestation.messages import (
    APPROVALS,
    ROTATIONS,
    RotationSigned,
    ShadowOrder,
    Waiver,
    content_digest,
)
from sluice.attestation.protocol import read_order
from sluice.errors import DocumentError, SettingError
from sluice.federation import Attestation
from sluice.files import parse_json, read_bounded, read_text
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.intake import Intake
from sluice.network.coordinator.pages import LogPages
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.terms import LARGEST_DOCUMENT, ExportedAttestation, JoinRequest, read_document
from sluice.network.wire import Direct

__all__ = ["Taken", "take_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The result of an import."""

    plant: str
    what: str


def take_in(folder: Path, file: Path, *, approvals: Sequence[Path] = (), at: datetime) -> Taken:
    """Import a join request, an exported attestation, a waiver, a shadow order or a new key.

    Approvals are files that approvers have signed; requests and orders need them.
    """
    site = CoordinatorFolder(folder)
    signed = [read_bounded(path, "approval", largest=APPROVALS.largest) for path in approvals]
    order = read_order(file)
    if order is not None:
        return _import_order(site, order, signed, at=at)
    rotation = _read_rotation(file)
    if rotation is not None:
        return _import_rotation(site, rotation, at=at)
    if _is_attestation(file):
        return _import_attestation(site, read_document(ExportedAttestation, file), at=at)
    request = read_document(JoinRequest, file)
    site.enrol(request, approvals=signed, at=at)
    return Taken(plant=request.plant, what="joined")


def _import_order(
    site: CoordinatorFolder, order: Waiver | ShadowOrder, signed: Sequence[bytes], *, at: datetime
) -> Taken:
    approvals = tuple(APPROVALS.read(each) for each in signed)
    log = site.protocol().log
    if isinstance(order, Waiver):
        log.append(WaiverGranted(waiver=order, approvals=approvals), at=at)
        return Taken(plant=order.client, what=f"waiver {content_digest(order)[:12]} is in the log")
    log.append(GateSet(enforced=False, order=order, approvals=approvals), at=at)
    return Taken(plant="all plants", what=f"the gate is in shadow until {order.until}")


def _import_rotation(site: CoordinatorFolder, signed: RotationSigned, *, at: datetime) -> Taken:
    log = site.protocol().log
    if signed.rotation.old == log.ledger.coordinator:
        raise SettingError("the coordinator's own key is replaced with 'sluice coordinator rotate'")
    log.append(KeyRotated(signed=signed), at=at)
    return Taken(plant=signed.rotation.new[:12], what="signs in place of the old key")


def _read_rotation(file: Path) -> RotationSigned | None:
    try:
        return ROTATIONS.read(
            read_bounded(file, "file", largest=ROTATIONS.largest, error=DocumentError)
        )
    except DocumentError:
        return None


def _is_attestation(file: Path) -> bool:
    """Tell an exported attestation from a join request, so that a refusal names the right one."""
    text = read_text(file, "file", largest=LARGEST_DOCUMENT, error=DocumentError)
    fields = parse_json(text, str(file), error=DocumentError)
    return isinstance(fields, dict) and "commit" in fields


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
        protocol, key = site.protocol(), site.signing_key()
        requests = Requests(
            terms=site.terms,
            key=key,
            pages=LogPages(log=protocol.log, path=site.log, key=key),
            wire=Direct({}),
            store=store,
            clock=lambda: at,
        )
        intake = Intake(protocol=protocol, requests=requests, agreements=agreements)
        batch = Attestation(
            commit=exported.commit.encode(),
            proof=exported.proof.encode(),
            statistic=exported.statistic,
        )
        intake.take(exported.plant, batch, round_=0)
        attestations = {member.name: member.attestation for member in store.members()}
    finally:
        store.close()
    attestation = attestations[exported.plant] or ""
    return Taken(plant=exported.plant, what=f"attested ({attestation[:12]}...)")
