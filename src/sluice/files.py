"""Atomic file writes."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.errors import SettingError

__all__ = ["atomically"]


@contextmanager
def atomically(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a draft file in the target's folder; it replaces the target only on success.

    A private file has mode 0600 (owner only) from its first byte on.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".draft")
    except OSError as error:
        raise SettingError(f"cannot write {path}: {error.strerror}") from None
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        if not private:
            draft.chmod(0o666 & ~_umask())
        draft.replace(path)
    except OSError as error:
        raise SettingError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    # The umask can only be read by setting it. It applies here because mkstemp always uses 0600.
    current = os.umask(0)
    os.umask(current)
    return current
