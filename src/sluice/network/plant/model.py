"""The last model a plant received from the federation, saved for its operators to inspect."""

from dataclasses import dataclass
from pathlib import Path

from sluice.detector import Parameters
from sluice.files import atomically
from sluice.network.wire import read_parameters, write_parameters

__all__ = ["SeenModel", "keep_model", "last_model"]

FILE = "model.weights"
ROUND_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeenModel:
    """The weights, and the number of rounds for which they were trained."""

    round: int
    parameters: Parameters


def keep_model(folder: Path, parameters: Parameters, *, round_: int) -> None:
    """Save the weights with which a round was opened."""
    with atomically(folder / FILE, private=True) as draft:
        draft.write_bytes(round_.to_bytes(ROUND_BYTES, "big") + write_parameters(parameters))


def last_model(folder: Path, *, count: int) -> SeenModel | None:
    """Return the last model received; None before the first round is done."""
    path = folder / FILE
    if not path.exists():
        return None
    raw = path.read_bytes()
    round_ = int.from_bytes(raw[:ROUND_BYTES], "big")
    if round_ == 0:
        return None  # the initial weights, equal for all plants
    return SeenModel(round=round_, parameters=read_parameters(raw[ROUND_BYTES:], count=count))
