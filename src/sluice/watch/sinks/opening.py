"""Sinks by their addresses, as `--sink` gives them."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from sluice.errors import SettingError
from sluice.watch.broker import broker_of
from sluice.watch.sinks.jsonl import JsonLines
from sluice.watch.sinks.mqtt import MqttSink
from sluice.watch.sinks.sink import Sink
from sluice.watch.sinks.syslog import Syslog
from sluice.watch.sinks.webhook import TOKEN, Webhook

__all__ = ["KINDS", "opened_sink"]

KINDS = (
    "jsonl:FILE, syslog+udp://HOST:PORT, syslog+tcp://HOST:PORT, syslog+unix:FILE, "
    "https://HOST/PATH, mqtt://HOST:PORT/TOPIC"
)
SYSLOG_PORT = 514


def opened_sink(address: str) -> Sink:
    """Return the sink of an address; an unknown kind or a broken address is refused."""
    kind, _, rest = address.partition(":")
    match kind:
        case "jsonl" if rest:
            return _json_lines(Path(rest))
        case "syslog+unix" if rest:
            return Syslog("unix", rest, version=_version())
        case "syslog+udp" | "syslog+tcp":
            return Syslog(kind.partition("+")[2], _host_port(address), version=_version())
        case "http" | "https":
            return _webhook(address)
        case "mqtt" | "mqtts":
            return MqttSink(broker_of(address))
        case _:
            raise SettingError(f"--sink {address!r} is not known; give one of {KINDS}")


def _json_lines(path: Path) -> JsonLines:
    if path.is_dir() or not path.parent.is_dir():
        raise SettingError(
            f"--sink jsonl:{path} is no file that can be written; name a file in a folder that "
            "exists"
        )
    return JsonLines(path)


def _webhook(address: str) -> Webhook:
    parts = urlsplit(address)
    if not parts.hostname:
        raise SettingError(f"--sink {address!r} has no host; write https://HOST/PATH")
    if parts.username is not None or parts.password is not None:
        raise SettingError(
            f"--sink {parts.scheme}://{parts.hostname}/... holds a password, which other users of "
            f"this computer could see; set {TOKEN} in the environment instead"
        )
    # A query often holds a secret of the receiver; it stays out of messages and of the state.
    return Webhook(address, name=f"{parts.scheme}://{parts.netloc}{parts.path}")


def _host_port(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    try:
        port = parts.port or SYSLOG_PORT
    except ValueError:
        port = 0
    if not parts.hostname or not port:
        raise SettingError(
            f"--sink {address!r} has no host or port; write {parts.scheme}://HOST:PORT"
        )
    return parts.hostname, port


def _version() -> str:
    try:
        return version("sluice-fl")
    except PackageNotFoundError:
        return "unknown"
