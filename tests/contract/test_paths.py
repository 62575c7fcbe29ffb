"""No path, full disk or used port makes a command start its work in vain, or blame Sluice.

The tests try every path parameter of every command. A test fails for a parameter with a plain
`Path`, for an input of a new kind, and for a text parameter that is not classified here, so that a
new command cannot forget the check.
"""

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import pytest

from sluice.cli.app import main
from sluice.cli.paths import InputPath, OutputPath, PathKind, PolicyPath
from sluice.detector.alone import train
from sluice.detector.model import DetectorKind
from sluice.detector.modelfile import save_detector
from sluice.files import LOCK, alone_in
from sluice.invariants.mining.profiles import mine
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator import hosting
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.cli.test_app import EVERY_COMMAND
from tests.unit.conftest import Outcome, run_main

EXAMPLES = {
    # An input of each kind, by what the command calls it; a value without a slash is made by hand.
    "a record's file or folder": "batch.parquet",
    "a rules file": "rules.json",
    "a rules file or an order": "rules.json",
    "a plant file": "plant.toml",
    "a detector's file": "model.safetensors",
    "a key folder": "keys",
    "a commitment": "commit.json",
    "a proof": "proof.json",
    "a challenge": "challenge.json",
    "a coordinator's folder": "water",
    "a helper's card": "helper/card.json",
    "a helper's folder": "helper",
    "an invitation": "north.invitation",
    "a plant's folder": "north",
    "a file of the federation": "north/request.json",
    "a log": "log.jsonl",
    "a signed head or a log": "log.jsonl",
    "an approver's key": "water.approver.key",
    "an approval": "approval.json",
    "a certificate's file": "north.invitation",
    "a recovery": "recovery.json",
    "a consent": "consent.json",
    "a statistic": "statistic.bin",
    "the members' statistics": "statistic.bin",
    "a template": "template.json",
    "a token's file": "token.txt",
    "a results folder": "results",
    "a folder": "records",
    "a list of nodes": "nodes.toml",
}
VALUES = {
    # Required parameters that are no paths.
    ("sluice data make", "plant"): "line",
    ("sluice rules accept", "policy"): "hardened",
    ("sluice coordinator invite", "plant"): "east",
    ("sluice coordinator remove", "plant"): "north",
    ("sluice coordinator remove", "from_"): "1",
    ("sluice coordinator waive", "plant"): "north",
    ("sluice coordinator waive", "start"): "2026-04-01T08:00",
    ("sluice coordinator waive", "end"): "2026-04-02T18:00",
    ("sluice coordinator waive", "reason"): "a tank is painted",
    ("sluice coordinator shadow", "reason"): "first two weeks",
    ("sluice coordinator reinstate", "plant"): "north",
    ("sluice coordinator readmit", "plant"): "north",
    ("sluice plant renew", "rows"): "0:10",
    ("sluice attack", "name"): "scaling",
    ("sluice federate", "plant"): "line",
    ("sluice lab plan", "grid"): "paper",
    ("sluice lab run", "grid"): "paper",
    ("sluice certify", "malicious"): "1",
    ("sluice watch", "source"): "-",
}
NAME_OR_FILE = {
    # Text that may be a file, or the name of something that ships with Sluice.
    ("sluice coordinator init", "approver"),
    ("sluice federate", "plant"),
    ("sluice lab plan", "grid"),
    ("sluice lab run", "grid"),
    ("sluice watch", "source"),  # a path, - for stdin, or an address
}
NO_PATHS = {
    # Text that is never a path, by the name of its parameter.
    "allow_host", "attack", "calibrate", "clean", "client", "decide", "declare", "detector", "end",
    "federation", "fit", "format_", "helper", "host", "memory", "mode", "name", "only", "page",
    "plant", "reason", "reinstate", "rows", "rule", "sign_off", "sink", "start",
}  # fmt: skip

