"""The coordinator's folder: what `sluice coordinator init` makes and every other command opens.

terms.json                  what the federation agrees on; public
log.jsonl                   the hash-chained log; public
store.sqlite                plants, invitations, checkpoints; mode 0600
reference.safetensors       the clean reference windows that thresholds and roots come from
tls/                        authority.pem, server.pem; public
proxy/                      nginx's configuration
private/                    coordinator.key, approver.key, server.key; mode 0600
flower/                     the SuperLink's own database and log
running.lock                held by the coordinator that runs
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

from sluice.admission import Policy, read_policy
from sluice.attestation.log import Log, LogOpened
from sluice.attestation.messages import APPROVALS, REGISTRATIONS, SigningKey, approve
from sluice.attestation.protocol import Agreement, ProtocolCoordinator
from sluice.attestation.systems import circuit_for, find_system
from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.files import atomically
from sluice.invariants import RuleSet, load_rules
from sluice.network.coordinator.store import CoordinatorStore
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
        """Make the folder of a federation; `terms` name the key that `new_key` has made there."""
        site = cls(folder)
        key = SigningKey.load(site.key)
        approver = SigningKey.generate()
        approver.save(site.approver)
        (folder / "tls").mkdir(exist_ok=True)
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
        """Make the folder and the coordinator's key in it; return the public part."""
        if folder.exists() and any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty; a federation begins in a folder of its own")
        (folder / "private").mkdir(parents=True, exist_ok=True)
        (folder / "private").chmod(0o700)
        key = SigningKey.generate()
        key.save(cls(folder).key)
        return key.public

    # -- where things are ---------------------------------------------------------------------

    @property
    def key(self) -> Path:
        """The coordinator's signing key."""
        return self.folder / "private" / "coordinator.key"

    @property
    def approver(self) -> Path:
        """The key that approves rules; best kept elsewhere, by somebody else."""
        return self.folder / "private" / "approver.key"

    @property
    def log(self) -> Path:
        """The federation's log."""
        return self.folder / "log.jsonl"

    @property
    def base(self) -> Path:
        """The store."""
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
        """What was agreed on."""
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
        """Keep other processes from running this federation, or from going back in it."""
        with (self.folder / "running.lock").open("ab") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SettingError(f"a coordinator runs in {self.folder}; stop it first") from None
            yield

    def protocol(self) -> ProtocolCoordinator:
        """Open the log, every entry verified, to go on with it."""
        return ProtocolCoordinator(log=Log.open(self.log, SigningKey.load(self.key)))

    # -- who joins ----------------------------------------------------------------------------

    def invite(self, plant: str, *, at: datetime) -> Invitation:
        """Make an invitation of one use; the store keeps no more than the hash of its secret."""
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
        """Step 1: take in a plant that answers its invitation with rules the policy accepts."""
        store = CoordinatorStore(self.base)
        store.invited(request.plant, request.secret)
        raw = request.registration.encode()
        signed = REGISTRATIONS.read(raw)
        if signed.content.client != request.plant:
            raise RefusedError(f"{request.plant!r} registers as {signed.content.client!r}")
        _demand_node_key(request)
        rules = self._rules(request.rules)
        last = {m.name: self._rules(m.rules) for m in store.members()}.get(request.plant)
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
        """Return the circuit that a plant with these rules is held to."""
        terms = self.terms
        system = find_system(terms.system, reveal_rows=True)
        circuit = circuit_for(system, rules, self.policy(), rows_max=terms.rows_max)
        return Agreement(system=system, circuit=circuit)

    def agreements(self, store: CoordinatorStore) -> dict[str, Agreement]:
        """Return what each plant is held to."""
        return {m.name: self.agreement(self._rules(m.rules)) for m in store.members()}

    def policy(self) -> Policy:
        """Return the federation's policy."""
        path = self.folder / "policy.toml"
        if not path.exists():
            with atomically(path) as draft:
                draft.write_text(self.terms.policy, encoding="utf-8")
        return read_policy(str(path))

    def _rules(self, text: str) -> RuleSet:
        path = self.folder / "rules.draft.json"
        with atomically(path) as draft:
            draft.write_text(text, encoding="utf-8")
        try:
            return load_rules(path)
        finally:
            path.unlink()


def _demand_node_key(request: JoinRequest) -> None:
    try:
        key = load_pem_public_key(request.node_key.encode())
    except ValueError:
        key = None
    if not (isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp384r1"):
        raise DocumentError(f"the node key of {request.plant!r} is no P-384 public key in PEM")
