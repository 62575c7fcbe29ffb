"""Replace certificates before they end, without founding the federation again.

The server's certificate and a plant's certificate are each replaced by one call. The authority is
replaced in steps, so that no plant is cut off:

1. `reissue_authority`: all parties that get a certificate from now on trust both authorities.
2. `reissue_plant` for each plant, which installs the file.
3. `reissue_server`: the coordinator shows a certificate of the new authority.
4. `retire_authorities`: certificates of the old authority are no longer accepted.
"""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.errors import SettingError
from sluice.network.coordinator.folder import ENDS_SOON, CoordinatorFolder
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.terms import PlantCertificate
from sluice.network.wire import certificate_ends, issuer_of, read_refusals

__all__ = [
    "EndingCertificate",
    "ending_certificates",
    "refused_calls",
    "reissue_authority",
    "reissue_plant",
    "reissue_server",
    "retire_authorities",
    "revoked_serials",
    "write_proxy",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingCertificate:
    """A certificate that ends soon, and the command that replaces it."""

    whose: str
    ends: datetime
    command: str


def reissue_server(folder: Path, *, at: datetime) -> datetime:
    """Replace the coordinator's certificate and return when the new one ends.

    Raise if an active plant has no certificate of the current authority: it may not trust it yet.
    """
    site = CoordinatorFolder(folder)
    authority = site.tls.name
    behind = _behind(site, authority) if issuer_of(site.certificate) != authority else ()
    if behind:
        raise SettingError(
            f"{', '.join(behind)} would not trust a certificate of the new authority; first send "
            "each one a file of 'sluice coordinator rotate --plant NAME --out FILE'"
        )
    site.write_server_certificate(site.tls.server(site.terms.host, at=at))
    _reload(site)
    return certificate_ends(site.certificate)


def reissue_authority(folder: Path, *, at: datetime) -> None:
    """Create another authority; the current one stays trusted until `retire_authorities`."""
    site = CoordinatorFolder(folder)
    site.tls.renew(at=at)
    site.ensure_own_certificate(at=at)
    _reload(site)


def retire_authorities(folder: Path, *, at: datetime) -> None:
    """Stop trusting earlier authorities; raise while a certificate in use is from one of them."""
    site = CoordinatorFolder(folder)
    authority = site.tls.name
    behind = _behind(site, authority)
    if behind:
        raise SettingError(
            f"{', '.join(behind)} still use a certificate of an earlier authority; replace it with "
            "'sluice coordinator rotate --plant NAME --out FILE'"
        )
    if issuer_of(site.certificate) != authority:
        raise SettingError(
            "the coordinator's certificate is of an earlier authority; replace it with "
            "'sluice coordinator rotate'"
        )
    site.tls.retire()
    site.renew_own_certificate(at=at)
    _reload(site)


def reissue_plant(
    folder: Path, plant: str, *, at: datetime, revoke: bool = False
) -> PlantCertificate:
    """Issue another certificate to a plant that has joined.

    The plant's earlier certificates stay valid until they end, unless `revoke` is set: the plant is
    then cut off until it has installed the new one.
    """
    site = CoordinatorFolder(folder)
    store = CoordinatorStore(site.base)
    try:
        members = {member.name: member for member in store.members()}
        if plant not in members or members[plant].removed:
            raise SettingError(
                f"plant {plant!r} has not joined or is removed; 'sluice coordinator status' lists "
                "the plants"
            )
        issued = site.issue_to(plant, at=at)
        if revoke:
            store.revoke(plant, at=at, except_newest=True)
    finally:
        store.close()
    write_proxy(site)
    _reload(site)
    return PlantCertificate(
        plant=plant,
        authority=site.authority.read_text(encoding="ascii"),
        certificate=issued.certificate,
        certificate_key=issued.key,
    )


def ending_certificates(site: CoordinatorFolder, *, at: datetime) -> tuple[EndingCertificate, ...]:
    """Return the certificates that end within 30 days, or have ended."""
    rotate = f"sluice coordinator rotate {site.folder}"
    ends = [
        EndingCertificate(
            whose="the coordinator", ends=certificate_ends(site.certificate), command=rotate
        ),
        EndingCertificate(
            whose="the authority", ends=site.tls.ends, command=f"{rotate} --authority"
        ),
    ]
    ends += [
        EndingCertificate(whose=plant, ends=until, command=f"{rotate} --plant {plant} --out FILE")
        for plant, (_, until) in _newest(site).items()
        if until is not None
    ]
    return tuple(each for each in ends if each.ends < at + ENDS_SOON)


def revoked_serials(store: CoordinatorStore) -> tuple[str, ...]:
    """Return the serial numbers of certificates that the proxy refuses."""
    return tuple(each.serial for each in store.certificates() if each.revoked)


def refused_calls(site: CoordinatorFolder) -> dict[str, dict[str, int]]:
    """Return how many calls the filter has refused, by plant and reason."""
    return read_refusals(site.refusals)


def write_proxy(site: CoordinatorFolder) -> Path:
    """Write the proxy's configuration, with the certificates that are revoked now."""
    store = CoordinatorStore(site.base)
    try:
        revoked = revoked_serials(store)
    finally:
        store.close()
    return site.proxy(site.terms).write(site.folder / "proxy", revoked=revoked)


def _behind(site: CoordinatorFolder, authority: str) -> tuple[str, ...]:
    """Return the active plants whose newest certificate is not of this authority."""
    return tuple(sorted(plant for plant, each in _newest(site).items() if each[0] != authority))


def _newest(site: CoordinatorFolder) -> dict[str, tuple[str, datetime | None]]:
    """Return the issuer and the end of each active plant's newest valid certificate."""
    store = CoordinatorStore(site.base)
    try:
        newest: dict[str, tuple[str, datetime | None]] = {
            member.name: ("", None) for member in store.members() if member.active
        }
        for each in store.certificates():
            if each.plant in newest and not each.revoked:
                newest[each.plant] = each.authority, each.ends
    finally:
        store.close()
    return newest


def _reload(site: CoordinatorFolder) -> None:
    """Have a running nginx read its files again; Flower reads them when it starts."""
    with suppress(SettingError), site.alone():
        return  # no coordinator runs
    with suppress(OSError, ValueError):
        pid = int((site.folder / "proxy" / "nginx.pid").read_text(encoding="ascii"))
        if Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() == "nginx":
            os.kill(pid, signal.SIGHUP)
