"""Boundaries that import contracts cannot draw."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sluice"
DEFENCES = ("network", "federation", "aggregation", "attestation", "admission")


def modules() -> list[Path]:
    found = sorted(SOURCE.rglob("*.py"))
    assert len(found) > 20
    return found


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_attestation_reaches_the_rust_core(path: Path) -> None:
    reaches = any(name.startswith("sluice._attest") for name in imported(path))
    assert not reaches or path.relative_to(SOURCE).parts[0] == "attestation"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_defences_do_not_know_who_lies(path: Path) -> None:
    if path.relative_to(SOURCE).parts[0] in DEFENCES:
        text = path.read_text(encoding="utf-8").lower()
        assert "malicious" not in text
        assert "honest" not in text


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_detector_and_the_trainer_import_jax(path: Path) -> None:
    uses = any(name.split(".")[0] == "jax" for name in imported(path))
    assert not uses or path.relative_to(SOURCE).parts[0] in ("detector", "federation")


def test_every_package_says_in_one_sentence_what_it_is_for() -> None:
    for path in SOURCE.rglob("__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, path
        assert docstring.splitlines()[0].endswith("."), path
