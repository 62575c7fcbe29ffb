"""Certificates are bound to plants, recorded, revoked and replaced."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.network.coordinator.filter_process import enrolled_plants
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.rotation import (
    ending_certificates,
    reissue_authority,
    reissue_plant,
    reissue_server,
    retire_authorities,
)
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.certificates import Authority, certificate_ends

from .conftest import Consortium, Founder

NOW = datetime.now(UTC)


@pytest.fixture
def consortium(founder: Founder) -> Consortium:
    made = founder()
    made.join("north", 0)
    made.join("south", 1)
    return made


def stored(site: CoordinatorFolder, plant: str) -> list[bool]:
    """Return whether each certificate of a plant is revoked, in the order of issue."""
    store = CoordinatorStore(site.base)
    try:
        return [each.revoked for each in store.certificates() if each.plant == plant]
    finally:
        store.close()


def serials(site: CoordinatorFolder) -> dict[str, int]:
    """Return how many certificates the filter accepts of each plant that may call."""
    store = CoordinatorStore(site.base, read_only=True)
    try:
        return {name: len(plant.serials) for name, plant in enrolled_plants(store).items()}
    finally:
        store.close()


@contextmanager
def serving(site: CoordinatorFolder) -> Iterator[int]:
    """Serve TLS as the proxy does: with the site's certificate, for callers with one of theirs."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(site.certificate, site.certificate_key)
    trust.load_verify_locations(site.authority)
    trust.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    raw, _ = listening.accept()
                except OSError:
                    return
                try:
                    with trust.wrap_socket(raw, server_side=True) as line:
                        line.sendall(b"ok")
                except OSError:
                    raw.close()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def connects(plant: PlantFolder, port: int) -> bool:
    """Whether a plant and the proxy trust each other."""
    trust = ssl.create_default_context(cafile=str(plant.authority))
    trust.load_cert_chain(plant.certificate, plant.certificate_key)
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as raw,
            trust.wrap_socket(raw, server_hostname="127.0.0.1") as line,
        ):
            return line.recv(2) == b"ok"
    except OSError:
        return False


def test_an_invitation_carries_a_certificate_in_the_plants_name(consortium: Consortium) -> None:
    invitation = consortium.site.invite("east", at=NOW)
    certificate = x509.load_pem_x509_certificate(invitation.certificate.encode())
    assert certificate.subject.rfc4514_string() == "CN=east"
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]  # it cannot play the coordinator
    lasts = certificate.not_valid_after_utc - NOW
    assert timedelta(days=399) < lasts <= timedelta(days=400)
    assert invitation.certificate_key not in repr(invitation)
    server = certificate_ends(consortium.site.certificate)
    assert server - consortium.clock.now < timedelta(days=825)


def test_no_plant_can_take_the_coordinators_name_or_one_that_is_no_name(
    consortium: Consortium,
) -> None:
    for name in ("coordinator", "", ".north", "north/south", "north\n", "n" * 65):
        with pytest.raises(SettingError, match="cannot be a plant's name"):
            consortium.site.invite(name, at=NOW)
    assert consortium.site.invite("n" * 64, at=NOW).plant == "n" * 64


def test_an_invitation_with_another_plants_certificate_is_refused(consortium: Consortium) -> None:
    invitation = consortium.site.invite("east", at=NOW)
    north = PlantFolder(consortium.folder / "north").invitation
    stolen = replace(
        invitation, certificate=north.certificate, certificate_key=north.certificate_key
    )
    for forged in (stolen, replace(invitation, certificate_key=north.certificate_key)):
        with pytest.raises(DocumentError, match="not one of this federation's authority"):
            PlantFolder.create(
                consortium.folder / "east",
                forged,
                None,  # type: ignore[arg-type]
                "",
                None,  # type: ignore[arg-type]
                at=NOW,
                reveal_rows=True,
            )


def test_an_authority_without_its_key_issues_nothing_and_says_so(consortium: Consortium) -> None:
    consortium.site.invite("west", at=NOW)
    consortium.site.authority_key.rename(consortium.folder / "kept-elsewhere.key")
    for plant in ("east", "west"):
        with pytest.raises(SettingError, match=r"authority\.key is missing"):
            consortium.site.invite(plant, at=NOW)
    assert stored(consortium.site, "east") == []
    assert stored(consortium.site, "west") == [False]  # its first invitation still holds


def test_a_removed_plants_certificates_are_revoked(consortium: Consortium) -> None:
    assert serials(consortium.site) == {"north": 1, "south": 1}
    store = CoordinatorStore(consortium.site.base)
    store.remove("north", at=NOW)
    store.close()
    assert stored(consortium.site, "north") == [True]
    assert serials(consortium.site) == {"south": 1}


def test_a_plant_that_has_not_answered_its_invitation_may_not_call(consortium: Consortium) -> None:
    consortium.site.invite("east", at=NOW)
    assert "east" not in serials(consortium.site)
    consortium.site.invite("east", at=NOW)  # the first one was lost, or stolen
    assert stored(consortium.site, "east") == [True, False]


def test_a_plant_that_joins_again_loses_its_earlier_certificate(consortium: Consortium) -> None:
    invitation = consortium.site.invite("north", at=consortium.clock())
    assert stored(consortium.site, "north") == [False, False]  # it runs until it joins again
    store = CoordinatorStore(consortium.site.base)
    store.join("north", invitation.secret, node_key=b"", rules="", at=consortium.clock())
    store.close()
    assert stored(consortium.site, "north") == [True, False]


