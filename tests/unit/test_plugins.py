"""Plug-ins: an installed package adds members, and a bad one is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import SettingError
from sluice.plugins import Registry, load_all, load_one

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plug-in"


def installed(folder: Path, name: str, points: str, code: str = "") -> None:
    """Write a package with entry points as an installer would leave it."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_registry_lists_built_in_members_first(folder: Path) -> None:
    installed(folder, "more_things", "[test.things]\nmore = more_things:THING\n", "THING = 3")
    registry: Registry[int] = Registry({"one": 1}, group="test.things", adapt=lambda n: n + 1)
    assert dict(registry) == {"one": 1, "more": 4}
    assert len(registry) == 2
    assert registry.built_in == {"one": 1}
    with pytest.raises(KeyError):
        registry["other"]


def test_a_class_is_registered_as_its_instance(folder: Path) -> None:
    installed(folder, "classy", "[test.classes]\nbox = classy:Box\n", "class Box:\n    size = 7\n")
    registry: Registry[object] = Registry({}, group="test.classes")
    assert getattr(registry["box"], "size", None) == 7
    assert not isinstance(registry["box"], type)


def test_a_built_in_name_cannot_be_replaced(folder: Path) -> None:
    installed(folder, "thief", "[test.stolen]\none = thief:THING\n", "THING = 3")
    registry: Registry[int] = Registry({"one": 1}, group="test.stolen")
    assert registry["one"] == 1
    with pytest.raises(SettingError, match=r"registers 'one' under 'test.stolen'.*built-in name"):
        list(registry)


def test_two_packages_with_one_name_are_refused(folder: Path) -> None:
    for name in ("first", "second"):
        installed(folder, name, f"[test.twice]\nsame = {name}:THING\n", "THING = 3")
    with pytest.raises(SettingError, match="two installed packages register 'same'"):
        load_all("test.twice")


def test_a_broken_package_is_named(folder: Path) -> None:
    installed(folder, "broken", "[test.broken]\nit = broken:NOT_THERE\n")
    with pytest.raises(SettingError, match=r"broken registers 'it' as broken:NOT_THERE.*reinstall"):
        load_all("test.broken")


def test_what_is_not_installed_says_what_to_install() -> None:
    with pytest.raises(SettingError, match=r"pip install 'sluice-fl\[lab\]'"):
        load_one("test.nothing", "gain")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install the how-to's example; return the environment in which Sluice finds it."""
    target = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "plug-in"
    subprocess.run(["cp", "-r", str(EXAMPLE), str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", str(target), str(source)],
        check=True,
    )
    path = os.pathsep.join([str(target), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def run(example: dict[str, str], folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=example,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_how_to_shows_the_example() -> None:
    page = (ROOT / "docs" / "how-to" / "plug-in.md").read_text(encoding="utf-8")
    code = (EXAMPLE / "sluice_example" / "__init__.py").read_text(encoding="utf-8")
    body = code.split('"""', 2)[2].strip()
    assert body in page
    assert len(body.splitlines()) <= 24
    points = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8").split("\n\n", 2)[2]
    assert points.strip() in page


def test_the_command_line_runs_the_examples_attack(example: dict[str, str], tmp_path: Path) -> None:
    run(example, tmp_path, "sluice", "data", "make", "line", "--days", "2", "--out", "plant.csv")
    arguments = ("attack", "sensor-offset", "plant.csv", "--out", "offset.csv", "--json")
    assert '"rows_changed": 2880' in run(example, tmp_path, "sluice", *arguments)


def test_the_command_line_federates_by_the_examples_rule(
    example: dict[str, str], tmp_path: Path
) -> None:
    arguments = ("--plant", "line", "--days", "8", "--clients", "3", "--malicious", "1")
    more = ("--rounds", "1", "--epochs", "1", "--rule", "plain-mean", "--out", "run", "--json")
    found = run(example, tmp_path, "sluice", "federate", *arguments, *more)
    assert '"rule": "plain-mean"' in found


def test_a_grid_takes_the_examples_attack_and_rule(example: dict[str, str], tmp_path: Path) -> None:
    probe = (
        "from sluice.aggregation import RULES; from sluice.lab import DATA_ATTACKS, POISONS; "
        "from sluice.lab.grids.planning import ATTACKS; "
        "print('plain-mean' in RULES, 'sensor-offset' in DATA_ATTACKS, 'sensor-offset' in POISONS, "
        "'sensor-offset' in ATTACKS)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], env=example, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True"] * 4


def test_the_contract_suites_see_the_example(example: dict[str, str]) -> None:
    suites = ("tests/contract/test_aggregation.py", "tests/contract/test_attacks.py")
    names = ("-k", "plain-mean or sensor-offset")
    found = run(example, ROOT, "pytest", "-q", "-p", "no:cacheprovider", *suites, *names)
    assert "passed" in found
    assert "failed" not in found


def test_an_installed_detector_trains_saves_and_loads(folder: Path) -> None:
    code = (
        "from sluice.detector import Moments, Subspace, fit_subspace\n"
        "class Renamed(Subspace):\n    kind = 'renamed'\n"
        "class Kind:\n    model = Renamed\n"
        "    def summarise(self, windows):\n        return Moments.of(windows)\n"
        "    def fit(self, total, clean):\n        found = fit_subspace(total, clean)\n"
        "        return Renamed.from_tensors(found.tensors())\n"
    )
    installed(folder, "other_detector", "[sluice.detectors]\nrenamed = other_detector:Kind\n", code)
    script = (
        "import sluice; from pathlib import Path; from sluice.lab import simulate\n"
        "record = simulate('line', seed=0, days=6)\n"
        "detector = sluice.train(record, kind='renamed')\n"
        f"path = Path({str(folder)!r}) / 'model.safetensors'\n"
        "sluice.save_detector(detector, path)\n"
        "again = sluice.load_detector(path)\n"
        "assert again.model.kind == 'renamed'\n"
        "assert (again.score(record).scores == detector.score(record).scores).all()\n"
    )
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path}, check=True
    )


def test_an_installed_command_cannot_shadow_another(folder: Path) -> None:
    code = (
        "from sluice.cli import Command\n"
        "MORE = (Command(path='check', target='thief_commands:check', help='Judge.'),)\n"
        "def check():\n    print('admitted')\n"
    )
    points = "[sluice.commands]\nthief = thief_commands:MORE\n"
    installed(folder, "thief_commands", points, code)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "sluice", "check"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "registers the command 'sluice check'" in done.stderr
    assert "admitted" not in done.stdout


def test_an_installed_format_reads_its_files(folder: Path) -> None:
    code = (
        "from dataclasses import replace\n"
        "from sluice.telemetry import PlantFile\n"
        "from sluice.telemetry.formats import plain\n"
        "OWN = replace(plain(PlantFile()), name='own', title='files of our own',\n"
        "    recognises=lambda source: source.path.name.startswith('own'))\n"
    )
    installed(folder, "own_format", "[sluice.formats]\nown = own_format:OWN\n", code)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "sluice", "data", "list", "--json"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"own"' in done.stdout
