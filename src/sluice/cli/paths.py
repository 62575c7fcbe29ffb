"""Path parameters: a path that a command cannot use is refused before the command starts.

Every option and argument that is a path has one of these types, so that a misspelt name, a missing
folder or a folder without permission costs one sentence and exit code 2, and no work.
"""

import errno
import os
import stat
from enum import StrEnum
from pathlib import Path
from typing import Any, final

import click
from typer.models import TyperPath

from sluice.errors import SettingError

__all__ = [
    "InputPath",
    "OutputPath",
    "PathKind",
    "PolicyPath",
    "WatchedPath",
    "coordinators_folder",
    "reads_file",
    "reads_folder",
    "reads_record",
    "writes_file",
    "writes_folder",
]


class PathKind(StrEnum):
    """What a path parameter names."""

    FILE = "a file"
    FOLDER = "a folder"
    EITHER = "a file or folder"


@final
class InputPath(TyperPath):
    """A file or folder that the command reads: it exists, is of this kind and can be read.

    A device or a pipe counts as a file. `noun` says in errors what the command expects; `holding`
    is a file by which such a folder is known.
    """

    def __init__(self, kind: PathKind, noun: str, *, holding: str | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.noun = noun
        self.holding = holding

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path, or refuse it."""
        text = os.fspath(value)
        try:
            mode = os.stat(text).st_mode  # noqa: PTH116 - `Path` would read '' as '.'
        except OSError as error:
            gone = error.errno in (errno.ENOENT, errno.ENOTDIR)
            found = "does not exist" if gone else "cannot be opened"
            raise self._refusal(text, error.errno, found, "check the path", param) from None
        folder = stat.S_ISDIR(mode)
        if folder and self.kind is PathKind.FILE:
            raise self._refusal(text, errno.EISDIR, "is a folder", "name the file", param)
        if not folder and self.kind is PathKind.FOLDER:
            raise self._refusal(text, errno.ENOTDIR, "is a file", "name the folder", param)
        if not _permitted(text, os.R_OK | (os.X_OK if folder else 0)):
            remedy = "ask its owner for permission"
            raise self._refusal(text, errno.EACCES, "is closed to you", remedy, param)
        if self.holding and not Path(text, self.holding).exists():
            found = f"has no {self.holding}"
            raise self._refusal(text, errno.ENOENT, found, "name another folder", param)
        return super().convert(value, param, ctx)

    def _refusal(
        self, path: str, code: int | None, found: str, remedy: str, param: click.Parameter | None
    ) -> SettingError:
        return SettingError(
            f"{_named(param)}{path or repr(path)} cannot be read: {os.strerror(code or 0)}; it "
            f"{found}, so it is not {self.noun}; {remedy}"
        )


@final
class OutputPath(TyperPath):
    """A file or folder that the command writes: its folder exists and can be written to.

    What is there already is replaced or continued as the command says, but a folder never by a
    file, nor a file by a folder.
    """

    def __init__(self, kind: PathKind) -> None:
        super().__init__()
        self.kind = kind

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path, or refuse it."""
        text = os.fspath(value)
        path, folder = Path(text), Path(text).parent
        if not text:
            raise self._refusal(text, errno.ENOENT, "the name is empty; give one", param)
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            mode = None
        except OSError as error:
            why = f"expected {self.kind.value} in a folder; choose another path"
            raise self._refusal(text, error.errno, why, param) from None
        if mode is not None and self.kind is PathKind.FOLDER:
            if not stat.S_ISDIR(mode):
                why = "expected a folder, got a file; choose another folder"
                raise self._refusal(text, errno.ENOTDIR, why, param)
            folder = path
        elif mode is not None and not stat.S_ISREG(mode):
            got = "a folder; name a file in it" if stat.S_ISDIR(mode) else "a device; name a file"
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENODEV
            raise self._refusal(text, code, f"expected a file, got {got}", param)
        if not folder.is_dir():
            why = f"there is no folder {folder}; make it first, or correct the path"
            raise self._refusal(text, errno.ENOENT, why, param)
        if not _permitted(folder, os.W_OK | os.X_OK):
            why = f"you may not write to the folder {folder}; choose another folder"
            raise self._refusal(text, errno.EACCES, why, param)
        return super().convert(value, param, ctx)

    def _refusal(
        self, path: str, code: int | None, why: str, param: click.Parameter | None
    ) -> SettingError:
        verb = "make the folder" if self.kind is PathKind.FOLDER else "write"
        return SettingError(
            f"{_named(param)}cannot {verb} {path or repr(path)}: {why} ({os.strerror(code or 0)})"
        )


@final
class PolicyPath(click.types.StringParamType):
    """The name of a built-in policy, or a policy file that can be read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name or the path as it was given, or refuse it."""
        from sluice.admission import BUILT_IN

        text = str(value)
        if text not in BUILT_IN and (os.path.isdir(text) or not _permitted(text, os.R_OK)):  # noqa: PTH112
            raise SettingError(
                f"{_named(param)}{text!r} is neither one of {', '.join(BUILT_IN)} nor a readable "
                "file; check the path, or write a policy with 'sluice rules policy'"
            )
        return super().convert(text, param, ctx)


@final
class WatchedPath(click.types.StringParamType):
    """What is watched: a file or folder that can be read, - for stdin, or an address."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as it was given, or refuse a path that cannot be read."""
        text = os.fspath(value)
        if text != "-" and "://" not in text:
            reads_record("a file or folder of rows").convert(text, param, ctx)
        return super().convert(text, param, ctx)


def _permitted(path: str | Path, mode: int) -> bool:
    """Whether this process may use a path, as the user that it acts as."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _named(param: click.Parameter | None) -> str:
    """Return how a parameter is typed, for the start of a sentence."""
    if param is None:
        return ""
    if isinstance(param, click.Option):
        return f"{max(param.opts, key=len)} "
    return f"{param.metavar or (param.name or '').upper()} "


def reads_file(noun: str = PathKind.FILE.value) -> InputPath:
    """Return the type of a file that a command reads."""
    return InputPath(PathKind.FILE, noun)


def reads_folder(noun: str = PathKind.FOLDER.value, *, holding: str | None = None) -> InputPath:
    """Return the type of a folder that a command reads, or in which it works."""
    return InputPath(PathKind.FOLDER, noun, holding=holding)


def coordinators_folder() -> InputPath:
    """Return the type of the folder that 'sluice coordinator init' has made."""
    return reads_folder("a coordinator's folder", holding="terms.json")


def reads_record(noun: str = "a record's file or folder") -> InputPath:
    """Return the type of a record: a file or a folder."""
    return InputPath(PathKind.EITHER, noun)


def writes_file() -> OutputPath:
    """Return the type of a file that a command writes."""
    return OutputPath(PathKind.FILE)


def writes_folder() -> OutputPath:
    """Return the type of a folder that a command makes and fills."""
    return OutputPath(PathKind.FOLDER)