def test_a_suspended_plant_may_not_call_until_it_is_reinstated(consortium: Consortium) -> None:
    store = CoordinatorStore(consortium.site.base)
    store.absent("north", 1)
    store.suspend(1, after=1, at=NOW)
    assert serials(consortium.site) == {"south": 1}
    store.reinstate("north")
    store.close()
    assert serials(consortium.site) == {"north": 1, "south": 1}


def test_a_plants_certificate_is_replaced(consortium: Consortium) -> None:
    site, plant = consortium.site, PlantFolder(consortium.folder / "north")
    old = plant.certificate.read_bytes()
    issued = reissue_plant(site.folder, "north", at=NOW)
    assert stored(site, "north") == [False, False]  # both work until the plant has installed it
    with pytest.raises(RefusedError, match="is for 'north'"):
        PlantFolder(consortium.folder / "south").install(issued)
    plant.install(issued)
    assert plant.certificate.read_bytes() != old
    with serving(site) as port:
        assert connects(plant, port)
    reissue_plant(site.folder, "north", at=NOW, revoke=True)
    assert stored(site, "north") == [True, True, False]
    revoked = (site.folder / "proxy" / "revoked.map").read_text(encoding="ascii")
    assert revoked.count("1;") == 2
    with pytest.raises(SettingError, match="'west' has not joined"):
        reissue_plant(site.folder, "west", at=NOW)


def test_the_coordinators_certificate_is_replaced_and_plants_still_trust_it(
    consortium: Consortium,
) -> None:
    site = consortium.site
    old = site.certificate.read_bytes()
    ends = reissue_server(site.folder, at=NOW)
    assert site.certificate.read_bytes() != old
    assert timedelta(days=824) < ends - NOW <= timedelta(days=825)
    with serving(site) as port:
        assert connects(PlantFolder(consortium.folder / "north"), port)


def test_the_authority_is_replaced_without_cutting_a_plant_off(consortium: Consortium) -> None:
    site = consortium.site
    north, south = (PlantFolder(consortium.folder / name) for name in ("north", "south"))
    old_authority = site.authority.read_bytes()
    reissue_authority(site.folder, at=NOW)
    with serving(site) as port:
        assert connects(north, port)  # the coordinator still shows the old certificate
    with pytest.raises(SettingError, match="north, south would not trust"):
        reissue_server(site.folder, at=NOW)
    north.install(reissue_plant(site.folder, "north", at=NOW))
    with serving(site) as port:
        assert connects(north, port)  # of the new authority
        assert connects(south, port)  # of the old one
    with pytest.raises(SettingError, match="south would not trust"):
        reissue_server(site.folder, at=NOW)
    with pytest.raises(SettingError, match="south still use"):
        retire_authorities(site.folder, at=NOW)
    late = reissue_plant(site.folder, "south", at=NOW)
    with pytest.raises(SettingError, match="the coordinator's certificate is of an earlier"):
        retire_authorities(site.folder, at=NOW)
    stolen = PlantFolder(consortium.folder / "south-before")
    (stolen.folder / "private").mkdir(parents=True)
    for path in (south.certificate, south.certificate_key, south.authority):
        copy = stolen.folder / path.relative_to(south.folder)
        copy.write_bytes(path.read_bytes())
    south.install(late)
    reissue_server(site.folder, at=NOW)
    with serving(site) as port:
        assert connects(north, port)
        assert connects(south, port)
    retire_authorities(site.folder, at=NOW)
    assert old_authority not in site.authority.read_bytes()
    with serving(site) as port:
        assert connects(north, port)
        assert connects(south, port)
        stolen.authority.write_bytes(site.authority.read_bytes())
        assert not connects(stolen, port)  # its certificate is of the old authority


def test_a_federation_of_an_earlier_version_gets_an_authority(consortium: Consortium) -> None:
    site = consortium.site
    for path in (site.authority_key, site.own_certificate, site.folder / "filter.port"):
        path.unlink()
    with pytest.raises(SettingError, match=r"rotate --authority"):
        site.ensure_own_certificate(at=NOW)
    reissue_authority(site.folder, at=NOW)
    site.ensure_own_certificate(at=NOW)
    plant = PlantFolder(consortium.folder / "north")
    plant.install(reissue_plant(site.folder, "north", at=NOW))
    with serving(site) as port:
        assert connects(plant, port)
    assert site.filter_port == site.link_port + 1


def test_certificates_that_end_within_thirty_days_are_named(consortium: Consortium) -> None:
    site = consortium.site
    start = consortium.clock.now
    assert ending_certificates(site, at=start + timedelta(days=300)) == ()
    ending = ending_certificates(site, at=start + timedelta(days=371))
    assert [each.whose for each in ending] == ["north", "south"]
    assert "--plant north" in ending[0].command
    ending = ending_certificates(site, at=start + timedelta(days=800))
    assert [each.whose for each in ending] == ["the coordinator", "north", "south"]
    reissue_server(site.folder, at=start + timedelta(days=800))
    later = ending_certificates(site, at=start + timedelta(days=3_640))
    assert "the authority" in [each.whose for each in later]


def test_a_certificate_never_outlives_its_authority(tmp_path: Path) -> None:
    authority = Authority.found(tmp_path / "a.pem", tmp_path / "a.key", at=NOW)
    late = NOW + timedelta(days=3_600)
    assert authority.client("north", at=late).ends == authority.ends


def test_a_key_that_is_not_the_authoritys_is_refused(tmp_path: Path) -> None:
    authority = Authority.found(tmp_path / "a.pem", tmp_path / "a.key", at=NOW)
    Authority.found(tmp_path / "b.pem", tmp_path / "b.key", at=NOW)
    (tmp_path / "b.key").replace(tmp_path / "a.key")
    with pytest.raises(SettingError, match="not the key of the newest authority"):
        authority.client("north", at=NOW)
