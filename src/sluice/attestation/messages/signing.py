"""Signed documents: a content, and one signature over its kind and canonical bytes."""

import os
import secrets
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import ConfigDict

from sluice.attestation.messages.documents import STRICT, Form, Hex64
from sluice.attestation.packing import digest, packed
from sluice.errors import SettingError, VerificationError
from sluice.files import atomically, read_bounded, sync_folder

__all__ = ["Signed", "SigningKey", "check_signature", "content_digest", "read_private", "sign"]

SIGNATURE_DOMAIN = b"sluice signature v1"
LARGEST_PRIVATE = 1 << 16


@final
class SigningKey:
    """A private key. It signs messages of a named kind; its repr shows the public key only."""

    __slots__ = ("_key",)

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> "SigningKey":
        """Draw a fresh key from the operating system."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path) -> "SigningKey":
        """Read a private key; a file that other users can read is refused."""
        try:
            key = load_pem_private_key(read_private(path, "private key"), password=None)
        except (ValueError, TypeError):
            raise SettingError(f"{path} is not an unencrypted PEM private key") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SettingError(f"{path} is a {type(key).__name__}; Sluice signs with Ed25519")
        return cls(key)

    def save(self, path: Path) -> None:
        """Write the key with mode 0600; an existing file is never replaced.

        If two processes save a key at one path, one of them raises.
        """
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
        try:
            with atomically(draft, private=True) as written:
                written.write_bytes(pem)
            os.link(draft, path)  # fails if the path exists, unlike a rename
            sync_folder(path.parent)  # a log may name the key right after
        except FileExistsError:
            raise SettingError(
                f"{path} exists; a private key is never overwritten, choose another path"
            ) from None
        except OSError as error:
            raise SettingError(f"cannot write {path}: {error.strerror}") from None
        finally:
            draft.unlink(missing_ok=True)

    @property
    def public(self) -> str:
        """The public key, as 64 hex digits; it identifies the signer."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, tag: str, message: bytes) -> str:
        """Sign a message of the kind `tag`; as 128 hex digits."""
        return self._key.sign(_signed_bytes(tag, message)).hex()

    def __repr__(self) -> str:
        return f"SigningKey(public={self.public})"


def check_signature(key: str, signature: str, tag: str, message: bytes, *, step: str) -> None:
    """Raise a `VerificationError` of the given step unless the key signed this message."""
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), _signed_bytes(tag, message))
    except (InvalidSignature, ValueError):
        raise VerificationError(
            step, f"the signature of the {tag} was not made with key {key[:12]}..."
        ) from None


def read_private(path: Path, what: str) -> bytes:
    """Read a file that only its owner may read."""
    return read_bounded(path, what, largest=LARGEST_PRIVATE, private=True)


def _signed_bytes(tag: str, message: bytes) -> bytes:
    return packed(SIGNATURE_DOMAIN, tag.encode(), message)


class Content(Protocol):
    """A document that can be signed. It names its kind, so it cannot pass for another kind."""

    TAG: ClassVar[str]


SomeContent = TypeVar("SomeContent", bound=Content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed(Generic[SomeContent]):
    """A content and a signature over it. Reading it does not verify the signature."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    content: SomeContent
    signature: Hex64

    def verify(self, key: str, *, step: str) -> None:
        """Raise a `VerificationError` of the given step unless the key signed this content."""
        raw = _form(type(self.content)).write(self.content)
        check_signature(key, self.signature, self.content.TAG, raw, step=step)


def sign(content: SomeContent, key: SigningKey) -> Signed[SomeContent]:
    """Sign a content after checking that it can be read back."""
    form = _form(type(content))
    raw = form.write(content)
    form.read(raw, largest=len(raw))
    return Signed(content=content, signature=key.sign(content.TAG, raw))


def content_digest(content: Content) -> str:
    """Return the hash by which other documents refer to a content."""
    return digest(content.TAG, _form(type(content)).write(content)).hex()


@cache
def _form(kind: type[Content]) -> Form[Any]:
    return Form.of(kind, kind.TAG, largest=0)
