"""Certificates: a party uses only its own, of this federation's authority, with its key."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sluice.errors import DocumentError, SettingError
from sluice.network.wire.certificates import Authority, Issued

NOW = datetime.now(UTC)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.found(tmp_path / "authority.pem", tmp_path / "authority.key", at=NOW)


def test_a_certificate_of_this_authority_for_this_name_with_its_key_is_usable(
    authority: Authority,
) -> None:
    issued = authority.client("north", at=NOW)
    issued.demand_usable("north", authority=authority.bundle.read_text())
    before = authority.bundle.read_text()
    authority.renew(at=NOW)
    issued.demand_usable("north", authority=authority.bundle.read_text())  # it is still trusted
    authority.retire()
    with pytest.raises(DocumentError, match="not one of this federation's authority"):
        issued.demand_usable("north", authority=authority.bundle.read_text())
    issued.demand_usable("north", authority=before)


def test_a_certificate_for_another_name_is_refused(authority: Authority) -> None:
    with pytest.raises(DocumentError, match="authority for 'south' with its key"):
        authority.client("north", at=NOW).demand_usable(
            "south", authority=authority.bundle.read_text()
        )


def test_a_certificate_with_the_key_of_another_is_refused(authority: Authority) -> None:
    stolen = replace(authority.client("north", at=NOW), key=authority.client("north", at=NOW).key)
    with pytest.raises(DocumentError, match="authority for 'north' with its key"):
        stolen.demand_usable("north", authority=authority.bundle.read_text())


def test_a_certificate_of_another_authority_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    other = Authority.found(tmp_path / "other.pem", tmp_path / "other.key", at=NOW)
    with pytest.raises(DocumentError, match="not one of this federation's authority"):
        other.client("north", at=NOW).demand_usable("north", authority=authority.bundle.read_text())


def test_a_certificate_that_only_names_the_authority_is_refused(authority: Authority) -> None:
    """Its issuer's name is right and its signature is not."""
    root = x509.load_pem_x509_certificate(authority.bundle.read_bytes())
    real = authority.client("north", at=NOW)
    copied = x509.load_pem_x509_certificate(real.certificate.encode())
    forged = (
        x509.CertificateBuilder()
        .subject_name(copied.subject)
        .issuer_name(root.subject)
        .public_key(copied.public_key())
        .serial_number(copied.serial_number)
        .not_valid_before(copied.not_valid_before_utc)
        .not_valid_after(copied.not_valid_after_utc)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    pem = forged.public_bytes(Encoding.PEM).decode()
    with pytest.raises(DocumentError, match="not one of this federation's authority"):
        replace(real, certificate=pem).demand_usable(
            "north", authority=authority.bundle.read_text()
        )


def test_a_certificate_that_cannot_be_read_is_refused(authority: Authority) -> None:
    with pytest.raises(DocumentError, match="of 'north' cannot be read"):
        Issued(certificate="x", key="x").demand_usable("north", authority="x")


def test_an_authority_whose_key_is_not_on_a_curve_issues_nothing(authority: Authority) -> None:
    """Bundle and key file belong together, and both are of RSA."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    root = x509.load_pem_x509_certificate(authority.bundle.read_bytes())
    number = (
        x509.CertificateBuilder()
        .subject_name(root.subject)
        .issuer_name(root.subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(root.not_valid_before_utc)
        .not_valid_after(root.not_valid_after_utc)
        .sign(key, hashes.SHA256())
    )
    authority.bundle.write_bytes(number.public_bytes(Encoding.PEM))
    authority.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(SettingError, match="is not the key of the newest authority"):
        authority.demand_key()


def test_no_certificate_is_issued_without_the_newest_authoritys_key(
    authority: Authority, tmp_path: Path
) -> None:
    authority.demand_key()
    own = authority.key.read_bytes()
    other = Authority.found(tmp_path / "other.pem", tmp_path / "other.key", at=NOW)
    number = rsa.generate_private_key(public_exponent=65_537, key_size=2_048).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    for wrong in (other.key.read_bytes(), number):
        authority.key.write_bytes(wrong)
        with pytest.raises(SettingError, match="is not the key of the newest authority"):
            authority.demand_key()
        with pytest.raises(SettingError, match="is not the key of the newest authority"):
            authority.client("north", at=NOW)
    authority.key.write_bytes(own)
    authority.renew(at=NOW)
    authority.key.write_bytes(own)  # of the authority before
    with pytest.raises(SettingError, match="is not the key of the newest authority"):
        authority.demand_key()
    authority.key.unlink()
    with pytest.raises(SettingError, match="is missing, so no certificate can be issued"):
        authority.demand_key()
