"""Every imported package is declared, and by the wing that imports it."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sluice"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED_AS = {
    "scikit-learn": "sklearn",
    "lazy-loader": "lazy_loader",
    "tomli-w": "tomli_w",
    "paho-mqtt": "paho",
}
OWN = {"sluice", "benchmarks", "tools", "tests"}


def declared(requirements: list[str]) -> set[str]:
    names = {re.split(r"[<>=\[ ;]", requirement)[0] for requirement in requirements}
    return {IMPORTED_AS.get(name, name) for name in names}


BASE = declared(PROJECT["dependencies"])
EXTRAS = {name: declared(found) for name, found in PROJECT["optional-dependencies"].items()}
MAY_USE = {  # beyond the base package; the longest prefix counts
    "network": ("network",),
    "cli/dashboard.py": ("network",),
    "reports/dashboard": ("network",),
    "reports/verdict_page.py": ("lab",),
    "detector/export.py": ("export",),
    "watch/broker.py": ("mqtt",),
    "watch/sinks/mqtt.py": ("mqtt",),
    "watch/sources/opcua.py": ("opcua",),
    "lab": ("lab",),
    "lab/results/workers/on_ray.py": ("lab", "ray"),
}


def outside(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - OWN


def allowed(path: Path) -> set[str]:
    name = str(path.relative_to(SOURCE))
    prefixes = [prefix for prefix in MAY_USE if name.startswith(prefix)]
    extras = MAY_USE[max(prefixes, key=len)] if prefixes else ()
    return BASE.union(*(EXTRAS[extra] for extra in extras))


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE))
)
def test_a_module_imports_what_its_wing_declares(path: Path) -> None:
    assert outside(path) <= allowed(path)


def test_every_declared_package_of_the_runtime_is_imported() -> None:
    used = set().union(*(outside(path) for path in SOURCE.rglob("*.py")))
    assert BASE - used == set()


def test_what_is_outside_the_wheel_is_declared_for_development() -> None:
    known = BASE.union(*EXTRAS.values())
    for folder in ("benchmarks", "tools", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            assert outside(path) <= known | {"yaml"}, path


@pytest.mark.parametrize("lock", ["runtime", "network", "watch", "lab", "dev", "release", "broker"])
def test_locks_have_hashes_and_no_index_addresses(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"^([\w.\[\]-]+)==", text, flags=re.MULTILINE)
    assert len(pinned) > 15
    assert text.count("--hash=sha256:") >= len(pinned)
    assert "://" not in text


def test_the_runtime_lock_has_none_of_the_labs_packages() -> None:
    text = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    names = set(re.findall(r"^([\w.-]+)==", text, flags=re.MULTILINE))
    assert "polars" in names
    assert not names & {"numba", "wntr", "piqp", "matplotlib", "xlsxwriter", "flwr", "onnx", "ray"}
