"""What all tests share: the plant records, a private cache, and the list of skips allowed in CI."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False, max_examples=1_000)
settings.load_profile(os.environ.get("SLUICE_PROPERTIES", "repeatable"))

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("SLUICE_DATA", ROOT.parent / "shared" / "data"))
ALLOWED_SKIPS = ROOT / "tests" / "allowed_skips.txt"

PlantData = Callable[..., Path]

skipped: list[str] = []


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests out of the user's cache."""
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def plant_data() -> PlantData:
    """Find a plant record, or skip the test where the records are not."""

    def find(*parts: str) -> Path:
        path = DATA.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"no plant record {'/'.join(parts)} under SLUICE_DATA ({DATA})")
        return path

    return find


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        skipped.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a test that silently does not run is a failure unless the committed list names it."""
    if not os.environ.get("CI"):
        return
    lines = ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines()
    allowed = {line for line in lines if line and not line.startswith("#")}
    unexpected = sorted(set(skipped) - allowed)
    if unexpected:
        print(f"\nskipped but not in {ALLOWED_SKIPS.name}: {', '.join(unexpected)}")  # noqa: T201
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
