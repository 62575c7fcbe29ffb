"""Grid files: which federations an experiment runs, as TOML.

    name = "batadal"

    [training]                      # the same for every cell
    rounds = 25
    batch = 128

    [record.batadal]                # a clean and a labelled record, in the data folder
    clean = "batadal/dataset03.csv"
    test = "batadal/dataset04.csv"
    clients = 5
    instead = "treatment"           # substitute if the files are absent

    [record.treatment]              # a simulated plant
    plant = "treatment"
    every = 5

    [[study]]                       # every combination is a cell
    name = "removal"
    records = ["batadal"]
    rules = ["fedavg", "fltrust"]
    attacks = ["replay", "channel-roll"]
    modes = ["clean", "naive", "physics-aware", "gated"]
    invariants = ["paper-wide"]
    seeds = [0, 1, 2]

An unknown key is refused; the error names the most similar known key.
"""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sluice.detector import DetectorKind
from sluice.errors import GridError
from sluice.evaluation import Unlabelled
from sluice.files import parse_toml, read_at_most

__all__ = [
    "Grid",
    "RecordTable",
    "StudyTable",
    "TrainingTable",
    "nearest",
    "preset_names",
    "read_grid",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTable:
    """Training settings of every cell; the defaults are those of the paper's code."""

    rounds: int = 25
    epochs: int = 2
    batch: int = 128
    detector: str = DetectorKind.AUTOENCODER.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTable:
    """A record: two files or a simulated plant, and how it is split among clients."""

    clean: str | None = None  # a file or folder in the data folder
    test: str | None = None  # the labelled record
    plant: str | None = None  # a simulated plant, instead of the two files
    days: float | None = None  # simulated time
    sites: bool = False  # every client is a plant of a different size; only for plant `line`
    every: int = 1  # keep every n-th row
    skip_s: float = 0.0  # start-up time, dropped from the clean record
    unlabelled: Unlabelled = Unlabelled.EXCLUDE
    clients: int = 10
    liar_share: float = 0.3
    target_share: float = 0.25
    instead: str | None = None  # the record to use if the files of this one are absent


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTable:
    """The axes of one study; every combination is a cell."""

    name: str
    records: tuple[str, ...]
    rules: tuple[str, ...]
    modes: tuple[str, ...]
    seeds: tuple[int, ...]
    attacks: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()
    clients: tuple[int, ...] = ()  # empty: the number in the record table


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A whole grid file."""

    name: str
    record: Mapping[str, RecordTable]
    study: tuple[StudyTable, ...]
    training: TrainingTable = field(default_factory=TrainingTable)


_GRID = TypeAdapter(Grid)
LARGEST = 1 << 20  # bytes
_PRESETS = files("sluice.lab.grids") / "presets"


def preset_names() -> tuple[str, ...]:
    """Return the names of the grids that ship with Sluice."""
    names = (entry.name for entry in _PRESETS.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def read_grid(name: str) -> Grid:
    """Read a grid from a file, or by name if it ships with Sluice."""
    try:
        if name in preset_names():
            text = (_PRESETS / f"{name}.toml").read_text(encoding="utf-8")
        else:
            raw = read_at_most(Path(name), LARGEST + 1)
            if len(raw) > LARGEST:
                raise GridError(
                    f"grid {name!r} is too large: expected at most {LARGEST:,} bytes, got more; "
                    "check that it is a grid file"
                )
            text = raw.decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        hint = nearest(Path(name).name.removesuffix(".toml"), preset_names())
        raise GridError(
            f"grid {name!r} cannot be read ({error.strerror}) and is not one of the grids that "
            f"ship with Sluice: {', '.join(preset_names())}{hint}"
        ) from None
    except UnicodeDecodeError:
        raise GridError(f"grid {name!r} is not a UTF-8 text file; save it as UTF-8") from None
    return parse_grid(text, where=f"grid {name!r}")


def parse_grid(text: str, *, where: str) -> Grid:
    """Check the keys and value types of a grid file; `planned` checks the names in it."""
    document = parse_toml(text, where, error=GridError)
    _refuse_unknown(document, Grid, where)
    _refuse_unknown(_table(document, "training", where), TrainingTable, f"{where}: [training]")
    for name, table in _table(document, "record", where).items():
        if not isinstance(table, dict):
            raise GridError(f"{where}: record must be a table of records; write [record.NAME]")
        _refuse_unknown(table, RecordTable, f"{where}: [record.{name}]")
    for study in _studies(document, where):
        study_name = study.get("name", "without a name")
        _refuse_unknown(study, StudyTable, f"{where}: study {study_name!r}")
    try:
        # As JSON, because strict validation of Python objects refuses a list for a tuple.
        return _GRID.validate_json(json.dumps(document, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise GridError(f"{where}: {place}: {first['msg']}") from None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name, or an empty text if none is similar."""
    matches = difflib.get_close_matches(name, tuple(known), n=1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _table(document: Mapping[str, object], key: str, where: str) -> Mapping[str, object]:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise GridError(f"{where}: {key} must be a table, got {table!r}; write [{key}]")
    return table


def _studies(document: Mapping[str, object], where: str) -> list[Mapping[str, object]]:
    studies = document.get("study", [])
    if not isinstance(studies, list) or not all(isinstance(study, dict) for study in studies):
        raise GridError(f"{where}: a study is written as [[study]], in double brackets")
    return studies


def _refuse_unknown(table: Mapping[str, object], known: type, where: str) -> None:
    names = tuple(item.name for item in fields(known))
    for key in table:
        if key not in names:
            hint = nearest(key, names) or f"; known are {', '.join(names)}"
            raise GridError(f"{where}: unknown key {key!r}{hint}")
