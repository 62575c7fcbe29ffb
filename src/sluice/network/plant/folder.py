"""A plant's folder. `sluice plant join` creates it; the other commands open it.

invitation.json     terms, authority, certificate and secret, mode 0600
request.json        the join request for the coordinator, mode 0600 because it holds the secret
plant.json          which rows of which record the plant trains on
keys/               rules, policy, circuit; private/client.key
authority.pem       the authorities that the plant trusts
tls.pem             the certificate by which the coordinator's proxy recognises the plant
private/tls.key     its key, mode 0600
private/node.key    the Flower node's key, mode 0600
batches/, rounds/   the plant's documents and updates; openings have mode 0600
model.weights       the last model received from the federation
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
from sluice.attestation.messages import REGISTRATIONS
from sluice.attestation.protocol import KeyFolder, Registered
from sluice.attestation.systems import find_system
from sluice.errors import RefusedError, SettingError
from sluice.files import atomically
from sluice.invariants import RuleSet
from sluice.network.plant.agent import Agent
from sluice.network.terms import (
    Invitation,
    JoinRequest,
    PlantCertificate,
    read_document,
    write_document,
)
from sluice.network.training_rows import TrainingRows
from sluice.network.wire import Issued, certificate_ends, write_certificate

__all__ = ["PlantFolder"]


@dataclass(frozen=True, slots=True)
class PlantFolder:
    """A plant's folder."""

    folder: Path

    @classmethod
    def create(
        cls,
        folder: Path,
        invitation: Invitation,
        rules: RuleSet,
        rules_text: str,
        share: TrainingRows,
    ) -> "PlantFolder":
        """Answer an invitation: make keys, derive the circuit, write the request."""
        if folder.exists() and any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty; name a new folder for the plant")
        if not invitation.certificate:
            raise SettingError(
                f"the invitation of {invitation.plant!r} carries no certificate, because an "
                "earlier version made it; ask the coordinator for a new invitation"
            )
        issued = _usable(invitation)
        (folder / "private").mkdir(parents=True, exist_ok=True)
        (folder / "private").chmod(0o700)
        plant = cls(folder)
        plant._write_certificate(issued, authority=invitation.authority)
        terms = invitation.terms
        keys = KeyFolder.create(
            folder / "keys",
            find_system(terms.system, reveal_rows=True),
            rules,
            parse_policy(terms.policy, name="of the invitation"),
            rows_max=terms.rows_max,
        )
        registered = Registered(
            federation=terms.federation,
            client=invitation.plant,
            key=keys.ensure_client_key(),
            system=keys.system,
            circuit=keys.circuit,
        )
        request = JoinRequest(
            plant=invitation.plant,
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
        self.agent().refuse_overlap(share)
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

    def agent(self) -> Agent:
        """Return the agent that answers for the plant."""
        invitation = self.invitation
        return Agent(
            folder=self.folder,
            name=invitation.plant,
            terms=invitation.terms,
            keys=self.keys,
            share=lambda: self.share,
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
