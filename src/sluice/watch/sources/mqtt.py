"""Rows from an MQTT broker: one message per row, or one topic per tag.

A message is confirmed only after its row is kept in the state. The session lasts at the broker, so
what is published while the watch is down arrives later.
"""

import contextlib
import queue
import time
from collections import deque
from typing import Any, final

import numpy as np

from sluice.errors import RecordError, SettingError
from sluice.telemetry import PlantFile
from sluice.watch.broker import KEEP_ALIVE_S, Broker, client_of
from sluice.watch.rows import StreamRows, microseconds
from sluice.watch.sources.messages import Reading, RowMessage, parsed_message
from sluice.watch.sources.sampling import Sampler
from sluice.watch.sources.source import SourceState, no_rows
from sluice.watch.subject import Subject

__all__ = ["MqttSource"]

MOST_WAITING = 10_000
MOST_ROWS = 256


@final
class MqttSource:
    """Subscribes to a topic with quality of service 1."""

    def __init__(  # noqa: PLR0913 - settings of a connection
        self,
        broker: Broker,
        subject: Subject,
        *,
        plant: PlantFile,
        client_name: str,
        lasting: bool,
        max_age_s: float | None = None,
    ) -> None:
        self.name = broker.name
        self.unreadable = 0
        self._broker = broker
        self._subject = subject
        self._plant = plant
        self._connected = False
        self._messages: queue.Queue[tuple[str, bytes, int, int]] = queue.Queue(MOST_WAITING)
        self._unconfirmed: deque[tuple[int, int]] = deque()
        self._sampler = Sampler(subject.names, stride_s=subject.stride_s, max_age_s=max_age_s)
        self._samples = False
        self._client = client_of(broker, name=client_name, lasting=lasting, manual_ack=True)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message
        try:
            self._client.connect(broker.host, broker.port, keepalive=KEEP_ALIVE_S)
        except OSError as error:
            raise SettingError(
                f"the broker {self.name} cannot be reached: {error.strerror or error}; check the "
                "address and that the broker runs"
            ) from None
        self._client.loop_start()

    # -- called by the client's thread --------------------------------------------------------

    def _on_connect(self, client: Any, _: Any, __: Any, reason: Any, ___: Any) -> None:
        self._connected = not reason.is_failure
        if self._connected:
            client.subscribe(self._broker.topic, qos=1)

    def _on_disconnect(self, _: Any, __: Any, ___: Any, ____: Any, _____: Any) -> None:
        self._connected = False

    def _on_message(self, _: Any, __: Any, message: Any) -> None:
        with contextlib.suppress(queue.Full):  # not confirmed: the broker sends it again
            self._messages.put_nowait(
                (message.topic, bytes(message.payload), message.mid, message.qos)
            )

    # -- called by the watch ------------------------------------------------------------------

    @property
    def state(self) -> SourceState:
        """Whether the broker is there."""
        return SourceState.READING if self._connected else SourceState.LOST

    def take(self, wait_s: float) -> StreamRows:
        """Return the rows of the messages that have come."""
        rows: list[tuple[int, list[float]]] = []
        deadline = time.monotonic() + (
            min(wait_s, self._sampler.wait_s) if self._samples else wait_s
        )
        while len(rows) < MOST_ROWS:
            left = 0.0 if rows else deadline - time.monotonic()
            try:
                message = (
                    self._messages.get(timeout=left) if left > 0 else self._messages.get(False)
                )
            except queue.Empty:
                break
            found = self._row(message)
            if found is not None:
                rows.append(found)
        if rows:
            return StreamRows(
                times=np.array([at for at, _ in rows], np.int64),
                values=np.array([values for _, values in rows]),
            )
        if self._samples and self._connected:
            return self._sampler.row()
        return no_rows(len(self._subject.names))

    def _row(self, message: tuple[str, bytes, int, int]) -> tuple[int, list[float]] | None:
        topic, payload, number, quality = message
        self._unconfirmed.append((number, quality))
        try:
            found = parsed_message(payload, self._plant.words)
        except RecordError:
            self.unreadable += 1
            return None
        match found:
            case Reading(value=value):
                tag = topic.rpartition("/")[2].removeprefix(self._plant.prefix)
                self._samples |= self._sampler.put(*self._plant.as_point(tag, value))
                return None
            case RowMessage(time=at, readings=readings):
                bare = dict(
                    self._plant.as_point(tag.removeprefix(self._plant.prefix), value)
                    for tag, value in readings.items()
                )
                values = [bare.get(name, np.nan) for name in self._subject.names]
                if all(map(np.isnan, values)):
                    self.unreadable += 1
                    return None
                return microseconds(time.time()) if at is None else at, values

    def confirm(self) -> None:
        """Tell the broker that the messages so far need not be sent again."""
        while self._unconfirmed:
            self._client.ack(*self._unconfirmed.popleft())

    def close(self) -> None:
        """Disconnect; the session stays at the broker."""
        self._client.disconnect()
        self._client.loop_stop()
