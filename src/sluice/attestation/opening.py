"""The opening: the salt that hides a batch in its commitment. It never leaves the plant."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import ConfigDict

from sluice.attestation.documents import STRICT, Commitment, Form, Hex32
from sluice.attestation.keys import read_private
from sluice.attestation.system import SALT_BYTES
from sluice.files import atomically

__all__ = ["Opening", "beside", "fresh_salt", "load_opening", "save_opening"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The salt of one commitment. Whoever has it can try guesses of the batch against it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    commitment: Commitment
    salt: Hex32 = field(repr=False)


_FORM: Form[Opening] = Form.of(Opening, "opening", largest=1_024)


def fresh_salt() -> bytes:
    """Draw a salt from the operating system."""
    return secrets.token_bytes(SALT_BYTES)


def beside(commit: Path) -> Path:
    """Return where the opening of a commitment lies: commit.json, commit.opening."""
    return commit.with_suffix(".opening")


def save_opening(opening: Opening, path: Path) -> None:
    """Write an opening with mode 0600."""
    with atomically(path, private=True) as draft:
        draft.write_bytes(_FORM.write(opening))


def load_opening(path: Path) -> Opening:
    """Read an opening; one that others can read is refused."""
    return _FORM.read(read_private(path, "opening"))
