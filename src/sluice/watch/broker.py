"""An MQTT broker as an address, and a client that stays connected to it."""

import os
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from sluice.errors import SettingError

if TYPE_CHECKING:
    from paho.mqtt.client import Client

__all__ = ["PASSWORD", "Broker", "broker_of", "client_of"]

PASSWORD = "SLUICE_MQTT_PASSWORD"  # noqa: S105 - the variable's name
PLAIN_PORT, TLS_PORT = 1883, 8883
KEEP_ALIVE_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Where a broker is, and the topic there."""

    host: str
    port: int
    tls: bool
    topic: str
    user: str = ""

    @property
    def name(self) -> str:
        """The address without a password."""
        return f"mqtt{'s' if self.tls else ''}://{self.host}:{self.port}/{self.topic}"


def broker_of(address: str) -> Broker:
    """Parse mqtt://user@host:port/topic; the password comes from the environment."""
    parts = urlsplit(address)
    topic = unquote(address.partition("://")[2].partition("/")[2])
    try:
        port = parts.port
    except ValueError:
        port = -1
    if not parts.hostname or not topic or port == -1:
        raise SettingError(
            f"{_without_password(address)!r} is no broker's address; write "
            "mqtt://HOST:PORT/TOPIC, such as mqtt://broker.example:1883/plant/rows"
        )
    if parts.password is not None:
        raise SettingError(
            f"the address {_without_password(address)} holds a password, which other users of "
            f"this computer could see; set {PASSWORD} in the environment instead"
        )
    tls = parts.scheme == "mqtts"
    return Broker(
        host=parts.hostname,
        port=port or (TLS_PORT if tls else PLAIN_PORT),
        tls=tls,
        topic=topic,
        user=unquote(parts.username or ""),
    )


def _without_password(address: str) -> str:
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def client_of(broker: Broker, *, name: str, lasting: bool, manual_ack: bool = False) -> "Client":
    """Return a client that is not connected yet; a lasting one keeps its session at the broker."""
    from paho.mqtt.client import Client  # noqa: PLC0415 - an extra
    from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415

    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=name,
        clean_session=not lasting,
        manual_ack=manual_ack,
    )
    if broker.user:
        client.username_pw_set(broker.user, os.environ.get(PASSWORD))
    if broker.tls:
        client.tls_set_context(ssl.create_default_context())
    client.reconnect_delay_set(min_delay=1, max_delay=60)
    return client
