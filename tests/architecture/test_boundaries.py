"""Boundaries that import contracts cannot draw."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sluice"
MOST_MODULES = 22  # in one folder; see CONTRIBUTING.md


def modules(folder: Path = SOURCE) -> list[Path]:
    found = sorted(folder.rglob("*.py"))
    assert len(found) > 20
    return found


def name_of(path: Path) -> str:
    relative = path.relative_to(ROOT / "src" if path.is_relative_to(SOURCE) else ROOT)
    return ".".join(relative.with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_only_attestation_reaches_the_rust_core(path: Path) -> None:
    reaches = any(name.startswith("sluice._attest") for name in imported(path))
    assert not reaches or name_of(path).startswith("sluice.attestation")


def test_the_second_verifier_never_reaches_the_rust_core() -> None:
    """Nor the modules that do: what it shares with the first one is listed here."""
    package = "sluice.attestation.systems.full.reference"
    shared = (
        "sluice.admission.",
        "sluice.attestation.packing.",
        "sluice.attestation.systems.full.bound.settings_of",
        "sluice.attestation.systems.full.statement.derive",
        "sluice.attestation.systems.system.",
        "sluice.errors.",
        "sluice.invariants.",
        package,
    )
    paths = [path for path in modules() if name_of(path).startswith(package)]
    assert len(paths) > 15
    for path in paths:
        ours = {name for name in imported(path) if name.startswith("sluice")}
        assert all(name.startswith(shared) for name in ours), (path, ours)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_only_training_and_attacks_on_it_import_jax(path: Path) -> None:
    uses = any(name.split(".")[0] == "jax" for name in imported(path))
    allowed = (
        "sluice.detector",
        "sluice.federation",
        "sluice.lab.attacks.hypergradient",
        "sluice.lab.attacks.score_gradient",
    )
    assert not uses or name_of(path).startswith(allowed)


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_only_simulated_plants_import_numba_and_wntr(path: Path) -> None:
    uses = any(name.split(".")[0] in ("numba", "wntr") for name in imported(path))
    assert not uses or name_of(path).startswith("sluice.lab.plants")


@pytest.mark.parametrize("path", [*modules(), *modules(ROOT / "benchmarks")], ids=name_of)
def test_no_import_passes_a_packages_front_door(path: Path) -> None:
    """A module is imported by its own package; everybody else imports from the package."""
    inside = {name_of(other) for other in modules() if other.name != "__init__.py"}
    importer = name_of(path)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in inside:
            package = node.module.rpartition(".")[0]
            assert package == "sluice" or importer.startswith(f"{package}."), (
                f"{importer} imports from {node.module}; import from {package} instead"
            )


def test_every_package_says_in_one_sentence_what_it_is_for() -> None:
    for path in SOURCE.rglob("__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, path
        assert docstring.splitlines()[0].endswith("."), path


def test_no_folder_holds_more_modules_than_a_reader_can_scan() -> None:
    counts = Counter(path.parent for path in modules() if path.name != "__init__.py")
    crowded = {str(folder.relative_to(ROOT)): n for folder, n in counts.items() if n > MOST_MODULES}
    assert not crowded


def test_no_class_name_stands_for_two_things() -> None:
    homes = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name_of(path))
    assert not {name: found for name, found in homes.items() if len(found) > 1}
