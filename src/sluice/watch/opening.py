"""Sources by what the command line names: a path, stdin, a broker or a server."""

import hashlib
import sys
from pathlib import Path

from sluice.errors import SettingError
from sluice.files import parse_toml, read_text
from sluice.telemetry import PlantFile
from sluice.watch.broker import broker_of
from sluice.watch.sources import GrowingFiles, MqttSource, OpcUaSource, PipeSource, RowSource
from sluice.watch.subject import Subject

__all__ = ["opened_source"]

LARGEST_NODES = 1 << 20  # bytes


def opened_source(  # noqa: PLR0913 - one source of several kinds
    name: str,
    subject: Subject,
    *,
    plant: PlantFile,
    format_name: str | None,
    position: str,
    lasting: bool,
    from_end: bool,
    nodes: Path | None,
    max_age_s: float | None,
) -> RowSource:
    """Open a source; `lasting` keeps a session at a broker between two runs."""
    scheme = name.partition("://")[0] if "://" in name else ""
    match scheme:
        case "" if name == "-":
            return PipeSource(sys.stdin.fileno(), subject, plant=plant, format_name=format_name)
        case "":
            return GrowingFiles(
                Path(name),
                subject,
                plant=plant,
                format_name=format_name,
                position=position,
                from_end=from_end,
            )
        case "mqtt" | "mqtts":
            broker = broker_of(name)
            digest = hashlib.sha256(f"{subject.identity}{broker.name}".encode()).hexdigest()
            return MqttSource(
                broker,
                subject,
                plant=plant,
                client_name=f"sluice-{digest[:16]}" if lasting else "",
                lasting=lasting,
                max_age_s=max_age_s,
            )
        case "opc.tcp":
            if plant.points:
                raise SettingError(
                    "the plant file maps tags to points of a template, and an OPC UA source reads "
                    "tags only; watch a file, a folder or MQTT"
                )
            return OpcUaSource(
                name, subject, nodes=_node_names(nodes) if nodes else {}, max_age_s=max_age_s
            )
        case _:
            raise SettingError(
                f"SOURCE {name!r} is no source that Sluice reads; give a path, -, "
                "mqtt://HOST:PORT/TOPIC or opc.tcp://HOST:PORT"
            )


def _node_names(path: Path) -> dict[str, str]:
    content = parse_toml(read_text(path, "the list of nodes", largest=LARGEST_NODES), str(path))
    table = content.get("nodes")
    if not isinstance(table, dict) or not all(isinstance(each, str) for each in table.values()):
        raise SettingError(
            f'{path} needs a table [nodes] with lines such as FIT101 = "ns=2;s=Plant.FIT101"'
        )
    return {str(tag): str(node) for tag, node in table.items()}
