"""A topic of an MQTT broker: one message per event, with quality of service 1.

The broker confirms each message, so an event arrives there at least once.
"""

import json
from typing import TYPE_CHECKING, final

from sluice.watch.broker import KEEP_ALIVE_S, Broker, client_of
from sluice.watch.sinks.sink import SinkError
from sluice.watch.store import Outgoing

if TYPE_CHECKING:
    from paho.mqtt.client import Client

__all__ = ["MqttSink"]

CONFIRM_S = 10.0


@final
class MqttSink:
    """Publishes events and heartbeats."""

    beats = True

    def __init__(self, broker: Broker) -> None:
        import paho.mqtt.client  # noqa: F401, PLC0415 - a missing extra is an error at once

        self.name = broker.name
        self._broker = broker
        self._client: Client | None = None

    def deliver(self, event: Outgoing) -> None:
        """Publish one event below the topic, by its kind."""
        kind = json.loads(event.content)["event"]
        self._publish(f"{self._broker.topic}/{kind}", event.content)

    def beat(self, text: str) -> None:
        """Publish a heartbeat."""
        self._publish(f"{self._broker.topic}/heartbeat", text)

    def _publish(self, topic: str, text: str) -> None:
        try:
            if self._client is None:
                client = client_of(self._broker, name="", lasting=False)
                client.connect(self._broker.host, self._broker.port, keepalive=KEEP_ALIVE_S)
                client.loop_start()
                self._client = client
            sent = self._client.publish(topic, text.encode(), qos=1)
            sent.wait_for_publish(CONFIRM_S)
            confirmed = sent.is_published()
        except (OSError, ValueError, RuntimeError) as error:
            self.close()
            raise SinkError(f"{self.name}: {error}") from None
        if not confirmed:
            self.close()
            raise SinkError(f"{self.name}: the broker did not confirm within {CONFIRM_S:g} s")

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None