Parameter = tuple[str, click.Parameter]


def walked(*types: type) -> list[Parameter]:
    return [
        (path, parameter)
        for path, command in EVERY_COMMAND.items()
        for parameter in command.params
        if isinstance(parameter.type, types)
    ]


def named(found: Parameter) -> str:
    return f"{found[0].removeprefix('sluice ')} {found[1].opts[0]}".replace(" ", "-")


READ = walked(InputPath)
WRITTEN = walked(OutputPath)
POLICIES = walked(PolicyPath)


# -- nothing is forgotten ---------------------------------------------------------------------


def test_every_path_parameter_refuses_what_cannot_be_used() -> None:
    plain = [
        named((path, parameter))
        for path, parameter in walked(click.Path, click.File)
        if not isinstance(parameter.type, InputPath | OutputPath)
    ]
    assert plain == [], "give them a type of sluice.cli.paths: click_type=reads_file(...)"


def test_every_text_parameter_is_known_to_be_a_path_or_not() -> None:
    unknown = [
        named((path, parameter))
        for path, parameter in walked(click.types.StringParamType)
        if not isinstance(parameter.type, PolicyPath)
        and (path, parameter.name) not in NAME_OR_FILE
        and parameter.name not in NO_PATHS
    ]
    assert unknown == [], "add them to NAME_OR_FILE or NO_PATHS"


def test_every_kind_of_input_has_an_example() -> None:
    kinds = {parameter.type.noun for _, parameter in READ if isinstance(parameter.type, InputPath)}
    assert kinds == set(EXAMPLES)


def test_the_walk_reaches_the_commands_with_paths() -> None:
    assert len(READ) > 90
    assert len(WRITTEN) > 35
    assert len(POLICIES) > 8


# -- a small site -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plant and a coordinator with good files, and a file or folder for every other input."""
    folder = tmp_path_factory.mktemp("site")
    plant = simulate("line", seed=0, days=4)
    save_rules(mine(plant.rows(0, 2_160), plant.rows(2_160, 4_320)), folder / "rules.json")
    write(plant.rows(4_320, 4_920), folder / "batch.parquet", FileLayout.PARQUET)
    detector = train(plant.rows(0, 2_160), kind=DetectorKind.SUBSPACE)
    save_detector(detector, folder / "model.safetensors")
    (folder / "plant.toml").write_text("")
    (folder / "nodes.toml").write_text("[nodes]\n")
    for command in (
        "attest setup --system unsafe --rules {}/rules.json --out {}/keys",
        "attest commit {}/batch.parquet --keys {}/keys --out {}/commit.json",
        "attest prove {}/batch.parquet --keys {}/keys --commit {}/commit.json --out {}/proof.json",
        "coordinator template {}/batch.parquet --out {}/template.json",
        "coordinator init {}/water --reference {}/batch.parquet --system unsafe",
        "coordinator invite {}/water north --out {}/north.invitation",
        "coordinator export-log {}/water --out {}/log.jsonl",
        (
            "plant join {}/north.invitation --record {}/batch.parquet --rules {}/rules.json "
            "--out {}/north --reveal-rows"
        ),
        "rules approve {}/rules.json --key {}/water.approver.key --out {}/approval.json",
    ):
        with pytest.raises(SystemExit) as ended:
            main(command.replace("{}", str(folder)).split())
        assert ended.value.code == 0, command
    for name in (
        "challenge.json",
        "recovery.json",
        "consent.json",
        "statistic.bin",
        "token.txt",
    ):
        (folder / name).write_text("{}")
    for name in ("results", "records", "helper"):
        (folder / name).mkdir()
    (folder / "helper" / "card.json").write_text("{}")
    assert [name for name in EXAMPLES.values() if not (folder / name).exists()] == []
    return folder


