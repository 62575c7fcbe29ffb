"""A helper's folder: its key, its certificate, its state, and the card that others need.

card.json              where the helper is, its key and its authority; public
state/                 the helper's log and its shares (`sluice.attestation.hidden`)
tls/                   its certificates; public
private/               its keys, mode 0600
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation.hidden import Helper, HelperLedger
from sluice.attestation.log import COORDINATOR, read_log
from sluice.attestation.messages import CARDS, HelperCard, HelperOpened, MemberKey, SigningKey
from sluice.errors import SettingError
from sluice.files import atomically, read_bounded
from sluice.network.wire import Authority, write_certificate

__all__ = ["HelpedFederation", "HelperFolder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpedFederation:
    """A federation as its helper knows it."""

    name: str
    coordinator: str  # its key
    members: tuple[MemberKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperFolder:
    """The folder of one helper."""

    path: Path

    @classmethod
    def create(
        cls, path: Path, federation: str, *, host: str, port: int, at: datetime
    ) -> "HelperFolder":
        """Create a helper of a federation of this name: its key, its certificate and its card.

        It accepts members later (`accept_log`): its card is needed before any plant has joined.
        """
        folder, key = cls(path=path), SigningKey.generate()
        for name in ("tls", "private"):
            (path / name).mkdir(parents=True, mode=0o700)
        key.save(folder._private("helper.key"))
        authority = Authority.found(
            path / "tls" / "authority.pem", folder._private("authority.key"), at=at
        )
        write_certificate(
            authority.server(host, at=at), certificate=folder.certificate, key=folder.tls_key
        )
        card = HelperCard(
            federation=federation,
            host=host,
            port=port,
            key=key.public,
            authority=authority.bundle.read_text(encoding="ascii"),
        )
        with atomically(path / "card.json") as draft:
            draft.write_bytes(CARDS.write(card))
        return folder

    def accept_log(self, log: Path, *, at: datetime) -> HelpedFederation:
        """Accept the members of a federation's log, and no others, and its coordinator's key.

        The log is verified first. The operator of the helper must know that its members are real
        plants: with invented members, a coordinator could learn the sums of one plant.
        """
        ledger = read_log(log)
        earlier = self._coordinator()
        if earlier is not None and earlier not in ledger.keys_of(COORDINATOR):
            raise SettingError(
                f"the log {log} is of another coordinator than the one that this helper serves; "
                "create another helper for it"
            )
        statistic = ledger.opened.statistic
        named = statistic.helper if statistic else None
        if named is not None and named != self.card:
            raise SettingError(
                f"the log {log} names another helper, at {named.url} with key {named.key[:12]}...; "
                "take the log of the federation that was founded with this helper's card"
            )
        members = tuple(
            MemberKey(client=name, key=ledger.client(name, step="1").key)
            for name in sorted(ledger.clients)
            if not ledger.rounds.removed(name)
        )
        if not members:
            raise SettingError(f"the log {log} registers no client; a helper needs its members")
        federation = HelpedFederation(
            name=ledger.opened.federation, coordinator=ledger.coordinator, members=members
        )
        self.accept(federation, at=at)
        return federation

    def accept(self, federation: HelpedFederation, *, at: datetime) -> None:
        """Accept the members of a federation whose members are known."""
        if federation.name != self.card.federation:
            raise SettingError(
                f"the log is of the federation {federation.name!r}, and this helper is of "
                f"{self.card.federation!r}; create another helper for it"
            )
        if (self.state / "helper.log").exists():
            helper = Helper(self.state, self.key)
            try:
                helper.accept(federation.coordinator, federation.members, at=at)
            finally:
                helper.close()
            return
        opened = HelperOpened(
            federation=federation.name,
            helper=self.key.public,
            coordinator=federation.coordinator,
            members=federation.members,
        )
        Helper.create(self.state, opened, self.key, at=at)

    def demand_members(self) -> None:
        """Raise if the helper has accepted no members yet."""
        if not (self.state / "helper.log").exists():
            raise SettingError(
                f"the helper in {self.path} has accepted no members yet; give it the federation's "
                "log with 'sluice helper accept'"
            )

    def _coordinator(self) -> str | None:
        """Return the coordinator's key that the helper knows; None before it has members."""
        if not (self.state / "helper.log").exists():
            return None
        ledger = HelperLedger()
        ledger.read((self.state / "helper.log").read_bytes().splitlines(), self.card.key)
        return ledger.coordinator

    @property
    def card(self) -> HelperCard:
        """What others need."""
        return CARDS.read(
            read_bounded(self.path / "card.json", "helper's card", largest=CARDS.largest)
        )

    @property
    def key(self) -> SigningKey:
        """The key that signs the helper's log."""
        return SigningKey.load(self._private("helper.key"))

    @property
    def state(self) -> Path:
        """The folder of the log and the shares."""
        return self.path / "state"

    @property
    def certificate(self) -> Path:
        """The server's certificate."""
        return self.path / "tls" / "server.pem"

    @property
    def tls_key(self) -> Path:
        """The key of the server's certificate."""
        return self._private("server.key")

    def _private(self, name: str) -> Path:
        return self.path / "private" / name
