"""Signed documents: a content, and one signature over its kind and canonical bytes."""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import ConfigDict

from sluice.attestation.documents import STRICT, Form, Hex64
from sluice.attestation.keys import SigningKey, check_signature
from sluice.attestation.packing import digest

__all__ = ["Signed", "content_digest", "sign"]


class Content(Protocol):
    """What can be signed: a document that names its kind, so that no other kind passes for it."""

    TAG: ClassVar[str]


SomeContent = TypeVar("SomeContent", bound=Content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed(Generic[SomeContent]):
    """A content and a signature over it; that it could be read does not mean that it holds."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    content: SomeContent
    signature: Hex64

    def verify(self, key: str, *, step: str) -> None:
        """Raise a `VerificationError` of the given step unless the key signed this content."""
        raw = _form(type(self.content)).write(self.content)
        check_signature(key, self.signature, self.content.TAG, raw, step=step)


def sign(content: SomeContent, key: SigningKey) -> Signed[SomeContent]:
    """Sign a content, after making sure that others will be able to read it."""
    form = _form(type(content))
    raw = form.write(content)
    form.read(raw, largest=len(raw))
    return Signed(content=content, signature=key.sign(content.TAG, raw))


def content_digest(content: Content) -> str:
    """Return the hash that names a content in other documents."""
    return digest(content.TAG, _form(type(content)).write(content)).hex()


@cache
def _form(kind: type[Content]) -> Form[Any]:
    return Form.of(kind, kind.TAG, largest=0)
