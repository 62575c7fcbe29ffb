"""The coordinator's folder. `sluice coordinator init` creates it; the other commands open it.

terms.json                  the federation's terms; public
log.jsonl                   the hash-chained log, with a signed snapshot of its ledger; public
store.sqlite                plants, invitations, checkpoints; mode 0600
reference.json              which rows are the clean reference, for thresholds and root updates
tls/                        authority.pem, server.pem, coordinator.pem; public
proxy/                      nginx's configuration; refusals.json, filter.log
private/                    coordinator.key, authority.key, server.key, coordinator-tls.key,
                            filter.secret; mode 0600 in a folder 0700
link.port, filter.port      the ports of Flower and of the filter, on loopback
flower/                     the SuperLink's own files; mode 0700
running.lock                locked by the running coordinator
"""

import fcntl
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from sluice.admission import Policy, parse_policy
from sluice.attestation.log import COORDINATOR, Ledger, Log, LogOpened, LogReader, load_snapshot
from sluice.attestation.messages import REGISTRATIONS, SigningKey, instant
from sluice.attestation.protocol import Agreement, ProtocolCoordinator
from sluice.attestation.systems import circuit_for, find_system
from sluice.attestation.systems.full import statistic_settings
from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.files import alone_in, atomically, private_folder, public_file, public_folder
from sluice.invariants import RuleSet, parse_rules
from sluice.network.coordinator.store import CoordinatorStore, IssuedCertificate, Member
from sluice.network.statistics import demand_fitting
from sluice.network.terms import (
    FederationTerms,
    Invitation,
    JoinRequest,
    read_document,
    write_document,
)
from sluice.network.wire import (
    PROTOCOLS,
    Authority,
    Endpoint,
    Issued,
    Proxy,
    certificate_ends,
    write_certificate,
)

__all__ = ["CoordinatorFolder"]

