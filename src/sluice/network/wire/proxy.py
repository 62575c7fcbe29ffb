"""The reverse proxy between plants and Flower; it forwards only the calls of Flower's nodes.

Flower serves all its interfaces on one port. Anyone who reaches the control interface can start
code on every node, and the open-source build does not authenticate callers. So Flower listens on
loopback only, and nginx forwards the twelve calls that a plant's node makes, each by its exact
path, and nothing else.
"""

from dataclasses import dataclass
from pathlib import Path
from string import Template

from sluice.errors import SettingError
from sluice.files import atomically, public_folder

__all__ = ["FLEET_CALLS", "Proxy", "fleet_paths"]

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

LARGEST_BODY_MB = 8  # Flower cuts objects into chunks of 5 MiB
TEMPLATE = Path(__file__).with_name("nginx.conf.template")


def fleet_paths() -> tuple[str, ...]:
    """Return the paths that plants may call."""
    return tuple(f"/v1/fleet/{call}" for call in FLEET_CALLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """The address where plants connect (`host`, `port`), and Flower's loopback port behind it."""

    host: str
    port: int
    link_port: int
    certificate: Path
    key: Path
    authority: Path

    def configuration(self, folder: Path) -> str:
        """Return nginx's configuration; nginx writes its own files into `folder`."""
        for path in (folder, self.certificate, self.key, self.authority):
            if any(letter in str(path) for letter in " ;{}\"'$\n"):
                raise SettingError(
                    f"nginx cannot take the path {path}; use a folder without spaces, quotes, "
                    "braces, '$' and ';'"
                )
        locations = "\n".join(
            f"        location = {path} {{ include {folder}/fleet.conf; }}"
            for path in fleet_paths()
        )
        return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
            folder=folder,
            host=self.host if ":" not in self.host else f"[{self.host}]",
            port=self.port,
            certificate=self.certificate,
            key=self.key,
            body_mb=LARGEST_BODY_MB,
            locations=locations,
        )

    def forwarding(self) -> str:
        """Return the settings that each of the twelve locations includes to reach Flower."""
        return (
            "limit_except POST { deny all; }\n"
            "limit_req zone=calls burst=200 nodelay;\n"
            f"proxy_pass https://127.0.0.1:{self.link_port};\n"
            f"proxy_ssl_trusted_certificate {self.authority};\n"
            "proxy_ssl_verify on;\n"
            "proxy_ssl_name localhost;\n"
            "proxy_http_version 1.1;\n"
            # Stream bodies: if root starts nginx, its workers cannot write to this private folder.
            "proxy_request_buffering off;\n"
            "proxy_max_temp_file_size 0;\n"
            'proxy_set_header Connection "";\n'
            "proxy_set_header Host localhost;\n"
        )

    def write(self, folder: Path) -> Path:
        """Write the configuration into a folder and return its path."""
        folder = folder.resolve()
        public_folder(folder)
        path = folder / "nginx.conf"
        for target, text in (
            (folder / "fleet.conf", self.forwarding()),
            (path, self.configuration(folder)),
        ):
            with atomically(target) as draft:
                draft.write_text(text, encoding="utf-8")
        return path
