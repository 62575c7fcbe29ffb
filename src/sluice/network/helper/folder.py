"""A helper's folder: its key, its certificate, its state, and the card that others need.

card.json              where the helper is, its key and its authority; public
state/                 the helper's log and its shares (`sluice.attestation.hidden`)
tls/                   its certificates; public
private/               its keys, mode 0600
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, StringConstraints

from sluice.attestation.hidden import Helper, HelperOpened, MemberKey
from sluice.attestation.log import read_log
from sluice.attestation.messages import STRICT, Count, Form, Hex32, Name, SigningKey
from sluice.errors import SettingError
from sluice.files import atomically, read_bounded
from sluice.network.wire import Authority, write_certificate

__all__ = ["CARDS", "HelpedFederation", "HelperCard", "HelperFolder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperCard:
    """What plants and the coordinator need to reach a helper and to check what it says."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    federation: Name
    host: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    port: Count
    key: Hex32
    authority: Annotated[str, StringConstraints(max_length=8_192)]  # PEM


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpedFederation:
    """A federation as its helper knows it."""

    name: str
    coordinator: str  # its key
    members: tuple[MemberKey, ...]


CARDS: Form[HelperCard] = Form.of(HelperCard, "helper's card", largest=16_384)


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperFolder:
    """The folder of one helper."""

    path: Path

    @classmethod
    def create(cls, path: Path, *, log: Path, host: str, port: int, at: datetime) -> "HelperFolder":
        """Create a helper for the federation of a log. It accepts the log's members, no others.

        The log is verified first. The operator of the helper must know that its members are real
        plants: with invented members, a coordinator could learn the sums of one plant.
        """
        ledger = read_log(log)
        members = tuple(
            MemberKey(client=name, key=ledger.client(name, step="1").key)
            for name in sorted(ledger.clients)
        )
        if not members:
            raise SettingError(f"the log {log} registers no client; a helper needs its members")
        federation = HelpedFederation(
            name=ledger.opened.federation, coordinator=ledger.coordinator, members=members
        )
        return cls.found(path, federation, host=host, port=port, at=at)

    @classmethod
    def found(
        cls, path: Path, federation: HelpedFederation, *, host: str, port: int, at: datetime
    ) -> "HelperFolder":
        """Create a helper for a federation whose members are known."""
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
        opened = HelperOpened(
            federation=federation.name,
            helper=key.public,
            coordinator=federation.coordinator,
            members=federation.members,
        )
        Helper.create(folder.state, opened, key, at=at)
        card = HelperCard(
            federation=opened.federation,
            host=host,
            port=port,
            key=key.public,
            authority=authority.bundle.read_text(encoding="ascii"),
        )
        with atomically(path / "card.json") as draft:
            draft.write_bytes(CARDS.write(card))
        return folder

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
