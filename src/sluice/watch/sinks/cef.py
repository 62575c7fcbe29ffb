"""Events in the Common Event Format, which security monitoring systems read."""

import json
import re
from datetime import UTC, datetime

from sluice.watch.store import Outgoing

__all__ = ["cef_line"]

SEVERITIES = {"low": 3, "medium": 6, "high": 9}
LONGEST = 1_000  # characters of one value
CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def cef_line(event: Outgoing, *, version: str) -> str:
    """Return an event as one CEF line: header fields, then key=value pairs."""
    found = json.loads(event.content)
    kind = found["event"]
    header = "|".join(map(_header, ("CEF:0", "Sluice", "watch", version, kind, f"alarm {kind}")))
    fields = {
        "externalId": found["id"],
        "rt": _milliseconds(found["at"]),
        "start": _milliseconds(found["start"]),
        "end": _milliseconds(found["end"]) if found["end"] else None,
        "msg": found["sentence"],
        "cat": found["severity"],
        "cs1Label": "tags",
        "cs1": ", ".join(found["tags"]),
        "cs2Label": "rules",
        "cs2": ", ".join(found["rules"]) or None,
        "cs3Label": "plant",
        "cs3": found["plant"],
        "request": found["link"],
    }
    written = " ".join(f"{key}={_value(value)}" for key, value in fields.items() if value)
    return f"{header}|{SEVERITIES[found['severity']]}|{written}"


def _header(text: str) -> str:
    """Escape a header field: a pipe or a backslash would end or change it."""
    return CONTROL.sub(" ", str(text)).replace("\\", "\\\\").replace("|", "\\|")


def _value(value: object) -> str:
    """Escape a value: an equals sign or a backslash; control characters become blanks."""
    text = CONTROL.sub(" ", str(value))[:LONGEST]
    return text.replace("\\", "\\\\").replace("=", "\\=")


def _milliseconds(stamp: str) -> int:
    """Return a time of the plant's clock as milliseconds, as if the clock were UTC."""
    return round(datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp() * 1_000)
