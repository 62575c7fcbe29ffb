"""The coordinator's folder. `sluice coordinator init` creates it; the other commands open it.

terms.json                  the federation's terms; public
log.jsonl                   the hash-chained log; public
store.sqlite                plants, invitations, checkpoints; mode 0600
reference.json              which rows are the clean reference, for thresholds and root updates
tls/                        authority.pem, server.pem; public
proxy/                      nginx's configuration
private/                    coordinator.key, approver.key, server.key; mode 0600 in a folder 0700
flower/                     the SuperLink's own database and log; mode 0700
running.lock                locked by the running coordinator
"""

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from sluice.admission import Policy, parse_policy
from sluice.attestation.log import Log, LogOpened
from sluice.attestation.messages import APPROVALS, REGISTRATIONS, SigningKey, approve
from sluice.attestation.protocol import Agreement, ProtocolCoordinator
from sluice.attestation.systems import circuit_for, find_system
from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.files import atomically, private_folder, public_file, public_folder
from sluice.invariants import RuleSet, parse_rules
from sluice.network.coordinator.store import CoordinatorStore, Member
from sluice.network.terms import (
    FederationTerms,
    Invitation,
    JoinRequest,
    read_document,
    write_document,
)
from sluice.network.wire import Proxy, issue

__all__ = ["CoordinatorFolder"]


@dataclass(frozen=True, slots=True)
class CoordinatorFolder:
    """A coordinator's folder."""

    folder: Path

    @classmethod
    def create(
        cls, folder: Path, terms: FederationTerms, *, link_port: int, at: datetime
    ) -> "CoordinatorFolder":
        """Create the folder's contents; `terms` names the key that `new_key` created there."""
        site = cls(folder)
        key = SigningKey.load(site.key)
        approver = SigningKey.generate()
        approver.save(site.approver)
        public_folder(folder / "tls")
        issue(
            terms.host,
            authority=site.authority,
            server=site.certificate,
            key=folder / "private" / "server.key",
            at=at,
        )
        site.proxy(terms, link_port).write(folder / "proxy")
        opened = LogOpened(
            federation=terms.federation, coordinator=key.public, approvers=(approver.public,)
        )
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
    def approver(self) -> Path:
        """The key that approves rules; best kept on another machine, by another person."""
        return self.folder / "private" / "approver.key"

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
        with public_file(self.folder / "running.lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SettingError(f"a coordinator runs in {self.folder}; stop it first") from None
            yield

    def protocol(self) -> ProtocolCoordinator:
        """Verify every entry of the log and open it for appending."""
        return ProtocolCoordinator(log=Log.open(self.log, SigningKey.load(self.key)))

    # -- joining ------------------------------------------------------------------------------

    def invite(self, plant: str, *, at: datetime) -> Invitation:
        """Create a single-use invitation; the store keeps only the hash of its secret."""
        secret = secrets.token_hex(32)
        store = CoordinatorStore(self.base)
        store.invite(plant, secret, at=at)
        store.close()
        return Invitation(
            plant=plant,
            secret=secret,
            authority=self.authority.read_text(encoding="ascii"),
            terms=self.terms,
        )

    def enrol(self, request: JoinRequest, *, at: datetime) -> None:
        """Step 1: enrol a plant with an unused invitation and rules that the policy accepts."""
        store = CoordinatorStore(self.base)
        store.invited(request.plant, request.secret)
        raw = request.registration.encode()
        signed = REGISTRATIONS.read(raw)
        if signed.content.client != request.plant:
            raise RefusedError(
                f"the request of {request.plant!r} holds a registration of "
                f"{signed.content.client!r}; create the request again with 'sluice plant join'"
            )
        _demand_node_key(request)
        rules = parse_rules(request.rules, name=f"of {request.plant!r}")
        last = {m.name: _rules(m) for m in store.members()}.get(request.plant)
        approval = APPROVALS.write(approve(signed, SigningKey.load(self.approver)))
        self.protocol().register(raw, self.agreement(rules), approvals=[approval], last=last, at=at)
        store.join(
            request.plant,
            request.secret,
            node_key=request.node_key.encode(),
            rules=request.rules,
            at=at,
        )
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
