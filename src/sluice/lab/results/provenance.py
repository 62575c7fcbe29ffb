"""The provenance of a result: version, commit, code hash and installed packages."""

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
    """Two results are comparable to the last digit if code and environment are equal."""

    version: str
    commit: str  # of the working copy, if there is one
    code: str  # hash of the package's own files, uncommitted changes included
    environment: str  # hash of the names and versions of all installed packages


def provenance() -> Provenance:
    """Return the provenance of the running package."""
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
    process = subprocess.run(  # noqa: S603 - no user input in the command
        [git, "-C", str(package), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return process.stdout.strip() if process.returncode == 0 else UNKNOWN


def _code(package: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted((*package.rglob("*.py"), *package.rglob("*.so"))):
        digest.update(str(path.relative_to(package)).encode() + b"\0")
        digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()


def _environment() -> str:
    packages = sorted({f"{package.name}=={package.version}" for package in distributions()})
    return hashlib.blake2b("\n".join(packages).encode(), digest_size=16).hexdigest()