@pytest.fixture
def sluice(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return lambda *arguments: run_main(main, capfd, list(arguments))


def arguments(found: Parameter, value: object, site: Path) -> list[object]:
    """Return a command line with this value, and a good one for everything else it requires."""
    path, chosen = found
    words: list[object] = [*path.split()[1:]]
    options: list[object] = []
    for parameter in EVERY_COMMAND[path].params:
        if parameter is chosen:
            given = value
        elif not parameter.required:
            continue
        elif isinstance(parameter.type, InputPath):
            given = site / EXAMPLES[parameter.type.noun]
        elif isinstance(parameter.type, OutputPath):
            given = "made"
        else:
            given = VALUES[path, parameter.name or ""]
        if isinstance(parameter, click.Argument):
            words.append(given)
        else:
            options += [max(parameter.opts, key=len), given]
    return words + options


def files(*folders: Path) -> Iterator[tuple[Path, int]]:
    for folder in folders:
        for path in sorted((folder, *folder.rglob("*"))):
            yield path, path.stat().st_mtime_ns if path.is_file() else 0


def demand_refusal(
    sluice: Callable[..., Outcome], found: Parameter, bad: object, site: Path
) -> None:
    before = list(files(site, Path.cwd()))
    seen = sluice(*arguments(found, bad, site))
    assert (seen.code, seen.out) == (2, ""), seen
    assert "Traceback" not in seen.err
    assert "a bug in Sluice" not in seen.err
    sentence = seen.err.splitlines()[-1]
    assert sentence.startswith("sluice: ")
    assert str(bad) in sentence
    assert list(files(site, Path.cwd())) == before


def demand_a_named_parameter(
    sluice: Callable[..., Outcome], found: Parameter, bad: object, site: Path
) -> None:
    chosen = found[1]
    word = chosen.metavar or str(chosen.name).upper()
    if isinstance(chosen, click.Option):
        word = max(chosen.opts, key=len)
    demand_refusal(sluice, found, bad, site)
    seen = sluice(*arguments(found, bad, site))
    assert seen.err.startswith(f"sluice: {word} ")  # at once: no word about work before it
    assert seen.err.count("\n") == 1


# -- inputs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("found", READ, ids=named)
def test_an_input_that_does_not_exist(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_a_named_parameter(sluice, found, site / "nowhere.json", site)


@pytest.mark.parametrize("found", READ, ids=named)
def test_an_input_in_something_that_is_no_folder(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_refusal(sluice, found, site / "rules.json" / "inner", site)


@pytest.mark.parametrize(
    "found", [one for one in READ if getattr(one[1].type, "kind", None) is PathKind.FILE], ids=named
)
def test_a_folder_in_place_of_a_file(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_refusal(sluice, found, site / "keys", site)


@pytest.mark.parametrize(
    "found",
    [one for one in READ if getattr(one[1].type, "kind", None) is PathKind.FOLDER],
    ids=named,
)
def test_a_file_in_place_of_a_folder(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_refusal(sluice, found, site / "rules.json", site)


@pytest.mark.parametrize("found", READ, ids=named)
def test_an_input_without_a_name(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_refusal(sluice, found, "", site)


# -- outputs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("found", WRITTEN, ids=named)
def test_an_output_in_a_folder_that_does_not_exist(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_a_named_parameter(sluice, found, site / "nowhere" / "made.html", site)


@pytest.mark.parametrize("found", WRITTEN, ids=named)
def test_an_output_in_something_that_is_no_folder(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_refusal(sluice, found, site / "rules.json" / "made.html", site)


@pytest.mark.parametrize("found", WRITTEN, ids=named)
def test_an_output_of_the_other_kind(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    kind = getattr(found[1].type, "kind", None)
    there = site / ("records" if kind is PathKind.FILE else "rules.json")
    demand_refusal(sluice, found, there, site)


@pytest.mark.parametrize("found", WRITTEN, ids=named)
def test_an_output_without_a_name(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_refusal(sluice, found, "", site)


# -- text that may be a file ------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["nowhere.toml", "records", ""])
@pytest.mark.parametrize("found", POLICIES, ids=named)
def test_a_policy_that_is_no_file(
    sluice: Callable[..., Outcome], site: Path, found: Parameter, bad: str
) -> None:
    demand_a_named_parameter(sluice, found, site / bad if bad else bad, site)


@pytest.mark.parametrize(
    "found",
    [one for one in walked(click.types.StringParamType) if (one[0], one[1].name) in NAME_OR_FILE],
    ids=named,
)
def test_a_name_that_is_neither_known_nor_a_file(
    sluice: Callable[..., Outcome], site: Path, found: Parameter
) -> None:
    demand_refusal(sluice, found, site / "nowhere.toml", site)


# -- paths that exist, with nothing in them ---------------------------------------------------

HOLLOW = [
    one
    for one in READ
    if one[1].required and getattr(one[1].type, "kind", None) is not PathKind.EITHER
]


@pytest.mark.parametrize("found", HOLLOW, ids=named)
def test_an_empty_file_or_folder_is_no_bug(
    sluice: Callable[..., Outcome], site: Path, tmp_path: Path, found: Parameter
) -> None:
    hollow = tmp_path / "hollow"
    if getattr(found[1].type, "kind", None) is PathKind.FOLDER:
        hollow.mkdir()
    else:
        hollow.touch(mode=0o600)
    shutil.copytree(site, tmp_path / "site")
    seen = sluice(*arguments(found, hollow, tmp_path / "site"))
    assert seen.code in (2, 3)
    assert "a bug in Sluice" not in seen.err
    assert "Traceback" not in seen.err
    with suppress(NotADirectoryError):
        assert list(hollow.iterdir()) == []


# -- a full disk ------------------------------------------------------------------------------

MUCH = (
    # Commands that work for long or write much, with the path that they write to.
    ("federate --plant line --days 4 --out made", "made"),
    ("demo --fast --out made", "made"),
    ("lab run paper --only batadal --data {}/records --out made", "."),
    ("lab resume {}/results", "{}/results"),
    ("attest setup --rules {}/rules.json --system unsafe --out made", "."),
    (
        (
            "attest prove {}/batch.parquet --keys {}/keys --commit {}/commit.json "
            "--out {}/proof.json"
        ),
        "{}",
    ),
    ("check {}/batch.parquet --rules {}/rules.json --prove made", "."),
    ("coordinator init made --reference {}/batch.parquet", "."),
    ("coordinator run {}/water", "{}/water"),
    ("coordinator resume {}/water", "{}/water"),
    ("plant run {}/north --reveal-rows", "{}/north"),
)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file may grow past this size; a full disk stops a write in the same way."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def handlers() -> Iterator[None]:
    """Long-running commands handle SIGTERM; the tests do not."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(
    ("command", "folder"), MUCH, ids=[" ".join(one[0].split()[:2]) for one in MUCH]
)
def test_a_disk_that_is_full_before_the_work(
    sluice: Callable[..., Outcome], site: Path, command: str, folder: str
) -> None:
    before = list(files(site))
    with files_of_at_most(1 << 20):
        seen = sluice(*command.replace("{}", str(site)).split())
    assert (seen.code, seen.out) == (2, ""), seen
    sentence = seen.err.splitlines()[-1]
    where = folder.replace("{}", str(site))
    assert sentence.startswith(f"sluice: cannot write to the folder {where}: File too large; ")
    assert "needs 16 MB there: free some space" in sentence
    assert list(files(site)) == before
    assert list(Path("made").rglob("*") if Path("made").exists() else ()) == []


WRITING = (
    # Commands that write one file, found while they write it.
    "data make line --days 1 --out made.csv",
    "data convert {}/batch.parquet --out made.parquet",
    "data inspect {}/batch.parquet --html made.html",
    "mine {}/batch.parquet --out made.json --fit 0.4 --calibrate 0.4",
    "check {}/batch.parquet --rules {}/rules.json --html made.html",
    "check {}/batch.parquet --rules {}/rules.json --png made.png",
    "score {}/batch.parquet --model {}/model.safetensors --out made.csv",
    "watch {}/batch.parquet --rules {}/rules.json --replay --quiet --json --html made.html",
    "rules policy --out made.toml",
    "coordinator export-log {}/water --out made.jsonl",
)


@pytest.mark.parametrize("command", WRITING, ids=lambda command: command.split(" {")[0])
def test_a_disk_that_becomes_full_while_a_file_is_written(
    site: Path, tmp_path: Path, command: str
) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); "
    start = "from sluice.cli import main; import sys; main(sys.argv[1:])"
    words = command.replace("{}", str(site)).split()
    done = subprocess.run(
        [sys.executable, "-c", limit + start, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "SLUICE_CACHE": str(tmp_path / "cache")},
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith("sluice: cannot write made.")
    assert "File too large; free some space" in sentence
    assert "Traceback" not in done.stderr
    assert list(tmp_path.rglob("*made*")) == []


# -- a port in use ----------------------------------------------------------------------------


@pytest.fixture
def used() -> Iterator[int]:
    """A port on which another process listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize(
    ("option", "whose", "remedy"),
    [
        ("--port", "the proxy", "give --no-proxy if it is your own proxy"),
        ("--link-port", "Flower", "write another port to made/link.port"),
        ("--filter-port", "the filter", "write another port to made/filter.port"),
    ],
    ids=["the proxy", "Flower", "the filter"],
)
def test_a_coordinator_whose_port_another_process_uses(  # noqa: PLR0917 - fixtures
    sluice: Callable[..., Outcome],
    site: Path,
    used: int,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    whose: str,
    remedy: str,
) -> None:
    monkeypatch.setattr(hosting, "ENDING_S", 0.5)
    ports = {"--port": 48_443, "--link-port": 48_000, "--filter-port": 48_001, option: used}
    options = [word for pair in ports.items() for word in pair]
    reference = ("--reference", site / "batch.parquet", "--system", "unsafe")
    assert sluice("coordinator", "init", "made", *reference, *options).code == 0
    seen = sluice("coordinator", "run", "made", "--quiet", "--json")
    assert (seen.code, seen.out) == (2, "")
    assert seen.err == (
        f"sluice: {whose} cannot listen on port {used} at 127.0.0.1: another process uses it; end "
        f"that process, or {remedy}\n"
    )
    assert not Path("made", "flower").exists()  # nothing was started
    assert not Path("made", "proxy", "filter.log").exists()


def test_a_dashboard_whose_port_another_process_uses(
    sluice: Callable[..., Outcome], site: Path, used: int
) -> None:
    seen = sluice("dashboard", site / "water", "--port", used)
    assert (seen.code, seen.out) == (2, "")
    assert seen.err == (
        f"sluice: the dashboard cannot listen on port {used} at 127.0.0.1: another process uses "
        "it; give another --port, or end that process\n"
    )


# -- a folder in use --------------------------------------------------------------------------


def test_two_federations_in_one_folder(sluice: Callable[..., Outcome], tmp_path: Path) -> None:
    command = ("federate", "--plant", "line", "--days", "4", "--rounds", "500", "--out", "made")
    first = subprocess.Popen(
        [sys.executable, "-m", "sluice", *command, "--quiet"], stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while not Path("made", LOCK).exists():
            assert first.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.2)  # between the file and its lock
        second = sluice(*command, "--json")
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()
    assert (second.code, second.out) == (2, "")
    assert second.err == (
        "sluice: another 'sluice federate' runs in made; wait for it, or give another --out\n"
    )
    with alone_in(tmp_path / "work" / "made", "a killed federation still holds the folder"):
        pass
