"""Documents of the protocol: JSON in canonical form (RFC 8785) only.

The reader parses a document strictly (no unknown field, no float for a count, no number for a
string) and writes it again. It refuses the document if the bytes differ. This rules out white
space, duplicate keys, other escapes, upper-case hex and extra base64 padding.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Generic, TypeVar

import rfc8785
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from sluice.errors import DocumentError, SettingError

__all__ = [
    "STRICT",
    "Blob",
    "Commitment",
    "Count",
    "Form",
    "Hex32",
    "Hex64",
    "Instant",
    "Moment",
    "Name",
    "Operator",
    "OptionalHash",
    "OptionalName",
    "OptionalOperator",
    "instant",
]

STRICT = ConfigDict(extra="forbid")
LARGEST_COUNT = (1 << 53) - 1  # the largest integer that every JSON reader agrees on

Document = TypeVar("Document")


def _decoded(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError("bytes are written as a base64 string")  # noqa: TRY004 - for pydantic
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
OptionalHash = Annotated[Hex32 | None, Field(exclude_if=lambda value: value is None)]
"""A hash that a document without it does not name at all."""
OptionalName = Annotated[
    Annotated[str, StringConstraints(pattern=r"^[a-z]{1,16}$")] | None,
    Field(exclude_if=lambda value: value is None),
]
"""A word that a document without it does not name at all."""
Operator = Annotated[str, StringConstraints(pattern=r"^[!-~][ -~]{0,62}[!-~]$")]
"""The name of a person, in printable ASCII."""
OptionalOperator = Annotated[Operator | None, Field(exclude_if=lambda value: value is None)]
"""The name of a person; a document without one does not name it at all."""
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]
Commitment = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{2}){32,64}$")]
Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
Blob = Annotated[
    bytes,
    BeforeValidator(_decoded),
    PlainSerializer(lambda raw: base64.b64encode(raw).decode(), when_used="json"),
]
_CLOCK = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}"
Moment = Annotated[str, StringConstraints(pattern=f"^{_CLOCK}$"), AfterValidator(_moment)]
"""A time on the plant's own clock, to the microsecond; text order is time order."""
Instant = Annotated[str, StringConstraints(pattern=f"^{_CLOCK}Z$"), AfterValidator(_moment)]
"""A time in UTC."""


def instant(at: datetime) -> Instant:
    """Return a time with a time zone as text in UTC."""
    if at.tzinfo is None:
        raise SettingError(f"time {at} has no time zone; give one, such as datetime.now(UTC)")
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(Generic[Document]):
    """One kind of document: its name and its size limit; writes and reads it."""

    name: str
    kind: Any  # the dataclass, with its parameter where it has one
    largest: int  # bytes

    @classmethod
    def of(cls, kind: Any, name: str, *, largest: int) -> "Form[Document]":
        """Return the form of a dataclass."""
        return cls(name=name, kind=kind, largest=largest)

    def write(self, document: Document) -> bytes:
        """Return the canonical bytes."""
        return rfc8785.dumps(_adapter(self.kind).dump_python(document, mode="json"))

    def read(self, raw: bytes, *, largest: int | None = None) -> Document:
        """Read a document; bytes that are not its canonical form are refused."""
        limit = self.largest if largest is None else largest
        if len(raw) > limit:
            raise DocumentError(f"the {self.name} has {len(raw):,} bytes; the limit is {limit:,}")
        try:
            document: Document = _adapter(self.kind).validate_json(raw, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = _printable(".".join(str(part) for part in first["loc"]))
            raise DocumentError(
                f"the {self.name} is not well formed: {where}{': ' if where else ''}{first['msg']}"
            ) from None
        if self.write(document) != raw:
            raise DocumentError(
                f"the {self.name} is not in canonical form (RFC 8785): white space, duplicate "
                "keys and alternative spellings are refused"
            )
        return document


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # Built when first needed: most commands never read a document.
    return TypeAdapter(kind)


def _printable(text: str) -> str:
    """Make untrusted text safe for a terminal: no escapes, at most 80 characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:80])
