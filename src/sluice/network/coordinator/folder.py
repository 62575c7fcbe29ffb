"""The coordinator's folder. `sluice coordinator init` creates it; the other commands open it.

terms.json                  the federation's terms; public
log.jsonl                   the hash-chained log, with a signed snapshot of its ledger; public
store.sqlite                plants, invitations, checkpoints; mode 0600
reference.json              which rows are the clean reference, for thresholds and root updates
tls/                        authority.pem, server.pem; public
proxy/                      nginx's configuration
private/                    coordinator.key, server.key; mode 0600
flower/                     the SuperLink's own database and log
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
from sluice.attestation.log import COORDINATOR, Log, LogOpened, LogReader
from sluice.attestation.messages import REGISTRATIONS, SigningKey, instant
from sluice.attestation.protocol import Agreement, ProtocolCoordinator
from sluice.attestation.systems import circuit_for, find_system
from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.files import atomically
from sluice.invariants import RuleSet, parse_rules
from sluice.network.coordinator.store import CoordinatorStore, Member
from sluice.network.terms import (
    FederationTerms,
    Invitation,
    JoinRequest,
    read_document,
    write_document,
)
from sluice.network.wire import PROTOCOLS, Proxy, issue

__all__ = ["CoordinatorFolder"]

INVITATION_LASTS = timedelta(days=14)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


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
        *,
        link_port: int,
        at: datetime,
    ) -> "CoordinatorFolder":
        """Create the folder's contents; `terms` names the key that `new_key` created there."""
        site = cls(folder)
        key = SigningKey.load(site.key)
        (folder / "tls").mkdir(exist_ok=True)
        issue(
            terms.host,
            authority=site.authority,
            server=site.certificate,
            key=folder / "private" / "server.key",
            at=at,
        )
        site.proxy(terms, link_port).write(folder / "proxy")
        Log.create(site.log, opened, key, at=at)
        CoordinatorStore(site.base).close()
        with atomically(folder / "link.port") as draft:
            draft.write_text(f"{link_port}\n", encoding="ascii")
        write_document(terms, folder / "terms.json")
        return site

    @classmethod
    def new_key(cls, folder: Path) -> str:
        """Create the folder and the coordinator's key in it; return the public key."""
        if folder.exists() and any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty; name a new folder for the federation")
        (folder / "private").mkdir(parents=True, exist_ok=True)
        (folder / "private").chmod(0o700)
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
        """The certificate that plants trust."""
        return self.folder / "tls" / "authority.pem"

    @property
    def certificate(self) -> Path:
        """The coordinator's own certificate."""
        return self.folder / "tls" / "server.pem"

    @property
    def terms(self) -> FederationTerms:
        """The federation's terms."""
        return read_document(FederationTerms, self.folder / "terms.json")

    @property
    def link_port(self) -> int:
        """Flower's port on loopback."""
        return int((self.folder / "link.port").read_text(encoding="ascii"))

    def proxy(self, terms: FederationTerms, link_port: int) -> Proxy:
        """Return the proxy in front of Flower."""
        return Proxy(
            host=terms.host,
            port=terms.port,
            link_port=link_port,
            certificate=self.certificate.resolve(),
            key=(self.folder / "private" / "server.key").resolve(),
            authority=self.authority.resolve(),
        )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder: no other process can run this federation or remove a plant from it."""
        with (self.folder / "running.lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SettingError(f"a coordinator runs in {self.folder}; stop it first") from None
            yield

    @contextmanager
    def _enrolling(self) -> Iterator[None]:
        """Wait for another process that enrols: rules are compared with those accepted last."""
        with (self.folder / "enrolling.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def protocol(self, *, replay: bool = False) -> ProtocolCoordinator:
        """Verify the log, from its last signed snapshot or whole, and open it for appending."""
        return ProtocolCoordinator(log=Log.open(self.log, self.signing_key(), replay=replay))

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
        secret = secrets.token_hex(32)
        expires = at + lasts
        store = CoordinatorStore(self.base)
        store.invite(plant, secret, at=at, expires=expires)
        store.close()
        return Invitation(
            plant=plant,
            expires=instant(expires),
            protocols=PROTOCOLS,
            secret=secret,
            authority=self.authority.read_text(encoding="ascii"),
            terms=self.terms,
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
            last = {m.name: _rules(m) for m in store.members()}.get(request.plant)
            self.protocol().register(
                request.registration.encode(),
                self.agreement(rules),
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

    def agreement(self, rules: RuleSet) -> Agreement:
        """Return the proof system and the circuit that a plant with these rules must use."""
        terms = self.terms
        system = find_system(terms.system, reveal_rows=True)
        circuit = circuit_for(system, rules, self.policy(), rows_max=terms.rows_max)
        return Agreement(system=system, circuit=circuit)

    def agreements(self, store: CoordinatorStore) -> dict[str, Agreement]:
        """Return the agreement with each plant."""
        return {m.name: self.agreement(_rules(m)) for m in store.members()}

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
