"""A file of JSON lines: each event exactly once.

After a restart, the file itself tells which events it has. A line that a killed process left
incomplete is removed first.
"""

import json
import os
from pathlib import Path
from typing import final

from sluice.errors import SettingError
from sluice.watch.sinks.sink import SinkError
from sluice.watch.store import Outgoing

__all__ = ["JsonLines"]

TAIL_BYTES = 8 << 20  # of the file, in which events of an earlier process are looked for


@final
class JsonLines:
    """Appends events to a file."""

    beats = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"jsonl:{path}"
        try:
            self._written = self._recover()
        except OSError as error:
            raise SettingError(
                f"--sink {self.name} cannot be written: {error.strerror}; choose another file"
            ) from None

    def _recover(self) -> set[str]:
        if not self.path.exists():
            self.path.touch()
            return set()
        with self.path.open("rb+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read()
            whole = tail.rfind(b"\n") + 1
            if whole < len(tail):
                file.truncate(size - (len(tail) - whole))
        return {key for line in tail[:whole].splitlines() if (key := _key(line))}

    def deliver(self, event: Outgoing) -> None:
        """Append an event, unless the file has it."""
        if event.key in self._written:
            return
        self._append(event.content)
        self._written.add(event.key)

    def beat(self, text: str) -> None:
        """Append a heartbeat."""
        self._append(text)

    def _append(self, line: str) -> None:
        try:
            with self.path.open("ab") as file:
                file.write(line.encode() + b"\n")
        except OSError as error:
            raise SinkError(f"{self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Nothing stays open."""


def _key(line: bytes) -> str:
    try:
        event = json.loads(line)
        return str(event.get("key", ""))
    except (ValueError, AttributeError):
        return ""  # not a line of ours
