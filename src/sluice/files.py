"""Files: whole and durable writes, private files and folders, and reads within limits.

Every file that Sluice reads may come from another party. A reader therefore states how large the
file may be, and JSON and TOML text is checked for its nesting before it is parsed.
"""

import errno
import fcntl
import json
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sluice.errors import InputError, SettingError, SluiceError

__all__ = [
    "alone_in",
    "atomically",
    "demand_room",
    "parse_json",
    "parse_toml",
    "private_file",
    "private_folder",
    "public_file",
    "public_folder",
    "read_at_most",
    "read_bounded",
    "read_text",
    "sync_folder",
]

# -- writing ----------------------------------------------------------------------------------


@contextmanager
def atomically(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a draft file in the target's folder; it replaces the target only on success.

    The draft is on disk before the rename, and the folder is on disk after it: a crash leaves the
    old file or the new one. A private file has mode 0600 from its first byte on, whatever the umask
    is. Other users may read any other file as far as the umask allows it.
    """
    try:
        draft, mode = _draft(path, private=private)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        yield draft
        with draft.open("rb") as written:
            os.fchmod(written.fileno(), mode)  # again: the writer may have replaced the draft
            os.fsync(written.fileno())
        os.replace(draft, path)  # noqa: PTH105 - the tests record the calls to `os`
        sync_folder(path.parent)
    except SluiceError:
        raise
    except Exception as error:
        if not isinstance(error, OSError) and _RUST_ERROR.search(str(error)) is None:
            raise
        raise _unwritable(path, error) from None
    finally:
        draft.unlink(missing_ok=True)


_RUST_ERROR = re.compile(r"\(os error (\d+)\)")
"""How a library in Rust, such as the writer of Parquet files, says that the system failed it."""


def _unwritable(path: Path, error: Exception) -> SettingError:
    """Return the refusal of a file that the system, or a library in Rust, could not write."""
    code, stated = getattr(error, "errno", None), _RUST_ERROR.search(str(error))
    if code is None and stated is not None:
        code = int(stated[1])
    full = code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    remedy = "; free some space, or choose a folder on another disk" if full else ""
    return SettingError(f"cannot write {path}: {os.strerror(code) if code else error}{remedy}")


def _draft(path: Path, *, private: bool) -> tuple[Path, int]:
    """Create an empty draft that only its owner can use; return it with its final mode.

    The umask of a process cannot be read without setting it, which other threads would notice. So
    the mode that the system gives to a new file shows what the umask allows.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
    handle = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if private else 0o666
    )
    try:
        allowed = 0o600 if private else stat.S_IMODE(os.fstat(handle).st_mode)
        os.fchmod(handle, 0o600)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    return draft, allowed | 0o600


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on disk: new files, renames and removals."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot do it
            raise
    finally:
        os.close(handle)


def public_folder(path: Path) -> Path:
    """Create a folder and its parents as the umask says; the owner can always use them."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            mode = stat.S_IMODE(folder.stat().st_mode)
            if mode & 0o700 != 0o700:
                folder.chmod(mode | 0o700)
            sync_folder(folder.parent)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        raise SettingError(f"cannot make the folder {path}: {error.strerror}") from None
    return path


def private_folder(path: Path) -> Path:
    """Create a folder for secrets: mode 0700 from the start, whatever the umask is.

    An existing folder is closed to other users. A folder that belongs to another user is refused.
    """
    public_folder(path.parent)
    try:
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
            sync_folder(path.parent)
        found = path.stat()
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        root = os.geteuid() == 0
        if found.st_uid != (path.parent.stat().st_uid if root else os.geteuid()) and not (
            root and found.st_uid == 0
        ):
            raise SettingError(
                f"the folder {path} is for secrets and belongs to another user (number "
                f"{found.st_uid}); remove it or choose another folder"
            )
        if stat.S_IMODE(found.st_mode) != 0o700:
            path.chmod(0o700)
    except OSError as error:
        raise SettingError(f"cannot make the folder {path}: {error.strerror}") from None
    return path


def public_file(path: Path, *, new: bool = False) -> Path:
    """Create an empty file as the umask says, if there is none; its owner can always use it.

    With `new`, an existing file raises a `FileExistsError`.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if new else 0)
    handle = os.open(path, flags, 0o666)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & 0o600 != 0o600:
            os.fchmod(handle, mode | 0o600)
    finally:
        os.close(handle)
    return path


def private_file(path: Path) -> Path:
    """Create an empty file with mode 0600 if there is none; close an existing one to others.

    An existing file is not opened: closing it again would end the locks that this process holds on
    it through SQLite.
    """
    try:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(path, flags, 0o600))
        except FileExistsError:
            if path.is_dir():
                raise
        path.chmod(0o600)
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def demand_room(target: Path, room: int = 16 << 20) -> None:
    """Raise if there is no room for `room` bytes at a file or folder that long work will write.

    The bytes are written and removed again: the free space that the system states ignores quotas,
    limits on the size of files and network disks.
    """
    folder = target if target.is_dir() else target.parent
    path = folder / f".{secrets.token_hex(8)}.room"
    try:
        try:
            with path.open("xb") as probe:
                for _ in range(0, room, len(_ZEROS)):
                    probe.write(_ZEROS)
                probe.flush()
                os.fsync(probe.fileno())
        finally:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise SettingError(
            f"cannot write to the folder {folder}: {error.strerror}; the command needs "
            f"{room >> 20} MB there: free some space, or choose a folder on another disk"
        ) from None


