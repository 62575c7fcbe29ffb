"""TLS of a federation: its own authority, and the coordinator's certificate.

    tls/authority.pem    the certificate that plants trust; every invitation carries it
    tls/server.pem       the coordinator's certificate, for the proxy and Flower
    private/server.key   its key, mode 0600

The authority's key is discarded after it has signed, so that no second coordinator certificate can
be issued. When the certificate expires, plants need new invitations.
"""

import ipaddress
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sluice.files import atomically

__all__ = ["LASTS", "issue"]

LASTS = timedelta(days=825)


def issue(host: str, *, authority: Path, server: Path, key: Path, at: datetime) -> None:
    """Write an authority, a certificate for `host` and loopback, and its key."""
    signer = ec.generate_private_key(ec.SECP256R1())
    root_name = _name("Sluice federation authority")
    root = (
        _draft(root_name, root_name, signer.public_key(), at=at)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    own = ec.generate_private_key(ec.SECP256R1())
    leaf = (
        _draft(_name(host), root_name, own.public_key(), at=at)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    _write(authority, root.public_bytes(Encoding.PEM))
    _write(server, leaf.public_bytes(Encoding.PEM))
    pem = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write(key, pem, private=True)


def _draft(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, at: datetime
) -> x509.CertificateBuilder:
    # Valid from an hour ago, because the clocks of plants differ.
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - timedelta(hours=1))
        .not_valid_after(at + LASTS)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _names(host: str) -> list[x509.GeneralName]:
    """Return the names of the certificate: the host, and loopback, where Flower listens."""
    names = list(dict.fromkeys((host, "localhost", "127.0.0.1")))
    return [_general(name) for name in names]


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _write(path: Path, content: bytes, *, private: bool = False) -> None:
    with atomically(path, private=private) as draft:
        draft.write_bytes(content)
