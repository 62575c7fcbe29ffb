"""The reverse proxy between plants and Flower; it forwards only the calls of Flower's nodes.

Flower serves all its interfaces on one port. Anyone who reaches the control interface can start
code on every node, and the open-source build does not authenticate callers. So Flower listens on
loopback only. nginx asks every caller for a certificate of the federation's authority. It forwards
the twelve calls that a plant's node makes, each by its exact path, and nothing else, to the filter
(`filter.py`), which checks their content. nginx tells the filter which plant the certificate names;
it sets these headers itself, so that no caller can.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from sluice.errors import SettingError
from sluice.files import atomically, public_folder

__all__ = [
    "FILTER_HEADER",
    "FLEET_CALLS",
    "LARGEST_CALL",
    "LARGEST_OBJECT_CALL",
    "PLANT_HEADER",
    "SECRET_HEADER",
    "SERIAL_HEADER",
    "Proxy",
    "fleet_paths",
]

FLEET_CALLS = (
    "register-node",
    "activate-node",
    "deactivate-node",
    "unregister-node",
    "send-node-heartbeat",
    "pull-messages",
    "push-messages",
    "get-run",
    "get-fab",
    "push-object",
    "pull-object",
    "confirm-message-received",
)
"""The calls that a node of flwr 1.41 to 1.42 makes to its SuperLink."""

LARGEST_CALL = 64 * 1024
"""Bytes of a call that carries no object."""
LARGEST_OBJECT_CALL = 8 * 1024 * 1024
"""Bytes of a call that carries an object; an answer of a plant is one object."""

SECRET_HEADER = "x-sluice-proxy"  # noqa: S105 - the header's name
PLANT_HEADER = "x-sluice-plant"
SERIAL_HEADER = "x-sluice-serial"
FILTER_HEADER = "x-sluice-filter"
"""Marks every answer of the filter: `refused` or `passed`."""

TEMPLATE = Path(__file__).with_name("nginx.conf.template")


def fleet_paths() -> tuple[str, ...]:
    """Return the paths that plants may call."""
    return tuple(f"/v1/fleet/{call}" for call in FLEET_CALLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """The address where plants connect (`host`, `port`), and the filter's loopback port behind it.

    `secret` proves to the filter that a call came through the proxy.
    """

    host: str
    port: int
    filter_port: int
    certificate: Path
    key: Path
    authority: Path
    secret: str = field(repr=False)

    def configuration(self, folder: Path) -> str:
        """Return nginx's configuration; nginx writes its own files into `folder`."""
        for path in (folder, self.certificate, self.key, self.authority):
            if any(letter in str(path) for letter in " ;{}\"'$\n"):
                raise SettingError(
                    f"nginx cannot take the path {path}; use a folder without spaces, quotes, "
                    "braces, '$' and ';'"
                )
        return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
            folder=folder,
            host=self.host if ":" not in self.host else f"[{self.host}]",
            port=self.port,
            filter_port=self.filter_port,
            certificate=self.certificate,
            key=self.key,
            authority=self.authority,
            small_kb=LARGEST_CALL // 1024,
            locations="\n".join(_location(path, folder) for path in fleet_paths()),
        )

    def forwarding(self) -> str:
        """Return the settings that each of the twelve locations includes to reach the filter."""
        return (
            "limit_except POST { deny all; }\n"
            "limit_req zone=calls burst=200 nodelay;\n"
            "limit_req zone=plant_calls burst=100 nodelay;\n"
            "proxy_pass http://filter;\n"
            "proxy_http_version 1.1;\n"
            # Stream bodies: if root starts nginx, its workers cannot write to this private folder.
            "proxy_request_buffering off;\n"
            "proxy_max_temp_file_size 0;\n"
            'proxy_set_header Connection "";\n'
            "proxy_set_header Host localhost;\n"
            f"proxy_set_header {SECRET_HEADER} {self.secret};\n"
            f"proxy_set_header {PLANT_HEADER} $plant;\n"
            f"proxy_set_header {SERIAL_HEADER} $ssl_client_serial;\n"
        )

    def write(self, folder: Path, *, revoked: Iterable[str] = ()) -> Path:
        """Write the configuration into a folder and return its path.

        `revoked` are the serial numbers of certificates that nginx refuses.
        """
        folder = folder.resolve()
        public_folder(folder)
        path = folder / "nginx.conf"
        serials = "".join(f'"{serial}" 1;\n' for serial in sorted(revoked))
        for target, text in (
            (folder / "fleet.conf", self.forwarding()),
            (folder / "revoked.map", serials),
            (path, self.configuration(folder)),
        ):
            with atomically(target, private=target.name == "fleet.conf") as draft:
                draft.write_text(text, encoding="utf-8")
        return path


def _location(path: str, folder: Path) -> str:
    size = f"client_max_body_size {LARGEST_OBJECT_CALL // 1024}k; "
    return (
        f"        location = {path} {{ "
        f"{size if path.endswith('/push-object') else ''}include {folder}/fleet.conf; }}"
    )