INVITATION_LASTS = timedelta(days=14)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
OWN_NAME = COORDINATOR
"""The name in the certificate with which the coordinator checks its proxy; no plant has it."""
ENDS_SOON = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class CoordinatorFolder:
    """A coordinator's folder."""

    folder: Path

    @classmethod
    def create(
        cls,
        folder: Path,
        terms: FederationTerms,
        opened: LogOpened,
        ports: tuple[int, int],
        *,
        at: datetime,
    ) -> "CoordinatorFolder":
        """Create the folder's contents; `terms` names the key that `new_key` created there.

        `ports` are the loopback ports of Flower and of the filter.
        """
        site = cls(folder)
        key = SigningKey.load(site.key)
        public_folder(folder / "tls")
        Authority.found(site.authority, site.authority_key, at=at)
        site.write_server_certificate(site.tls.server(terms.host, at=at))
        site.ensure_own_certificate(at=at)
        for name, port in zip(("link.port", "filter.port"), ports, strict=True):
            with atomically(folder / name) as draft:
                draft.write_text(f"{port}\n", encoding="ascii")
        site.proxy(terms).write(folder / "proxy")
        Log.create(site.log, opened, key, at=at)
        CoordinatorStore(site.base).close()
        write_document(terms, folder / "terms.json")
        return site

    @classmethod
    def new_key(cls, folder: Path) -> str:
        """Create the folder and the coordinator's key in it; return the public key."""
        if folder.exists() and any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty; name a new folder for the federation")
        private_folder(folder / "private")
        key = SigningKey.generate()
        key.save(cls(folder).key)
        return key.public

    # -- paths --------------------------------------------------------------------------------

    @property
    def key(self) -> Path:
        """The coordinator's signing key."""
        return self.folder / "private" / "coordinator.key"

    @property
    def log(self) -> Path:
        """The federation's log."""
        return self.folder / "log.jsonl"

    @property
    def base(self) -> Path:
        """The SQLite store."""
        return self.folder / "store.sqlite"

    @property
    def authority(self) -> Path:
        """The certificates of the authorities that all parties trust."""
        return self.folder / "tls" / "authority.pem"

    @property
    def authority_key(self) -> Path:
        """The authority's key; needed only to issue certificates."""
        return self.folder / "private" / "authority.key"

    @property
    def certificate(self) -> Path:
        """The coordinator's certificate, for the proxy and Flower."""
        return self.folder / "tls" / "server.pem"

    @property
    def certificate_key(self) -> Path:
        """The key of that certificate."""
        return self.folder / "private" / "server.key"

    @property
    def own_certificate(self) -> Path:
        """The certificate with which the coordinator checks its proxy."""
        return self.folder / "tls" / "coordinator.pem"

    @property
    def own_certificate_key(self) -> Path:
        """The key of that certificate."""
        return self.folder / "private" / "coordinator-tls.key"

    @property
    def refusals(self) -> Path:
        """How often the filter refused calls, by plant and reason."""
        return self.folder / "proxy" / "refusals.json"

    @property
    def terms(self) -> FederationTerms:
        """The federation's terms."""
        return read_document(FederationTerms, self.folder / "terms.json")

    @property
    def link_port(self) -> int:
        """Flower's port on loopback."""
        return int((self.folder / "link.port").read_text(encoding="ascii"))

    @property
    def filter_port(self) -> int:
        """The filter's port on loopback; a folder of an earlier version does not name it."""
        path = self.folder / "filter.port"
        return int(path.read_text(encoding="ascii")) if path.exists() else self.link_port + 1

    @property
    def filter_secret(self) -> str:
        """The secret by which the filter recognises the proxy; created on first use."""
        path = self.folder / "private" / "filter.secret"
        if not path.exists():
            with atomically(path, private=True) as draft:
                draft.write_text(secrets.token_hex(32), encoding="ascii")
        return path.read_text(encoding="ascii")

    def proxy(self, terms: FederationTerms) -> Proxy:
        """Return the proxy in front of the filter."""
        return Proxy(
            host=terms.host,
            port=terms.port,
            filter_port=self.filter_port,
            certificate=self.certificate.resolve(),
            key=self.certificate_key.resolve(),
            authority=self.authority.resolve(),
            secret=self.filter_secret,
        )

    def endpoint(self, terms: FederationTerms) -> Endpoint:
        """Return the proxy's address as the coordinator reaches it, with its own certificate."""
        return Endpoint(
            host=terms.host,
            port=terms.port,
            authority=self.authority,
            certificate=self.own_certificate,
            certificate_key=self.own_certificate_key,
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder: no other process can run this federation or remove a plant from it."""
        with alone_in(
            self.folder, f"a coordinator runs in {self.folder}; stop it first", keep=True
        ):
            yield

    @contextmanager
    def _enrolling(self) -> Iterator[None]:
        """Wait for another process that enrols: rules are compared with those accepted last."""
        with public_file(self.folder / "enrolling.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def protocol(self, *, replay: bool = False) -> ProtocolCoordinator:
        """Verify the log, from its last signed snapshot or whole, and open it for appending."""
        return ProtocolCoordinator(log=Log.open(self.log, self.signing_key(), replay=replay))

    def ledger(self) -> Ledger:
        """Return what the log says; only the entries since the coordinator's snapshot are verified.

        `read_log` verifies every entry.
        """
        return self.reader().catch_up()

    def reader(self) -> LogReader:
        """Return a reader of the log that begins after the coordinator's own last snapshot.

        It begins with the first entry if the coordinator's key cannot be read: then no snapshot is
        known to be the coordinator's.
        """
        try:
            snapshot = load_snapshot(self.log, SigningKey.load(self.key).public)
        except SettingError:
            snapshot = None
        return LogReader(self.log, snapshot=snapshot)

    def signing_key(self) -> SigningKey:
        """Return the coordinator's key; a rotation that a crash interrupted is completed."""
        key = SigningKey.load(self.key)
        if self._next_key.exists():
            following = SigningKey.load(self._next_key)
            if LogReader(self.log).catch_up(unsigned=True).coordinator == following.public:
                self._next_key.replace(self.key)
                return following
        return key

    def rotate_key(self, *, at: datetime) -> str:
        """Replace the coordinator's key by a new one, in the log and in the folder."""
        log = self.protocol().log
        self._next_key.unlink(missing_ok=True)
        new = SigningKey.generate()
        new.save(self._next_key)
        log.rotate(new, at=at)
        self._next_key.replace(self.key)
        log.snapshot()
        return new.public

    @property
    def _next_key(self) -> Path:
        """The key of a rotation that is not complete."""
        return self.key.with_name("coordinator.next.key")

    # -- certificates -------------------------------------------------------------------------

    @property
    def tls(self) -> Authority:
        """The federation's certificate authority."""
        return Authority(bundle=self.authority, key=self.authority_key)

    def write_server_certificate(self, issued: Issued) -> None:
        """Replace the certificate of the proxy and Flower."""
        write_certificate(issued, certificate=self.certificate, key=self.certificate_key)

    def ensure_own_certificate(self, *, at: datetime) -> None:
        """Issue the coordinator's own client certificate if it has none, or its own ends soon."""
        path = self.own_certificate
        ends_soon = path.exists() and certificate_ends(path) < at + ENDS_SOON
        if not path.exists() or (ends_soon and self.authority_key.exists()):
            self.renew_own_certificate(at=at)

    def renew_own_certificate(self, *, at: datetime) -> None:
        """Issue another client certificate to the coordinator itself."""
        issued = self.tls.client(OWN_NAME, at=at)
        write_certificate(issued, certificate=self.own_certificate, key=self.own_certificate_key)

    def issue_to(self, plant: str, *, at: datetime) -> Issued:
        """Issue a certificate to a plant, and record it in the store."""
        authority = self.tls
        issued = authority.client(plant, at=at)
        store = CoordinatorStore(self.base)
        try:
            record = IssuedCertificate(
                serial=issued.serial, plant=plant, authority=authority.name, ends=issued.ends
            )
            store.issued(record, at=at)
        finally:
            store.close()
        return issued

    # -- joining ------------------------------------------------------------------------------

    def invite(
        self, plant: str, *, at: datetime, lasts: timedelta = INVITATION_LASTS
    ) -> Invitation:
        """Create a single-use invitation; the store keeps only the hash of its secret."""
        if not NAME.fullmatch(plant) or plant == COORDINATOR:
            raise SettingError(
                f"{plant!r} cannot be a plant's name; use 1 to 64 letters, digits, '.', '_' or '-' "
                f"that begin with a letter or digit, and not {COORDINATOR!r}"
            )
        self.tls.demand_key()
        secret = secrets.token_hex(32)
        expires = at + lasts
        store = CoordinatorStore(self.base)
        store.invite(plant, secret, at=at, expires=expires)
        store.close()
        issued = self.issue_to(plant, at=at)
        ledger = self.protocol().log.ledger
        return Invitation(
            plant=plant,
            expires=instant(expires),
            protocols=PROTOCOLS,
            secret=secret,
            authority=self.authority.read_text(encoding="ascii"),
            certificate=issued.certificate,
            certificate_key=issued.key,
            terms=self.terms,
            log=ledger.terms,
            approvers=tuple(ledger.state.approvers),
        )

    def enrol(self, request: JoinRequest, *, approvals: Sequence[bytes] = (), at: datetime) -> None:
        """Step 1: enrol a plant with an unused invitation and rules that approvers have signed.

        If a crash prevented the store from recording a logged registration, this completes it.
        """
        with self._enrolling():
            self._enrol(request, approvals, at=at)

    def _enrol(self, request: JoinRequest, approvals: Sequence[bytes], *, at: datetime) -> None:
        store = CoordinatorStore(self.base)
        try:
            store.invited(request.plant, request.secret, at=at)
            signed = REGISTRATIONS.read(request.registration.encode())
            if signed.content.client != request.plant:
                raise RefusedError(
                    f"the request of {request.plant!r} holds a registration of "
                    f"{signed.content.client!r}; create the request again with 'sluice plant join'"
                )
            _demand_protocol(request)
            _demand_node_key(request)
            rules = parse_rules(request.rules, name=f"of {request.plant!r}")
            self.terms.demand_points(rules.channels, plant=request.plant)
            last = {m.name: _rules(m) for m in store.members()}.get(request.plant)
            agreement = self.agreement(rules)
            self._demand_fitting(request.plant, agreement, store)
            self.protocol().register(
                request.registration.encode(),
                agreement,
                approvals=approvals,
                last=last,
                at=at,
            )
            store.join(
                request.plant,
                request.secret,
                node_key=request.node_key.encode(),
                rules=request.rules,
                at=at,
            )
        finally:
            store.close()

    def _demand_fitting(self, plant: str, agreement: Agreement, store: CoordinatorStore) -> None:
        """Raise if a plant's bound statistic could not be read beside those of the others.

        Where all must sum the same, comparing with one other plant is enough: it was compared too.
        """
        terms = self.terms
        own = statistic_settings(agreement.circuit) if terms.binds else None
        if own is None:
            return
        other = next((each for each in store.members() if each.name != plant), None)
        theirs = statistic_settings(self.agreement(_rules(other)).circuit) if other else None
        demand_fitting(plant, own, terms, () if theirs is None else (theirs,))

    def agreement(self, rules: RuleSet) -> Agreement:
        """Return the proof system and the circuit that a plant with these rules must use."""
        terms = self.terms
        system = find_system(terms.system, reveal_rows=True, statistic=terms.binds)
        policy = parse_policy(terms.policy, name="of the federation's terms")
        circuit = circuit_for(system, rules, policy, rows_max=terms.rows_max)
        return Agreement(system=system, circuit=circuit)

    def agreements(self, store: CoordinatorStore) -> dict[str, Agreement]:
        """Return the agreement with each plant."""
        return {m.name: self.agreement(_rules(m)) for m in store.members()}

    def rules(self, store: CoordinatorStore) -> dict[str, RuleSet]:
        """Return the accepted rules of each plant."""
        return {m.name: _rules(m) for m in store.members()}

    def policy(self) -> Policy:
        """Return the federation's policy."""
        return parse_policy(self.terms.policy, name="of the federation's terms")


def _rules(member: Member) -> RuleSet:
    return parse_rules(member.rules, name=f"of {member.name!r}")


def _demand_protocol(request: JoinRequest) -> None:
    if not set(request.protocols) & set(PROTOCOLS):
        spoken, known = (", ".join(map(str, each)) for each in (request.protocols, PROTOCOLS))
        raise RefusedError(
            f"{request.plant!r} speaks protocol {spoken or 'none'}, this coordinator {known}; "
            "update the older of the two"
        )


def _demand_node_key(request: JoinRequest) -> None:
    try:
        key = load_pem_public_key(request.node_key.encode())
    except ValueError:
        key = None
    if not (isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp384r1"):
        raise DocumentError(
            f"the node key of {request.plant!r} is not a P-384 public key in PEM; create the "
            "request again with 'sluice plant join'"
        )
