"""A plant's folder. `sluice plant join` creates it; the other commands open it.

invitation.json     terms, authority, certificate and secret, mode 0600
request.json        the join request for the coordinator, mode 0600 because it holds the secret
plant.json          which rows of which record the plant trains on
keys/               rules, policy, circuit; private/client.key
authority.pem       the authorities that the plant trusts
tls.pem             the certificate by which the coordinator's proxy recognises the plant
private/tls.key     its key, mode 0600
private/node.key    the Flower node's key, mode 0600
batches/, rounds/   the plant's documents and updates; mode 0700
sign-offs/          which operator has agreed to share which statistic
log.jsonl           the plant's verified copy of the log, with a signed snapshot of its ledger
model.weights       the last model received from the federation, mode 0600
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from sluice.admission import parse_policy
from sluice.attestation.log import COORDINATOR, Ledger, LogReader, load_snapshot, snapshot_path
from sluice.attestation.messages import (
    REGISTRATIONS,
    Consent,
    Recovery,
    RotationSigned,
    Signed,
    content_digest,
    instant,
    rotate,
    sign,
)
from sluice.attestation.protocol import KeyFolder, Registered
from sluice.attestation.systems import find_system
from sluice.attestation.systems.full import statistic_settings
from sluice.errors import RefusedError, SettingError
from sluice.files import atomically, private_folder
from sluice.invariants import RuleSet
from sluice.network.plant.agent import Agent, pledged_rounds
from sluice.network.plant.disclosure import StatisticSharing, statistic_sharing
from sluice.network.statistics import demand_fitting
from sluice.network.terms import (
    Invitation,
    JoinRequest,
    PlantCertificate,
    read_document,
    write_document,
)
from sluice.network.training_rows import TrainingRows
from sluice.network.wire import PROTOCOLS, Issued, certificate_ends, write_certificate

__all__ = ["PlantFolder", "demand_usable"]


@dataclass(frozen=True, slots=True)
class PlantFolder:
    """A plant's folder."""

    folder: Path

    @classmethod
    def create(  # noqa: PLR0913 - what a plant needs to join
        cls,
        folder: Path,
        invitation: Invitation,
        rules: RuleSet,
        rules_text: str,
        share: TrainingRows,
        *,
        at: datetime,
        reveal_rows: bool = False,
    ) -> "PlantFolder":
        """Answer an invitation: make keys, derive the circuit, write the request.

        An invitation to system `unsafe`, which reveals every row, also needs `reveal_rows`.
        """
        if folder.exists() and any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty; name a new folder for the plant")
        demand_usable(invitation, at=at)
        issued = _usable(invitation)
        terms = invitation.terms
        terms.demand_points(rules.channels, plant=invitation.plant)
        system = find_system(terms.system, reveal_rows=reveal_rows, statistic=terms.binds)
        private_folder(folder / "private")
        plant = cls(folder)
        plant._write_certificate(issued, authority=invitation.authority)
        keys = KeyFolder.create(
            folder / "keys",
            system,
            rules,
            parse_policy(terms.policy, name="of the invitation"),
            rows_max=terms.rows_max,
        )
        own = statistic_settings(keys.circuit) if terms.binds else None
        if own is not None:
            demand_fitting(invitation.plant, own, terms)
        registered = Registered(
            federation=terms.federation,
            client=invitation.plant,
            key=keys.ensure_client_key(),
            system=keys.system,
            circuit=keys.circuit,
        )
        request = JoinRequest(
            plant=invitation.plant,
            protocols=PROTOCOLS,
            secret=invitation.secret,
            node_key=_new_node_key(plant.node_key),
            registration=REGISTRATIONS.write(registered.registration()).decode(),
            rules=rules_text,
        )
        write_document(invitation, folder / "invitation.json", private=True)
        write_document(request, folder / "request.json", private=True)
        write_document(share, folder / "plant.json")
        return plant

    @property
    def invitation(self) -> Invitation:
        """The invitation that the plant answered."""
        return read_document(Invitation, self.folder / "invitation.json", private=True)

    @property
    def share(self) -> TrainingRows:
        """The rows that the plant attests and trains on."""
        return read_document(TrainingRows, self.folder / "plant.json")

    def renew(self, share: TrainingRows) -> None:
        """Set other rows for the next batch; a running plant picks them up by itself."""
        self._agent(self.invitation).refuse_overlap(share)
        write_document(share, self.folder / "plant.json")

    @property
    def keys(self) -> KeyFolder:
        """The plant's rules, policy and circuit."""
        keys = KeyFolder.open(self.folder / "keys")
        keys.demand_same_circuit()
        return keys

    @property
    def node_key(self) -> Path:
        """The private key of the plant's Flower node."""
        return self.folder / "private" / "node.key"

    @property
    def authority(self) -> Path:
        """The certificates of the authorities that the plant trusts."""
        return self.folder / "authority.pem"

    @property
    def certificate(self) -> Path:
        """The certificate by which the coordinator's proxy recognises the plant."""
        return self.folder / "tls.pem"

    @property
    def certificate_key(self) -> Path:
        """The key of that certificate."""
        return self.folder / "private" / "tls.key"

    @property
    def certificate_ends(self) -> datetime:
        """When the plant's certificate ends."""
        if not self.certificate.exists():
            raise SettingError(
                f"{self.folder} has no certificate, because an earlier version made it; ask the "
                "coordinator for one ('sluice coordinator rotate --plant') and install it with "
                "'sluice plant rotate'"
            )
        return certificate_ends(self.certificate)

    def install(self, issued: PlantCertificate) -> None:
        """Replace the plant's certificate, its key and the authorities that it trusts."""
        if issued.plant != self.invitation.plant:
            raise RefusedError(
                f"the certificate is for {issued.plant!r}, and {self.folder} is the folder of "
                f"{self.invitation.plant!r}; install it in the other plant's folder"
            )
        self._write_certificate(_usable(issued), authority=issued.authority)

    def _write_certificate(self, issued: Issued, *, authority: str) -> None:
        with atomically(self.authority) as draft:
            draft.write_text(authority, encoding="utf-8")
        write_certificate(issued, certificate=self.certificate, key=self.certificate_key)

    def agent(self, *, reveal_rows: bool = False) -> Agent:
        """Return the agent that answers for the plant.

        With system `unsafe` every answer reveals the rows, so it also needs `reveal_rows`.
        """
        invitation = self.invitation
        find_system(invitation.terms.system, reveal_rows=reveal_rows)
        return self._agent(invitation)

    def registered(self) -> Registered:
        """Return the plant as the protocol knows it: its key, its system and its circuit."""
        invitation, keys = self.invitation, self.keys
        return Registered(
            federation=invitation.terms.federation,
            client=invitation.plant,
            key=keys.client_key(),
            system=keys.system,
            circuit=keys.circuit,
        )

    def statistic_sharing(self) -> StatisticSharing | None:
        """Return what says whether a statistic may be shared; None if none is shared."""
        return statistic_sharing(self.folder, self.registered(), self.invitation.terms)

    @property
    def log(self) -> Path:
        """The plant's verified copy of the log."""
        return self.folder / "log.jsonl"

    def ledger(self) -> Ledger:
        """Return what the log says, as far as this plant has seen it.

        Only the entries since the plant's own snapshot are verified again.
        """
        if not self.log.exists():
            return Ledger()
        snapshot = None
        if snapshot_path(self.log).exists():
            key = KeyFolder.open(self.folder / "keys").client_key()
            snapshot = load_snapshot(self.log, key.public)
        return LogReader(self.log, snapshot=snapshot).catch_up(unsigned=True)

    def rounds_pledged(self) -> int:
        """Return the number of rounds in which this plant has pledged."""
        return pledged_rounds(self.folder)

    def attested_until(self) -> str | None:
        """Return the log time until which the plant's last attestation holds, if it has one."""
        ledger = self.ledger()
        commits = ledger.commitments(self.invitation.plant)
        times = [until for each in commits if (until := ledger.attested_until(each)) is not None]
        return max(times, default=None)

    def consent(self, recovery: Recovery) -> Signed[Consent]:
        """Sign a consent to a recovery that agrees with this plant's copy of the log."""
        ledger, invitation = self.ledger(), self.invitation
        if recovery.federation != invitation.terms.federation or recovery.size < ledger.size:
            raise RefusedError(
                f"the recovery of {recovery.federation!r} covers {recovery.size} log entries; this "
                f"plant has seen {ledger.size}: send its copy to the coordinator first ('sluice "
                "plant export-log')"
            )
        rounds = ledger.rounds
        known = rounds.last if rounds.between else rounds.last - 1
        if recovery.size == ledger.size and ledger.head(COORDINATOR).last != recovery.last:
            raise RefusedError("the recovery follows another log than the one this plant has seen")
        if recovery.model_of <= known and rounds.model_after(recovery.model_of) != recovery.model:
            raise RefusedError(
                f"the recovery names another model after round {recovery.model_of} than the log "
                "that this plant has seen"
            )
        content = Consent(
            federation=recovery.federation,
            client=invitation.plant,
            recovery=content_digest(recovery),
        )
        return sign(content, self.keys.client_key())

    def rotate_key(self) -> RotationSigned:
        """Make a new signing key; the agent uses it once the log names it."""
        keys = self.keys
        federation = self.invitation.terms.federation
        return rotate(federation, keys.client_key(), keys.following_key())

    def _agent(self, invitation: Invitation) -> Agent:
        return Agent(
            folder=self.folder,
            name=invitation.plant,
            terms=invitation.terms,
            keys=self.keys,
            share=lambda: self.share,
        )


def demand_usable(invitation: Invitation, *, at: datetime) -> None:
    """Raise if an invitation has expired, or is in a protocol that this software does not speak."""
    if instant(at) > invitation.expires:
        raise RefusedError(
            f"the invitation of {invitation.plant!r} expired on {invitation.expires}; ask the "
            "coordinator for a new one"
        )
    if not set(invitation.protocols) & set(PROTOCOLS):
        offered, known = (", ".join(map(str, each)) for each in (invitation.protocols, PROTOCOLS))
        raise RefusedError(
            f"the coordinator speaks protocol {offered}, this software {known}; update the older "
            "of the two"
        )


def _usable(document: Invitation | PlantCertificate) -> Issued:
    """Return the certificate of a document; raise if the plant could not use it."""
    issued = Issued(certificate=document.certificate, key=document.certificate_key)
    issued.demand_usable(document.plant, authority=document.authority)
    return issued


def _new_node_key(path: Path) -> str:
    """Create the node's key, on P-384 as Flower requires, and return the public key."""
    key = ec.generate_private_key(ec.SECP384R1())
    with atomically(path, private=True) as draft:
        draft.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return public.decode()