_ZEROS = bytes(1 << 20)
LOCK = "running.lock"


@contextmanager
def alone_in(folder: Path, refusal: str, *, keep: bool = False) -> Iterator[None]:
    """Lock a folder: a second process is refused with a `SettingError` of this text.

    The system releases the lock when the process ends, however it ends. The lock's file is removed
    at the end unless `keep`.
    """
    path = folder / LOCK
    try:
        opened = public_file(path).open("ab")
    except OSError as error:
        raise _unwritable(path, error) from None
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            same = os.path.samestat(os.fstat(lock.fileno()), path.stat())
        except OSError:
            same = False
        if not same:  # held by another process, or removed by one that has just ended
            raise SettingError(refusal)
        try:
            yield
        finally:
            if not keep:
                path.unlink(missing_ok=True)


# -- reading ----------------------------------------------------------------------------------


def read_at_most(path: Path, count: int) -> bytes:
    """Read the first `count` bytes of a file, or all if it has fewer; may raise an `OSError`."""
    with path.open("rb") as opened:
        return opened.read(count)


def read_bounded(
    path: Path,
    what: str,
    *,
    largest: int,
    private: bool = False,
    error: type[InputError] = SettingError,
) -> bytes:
    """Read a file of at most `largest` bytes; a longer one is refused without reading the rest.

    `what` names the kind of file in errors. Only the owner may have access to a `private` file.
    """
    try:
        with path.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if private and mode & 0o077:
                raise error(
                    f"{what} {path} can be read by others (mode {mode & 0o777:04o}); run "
                    f"'chmod 600 {path}', and replace it if they may have read it"
                )
            raw = opened.read(largest + 1)
    except OSError as failed:
        raise error(f"{what} {path} cannot be read: {failed.strerror}") from None
    if len(raw) > largest:
        raise error(
            f"{what} {path} is too large: expected at most {largest:,} bytes, got more; check that "
            "it is the right file"
        )
    return raw


def read_text(
    path: Path, what: str, *, largest: int, error: type[InputError] = SettingError
) -> str:
    """Read a UTF-8 file of at most `largest` bytes; line ends become line feeds."""
    raw = read_bounded(path, what, largest=largest, error=error)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as failed:
        raise error(f"{what} {path} is not UTF-8 text: {failed}; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


MOST_LEVELS = 64
"""Objects and arrays inside each other in JSON; no document of Sluice has more than ten."""
MOST_CONTAINERS = 250_000
MOST_TOML_LEVELS = 16
"""Tables and arrays inside each other in TOML, and parts of a dotted key."""
MOST_BITS = 64

# A string without its closing quote ends with the text, so that every character is read once.
_JSON = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_TOML = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{0,5}+'
    r"|'''(?:[^']|'(?!''))*+'{0,5}+"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+"
    r"|[\[{]|[\]}]|\.|[,=\n]",
    re.DOTALL,
)


def parse_json(text: str, name: str, *, error: type[InputError] = SettingError) -> Any:
    """Parse JSON after a check of its nesting; errors refer to it by `name`."""
    depth = containers = 0
    for token in _JSON.finditer(text):
        match text[token.start()]:
            case "[" | "{":
                depth, containers = depth + 1, containers + 1
            case "]" | "}":
                depth = max(depth - 1, 0)
        if depth > MOST_LEVELS:
            raise _too_deep(name, MOST_LEVELS, "objects and arrays", token.start(), error)
        if containers > MOST_CONTAINERS:
            raise error(
                f"{name} holds too many objects and arrays: expected at most {MOST_CONTAINERS:,}, "
                "got more; check that it is the right file"
            )
    try:
        return json.loads(text)
    except ValueError as failed:
        raise error(f"{name} is not JSON: {failed}") from None


def parse_toml(text: str, name: str, *, error: type[InputError] = SettingError) -> dict[str, Any]:
    """Parse TOML after a check of its nesting and dotted keys; errors refer to it by `name`."""
    depth = parts = 0
    for token in _TOML.finditer(text):
        match text[token.start()]:
            case "[" | "{":
                depth, parts = depth + 1, 0
            case "]" | "}":
                depth, parts = max(depth - 1, 0), 0
            case "," | "=" | "\n":
                parts = 0
            case ".":
                parts += 1
        if depth > MOST_TOML_LEVELS:
            raise _too_deep(name, MOST_TOML_LEVELS, "tables and arrays", token.start(), error)
        if parts > MOST_TOML_LEVELS:
            raise _too_deep(name, MOST_TOML_LEVELS, "parts of a key", token.start(), error)
    try:
        document = tomllib.loads(text)
    except ValueError as failed:  # also for a number with thousands of digits
        raise error(f"{name} is not TOML: {failed}") from None
    _demand_short_numbers(document, name, error)
    return document


def _too_deep(name: str, most: int, what: str, at: int, error: type[InputError]) -> InputError:
    return error(
        f"{name} is nested too deeply: expected at most {most} levels of {what}, got more at "
        f"character {at:,}; check that it is the right file"
    )


def _demand_short_numbers(document: dict[str, Any], name: str, error: type[InputError]) -> None:
    """Refuse whole numbers beyond 64 bits: they turn neither into floats nor into messages."""
    waiting: list[Any] = [document]
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting.extend(table.values())
            case list() as items:
                waiting.extend(items)
            case int() as number if number.bit_length() > MOST_BITS:
                raise error(
                    f"{name} holds a whole number of {number.bit_length():,} bits; expected at "
                    f"most {MOST_BITS}; correct it"
                )
