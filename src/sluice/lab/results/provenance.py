"""What made a result: version, commit, code and what was installed around it."""

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from sluice import __version__

__all__ = ["Provenance", "provenance"]

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Two results are comparable to the last digit where code and environment agree."""

    version: str
    commit: str  # of the working copy, where it is one
    code: str  # hash of the package's own files, uncommitted changes included
    environment: str  # hash of the names and versions of all that is installed


def provenance() -> Provenance:
    """Look at the package that is running."""
    package = Path(__file__).parents[2]
    return Provenance(
        version=__version__,
        commit=_commit(package),
        code=_code(package),
        environment=_environment(),
    )


def _commit(package: Path) -> str:
    git = shutil.which("git")
    if git is None:
        return UNKNOWN
    asked = subprocess.run(  # noqa: S603 - nothing of a user's in it
        [git, "-C", str(package), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() if asked.returncode == 0 else UNKNOWN


def _code(package: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted((*package.rglob("*.py"), *package.rglob("*.so"))):
        digest.update(str(path.relative_to(package)).encode() + b"\0")
        digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()


def _environment() -> str:
    found = sorted({f"{known.name}=={known.version}" for known in distributions()})
    return hashlib.blake2b("\n".join(found).encode(), digest_size=16).hexdigest()
