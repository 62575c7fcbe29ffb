"""TLS of a federation: its own authority, and the certificates that it issues.

    tls/authority.pem          the bundle that all parties trust, newest authority first; public
    tls/server.pem             the coordinator's certificate, for the proxy and Flower; public
    tls/coordinator.pem        the certificate with which the coordinator checks its proxy
    private/authority.key      the key of the newest authority, mode 0600
    private/server.key, private/coordinator-tls.key

Every party shows a certificate: the coordinator to plants, and each plant to the proxy. A plant's
certificate names the plant, and no other party can use it as a server. The authority's key stays in
the coordinator's folder, so that certificates can be replaced before they end. It is needed only to
issue certificates, and can be kept elsewhere.
"""

import ipaddress
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from sluice.errors import DocumentError, SettingError
from sluice.files import atomically

__all__ = [
    "Authority",
    "Issued",
    "certificate_ends",
    "issuer_of",
    "write_certificate",
]

AUTHORITY_LASTS = timedelta(days=3_650)
SERVER_LASTS = timedelta(days=825)
PLANT_LASTS = timedelta(days=400)
EARLIER = timedelta(hours=1)
"""Certificates are valid from an hour ago, because the clocks of plants differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate and its key, in PEM."""

    certificate: str
    key: str = field(repr=False)

    @property
    def serial(self) -> str:
        """Its serial number, written as nginx writes it."""
        return serial_of(x509.load_pem_x509_certificate(self.certificate.encode()))

    @property
    def ends(self) -> datetime:
        """When it ends."""
        return x509.load_pem_x509_certificate(self.certificate.encode()).not_valid_after_utc

    def demand_usable(self, name: str, *, authority: str) -> None:
        """Raise unless key and certificate belong together, for this name and by this authority."""
        try:
            certificate = x509.load_pem_x509_certificate(self.certificate.encode())
            key = load_pem_private_key(self.key.encode(), None)
            roots = x509.load_pem_x509_certificates(authority.encode())
        except ValueError as error:
            raise DocumentError(
                f"the certificate of {name!r} cannot be read ({error}); ask the coordinator for "
                "another one"
            ) from None
        issuers = {root.subject: root for root in roots}
        issuer = issuers.get(certificate.issuer)
        try:
            if issuer is not None:
                certificate.verify_directly_issued_by(issuer)
        except (InvalidSignature, TypeError, ValueError):
            issuer = None
        if (
            issuer is None
            or key.public_key() != certificate.public_key()
            or _common_name(certificate.subject) != name
        ):
            raise DocumentError(
                f"the certificate is not one of this federation's authority for {name!r} with its "
                "key; ask the coordinator for another one"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A federation's certificate authority.

    The bundle can hold an earlier authority beside the current one. Its certificates stay valid, so
    that parties can be moved to the current one after each other.
    """

    bundle: Path  # the certificates that parties trust, newest first
    key: Path  # of the newest

    @classmethod
    def found(cls, bundle: Path, key: Path, *, at: datetime) -> "Authority":
        """Create an authority that trusts no earlier one."""
        authority = cls(bundle=bundle, key=key)
        authority._begin((), at=at)
        return authority

    def renew(self, *, at: datetime) -> None:
        """Create another authority with another key; keep trusting the current one."""
        self._begin(self._trusted()[:1], at=at)

    def retire(self) -> None:
        """Stop trusting every authority but the newest."""
        self._write(self._trusted()[:1])

    def server(self, host: str, *, at: datetime) -> Issued:
        """Issue a certificate for the coordinator, under its host name and for loopback."""
        names = x509.SubjectAlternativeName(_names(host))
        return self._issue(
            host, ExtendedKeyUsageOID.SERVER_AUTH, lasts=SERVER_LASTS, at=at, names=names
        )

    def client(self, name: str, *, at: datetime) -> Issued:
        """Issue a certificate by which the proxy recognises a party."""
        return self._issue(name, ExtendedKeyUsageOID.CLIENT_AUTH, lasts=PLANT_LASTS, at=at)

    def demand_key(self) -> None:
        """Raise unless certificates can be issued here."""
        self._signer()

    @property
    def name(self) -> str:
        """The name of the newest authority."""
        return _common_name(self._trusted()[0].subject)

    @property
    def ends(self) -> datetime:
        """When the newest authority ends."""
        return self._trusted()[0].not_valid_after_utc

    def _issue(
        self,
        name: str,
        usage: ObjectIdentifier,
        *,
        lasts: timedelta,
        at: datetime,
        names: x509.SubjectAlternativeName | None = None,
    ) -> Issued:
        root, signer = self._trusted()[0], self._signer()
        own = ec.generate_private_key(ec.SECP256R1())
        draft = (
            _draft(_name(name), root.subject, own.public_key(), at=at)
            .not_valid_after(min(at + lasts, root.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
                critical=False,
            )
        )
        if names is not None:
            draft = draft.add_extension(names, critical=False)
        signed = draft.sign(signer, hashes.SHA256())
        return Issued(
            certificate=signed.public_bytes(Encoding.PEM).decode("ascii"), key=_key_text(own)
        )

    def _begin(self, earlier: tuple[x509.Certificate, ...], *, at: datetime) -> None:
        signer = ec.generate_private_key(ec.SECP256R1())
        public = signer.public_key()
        name = _name(f"Sluice federation authority {secrets.token_hex(4)}")
        root = (
            _draft(name, name, public, at=at)
            .not_valid_after(at + AUTHORITY_LASTS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(signer, hashes.SHA256())
        )
        with atomically(self.key, private=True) as draft:
            draft.write_text(_key_text(signer), encoding="ascii")
        self._write((root, *earlier))

    def _write(self, trusted: tuple[x509.Certificate, ...]) -> None:
        with atomically(self.bundle) as draft:
            draft.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in trusted))

    def _trusted(self) -> tuple[x509.Certificate, ...]:
        return tuple(x509.load_pem_x509_certificates(self.bundle.read_bytes()))

    def _signer(self) -> ec.EllipticCurvePrivateKey:
        if not self.key.exists():
            raise SettingError(
                f"{self.key} is missing, so no certificate can be issued; put the key back, or "
                "create another authority with 'sluice coordinator rotate --authority'"
            )
        key = load_pem_private_key(self.key.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or (
            key.public_key() != self._trusted()[0].public_key()
        ):
            raise SettingError(
                f"{self.key} is not the key of the newest authority in {self.bundle}; restore both "
                "from the same backup"
            )
        return key


def serial_of(certificate: x509.Certificate) -> str:
    """Return a serial number as nginx writes it: capital hexadecimal digits, an even number."""
    digits = f"{certificate.serial_number:X}"
    return digits if len(digits) % 2 == 0 else f"0{digits}"


def certificate_ends(path: Path) -> datetime:
    """Return when the first certificate of a file ends."""
    return _first(path).not_valid_after_utc


def issuer_of(path: Path) -> str:
    """Return the name of the authority that issued the first certificate of a file."""
    return _common_name(_first(path).issuer)


def write_certificate(issued: Issued, *, certificate: Path, key: Path) -> None:
    """Write a certificate and its key; only the owner can read the key."""
    with atomically(key, private=True) as draft:
        draft.write_text(issued.key, encoding="ascii")
    with atomically(certificate) as draft:
        draft.write_text(issued.certificate, encoding="ascii")


def _first(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except (OSError, ValueError) as error:
        raise SettingError(f"{path} holds no certificate ({error})") from None


def _draft(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, at: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - EARLIER)
    )


def _key_text(key: ec.EllipticCurvePrivateKey) -> str:
    raw = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return raw.decode("ascii")


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _common_name(name: x509.Name) -> str:
    return str(name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


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
